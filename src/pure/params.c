#include "pure/params.h"

#include <string.h>

bool
params_read(struct params *params, char *const *envp, struct arena *arena)
{
	size_t n = 0;

	while (envp[n] != NULL)
		n++;
	params->n = 0;
	params->at = arena_alloc(arena, (n + 1) * sizeof(*params->at));
	if (params->at == NULL)
		return false;
	for (size_t i = 0; i < n; i++) {
		const char *equals = strchr(envp[i], '=');
		struct param *p = &params->at[params->n];

		if (equals == NULL)
			continue;
		p->name = (struct str){ envp[i], (size_t)(equals - envp[i]) };
		p->value = str_of(equals + 1);
		if (!str_eq(p->name, STR("FCGI_ROLE")))
			params->n++;
	}
	return true;
}

/* Most names differ in length or in their last letter. */
static bool
has_name(const struct param *p, struct str name)
{
	size_t n = name.len;

	return p->name.len == n &&
	    (n == 0 ||
		(p->name.p[n - 1] == name.p[n - 1] &&
		    memcmp(p->name.p, name.p, n) == 0));
}

struct str
params_get(const struct params *params, struct str name)
{
	for (size_t i = 0; i < params->n; i++)
		if (has_name(&params->at[i], name))
			return params->at[i].value;
	return STR_NONE;
}

size_t
params_count(const struct params *params, struct str name)
{
	size_t count = 0;

	for (size_t i = 0; i < params->n; i++)
		if (has_name(&params->at[i], name))
			count++;
	return count;
}

bool
params_disagree(const struct params *params, struct str name)
{
	struct str first = params_get(params, name);

	for (size_t i = 0; i < params->n; i++)
		if (has_name(&params->at[i], name) &&
		    !str_eq(params->at[i].value, first))
			return true;
	return false;
}
