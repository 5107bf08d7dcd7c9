#include "pure/percent.h"

/* -1: no hex digit. */
static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

size_t
percent_byte(struct str s, size_t at, char *byte)
{
	int high, low;

	*byte = s.p[at];
	if (s.p[at] != '%' || s.len - at < 3)
		return 1;
	high = hex_value(s.p[at + 1]);
	low = hex_value(s.p[at + 2]);
	if (high < 0 || low < 0)
		return 1;
	*byte = (char)(high * 16 + low);
	return 3;
}

size_t
percent_form_byte(struct str s, size_t at, char *byte)
{
	size_t taken = percent_byte(s, at, byte);

	if (taken == 1 && *byte == '+')
		*byte = ' ';
	return taken;
}

bool
percent_decode(struct str s, size_t byte(struct str, size_t, char *),
    struct arena *arena, struct str *decoded)
{
	char *out = arena_alloc(arena, s.len + 1);
	size_t n = 0;

	if (out == NULL)
		return false;
	for (size_t at = 0; at < s.len; n++)
		at += byte(s, at, &out[n]);
	*decoded = (struct str){ out, n };
	return true;
}
