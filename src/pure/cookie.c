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

bool
cookie_get(
    struct str header, struct str name, struct arena *arena, struct str *value)
{
	*value = STR_NONE;
	while (header.p != NULL) {
		struct str pair = str_cut(&header, ';');
		struct str pair_name = str_trim(str_cut(&pair, '='));

		if (pair.p != NULL && str_eq(pair_name, name))
			return percent_decode(unquoted(str_trim(pair)),
			    percent_byte, arena, value);
	}
	return true;
}
