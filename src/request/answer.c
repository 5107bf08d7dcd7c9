#include "request/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/log.h"
#include "pure/fcgi_record.h"
#include "pure/reply.h"

/* How an answered connection goes on. */
static enum next
after(const struct request *r, bool sent)
{
	if (!sent)
		return NEXT_CLOSE;
	if (!body_is_settled(&r->body))
		return NEXT_DRAIN;
	if (r->keep)
		return NEXT_KEEP;
	return r->body.ended ? NEXT_CLOSE : NEXT_DRAIN;
}

/*
 * A kept connection whose peer does not read has no room for an answer;
 * it is not waited for.
 */
static bool
send_text(struct connection *c, struct front *front, const struct buf *text)
{
	if (c->guard.served && !connection_is_writable(c))
		return false;
	connection_bound_writes(c);
	return !text->failed && front_answer(front, &c->fd, buf_str(text));
}

/* Ends the request with that answer. */
static enum next
finish(struct connection *c, int status, const struct buf *text)
{
	struct request *r = c->request;
	enum next next;

	/* Who has the answer may count on the slot that it held. */
	decision_release(&r->decision, r->stores);
	next = after(r, send_text(c, r->front, text));
	c->request = NULL;
	request_end(r, next == NEXT_CLOSE && c->fd < 0 ? 0 : status);
	return next;
}

static bool
tells_numbers(const struct decision *d, const struct config_response *style)
{
	return d->has_numbers &&
	    (style->headers_on == CONFIG_HEADERS_ON_ALL ||
		d->kind == DECISION_REFUSED);
}

#define REQUEST_ID_MAX 64

/* Somebody else's, to be shown and logged. */
static bool
is_request_id(struct str id)
{
	for (size_t i = 0; i < id.len; i++)
		if (id.p[i] <= ' ' || id.p[i] > '~')
			return false;
	return id.len > 0 && id.len <= REQUEST_ID_MAX;
}

/* As the web server or a proxy calls it, or drawn; it is logged too. */
static void
name_request(struct request *r)
{
	static const char *const params[] = { "UNIQUE_ID",
		"HTTP_X_REQUEST_ID" };
	char drawn[17];
	struct str id = STR_NONE;

	for (size_t i = 0; i < 2 && !is_request_id(id); i++)
		id = params_get(&r->params, str_of(params[i]));
	if (!is_request_id(id)) {
		snprintf(drawn, sizeof(drawn), "%08x%08x", arc4random(),
		    arc4random());
		id = str_of(drawn);
	}
	r->told_id = arena_copy(&r->arena, id);
}

static struct reply
make_reply(const struct request *r, int status, int64_t retry_us)
{
	const struct config_response *style = &r->generation->config->response;
	const struct decision *d = &r->decision;
	bool is_refusal = d->kind == DECISION_REFUSED;
	bool is_own = retry_us != ANSWER_NO_RETRY;

	return (struct reply){
		.status = status,
		.without_body = str_eq(r->subject.method, STR("HEAD")),
		.is_refusal = is_refusal,
		.limit = is_refusal ? d->limit->name : NULL,
		.numbers = d->has_numbers ? &d->numbers : NULL,
		.tells_numbers = tells_numbers(d, style),
		.has_retry = is_own || is_refusal || d->kind == DECISION_OUTAGE,
		.retry_us = is_own ? retry_us : d->retry_us,
		.now_us = clock_real_us(),
		.lot = style->reply.jitter_percent == 0 ? 0 : arc4random(),
		.message = is_refusal ? d->limit->message : NULL,
		.accept = params_get(&r->params, STR("HTTP_ACCEPT")),
		.origin = params_get(&r->params, STR("HTTP_ORIGIN")),
		.style = &style->reply,
	};
}

void
answer_write(struct request *r, int status, int64_t retry_us, struct buf *text)
{
	struct reply reply = make_reply(r, status, retry_us);

	if (reply_has_request_id(&reply)) {
		name_request(r);
		reply.request_id = r->told_id;
	}
	reply_write(text, &reply);
}

