#include "pure/query.h"

#include "pure/percent.h"

static size_t
query_byte(struct str s, size_t at, char *byte)
{
	size_t taken = percent_byte(s, at, byte);

	if (taken == 1 && *byte == '+')
		*byte = ' ';
	return taken;
}

/* Is it the name, once decoded? */
static bool
is_name(struct str raw, struct str name)
{
	size_t n = 0;

	for (size_t at = 0; at < raw.len; n++) {
		char byte;

		at += query_byte(raw, at, &byte);
		if (n == name.len || byte != name.p[n])
			return false;
	}
	return n == name.len;
}

static bool
decode(struct str raw, struct arena *arena, struct str *value)
{
	char *out = arena_alloc(arena, raw.len + 1);
	size_t n = 0;

	if (out == NULL)
		return false;
	for (size_t at = 0; at < raw.len; n++)
		at += query_byte(raw, at, &out[n]);
	*value = (struct str){ out, n };
	return true;
}

bool
query_get(
    struct str query, struct str name, struct arena *arena, struct str *value)
{
	*value = STR_NONE;
	while (query.p != NULL) {
		struct str pair = str_cut(&query, '&');
		struct str pair_name = str_cut(&pair, '=');

		/* What two `&` have between them is no pair. */
		if ((pair_name.len > 0 || pair.p != NULL) &&
		    is_name(pair_name, name))
			return decode(pair, arena, value);
	}
	return true;
}
