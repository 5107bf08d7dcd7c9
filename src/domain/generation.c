#include "domain/generation.h"

#include <stdatomic.h>
#include <stdlib.h>

static void
release(struct generation *g)
{
	for (size_t i = 0; i < g->n_backends; i++) {
		bulkhead_close_gate(g->bulkhead, g->backend[i].gate);
		upstreams_close(g->upstreams, g->backend[i].addresses);
	}
	free(g->backend);
	config_unref(g->config);
	free(g);
}

static bool
open_backend(struct generation *g, const struct config_backend *b)
{
	struct generation_backend *own = &g->backend[g->n_backends];

	own->addresses = upstreams_open(g->upstreams, b);
	if (own->addresses == NULL)
		return false;
	own->gate = bulkhead_open_gate(
	    g->bulkhead, b->name, (size_t)b->max_inflight, (size_t)b->queue);
	if (own->gate == NULL) {
		upstreams_close(g->upstreams, own->addresses);
		return false;
	}
	g->n_backends++;
	return true;
}

struct generation *
generation_new(struct config *config, struct bulkhead *bulkhead,
    struct upstreams *upstreams)
{
	struct generation *g = calloc(1, sizeof(*g));

	if (g == NULL)
		return NULL;
	atomic_init(&g->references, 1);
	g->config = config;
	g->bulkhead = bulkhead;
	g->upstreams = upstreams;
	if (bulkhead == NULL)
		return g;
	g->backend = calloc(config->n_backends + 1, sizeof(*g->backend));
	if (g->backend != NULL)
		while (g->n_backends < config->n_backends)
			if (!open_backend(g, &config->backend[g->n_backends]))
				break;
	if (g->backend != NULL && g->n_backends == config->n_backends)
		return g;
	release(g);
	return NULL;
}

struct generation *
generation_ref(struct generation *g)
{
	atomic_fetch_add(&g->references, 1);
	return g;
}

void
generation_unref(struct generation *g)
{
	if (atomic_fetch_sub(&g->references, 1) == 1)
		release(g);
}

const struct generation_backend *
generation_backend(
    const struct generation *g, const struct config_backend *backend)
{
	return &g->backend[backend - g->config->backend];
}
