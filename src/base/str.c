#include "base/str.h"

#include <string.h>

struct str
str_of(const char *text)
{
	return (struct str){ text, text == NULL ? 0 : strlen(text) };
}

static char
fold(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Not strncasecmp: that ends at a NUL, and asks the locale. */
bool
str_eq_nocase(struct str a, struct str b)
{
	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++)
		if (fold(a.p[i]) != fold(b.p[i]))
			return false;
	return true;
}

bool
str_starts(struct str s, struct str prefix)
{
	return s.len >= prefix.len &&
	    str_eq((struct str){ s.p, prefix.len }, prefix);
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

struct str
str_trim(struct str s)
{
	while (s.len > 0 && is_blank(s.p[0])) {
		s.p++;
		s.len--;
	}
	while (s.len > 0 && is_blank(s.p[s.len - 1]))
		s.len--;
	return s;
}

struct str
str_cut(struct str *rest, char separator)
{
	struct str head = *rest;
	const char *at = NULL;

	if (rest->len > 0)
		at = memchr(rest->p, separator, rest->len);
	if (at == NULL) {
		*rest = STR_NONE;
		return head;
	}
	head.len = (size_t)(at - head.p);
	rest->p = at + 1;
	rest->len -= head.len + 1;
	return head;
}

struct str
str_of_u64(uint64_t number, char digits[STR_DIGITS_MAX])
{
	size_t at = STR_DIGITS_MAX;

	do
		digits[--at] = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	return (struct str){ digits + at, STR_DIGITS_MAX - at };
}

bool
str_to_u64(struct str s, uint64_t max, uint64_t *value)
{
	uint64_t sum = 0;

	if (s.len == 0)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		uint64_t digit = (uint64_t)(unsigned char)s.p[i] - '0';

		if (digit > 9 || sum > (max - digit) / 10 || digit > max)
			return false;
		sum = sum * 10 + digit;
	}
	*value = sum;
	return true;
}
