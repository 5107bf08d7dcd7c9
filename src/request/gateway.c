/*
 * The story: a head comes in, the guard judges it and libfcgi reads it
 * (serve_head); its limits decide, and it is refused or let in
 * (tell_request); its body is taken (take_body), a place in its backend is
 * found, and it is relayed (gateway_wait.c). To a web server that only asks
 * whether it may go on, the decision is the whole story (authorize_request,
 * answer_request).
 * In between a connection is parked; where it goes when a chapter is over is
 * in gateway_settle.c.
 */
#include "request/gateway_own.h"

#include <sys/epoll.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/log.h"
#include "domain/limit.h"
#include "request/intake.h"
#include "request/request.h"

static void
decide(struct gateway *g, struct request *r)
{
	gateway_about_to_ask(g);
	decision_make(&r->decision, r->generation->config, &g->stores,
	    &r->subject, &r->arena);
	r->undecided = false;
	r->held_until_us = clock_mono_us() + r->decision.delay_us;
}

/*
 * Is the field of the form awaited that a limit counts by? No longer than
 * the body can be one that is looked at; and who has gone needs no answer.
 */
static bool
awaits_form(const struct request *r, enum body_verdict body)
{
	if (body == BODY_MORE)
		return r->awaits_form &&
		    body_may_be_text(&r->body, request_gateway(r));
	return r->awaits_form &&
	    (body == BODY_ABORTED || body == BODY_MALFORMED);
}

/*
 * With what has come of the body: decides, unless that has to wait. True:
 * the request was answered, and *next is what becomes of its connection.
 */
static bool
is_answered(struct gateway *g, struct connection *c, enum body_verdict body,
    enum next *next)
{
	struct request *r = c->request;

	if (r->undecided && !awaits_form(r, body)) {
		if (body == BODY_WHOLE)
			body_as_text(&r->body, &r->subject.form_body);
		decide(g, r);
	}
	if (!decision_passes(&r->decision)) {
		*next = answer_refusal(c);
	} else if (body != BODY_MORE && body != BODY_WHOLE) {
		gateway_about_to_ask(g);
		*next = intake_refuse(c, body);
	} else if (!r->undecided && r->subject.backend == NULL) {
		err_set(&r->error, "no backend matches");
		*next = answer_send(c, 404, ANSWER_NO_RETRY);
	} else {
		return false;
	}
	return true;
}

static enum next
take_body(struct gateway *g, struct connection *c)
{
	struct request *r = c->request;
	enum body_verdict body;
	enum next next;

	/* A file may be written, and a disk may keep us waiting. */
	if (r->body.announced < 0 ||
	    !body_may_be_text(&r->body, request_gateway(r)))
		gateway_about_to_block(g);
	body = intake_body(c);
	if (is_answered(g, c, body, &next))
		return next;
	if (body == BODY_WHOLE)
		return gateway_carry_on(g, c);
	/* What has been read is in the spool but for half a header. */
	buf_shrink(&c->in);
	return gateway_park(g, c, PARKED_BODY, EPOLLIN | EPOLLRDHUP,
	    body_deadline(&r->body, request_gateway(r)));
}

/* Is a key of some limit in the body? */
static bool
awaits_body(const struct config *config, const struct subject *subject)
{
	for (size_t i = 0; i < config->n_limits; i++)
		if (limit_awaits_body(&config->limit[i], subject))
			return true;
	return false;
}

static bool
read_subject(struct request *r)
{
	return subject_read(&r->subject, r->role, &r->params,
		   r->generation->config, &r->arena) ||
	    err_set(&r->error, "out of memory");
}

/*
 * The web server asks whether it may serve a request: there is no backend,
 * and no STDIN is awaited. What comes all the same is thrown away, by the
 * guard if the connection is kept.
 */
static enum next
authorize_request(struct gateway *g, struct connection *c)
{
	struct request *r = c->request;

	if (!read_subject(r))
		return answer_send(c, 500, ANSWER_NO_RETRY);
	decide(g, r);
	return decision_passes(&r->decision) ? answer_pass(c)
					     : answer_refusal(c);
}

/*
 * nginx asks by auth_request whether it may serve a request (a backend of
 * type = answer): the body is not awaited, and what it announces of one
 * need not come.
 */
static enum next
answer_request(struct gateway *g, struct connection *c, enum body_verdict body)
{
	decide(g, c->request);
	if (!decision_passes(&c->request->decision))
		return answer_refusal(c);
	if (body == BODY_ABORTED || body == BODY_MALFORMED)
		return intake_refuse(c, body);
	c->request->is_unheard = body != BODY_WHOLE;
	return gateway_carry_on(g, c);
}

