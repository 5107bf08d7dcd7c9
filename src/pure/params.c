#include "pure/params.h"

struct str
params_get(const struct params *params, struct str name)
{
	for (size_t i = 0; i < params->n; i++)
		if (str_eq(params->at[i].name, name))
			return params->at[i].value;
	return STR_NONE;
}

size_t
params_count(const struct params *params, struct str name)
{
	size_t count = 0;

	for (size_t i = 0; i < params->n; i++)
		if (str_eq(params->at[i].name, name))
			count++;
	return count;
}

bool
params_disagree(const struct params *params, struct str name)
{
	struct str first = params_get(params, name);

	for (size_t i = 0; i < params->n; i++)
		if (str_eq(params->at[i].name, name) &&
		    !str_eq(params->at[i].value, first))
			return true;
	return false;
}
