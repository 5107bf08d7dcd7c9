/*
 * response: what a backend answers, on its way to the web server.
 *
 * Reads the head (pure/cgi_head), writes it anew with the rate-limit headers
 * added and what it says of costs (cost = response:) left out, and passes the
 * body on as it comes, each piece as STDOUT records of the front's request
 * id. A body longer than its Content-Length is cut to it; an answer to HEAD,
 * a 204 and a 304 have none, whatever the backend wrote (RFC 9110, 6.4.1).
 * One thread at a time.
 */
#ifndef SLUICE_RESPONSE_H
#define SLUICE_RESPONSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "domain/decision.h"
#include "io/pump.h"
#include "pure/cgi_head.h"

struct response {
	struct cgi_head head;
	uint16_t id;
	bool without_body; /* to HEAD */
	struct decision *decision;
	const struct config_response *style;
	bool has_head;
	int64_t body_left; /* that may still go out; -1: not said */
	uint64_t body_bytes;
};

void response_init(struct response *r, uint16_t id, bool without_body,
    struct decision *decision, const struct config_response *style);
void response_release(struct response *r);
/* Takes bytes of the backend's output; PUMP_BROKEN: a bad head. */
enum pump_verdict response_take(
    struct response *r, struct str bytes, struct buf *down);
/* Has all come that the head promised? */
bool response_is_whole(const struct response *r);
/* The empty STDOUT and END_REQUEST. */
void response_end(const struct response *r, struct buf *down);

#endif
