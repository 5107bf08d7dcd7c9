#include "pure/form.h"

#include "pure/query.h"

bool
form_is_urlencoded(struct str content_type)
{
	return str_eq_nocase(str_trim(str_cut(&content_type, ';')),
	    STR("application/x-www-form-urlencoded"));
}

bool
form_get(
    struct str body, struct str name, struct arena *arena, struct str *value)
{
	return query_get(body, name, arena, value);
}
