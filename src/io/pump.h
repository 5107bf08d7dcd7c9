/*
 * pump: carries a request's body up and its response down at once.
 *
 * One thread runs it in plain blocking code: it moves what it can, and
 * polls when it can move nothing. It never holds more than one read of the
 * response: while the client's side does not take it, the backend is not
 * read. The descriptors belong to the caller, but `in` is closed (and set
 * to -1) once the body is through, where close_in says so.
 */
#ifndef SLUICE_PUMP_H
#define SLUICE_PUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

enum pump_verdict {
	PUMP_HEAD_MORE, /* taken; the response's head is not there yet */
	PUMP_GO_ON,     /* taken */
	PUMP_WHOLE,     /* taken, and the response is complete */
	PUMP_BROKEN,    /* can not go on */
};

enum pump_end {
	PUMP_END_WHOLE,
	PUMP_END_EOF,     /* out ended */
	PUMP_END_BROKEN,  /* take said so, or out failed */
	PUMP_END_NO_HEAD, /* first_byte_timeout or the total passed */
	PUMP_END_STALLED, /* the same, after the head */
	PUMP_END_CLIENT_GONE,
};

struct pump_ops {
	/*
	 * Appends more of the body to `up`; false: that was all. Sets its
	 * `failed` where it can not be read.
	 */
	bool (*refill)(void *context, struct buf *up);
	/* Takes bytes of the response; appends to `down` for the client. */
	enum pump_verdict (*take)(
	    void *context, struct str bytes, struct buf *down);
	/* Called once, when the client has got the first bytes; or NULL. */
	void (*begun)(void *context);
	/* Takes what the program wrote to its standard error. */
	void (*complain)(void *context, struct str bytes);
};

struct pump {
	const struct pump_ops *ops;
	void *context;
	int in;     /* where the body goes; -1: nowhere */
	int out;    /* where the response comes from; may be `in` */
	int errors; /* -1: none */
	int exited; /* a pidfd, -1: none */
	int front;  /* the client's side */
	int stop;   /* -1: none; readable: end as if the client had gone */
	bool close_in;
	bool pipes; /* in and out are pipes, not sockets */
	int64_t send_timeout_us;
	int64_t first_byte_timeout_us; /* to the end of the head */
	int64_t idle_timeout_us;
	int64_t deadline_us; /* of all of it, clock_mono_us; 0: none */

	/* Its own while it runs. */
	struct buf up;
	struct buf down; /* what the client has not taken; the caller may
	                    put first bytes in and finds the last here */
	size_t up_at;
	size_t down_at;
	bool no_more_up;
	bool have_head;
	bool begun;        /* the client has got bytes */
	bool all_up;       /* the backend's side has taken the whole request */
	uint64_t up_bytes; /* that it has taken */
	bool can_up;       /* as far as is known: try before polling */
	bool can_down;
	bool can_pull;
	int64_t up_since_us;
	int64_t down_since_us;
	int64_t heard_us;  /* the response moved, or its turn began */
	int64_t exited_us; /* 0: the program runs */
};

void pump_init(struct pump *p, const struct pump_ops *ops, void *context);
void pump_release(struct pump *p);
/*
 * At PUMP_END_WHOLE and PUMP_END_EOF `down` still holds what came last, so
 * that the caller can add an end and send all in one write (pump_flush).
 */
enum pump_end pump_run(struct pump *p);
/* Sends what `down` holds; false: the client is gone or stalled. */
bool pump_flush(struct pump *p);

#endif
