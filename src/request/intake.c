/*
 * Each reads until nothing is there, or until it has had its turn: a peer
 * that sends without pause must not hold a worker.
 */
#include "request/intake.h"

#include "base/clock.h"
#include "base/counter.h"
#include "config/roles.h"
#include "pure/fcgi_record.h"
#include "request/request.h"

#define HEAD_READ      16384
#define BODY_READ      65536
#define READS_IN_A_ROW 32

#define DRAIN_LEAST_BYTES ((uint64_t)64 * 1024 * 1024)

/*
 * What is thrown away of an answered request: all that a body may have, and
 * with a small max_body still enough for a web server that reads an answer
 * only while it can send.
 */
static uint64_t
drain_bound(const struct config_gateway *gateway)
{
	return gateway->max_body_bytes > DRAIN_LEAST_BYTES
	    ? gateway->max_body_bytes
	    : DRAIN_LEAST_BYTES;
}

void
intake_expect(struct connection *c, const struct config_gateway *gateway)
{
	c->guard.max_bytes = gateway->max_head_bytes;
	c->guard.responder = roles_has(gateway, CONFIG_ROLE_RESPONDER);
	c->guard.authorizer = roles_has(gateway, CONFIG_ROLE_AUTHORIZER);
	c->drain_max_bytes = drain_bound(gateway);
	c->head_deadline_us = clock_mono_us() + gateway->head_timeout_us;
}

enum guard_verdict
intake_head(struct connection *c, bool *gone)
{
	enum guard_verdict verdict = guard_feed(&c->guard, &c->in);

	*gone = false;
	for (int i = 0; i < READS_IN_A_ROW && verdict == GUARD_MORE; i++) {
		enum connection_read got = connection_read(c, HEAD_READ);

		if (got == CONNECTION_EMPTY)
			break;
		if (got == CONNECTION_EOF) {
			*gone = true;
			break;
		}
		verdict = guard_feed(&c->guard, &c->in);
	}
	if (c->guard.answer.len > 0) {
		*gone = *gone ||
		    !connection_send(c, c->guard.answer.p, c->guard.answer.len);
		buf_reset(&c->guard.answer);
	}
	return verdict;
}

/* A request that can be decided by now is, before more of it is taken. */
static bool
takes_more(const struct request *r, enum body_verdict verdict)
{
	return verdict == BODY_MORE &&
	    (!r->undecided || body_may_be_text(&r->body, request_gateway(r)));
}

enum body_verdict
intake_body(struct connection *c)
{
	struct request *r = c->request;
	const struct config_gateway *gateway = request_gateway(r);
	enum body_verdict verdict = body_feed(&r->body, gateway, &c->in);

	for (int i = 0; i < READS_IN_A_ROW && takes_more(r, verdict); i++) {
		switch (connection_read(c, BODY_READ)) {
		case CONNECTION_READ:
			verdict = body_feed(&r->body, gateway, &c->in);
			break;
		case CONNECTION_EMPTY:
			return BODY_MORE;
		case CONNECTION_EOF:
			return BODY_ABORTED;
		}
	}
	return verdict;
}

/* Would the guard take it behind the request? */
static bool
may_follow(const struct fcgi_header *h, uint16_t id)
{
	if (h->version != 1)
		return false;
	if (h->type == FCGI_BEGIN_REQUEST)
		return h->id != 0;
	return h->id == 0 ||
	    (h->id == id && (h->type == FCGI_STDIN || h->type == FCGI_DATA));
}

enum intake_news
intake_listen(struct connection *c)
{
	struct fcgi_header h;

	while (c->in.len < FCGI_HEADER_BYTES) {
		enum connection_read got =
		    connection_read(c, FCGI_HEADER_BYTES - c->in.len);

		if (got == CONNECTION_EMPTY)
			return INTAKE_SILENT;
		if (got == CONNECTION_EOF)
			return INTAKE_LEFT;
	}
	fcgi_header_read((const uint8_t *)c->in.p, &h);
	if (h.version == 1 && h.id == c->request->id &&
	    h.type == FCGI_ABORT_REQUEST)
		return INTAKE_LEFT;
	return may_follow(&h, c->request->id) ? INTAKE_NEXT : INTAKE_BROKEN;
}

/* What is thrown away has a bound: a body could have no more. */
bool
intake_drain(struct connection *c)
{
	for (int i = 0; i < READS_IN_A_ROW; i++) {
		enum connection_read got = connection_read(c, BODY_READ);

		if (got == CONNECTION_EOF)
			return false;
		if (got == CONNECTION_EMPTY)
			break;
		c->drained_bytes += c->in.len;
		buf_reset(&c->in);
		if (c->drained_bytes > c->drain_max_bytes)
			return false;
	}
	buf_release(&c->in);
	return true;
}

enum next
intake_refuse(struct connection *c, enum body_verdict verdict)
{
	struct request *r = c->request;

	switch (verdict) {
	case BODY_WRONG:
		counter_add(COUNTER_bodies_rejected, 1);
		err_set(&r->error, "CONTENT_LENGTH and body disagree");
		return answer_send(c, 400, ANSWER_NO_RETRY);
	case BODY_TOO_LARGE:
		counter_add(COUNTER_bodies_too_large, 1);
		err_set(&r->error, "a body above max_body");
		return answer_send(c, 413, ANSWER_NO_RETRY);
	case BODY_NO_ROOM:
		counter_add(COUNTER_spool_full, 1);
		err_set(&r->error, "spool_total is reached");
		return answer_send(c, 503, ANSWER_BUSY_RETRY_US);
	case BODY_FAILED:
		err_set(&r->error, "spool_directory can not be written");
		return answer_send(c, 500, ANSWER_NO_RETRY);
	case BODY_ABORTED:
		counter_add(COUNTER_clients_gone, 1);
		return answer_nothing(c, REQUEST_CLIENT_GONE);
	case BODY_MALFORMED:
		err_set(&r->error, "another record inside the body");
		return answer_nothing(c, 0);
	case BODY_MORE:
	case BODY_WHOLE:
		break;
	}
	return answer_send(c, 500, ANSWER_NO_RETRY);
}
