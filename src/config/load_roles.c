/*
 * The web server asks an authorizer before anything has become of a request:
 * there is no body, no backend and no response. In the cgi role the process
 * becomes the script: it reads no body, sees no response, and counts nothing
 * beyond its own request. A limit that needs one of these has to say that it
 * is for the requests of a responder.
 */
#include "config/load.h"

#include "config/roles.h"

static const char *const role_names[] = {
	[CONFIG_ROLE_RESPONDER] = "responder",
	[CONFIG_ROLE_AUTHORIZER] = "authorizer",
	[CONFIG_ROLE_CGI] = "cgi",
};

static bool
is_served(const struct load *l, enum config_role role)
{
	return roles_has(&l->config->gateway, role);
}

/* Can requests of that role come under it? */
static bool
is_for(const struct load *l, const struct config_limit *limit,
    enum config_role role)
{
	return limit->role == role ||
	    (limit->role == CONFIG_ROLE_ANY && is_served(l, role));
}

/* what: it needs, to stand before "and an authorizer has none". */
static void
report_need(struct load *l, size_t at, const char *key, const char *what)
{
	struct place place = load_place(l->limit[at], key);
	bool asked = is_for(l, &l->config->limit[at], CONFIG_ROLE_AUTHORIZER);

	finding_error(&l->findings, &place,
	    "%s, and %s: that takes role = responder", what,
	    asked ? "an authorizer has none" : "the cgi role sees none");
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

/* A process for each request has no count of its own to keep. */
static void
check_counts(struct load *l, size_t at)
{
	const struct config_limit *limit = &l->config->limit[at];
	struct place place = load_place(l->limit[at], "scope");

	if (limit->scope == CONFIG_SCOPE_LOCAL)
		finding_error(&l->findings, &place,
		    "local counts would end with each request of the cgi "
		    "role: that takes role = responder or authorizer");
	place = load_place(l->limit[at], "on_outage");
	if (limit->scope == CONFIG_SCOPE_SHARED &&
	    limit->on_outage == CONFIG_OUTAGE_LOCAL)
		finding_warning(&l->findings, &place,
		    "in the cgi role local counts end with each request: "
		    "there it is as allow");
}

static void
check_limit(struct load *l, size_t at)
{
	const struct config_limit *limit = &l->config->limit[at];
	struct place place = load_place(l->limit[at], "role");

	if (is_for(l, limit, CONFIG_ROLE_AUTHORIZER) ||
	    is_for(l, limit, CONFIG_ROLE_CGI))
		check_needs(l, at);
	if (is_for(l, limit, CONFIG_ROLE_CGI))
		check_counts(l, at);
	if (limit->role != CONFIG_ROLE_ANY &&
	    !is_served(l, (enum config_role)limit->role))
		finding_warning(&l->findings, &place,
		    "the limit never applies: roles in [gateway] has no %s",
		    role_names[limit->role]);
}

static void
check_backend(struct load *l, size_t at)
{
	bool is_script = l->config->backend[at].type == CONFIG_BACKEND_CGI;

	if (is_served(l, CONFIG_ROLE_RESPONDER) ||
	    (is_served(l, CONFIG_ROLE_CGI) && is_script))
		return;
	finding_warning(&l->findings, &l->backend[at]->place,
	    "gets no request: roles in [gateway] has no responder%s",
	    is_script ? " and no cgi" : "");
}

static bool
has_scripts(const struct config *config)
{
	for (size_t i = 0; i < config->n_backends; i++)
		if (config->backend[i].type == CONFIG_BACKEND_CGI)
			return true;
	return false;
}

/* What the cgi role can not do without, or with. */
static void
check_cgi(struct load *l)
{
	struct place place = load_place_in(l, OPTION_gateway, "roles");

	if (!has_scripts(l->config))
		finding_error(&l->findings, &place,
		    "cgi: there is no [backend NAME] of type = cgi, whose "
		    "scripts it could become");
	place = load_place_in(l, OPTION_store, "address");
	if (l->config->store.kind == CONFIG_STORE_MEMORY)
		finding_error(&l->findings, &place,
		    "memory: counts would end with each request of the cgi "
		    "role, which is in roles in [gateway]");
}

void
load_roles(struct load *l)
{
	if (l->config->gateway.roles == 0) /* a wrong value, which was said */
		return;
	for (size_t i = 0; i < l->config->n_limits; i++)
		check_limit(l, i);
	if (is_served(l, CONFIG_ROLE_CGI))
		check_cgi(l);
	for (size_t i = 0; i < l->config->n_backends; i++)
		check_backend(l, i);
}
