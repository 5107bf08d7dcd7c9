/*
 * answer: our own answers to a request, and what becomes of its connection.
 */
#ifndef SLUICE_ANSWER_H
#define SLUICE_ANSWER_H

#include "request/connection.h"
#include "request/request.h"

/* For answer_send: no Retry-After but the decision's; come again soon. */
#define ANSWER_NO_RETRY      INT64_C(-1)
#define ANSWER_BUSY_RETRY_US INT64_C(1000000)

/* The text of that answer, to a request that goes on. */
void answer_write(
    struct request *r, int status, int64_t retry_us, struct buf *text);
/* Of the answer to a decision that does not pass: 429, 403, 400 or 503. */
int answer_refusal_status(const struct decision *d);

/* What is to be done with a connection whose request is over. */
enum next {
	NEXT_CLOSE,
	NEXT_KEEP,   /* read the next head */
	NEXT_DRAIN,  /* answered while a body comes in: no more writes */
	NEXT_PARKED, /* it is somebody else's by now */
};

/*
 * Sends `status` with what the decision adds to it, and ends the request.
 * retry_us: of a 503 of ours.
 */
enum next answer_send(struct connection *c, int status, int64_t retry_us);
/* The answer to a decision that does not pass: 429, 403, 400 or 503. */
enum next answer_refusal(struct connection *c);
/* An authorizer's answer to one that does. */
enum next answer_pass(struct connection *c);
/*
 * 503 to who still waits (for its delay, a place, a body) when the gateway
 * ends. What a request took that was held back is given back.
 */
enum next answer_out_of_time(struct connection *c);
/* Answers a head that is too large to be read: there is no request. */
enum next answer_too_large(struct connection *c, int *memfd);
/* END_REQUEST with UNKNOWN_ROLE. */
enum next answer_unknown_role(struct connection *c);
/* Ends the request without an answer. */
enum next answer_nothing(struct connection *c, int status);

#endif
