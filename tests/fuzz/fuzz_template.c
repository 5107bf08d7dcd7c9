/*
 * Any bytes as a template and as what is put in: what the check lets pass
 * is, filled with anything, of its type still.
 */
#include "pure/json.h"
#include "pure/template.h"

#include <string.h>

#include "fuzz.h"

static void
try_json(struct str text, struct str value)
{
	const struct template_values values = { value, STR("1"), value, value };
	struct buf filled;
	struct err err;
	size_t at;

	if (!template_check(text, ACCEPT_JSON, &err))
		return;
	buf_init(&filled);
	template_fill(&filled, text, ACCEPT_JSON, &values);
	FUZZ_EXPECT(json_is_valid(buf_str(&filled), &at));
	FUZZ_EXPECT(at == filled.len);
	buf_release(&filled);
}

static void
try_escapes(struct str value)
{
	struct buf out;
	size_t at;

	buf_init(&out);
	buf_add_char(&out, '"');
	json_add_escaped(&out, value);
	buf_add_char(&out, '"');
	FUZZ_EXPECT(json_is_valid(buf_str(&out), &at));
	buf_reset(&out);
	template_add_html(&out, value);
	for (size_t i = 0; i < out.len; i++)
		FUZZ_EXPECT(
		    strchr("<>\"'", out.p[i]) == NULL || out.p[i] == '\0');
	buf_release(&out);
}

/* The first half is the template, the second what is put in. */
int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct str value = { (const char *)bytes, len };
	struct str text = str_cut(&value, '\n');
	struct str unknown = template_unknown(text);

	if (unknown.p != NULL)
		FUZZ_EXPECT(unknown.len > 2 && unknown.p[0] == '{');
	try_json(text, value);
	try_escapes(value);
	return 0;
}
