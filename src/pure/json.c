#include "pure/json.h"

#include <stdint.h>
#include <string.h>

#define DEPTH_MAX 64

size_t
json_utf8_length(struct str s)
{
	const unsigned char *p = (const unsigned char *)s.p;
	uint32_t code;
	size_t n;

	if (s.len == 0 || p[0] < 0x80)
		return s.len == 0 ? 0 : 1;
	n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (p[0] < 0xc2 || p[0] > 0xf4 || s.len < n)
		return 0;
	code = p[0] & (0xffU >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3fU);
	}
	/* Overlong, a surrogate, or beyond Unicode. */
	if ((n == 3 && code < 0x800) || (n == 4 && code < 0x10000) ||
	    (code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff)
		return 0;
	return n;
}

void
json_add_escaped(struct buf *out, struct str text)
{
	while (text.len > 0) {
		unsigned char c = (unsigned char)text.p[0];
		size_t n = json_utf8_length(text);

		if (n == 0)
			buf_addf(out, "\\ufffd");
		else if (c == '"' || c == '\\')
			buf_addf(out, "\\%c", c);
		else if (c < ' ' || c == 0x7f)
			buf_addf(out, "\\u%04x", c);
		else
			buf_add(out, text.p, n);
		n = n == 0 ? 1 : n;
		text.p += n;
		text.len -= n;
	}
}

/* What is being read, and how deep inside. */
struct reader {
	struct str text;
	size_t at;
	char open[DEPTH_MAX]; /* the brackets around it */
	size_t depth;
};

static char
peek(const struct reader *r)
{
	return r->at < r->text.len ? r->text.p[r->at] : '\0';
}

static bool
take(struct reader *r, char c)
{
	if (r->at >= r->text.len || r->text.p[r->at] != c)
		return false;
	r->at++;
	return true;
}

static void
skip_blanks(struct reader *r)
{
	while (r->at < r->text.len && strchr(" \t\r\n", peek(r)) != NULL &&
	    peek(r) != '\0')
		r->at++;
}

static bool
take_escape(struct reader *r)
{
	char c = peek(r);

	if (c == '\0' || strchr("\"\\/bfnrtu", c) == NULL)
		return false;
	r->at++;
	for (int i = 0; c == 'u' && i < 4; i++, r->at++)
		if (peek(r) == '\0' ||
		    strchr("0123456789abcdefABCDEF", peek(r)) == NULL)
			return false;
	return true;
}

static bool
take_string(struct reader *r)
{
	if (!take(r, '"'))
		return false;
	while (!take(r, '"')) {
		struct str rest = { r->text.p + r->at, r->text.len - r->at };
		size_t n = json_utf8_length(rest);

		if (take(r, '\\')) {
			if (!take_escape(r))
				return false;
		} else if (n == 0 || (unsigned char)rest.p[0] < ' ') {
			return false;
		} else {
			r->at += n;
		}
	}
	return true;
}

static bool
take_digits(struct reader *r)
{
	size_t from = r->at;

	while (peek(r) >= '0' && peek(r) <= '9')
		r->at++;
	return r->at > from;
}

static bool
take_number(struct reader *r)
{
	take(r, '-');
	if (!take(r, '0') && !take_digits(r))
		return false;
	if (take(r, '.') && !take_digits(r))
		return false;
	if (take(r, 'e') || take(r, 'E')) {
		if (!take(r, '+'))
			take(r, '-');
		return take_digits(r);
	}
	return true;
}

static bool
take_word(struct reader *r)
{
	static const struct str words[] = { { "true", 4 }, { "false", 5 },
		{ "null", 4 } };
	struct str rest = { r->text.p + r->at, r->text.len - r->at };

	for (size_t i = 0; i < 3; i++)
		if (str_starts(rest, words[i])) {
			r->at += words[i].len;
			return true;
		}
	return false;
}

/* "NAME":, where an object goes on. */
static bool
take_name(struct reader *r)
{
	if (r->depth == 0 || r->open[r->depth - 1] != '{')
		return true;
	skip_blanks(r);
	if (!take_string(r))
		return false;
	skip_blanks(r);
	return take(r, ':');
}

/* Opens what is opened here, up to a value that is none of these. */
static bool
take_value(struct reader *r, bool *is_whole)
{
	char c;

	skip_blanks(r);
	c = peek(r);
	*is_whole = true;
	if (c == '"')
		return take_string(r);
	if (c == '-' || (c >= '0' && c <= '9'))
		return take_number(r);
	if (c != '{' && c != '[')
		return take_word(r);
	if (r->depth == DEPTH_MAX)
		return false;
	r->at++;
	skip_blanks(r);
	if (take(r, c == '{' ? '}' : ']'))
		return true;
	r->open[r->depth++] = c;
	*is_whole = false;
	return take_name(r);
}

/* Closes what ends here; false: neither an end nor another item. */
static bool
take_ends(struct reader *r)
{
	while (r->depth > 0) {
		skip_blanks(r);
		if (take(r, ','))
			return take_name(r);
		if (!take(r, r->open[r->depth - 1] == '{' ? '}' : ']'))
			return false;
		r->depth--;
	}
	return true;
}

bool
json_is_valid(struct str text, size_t *at)
{
	struct reader r = { .text = text };
	bool is_good;
	bool is_whole;

	do {
		is_good =
		    take_value(&r, &is_whole) && (!is_whole || take_ends(&r));
	} while (is_good && (!is_whole || r.depth > 0));
	skip_blanks(&r);
	*at = r.at;
	return is_good && r.at == text.len;
}
