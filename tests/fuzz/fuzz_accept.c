/*
 * Any bytes as what a client or an application says in a field: Accept, its
 * own rate-limit numbers, lists, names, origins. Said twice it is the same.
 */
#include "pure/accept.h"
#include "pure/field.h"
#include "pure/numbers.h"

#include <string.h>

#include "base/buf.h"
#include "fuzz.h"

static void
try_accept(struct str text)
{
	enum accept_type type = accept_choose(text);
	struct buf twice;

	FUZZ_EXPECT(type < ACCEPT_TYPES);
	/* A string that does not end would take in what follows it. */
	if (text.len == 0 || memchr(text.p, '"', text.len) != NULL)
		return;
	buf_init(&twice);
	buf_add_str(&twice, text);
	buf_add_char(&twice, ',');
	buf_add_str(&twice, text);
	FUZZ_EXPECT(accept_choose(buf_str(&twice)) == type);
	buf_release(&twice);
}

static void
try_cut(struct str text)
{
	size_t bytes = 0;
	size_t pieces = 0;

	for (struct str rest = text; rest.p != NULL; pieces++)
		bytes += field_cut(&rest, ",;").len;
	FUZZ_EXPECT(bytes + (pieces > 0 ? pieces - 1 : 0) == text.len);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct str text = { (const char *)bytes, len };
	int64_t remaining = -1;

	try_accept(text);
	try_cut(text);
	if (numbers_remaining(STR("RateLimit"), text, &remaining))
		FUZZ_EXPECT(remaining >= 0);
	remaining = -1;
	if (numbers_remaining(STR("X-RateLimit-Remaining"), text, &remaining))
		FUZZ_EXPECT(remaining >= 0);
	if (field_is_name(text))
		FUZZ_EXPECT(field_is_value(text));
	if (field_is_origin(text))
		FUZZ_EXPECT(field_is_value(text));
	return 0;
}