enum next
answer_send(struct connection *c, int status, int64_t retry_us)
{
	struct buf text;
	enum next next;

	buf_init(&text);
	answer_write(c->request, status, retry_us, &text);
	next = finish(c, status, &text);
	buf_release(&text);
	return next;
}

enum next
answer_pass(struct connection *c)
{
	const struct request *r = c->request;
	const struct decision *d = &r->decision;
	struct buf text;
	enum next next;

	buf_init(&text);
	reply_write_pass(&text, d->has_numbers ? &d->numbers : NULL,
	    &r->generation->config->response.reply.numbers);
	next = finish(c, 200, &text);
	buf_release(&text);
	return next;
}

int
answer_refusal_status(const struct decision *d)
{
	switch (d->kind) {
	case DECISION_REFUSED:
		return d->limit->status == CONFIG_STATUS_503 ? 503 : 429;
	case DECISION_FORBIDDEN:
		return 403;
	case DECISION_AMBIGUOUS:
		return 400;
	case DECISION_OUTAGE:
	case DECISION_UNDECIDED:
	case DECISION_UNLIMITED:
	case DECISION_ALLOWED:
		break;
	}
	return 503;
}

/* To a web server that hears nothing else, 403 says all that is no yes. */
static int
as_heard(const struct request *r, int status)
{
	return subject_is_only_asked(&r->subject) &&
		r->subject.backend->denial == CONFIG_DENIAL_403
	    ? 403
	    : status;
}

enum next
answer_refusal(struct connection *c)
{
	const struct request *r = c->request;

	return answer_send(c, as_heard(r, answer_refusal_status(&r->decision)),
	    ANSWER_NO_RETRY);
}

enum next
answer_out_of_time(struct connection *c)
{
	struct request *r = c->request;

	if (r->decision.delay_us > 0)
		decision_withdraw(&r->decision, r->stores);
	counter_add(COUNTER_requests_turned_away, 1);
	err_set(&r->error, "shutdown_timeout has passed");
	return answer_send(c, as_heard(r, 503), ANSWER_BUSY_RETRY_US);
}

enum next
answer_too_large(struct connection *c, int *memfd)
{
	static const struct reply_style plain = { .never_us = 0 };
	static const struct reply reply = { .status = 431, .style = &plain };
	struct arena arena;
	struct params none;
	struct front *front;
	struct buf text;

	counter_add(COUNTER_heads_too_large, 1);
	log_event(LOG_LEVEL_WARN, "head_too_large",
	    "a request head above max_head (%llu bytes), or one param above "
	    "%d bytes: 431",
	    (unsigned long long)c->guard.max_bytes, FCGI_PAIR_MAX);
	arena_init(&arena);
	front = front_new(memfd, buf_str(&c->guard.head), &none, &arena);
	if (front != NULL) {
		buf_init(&text);
		reply_write(&text, &reply);
		send_text(c, front, &text);
		buf_release(&text);
		front_free(front);
	}
	arena_release(&arena);
	return c->fd < 0 ? NEXT_CLOSE : NEXT_DRAIN;
}

enum next
answer_unknown_role(struct connection *c)
{
	struct buf end;

	log_event(LOG_LEVEL_WARN, "unknown_role",
	    "a request of FastCGI role %u, which roles in [gateway] does not "
	    "list",
	    (unsigned)c->guard.role);
	buf_init(&end);
	fcgi_add_end(&end, c->guard.id, 0, FCGI_UNKNOWN_ROLE);
	if (!end.failed)
		connection_send(c, end.p, end.len);
	buf_release(&end);
	return NEXT_DRAIN;
}

enum next
answer_nothing(struct connection *c, int status)
{
	struct request *r = c->request;

	c->request = NULL;
	request_end(r, status);
	return NEXT_CLOSE;
}
