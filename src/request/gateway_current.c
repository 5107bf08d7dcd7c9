/*
 * The configuration in force, of which each request keeps what it began with.
 */
#include "request/gateway.h"

void
gateway_swap(struct gateway *g, struct generation *next)
{
	struct generation *old;

	pthread_mutex_lock(&g->lock);
	old = g->current;
	g->current = next;
	pthread_mutex_unlock(&g->lock);
	if (old != NULL)
		generation_unref(old);
}

struct generation *
gateway_generation(struct gateway *g)
{
	struct generation *current;

	pthread_mutex_lock(&g->lock);
	current = generation_ref(g->current);
	pthread_mutex_unlock(&g->lock);
	return current;
}
