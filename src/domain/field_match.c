#include "domain/field_match.h"

#include "pure/query.h"

/* p NULL: it is missing. */
static bool
value_matches(const struct config_pair *pair, struct str value)
{
	if (pair->value == NULL)
		return value.len == 0;
	return value.p != NULL && match_may(pair->value, value);
}

static bool
header_matches(const struct config_pair *pair, const struct subject *s)
{
	struct str name = str_of(pair->name);
	const struct params *params = s->params;

	if (value_matches(pair, subject_header(s, name)))
		return true;
	for (size_t i = 0; i < params->n; i++)
		if (str_eq(params->at[i].name, name) &&
		    value_matches(pair, params->at[i].value))
			return true;
	return false;
}

/* Without memory it matches: nobody is to get around a limit so. */
static bool
query_matches(const struct config_pair *pair, const struct subject *s)
{
	struct str query = params_get(s->params, STR("QUERY_STRING"));
	struct str value;

	return !query_get(query, str_of(pair->name), s->arena, &value) ||
	    value_matches(pair, value);
}

static bool
one_matches(const struct config_pairs *pairs, const struct subject *s,
    bool matches(const struct config_pair *, const struct subject *))
{
	for (size_t i = 0; i < pairs->n; i++)
		if (matches(&pairs->at[i], s))
			return true;
	return pairs->n == 0;
}

bool
field_match(const struct config_limit *limit, const struct subject *s)
{
	return one_matches(&limit->header, s, header_matches) &&
	    one_matches(&limit->query, s, query_matches);
}
