#include "domain/tier.h"

/* Two values of one name belong to no tier: nobody knows which one counts. */
static bool
has_value(const struct config_condition *c, const struct subject *s)
{
	struct str name = str_of(c->param);

	if (params_disagree(s->params, name))
		return false;
	if (c->known != NULL)
		return known_has(c->known, subject_header(s, name));
	return str_eq(subject_header(s, name), c->value);
}

static bool
is_met(const struct config_condition *c, const struct subject *s)
{
	switch (c->kind) {
	case CONFIG_WHEN_CLIENT:
		return s->has_client && cidr_contains(&c->client, &s->client);
	case CONFIG_WHEN_PARAM:
	case CONFIG_WHEN_HEADER:
		break;
	}
	return has_value(c, s);
}

static bool
is_in(const struct config_tier *tier, const struct subject *s)
{
	for (size_t i = 0; i < tier->when.n; i++)
		if (is_met(&tier->when.at[i], s))
			return true;
	return false;
}

const struct rates *
tier_rates(const struct config_limit *limit, const struct subject *subject)
{
	for (size_t i = 0; i < limit->n_tiers; i++)
		if (is_in(limit->tier[i].tier, subject))
			return &limit->tier[i].rates;
	return &limit->rates;
}
