#include "domain/generation.h"

#include <stdatomic.h>
#include <stdlib.h>

static void
release(struct generation *g)
{
	for (size_t i = 0; i < g->n_gates; i++)
		bulkhead_close_gate(g->bulkhead, g->gate[i]);
	free(g->gate);
	config_unref(g->config);
	free(g);
}

struct generation *
generation_new(struct config *config, struct bulkhead *bulkhead)
{
	struct generation *g = calloc(1, sizeof(*g));

	if (g == NULL)
		return NULL;
	atomic_init(&g->references, 1);
	g->config = config;
	g->bulkhead = bulkhead;
	g->gate = calloc(config->n_backends + 1, sizeof(struct gate *));
	for (size_t i = 0; g->gate != NULL && i < config->n_backends; i++) {
		const struct config_backend *b = &config->backend[i];

		g->gate[i] = bulkhead_open_gate(bulkhead, b->name,
		    (size_t)b->max_inflight, (size_t)b->queue);
		if (g->gate[i] == NULL)
			break;
		g->n_gates++;
	}
	if (g->n_gates == config->n_backends && g->gate != NULL)
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

struct gate *
generation_gate(
    const struct generation *g, const struct config_backend *backend)
{
	return g->gate[backend - g->config->backend];
}
