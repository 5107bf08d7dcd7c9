/*
 * A pattern and a text, a line end between them. A glob agrees with the
 * plainest way to match one; a list or regex compiles or says why not.
 */
#include "pure/match.h"

#include "fuzz.h"

#define NAIVE_MAX 64 /* bytes */

/* reached[i]: what was read of the pattern matches the first i bytes. */
static bool
naive(struct str pattern, struct str text)
{
	bool reached[NAIVE_MAX + 1] = { true };

	for (size_t p = 0; p < pattern.len; p++) {
		if (pattern.p[p] == '*') {
			for (size_t i = 1; i <= text.len; i++)
				reached[i] |= reached[i - 1];
			continue;
		}
		for (size_t i = text.len; i > 0; i--)
			reached[i] =
			    reached[i - 1] && text.p[i - 1] == pattern.p[p];
		reached[0] = false;
	}
	return reached[text.len];
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct str text = { (const char *)bytes, len };
	struct str pattern = str_cut(&text, '\n');
	struct match *match;
	struct err err;

	if (text.p == NULL)
		return 0;
	if (pattern.len <= NAIVE_MAX && text.len <= NAIVE_MAX)
		FUZZ_EXPECT(match_glob(pattern, text) == naive(pattern, text));
	match = match_new(pattern, false, &err);
	if (match != NULL)
		match_test(match, text);
	match_free(match);
	return 0;
}