/* A request with a whole head: refuse it, or take it in. */
static enum next
tell_request(struct gateway *g, struct connection *c)
{
	struct request *r = c->request;
	const struct config *config = r->generation->config;
	enum body_verdict body;
	enum next next;

	body = body_announce(&r->body, &r->params, &config->gateway);
	/* A body that came with its head is no reason to drain anything. */
	if (body == BODY_MORE)
		body = body_feed(&r->body, &config->gateway, &c->in);
	if (!read_subject(r))
		return answer_send(c, 500, ANSWER_NO_RETRY);
	if (subject_is_only_asked(&r->subject))
		return answer_request(g, c, body);
	r->undecided = true;
	r->awaits_form = awaits_body(config, &r->subject);
	return is_answered(g, c, body, &next) ? next : take_body(g, c);
}

/* Takes the generation's reference over. */
static enum next
begin_request(struct gateway *g, struct kit *kit, struct connection *c,
    struct generation *generation)
{
	c->request =
	    request_new(&c->guard, generation, &g->stores, &kit->memfd);
	if (c->request == NULL) {
		log_event(LOG_LEVEL_ERROR, "request_failed",
		    "a head could not be read: out of memory");
		return NEXT_CLOSE;
	}
	if (c->request->role == CONFIG_ROLE_AUTHORIZER)
		return authorize_request(g, c);
	return tell_request(g, c);
}

static enum next
reject_head(struct connection *c)
{
	counter_add(COUNTER_heads_rejected, 1);
	log_event(LOG_LEVEL_WARN, "head_rejected", "%s",
	    c->guard.fault == NULL ? "malformed" : c->guard.fault);
	return NEXT_CLOSE;
}

/* There is no whole head: it is refused, or the rest of it awaited. */
static enum next
go_without_head(struct gateway *g, struct kit *kit, struct connection *c,
    enum guard_verdict verdict)
{
	switch (verdict) {
	case GUARD_TOO_LARGE:
		return answer_too_large(c, &kit->memfd);
	case GUARD_UNKNOWN_ROLE:
		return answer_unknown_role(c);
	case GUARD_MALFORMED:
		return reject_head(c);
	case GUARD_HEAD:
	case GUARD_MORE:
		break;
	}
	return gateway_await_head(g, c);
}

/* is_new: nothing of the head has been read. */
static enum next
serve_head(
    struct gateway *g, struct kit *kit, struct connection *c, bool is_new)
{
	struct generation *current = gateway_generation(g);
	enum guard_verdict verdict;
	bool gone;

	if (is_new)
		intake_expect(c, &current->config->gateway);
	verdict = intake_head(c, &gone);
	if (verdict == GUARD_HEAD && !gone)
		return begin_request(g, kit, c, current);
	generation_unref(current);
	return gone ? NEXT_CLOSE : go_without_head(g, kit, c, verdict);
}

void
gateway_serve(struct gateway *g, struct kit *kit, struct connection *c,
    enum parked reason)
{
	enum next next = NEXT_CLOSE;

	switch (reason) {
	case PARKED_NOT:
	case PARKED_IDLE:
		next = serve_head(g, kit, c, true);
		break;
	case PARKED_HEAD:
		next = serve_head(g, kit, c, false);
		break;
	case PARKED_BODY:
		next = take_body(g, c);
		break;
	case PARKED_DELAY:
	case PARKED_QUEUE:
		next = gateway_hear(g, c, reason);
		break;
	case PARKED_DRAIN:
		next = gateway_drain(g, c);
		break;
	case PARKED_KINDS:
		break;
	}
	gateway_settle(g, c, next);
}

/* It may be that what it came with refuses it. */
static enum next
body_timed_out(struct gateway *g, struct connection *c)
{
	struct request *r = c->request;

	gateway_about_to_ask(g);
	counter_add(COUNTER_bodies_timed_out, 1);
	if (r->undecided)
		decide(g, r);
	if (!decision_passes(&r->decision))
		return answer_refusal(c);
	err_set(&r->error, "the body did not come in time");
	return answer_send(c, 408, ANSWER_NO_RETRY);
}

void
gateway_expire(struct gateway *g, struct connection *c, enum parked reason)
{
	enum next next = NEXT_CLOSE;

	switch (reason) {
	case PARKED_HEAD:
		counter_add(COUNTER_heads_timed_out, 1);
		break;
	case PARKED_BODY:
		next = body_timed_out(g, c);
		break;
	case PARKED_DELAY:
	case PARKED_QUEUE:
		next = gateway_waited(g, c, reason);
		break;
	case PARKED_NOT:
	case PARKED_IDLE:
	case PARKED_DRAIN:
	case PARKED_KINDS:
		break;
	}
	gateway_settle(g, c, next);
}
