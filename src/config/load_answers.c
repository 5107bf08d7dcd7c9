/*
 * A backend of type = answer has no application: there is no response, and
 * no body is awaited. A limit that goes by one of them, for requests of such
 * backends alone, would count nothing, or what is not meant.
 */
#include "config/load.h"

#include "config/named.h"
#include "config/roles.h"

/* NULL: there is another one, or none at all. */
static const struct config_backend *
first_of_answers(const struct config *config)
{
	for (size_t i = 0; i < config->n_backends; i++)
		if (config->backend[i].type != CONFIG_BACKEND_ANSWER)
			return NULL;
	return config->n_backends > 0 ? &config->backend[0] : NULL;
}

/* The backend that answers whatever comes under the limit; NULL: none does. */
static const struct config_backend *
answers_for(const struct load *l, const struct config_limit *limit)
{
	const struct config_backend *b;

	if (limit->role == CONFIG_ROLE_AUTHORIZER)
		return NULL;
	if (limit->backend == NULL)
		return first_of_answers(l->config);
	b = named_backend(l->config, str_of(limit->backend));
	return b != NULL && b->type == CONFIG_BACKEND_ANSWER ? b : NULL;
}

static void
check_limit(struct load *l, size_t at)
{
	const struct config_limit *limit = &l->config->limit[at];
	const struct config_backend *b = answers_for(l, limit);
	const struct {
		bool wants;
		const char *key;
		const char *what;
	} wants[] = {
		{ limit->algorithm == ALGORITHM_CONCURRENCY, "algorithm",
		    "concurrency goes by the end of a response" },
		{ limit->count.some, "count",
		    "goes by the response of an application" },
		{ limit->cost.kind == COST_RESPONSE, "cost",
		    "goes by the response of an application" },
		{ key_uses(&limit->key, KEY_FORM), "key",
		    "form: is a part of the body" },
	};

	for (size_t i = 0; b != NULL && i < sizeof(wants) / sizeof(wants[0]);
	     i++) {
		struct place place = load_place(l->limit[at], wants[i].key);

		if (wants[i].wants)
			finding_error(&l->findings, &place,
			    "%s, and [backend %s] (type = answer) has none",
			    wants[i].what, b->name);
	}
}

void
load_answers(struct load *l)
{
	if (!roles_has(&l->config->gateway, CONFIG_ROLE_RESPONDER))
		return;
	for (size_t i = 0; i < l->config->n_limits; i++)
		check_limit(l, i);
}
