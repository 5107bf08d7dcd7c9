/*
 * backend: one request carried to its application and back.
 *
 * A backend of either type runs an exchange in blocking code, on the
 * calling worker: it streams the response to the front as it comes and ends
 * it there with END_REQUEST. What ends it otherwise is returned; before
 * EXCHANGE_DONE and EXCHANGE_CUT nothing has been sent to the front, so the
 * caller can still answer.
 */
#ifndef SLUICE_BACKEND_H
#define SLUICE_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "config/config.h"
#include "domain/response.h"
#include "domain/subject.h"
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
	const struct subject *subject; /* for the log */
	const struct params *params;   /* as forward_params left them */
	const struct spool *body;
	struct arena *arena;
	int front;
	int stop; /* readable: give up, the gateway ends */
	struct response response;
	struct err error; /* why it did not end well */

	/* Its own. */
	uint64_t body_at;
	size_t complaints_bytes;
};

enum exchange_end backend_run(struct exchange *x);

/* The two types, for backend.c. */
enum exchange_end backend_fastcgi_run(struct exchange *x);
enum exchange_end backend_cgi_run(struct exchange *x);

/* What both share: what a pump's end means, once `down` can be sent. */
enum exchange_end backend_finish(struct exchange *x, struct pump *pump);
enum exchange_end backend_give_up(
    struct exchange *x, const struct pump *pump, enum pump_end end);
/* A program's standard error goes to the log, cut and escaped. */
void backend_complain(struct exchange *x, struct str bytes);

#endif
