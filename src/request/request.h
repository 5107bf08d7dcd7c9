/*
 * request: one request, from its whole head to its end.
 *
 * Belongs to its connection and is touched only by the connection's owner.
 * It keeps its configuration, its decision and its times until request_end,
 * which is the one step that knows how it went: it settles what the limits
 * took, gives slots back, logs, counts and frees.
 */
#ifndef SLUICE_REQUEST_H
#define SLUICE_REQUEST_H

#include "base/arena.h"
#include "domain/decision.h"
#include "domain/generation.h"
#include "domain/subject.h"
#include "request/body.h"
#include "request/front.h"
#include "request/guard.h"

/* Logged as the status of a request whose client went away. */
#define REQUEST_CLIENT_GONE 499
/* For request_log: its script will answer, with what we do not get to see. */
#define REQUEST_BECOMES_SCRIPT (-1)

struct request {
	struct arena arena;
	struct generation *generation;
	const struct stores *stores;
	uint16_t id;
	bool keep; /* the web server keeps the connection */
	enum config_role role;
	struct front *front;  /* NULL: it is one of the cgi role */
	struct params params; /* gone once an answer was sent */
	struct subject subject;
	struct decision decision;
	bool undecided;
	bool awaits_form;      /* for that: a key is in the body */
	int64_t held_until_us; /* a limit delays it (clock_mono_us) */
	struct body body;
	bool is_unheard; /* while it waits, what comes is not read */
	struct waiter waiter;
	int64_t queued_until_us; /* 0: it has not been in a queue */
	struct gate *gate;
	struct str told_id; /* how its answer calls it; len 0: not at all */
	int64_t started_us;
	int64_t backend_us; /* spent in the backend */
	struct err error;   /* for the log; empty: none */
};

/*
 * From the head that the guard left. Takes the generation's reference over.
 * NULL: no memory, or libfcgi would not parse it.
 */
struct request *request_new(const struct guard *guard,
    struct generation *generation, const struct stores *stores, int *memfd);
/*
 * One of the cgi role, from the environment of the process, which must stay.
 * NULL: no memory.
 */
struct request *request_new_cgi(char *const *envp,
    struct generation *generation, const struct stores *stores);
/* Its line in the log, if it is to have one: request_end's but for that. */
void request_log(const struct request *r, int status);
/* status: what was sent; 0: nothing could be. */
void request_end(struct request *r, int status);
const struct config_gateway *request_gateway(const struct request *r);

#endif
