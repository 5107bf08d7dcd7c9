/*
 * gateway: the story of a request, from a connection to its end.
 *
 * A worker hands in a connection that something has happened to; when
 * gateway_serve returns, the connection is parked or closed, and so is every
 * other that was taken from a backend's queue meanwhile.
 */
#ifndef SLUICE_GATEWAY_H
#define SLUICE_GATEWAY_H

#include <pthread.h>
#include <stdbool.h>

#include "base/err.h"
#include "domain/bulkhead.h"
#include "domain/decision.h"
#include "domain/generation.h"
#include "request/connection.h"

/* What all workers share. */
struct gateway {
	struct lot *lot;
	struct bulkhead *bulkhead;
	struct upstreams *upstreams;
	struct stores stores;
	pthread_mutex_t lock; /* guards current */
	struct generation *current;
	_Atomic bool stopping; /* no connection is kept any more */
	_Atomic bool given_up; /* nobody is let into a backend any more */
	int stop;              /* an eventfd; readable: give up */
	/* Called by a worker that is about to wait for a peer. */
	void (*about_to_block)(void *context);
	void *about_to_block_context;
};

/* A worker's own. */
struct kit {
	int memfd;
};

/* Takes the generation's reference over; gateway_swap frees the old one. */
void gateway_swap(struct gateway *g, struct generation *next);
struct generation *gateway_generation(struct gateway *g);

/* An accepted connection (PARKED_NOT), or a claimed one and why it waited. */
void gateway_serve(struct gateway *g, struct kit *kit, struct connection *c,
    enum parked reason);
/* A claimed connection whose deadline has passed. */
void gateway_expire(
    struct gateway *g, struct connection *c, enum parked reason);
/* Serves who can have a place in a backend by now. May block. */
void gateway_serve_waiters(struct gateway *g);
/* Of the kept connections, those between two requests. */
void gateway_close_idle(struct gateway *g);
/* The time to stop is over: who is in a backend is cut, and workers end. */
void gateway_give_up(struct gateway *g);
/*
 * When no worker runs any more: turns away, with 503, who still waits, and
 * closes all connections. Gives back what was taken for them, but waits for
 * a store that is slow no longer than a second in all.
 */
void gateway_abandon(struct gateway *g);

#endif
