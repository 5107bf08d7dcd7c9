/*
 * guard: collects, judges and rewrites the head of a request.
 *
 * Nothing that a peer sends reaches libfcgi as it came. The guard takes
 * records out of what was read, answers management records, and when the
 * head is whole leaves a new one that says the same in the plainest form:
 * BEGIN_REQUEST with its reserved bytes zero, whole pairs per PARAMS
 * record, an empty PARAMS, no padding, one request id. Pure: no system
 * call; the owner of the connection runs it.
 */
#ifndef SLUICE_GUARD_H
#define SLUICE_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* What may come late of the request before, on a kept connection. */
#define GUARD_LEFTOVER_MAX 65536

enum guard_verdict {
	GUARD_MORE,         /* the head is not whole yet */
	GUARD_HEAD,         /* `head` holds the rewritten one */
	GUARD_TOO_LARGE,    /* answer 431; `head` holds a bare one */
	GUARD_UNKNOWN_ROLE, /* END{UNKNOWN_ROLE}; id and role are set */
	GUARD_MALFORMED,    /* close without an answer */
};

struct guard {
	uint64_t max_bytes;
	/* Which roles are served; its owner says so, at first responder is. */
	bool responder;
	bool authorizer;
	bool begun; /* BEGIN_REQUEST is there */
	uint16_t id;
	uint16_t role;
	bool keep;         /* the peer asked for FCGI_KEEP_CONN */
	bool served;       /* this connection had a request before this one */
	uint16_t old_id;   /* its id */
	size_t leftover;   /* bytes skipped of it */
	uint64_t raw;      /* bytes of this head, framing included */
	struct buf pairs;  /* contents of PARAMS so far */
	struct buf head;   /* the result */
	struct buf answer; /* to be sent: replies to management records */
	const char *fault; /* GUARD_MALFORMED: why, static */
};

void guard_init(struct guard *g, uint64_t max_bytes);
void guard_release(struct guard *g);
/*
 * For the next request on the connection, whose last had `old_id`: frees
 * what it holds.
 */
void guard_reset(struct guard *g, uint16_t old_id);
/* Consumes whole records from the front of `in`. */
enum guard_verdict guard_feed(struct guard *g, struct buf *in);

#endif
