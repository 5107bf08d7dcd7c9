#include "pure/cookie.h"

#include "pure/percent.h"

static struct str
unquoted(struct str value)
{
	if (value.len >= 2 && value.p[0] == '"' &&
	    value.p[value.len - 1] == '"') {
		value.p++;
		value.len -= 2;
	}
	return value;
}

static bool
decode(struct str raw, struct arena *arena, struct str *value)
{
	char *out = arena_alloc(arena, raw.len + 1);
	size_t n = 0;

	if (out == NULL)
		return false;
	for (size_t at = 0; at < raw.len; n++)
		at += percent_byte(raw, at, &out[n]);
	*value = (struct str){ out, n };
	return true;
}

bool
cookie_get(
    struct str header, struct str name, struct arena *arena, struct str *value)
{
	*value = STR_NONE;
	while (header.p != NULL) {
		struct str pair = str_cut(&header, ';');
		struct str pair_name = str_trim(str_cut(&pair, '='));

		if (pair.p != NULL && str_eq(pair_name, name))
			return decode(unquoted(str_trim(pair)), arena, value);
	}
	return true;
}
