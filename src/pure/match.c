/*
 * Two kinds behind one question. Globs are matched by the usual walk with
 * one place to go back to: a later `*` makes all earlier ones final.
 *
 * PCRE2 counts its steps anew at every place where a match may start, so
 * the limit is per place: enough for a scan or two of a long text, far too
 * little for nested repeats. No JIT: memory that is both written and run
 * is forbidden where the service is hardened.
 */
#include "pure/match.h"

#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#define STEPS          20000 /* plus STEPS_PER_BYTE for each of the text */
#define STEPS_PER_BYTE 4
#define DEPTH          20000
#define HEAP_KIB       4096
#define ERROR_TEXT     128

struct match {
	bool nocase;
	char *text; /* what the globs point into */
	struct str *glob;
	size_t n;
	pcre2_code *regex; /* NULL: globs */
};

static char
fold(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool
same(char a, char b, bool nocase)
{
	return a == b || (nocase && fold(a) == fold(b));
}

static bool
glob(struct str pattern, struct str text, bool nocase)
{
	size_t p = 0;
	size_t t = 0;
	size_t star = SIZE_MAX; /* behind the last `*` seen */
	size_t star_text = 0;   /* where its run ends for now */

	while (t < text.len) {
		if (p < pattern.len && pattern.p[p] == '*') {
			star = ++p;
			star_text = t;
		} else if (p < pattern.len &&
		    same(pattern.p[p], text.p[t], nocase)) {
			p++;
			t++;
		} else if (star != SIZE_MAX) {
			p = star;
			t = ++star_text;
		} else {
			return false;
		}
	}
	while (p < pattern.len && pattern.p[p] == '*')
		p++;
	return p == pattern.len;
}

bool
match_glob(struct str pattern, struct str text)
{
	return glob(pattern, text, false);
}

/*
 * Bytes, never UTF: a text that is no UTF-8 would match nothing, and so get
 * around a limit. For the same reason `.` takes a newline too, and `$` is
 * the end alone.
 */
static bool
compile(struct match *m, struct str pattern, struct err *err)
{
	uint32_t options = PCRE2_NEVER_UTF | PCRE2_NEVER_UCP | PCRE2_DOTALL |
	    PCRE2_DOLLAR_ENDONLY | (m->nocase ? PCRE2_CASELESS : 0);
	PCRE2_UCHAR text[ERROR_TEXT] = "";
	size_t offset;
	int code;

	if (pattern.len == 0)
		return err_set(err, "no regex behind the `~`");
	m->regex = pcre2_compile(
	    (PCRE2_SPTR)pattern.p, pattern.len, options, &code, &offset, NULL);
	if (m->regex != NULL)
		return true;
	pcre2_get_error_message(code, text, sizeof(text));
	return err_set(err, "the regex `%.*s` is wrong at its byte %zu: %s",
	    STR_ARG(pattern), offset + 1, (const char *)text);
}

static size_t
count_items(struct str list)
{
	size_t n = 0;

	while (list.p != NULL) {
		str_cut(&list, ',');
		n++;
	}
	return n;
}

static bool
split_globs(struct match *m, struct str value, struct err *err)
{
	struct str rest = { m->text, value.len };

	m->glob = calloc(count_items(rest), sizeof(*m->glob));
	if (m->glob == NULL)
		return err_set(err, "out of memory");
	while (rest.p != NULL) {
		struct str item = str_trim(str_cut(&rest, ','));

		if (item.len == 0)
			return err_set(err,
			    "`%.*s`: an empty item; `*` matches everything",
			    STR_ARG(value));
		m->glob[m->n++] = item;
	}
	return true;
}

static bool
fill(struct match *m, struct str value, struct err *err)
{
	m->text = malloc(value.len + 1);
	if (m->text == NULL)
		return err_set(err, "out of memory");
	if (value.len > 0)
		memcpy(m->text, value.p, value.len);
	m->text[value.len] = '\0';
	if (value.len > 0 && value.p[0] == '~')
		return compile(m,
		    str_trim((struct str){ value.p + 1, value.len - 1 }), err);
	return split_globs(m, value, err);
}

struct match *
match_new(struct str value, bool nocase, struct err *err)
{
	struct match *m = calloc(1, sizeof(*m));

	if (m == NULL) {
		err_set(err, "out of memory");
		return NULL;
	}
	m->nocase = nocase;
	if (!fill(m, str_trim(value), err)) {
		match_free(m);
		return NULL;
	}
	return m;
}

void
match_free(struct match *m)
{
	if (m == NULL)
		return;
	pcre2_code_free(m->regex);
	free(m->glob);
	free(m->text);
	free(m);
}

enum found { FOUND_NO, FOUND_YES, FOUND_GAVE_UP };

static enum found
search_within(const struct match *m, struct str text,
    pcre2_match_context *limits, pcre2_match_data *found)
{
	PCRE2_SPTR subject = (PCRE2_SPTR)(text.len > 0 ? text.p : "");
	size_t steps = STEPS + STEPS_PER_BYTE * text.len;
	int rc;

	pcre2_set_match_limit(
	    limits, steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX);
	pcre2_set_depth_limit(limits, DEPTH);
	pcre2_set_heap_limit(limits, HEAP_KIB);
	rc = pcre2_match(m->regex, subject, text.len, 0, 0, found, limits);
	if (rc >= 0)
		return FOUND_YES;
	return rc == PCRE2_ERROR_NOMATCH ? FOUND_NO : FOUND_GAVE_UP;
}

static enum found
search(const struct match *m, struct str text)
{
	pcre2_match_context *limits = pcre2_match_context_create(NULL);
	pcre2_match_data *data = pcre2_match_data_create(1, NULL);
	enum found found = FOUND_GAVE_UP;

	if (limits != NULL && data != NULL)
		found = search_within(m, text, limits, data);
	pcre2_match_data_free(data);
	pcre2_match_context_free(limits);
	return found;
}

static enum found
find(const struct match *m, struct str text)
{
	if (m == NULL)
		return FOUND_YES;
	if (m->regex != NULL)
		return search(m, text);
	for (size_t i = 0; i < m->n; i++)
		if (glob(m->glob[i], text, m->nocase))
			return FOUND_YES;
	return FOUND_NO;
}

bool
match_test(const struct match *m, struct str text)
{
	return find(m, text) == FOUND_YES;
}

bool
match_may(const struct match *m, struct str text)
{
	return find(m, text) != FOUND_NO;
}
