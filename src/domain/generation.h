/*
 * generation: one configuration in use, with the gates and the addresses of
 * its backends.
 *
 * Counted by reference: a request keeps the one it began with, whatever is
 * reloaded meanwhile. Read-only but for the count; any thread.
 */
#ifndef SLUICE_GENERATION_H
#define SLUICE_GENERATION_H

#include "config/config.h"
#include "domain/bulkhead.h"
#include "domain/upstreams.h"

struct generation_backend {
	struct gate *gate;
	struct upstreams_set *addresses;
};

struct generation {
	_Atomic unsigned references;
	struct config *config;
	struct bulkhead *bulkhead;
	struct upstreams *upstreams;
	size_t n_backends;
	struct generation_backend *backend; /* of config->backend[i] */
};

/*
 * Takes the reference to config over. One reference; NULL: no memory. Without
 * a bulkhead it has no gates and addresses: nothing is passed on by it.
 */
struct generation *generation_new(struct config *config,
    struct bulkhead *bulkhead, struct upstreams *upstreams);
struct generation *generation_ref(struct generation *g);
void generation_unref(struct generation *g);
const struct generation_backend *generation_backend(
    const struct generation *g, const struct config_backend *backend);

#endif
