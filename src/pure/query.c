#include "pure/query.h"

#include "pure/percent.h"

/* Is it the name, once decoded? */
static bool
is_name(struct str raw, struct str name)
{
	size_t n = 0;

	for (size_t at = 0; at < raw.len; n++) {
		char byte;

		at += percent_form_byte(raw, at, &byte);
		if (n == name.len || byte != name.p[n])
			return false;
	}
	return n == name.len;
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
			return percent_decode(
			    pair, percent_form_byte, arena, value);
	}
	return true;
}
