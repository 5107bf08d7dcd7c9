/*
 * Any bytes as a backend's response head. The first byte says where the
 * rest is cut in two: the outcome is that of the uncut bytes. No field of a
 * head that passes can break a line of the response it goes into.
 */
#include "pure/cgi_head.h"

#include <string.h>

#include "fuzz.h"

static enum cgi_head_state
feed(struct cgi_head *h, const char *bytes, size_t len, size_t cut)
{
	enum cgi_head_state state;

	cgi_head_init(h);
	state = cgi_head_feed(h, bytes, cut);
	if (state == CGI_HEAD_MORE && cut < len)
		state = cgi_head_feed(h, bytes + cut, len - cut);
	return state;
}

static void
expect_one_line(struct str s)
{
	FUZZ_EXPECT(s.len == 0 || memchr(s.p, '\n', s.len) == NULL);
	FUZZ_EXPECT(s.len == 0 || memchr(s.p, '\r', s.len) == NULL);
	FUZZ_EXPECT(s.len == 0 || memchr(s.p, '\0', s.len) == NULL);
}

static void
expect_same(const struct cgi_head *a, const struct cgi_head *b)
{
	FUZZ_EXPECT(a->status == b->status);
	FUZZ_EXPECT(a->status >= 100 && a->status <= 999);
	FUZZ_EXPECT(a->content_length == b->content_length);
	FUZZ_EXPECT(a->n_fields == b->n_fields);
	for (size_t i = 0; i < a->n_fields; i++) {
		FUZZ_EXPECT(str_eq(a->field[i].name, b->field[i].name));
		FUZZ_EXPECT(str_eq(a->field[i].value, b->field[i].value));
		expect_one_line(a->field[i].name);
		expect_one_line(a->field[i].value);
	}
	expect_one_line(a->reason);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct cgi_head whole, cut;
	enum cgi_head_state state;
	const char *text = (const char *)bytes + 1;
	size_t at;

	if (len < 2)
		return 0;
	len--;
	at = bytes[0] < len ? bytes[0] : len;
	state = feed(&whole, text, len, len);
	FUZZ_EXPECT(feed(&cut, text, len, at) == state);
	if (state == CGI_HEAD_DONE)
		expect_same(&whole, &cut);
	cgi_head_release(&whole);
	cgi_head_release(&cut);
	return 0;
}
