/*
 * The web server asks an authorizer before anything has become of a request:
 * there is no body, no backend and no response. A limit that needs one of
 * them has to say that it is for the requests of a responder.
 */
#include "config/load.h"

#include "config/roles.h"

static bool
is_served(const struct load *l, enum config_role role)
{
	return roles_has(&l->config->gateway, role);
}

/* what: it needs, to stand before "and an authorizer has none". */
static void
report_need(struct load *l, size_t at, const char *key, const char *what)
{
	struct place place = load_place(l->limit[at], key);

	finding_error(&l->findings, &place,
	    "%s, and an authorizer has none: that takes role = responder",
	    what);
}

static void
check_needs(struct load *l, size_t at)
{
	const struct config_limit *limit = &l->config->limit[at];

	if (limit->algorithm == ALGORITHM_CONCURRENCY)
		report_need(l, at, "algorithm",
		    "concurrency goes by the end of a response");
	if (limit->algorithm == ALGORITHM_LEAKY_BUCKET)
		report_need(l, at, "algorithm",
		    "leaky_bucket holds requests back from a backend");
	if (limit->count.some)
		report_need(l, at, "count", "goes by the response");
	if (limit->cost.kind == COST_RESPONSE)
		report_need(l, at, "cost", "goes by the response");
	if (limit->lease > 0)
		report_need(l, at, "lease",
		    "is for requests that are passed on to a backend");
	if (limit->backend != NULL)
		report_need(l, at, "backend", "requests are passed on to it");
	if (key_uses(&limit->key, KEY_FORM))
		report_need(l, at, "key", "form: is a part of the body");
}

/* Can requests of an authorizer come under it? */
static bool
is_for_authorizers(const struct load *l, const struct config_limit *limit)
{
	return limit->role == CONFIG_ROLE_AUTHORIZER ||
	    (limit->role == CONFIG_ROLE_ANY &&
		is_served(l, CONFIG_ROLE_AUTHORIZER));
}

static void
check_limit(struct load *l, size_t at)
{
	const struct config_limit *limit = &l->config->limit[at];
	struct place place = load_place(l->limit[at], "role");

	if (is_for_authorizers(l, limit))
		check_needs(l, at);
	if (limit->role != CONFIG_ROLE_ANY &&
	    !is_served(l, (enum config_role)limit->role))
		finding_warning(&l->findings, &place,
		    "the limit never applies: roles in [gateway] has no %s",
		    limit->role == CONFIG_ROLE_RESPONDER ? "responder"
							 : "authorizer");
}

void
load_roles(struct load *l)
{
	if (l->config->gateway.roles == 0) /* a wrong value, which was said */
		return;
	for (size_t i = 0; i < l->config->n_limits; i++)
		check_limit(l, i);
	if (is_served(l, CONFIG_ROLE_RESPONDER))
		return;
	for (size_t i = 0; i < l->config->n_backends; i++)
		finding_warning(&l->findings, &l->backend[i]->place,
		    "gets no request: roles in [gateway] has no responder");
}
