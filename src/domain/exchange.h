/*
 * exchange: one request carried to its application and back.
 *
 * What both types of backend share: what it needs, how it can end, and what
 * becomes of the client then. Belongs to one worker.
 */
#ifndef SLUICE_EXCHANGE_H
#define SLUICE_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "config/config.h"
#include "domain/response.h"
#include "domain/subject.h"
#include "domain/upstreams.h"
#include "io/pump.h"
#include "io/spool.h"
#include "pure/params.h"

enum exchange_end {
	EXCHANGE_DONE,
	EXCHANGE_CUT,         /* failed when bytes had gone out: close */
	EXCHANGE_CLIENT_GONE, /* nothing more is to be sent */
	EXCHANGE_NOT_FOUND,   /* 404: no such script */
	EXCHANGE_FORBIDDEN,   /* 403: not one to be run */
	EXCHANGE_BROKEN,      /* 502: unreachable, died, or a bad head */
	EXCHANGE_OVERLOADED,  /* 503: it said so itself */
	EXCHANGE_TIMED_OUT,   /* 504 */
	EXCHANGE_NO_MEMORY,   /* 500 */
};

struct exchange {
	const struct config_backend *backend;
	struct upstreams_set *addresses; /* of backend */
	const struct subject *subject;   /* for the log */
	const struct params *params;     /* as forward_params left them */
	const struct spool *body;
	struct arena *arena;
	int front;
	int stop; /* readable: give up, the gateway ends */
	/*
	 * Called once, when the client has the response's head: what is to
	 * be done then without holding it back.
	 */
	void (*on_head)(void *context, int status);
	/* Called once, when the response is whole and its end is to go out. */
	void (*on_end)(void *context);
	void *context;
	struct response response;
	struct err error; /* why it did not end well, or what to log */

	/* Its own. */
	uint64_t body_at;
	size_t complaints_bytes;
};

/* What a pump's end means, once `down` can be sent. */
enum exchange_end exchange_finish(struct exchange *x, struct pump *pump);
enum exchange_end exchange_give_up(
    struct exchange *x, const struct pump *pump, enum pump_end end);
/* The client has the head. */
void exchange_begun(struct exchange *x);
/* A program's standard error goes to the log, cut and escaped. */
void exchange_complain(struct exchange *x, struct str bytes);

#endif
