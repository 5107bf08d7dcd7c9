/*
 * A FastCGI client for one request: BEGIN_REQUEST, whole pairs per PARAMS
 * record, STDIN out of the spool; STDOUT, STDERR and END_REQUEST back, read
 * at any split. Full duplex: an application that answers before it has
 * read the body keeps nobody waiting.
 */
#include "domain/backend_fastcgi.h"

#include <string.h>

#include "base/compiler.h"
#include "base/counter.h"
#include "domain/reach.h"
#include "pure/fcgi_record.h"

#define FIRST_ID    1
#define IDS         65535
#define STDIN_PIECE 32768
#define END_BYTES   8

struct client {
	struct exchange *x;
	uint16_t id; /* of the request on its connection */

	/* The record that is coming in. */
	uint8_t header[FCGI_HEADER_BYTES];
	size_t header_len;
	struct fcgi_header h;
	size_t content_left;
	size_t padding_left;
	uint8_t end[END_BYTES];
	size_t end_len;

	size_t head_bytes; /* of the request: BEGIN and PARAMS */
	bool heard;        /* a record of its response */
	bool has_stray;    /* a record of another request */
	bool stdout_ended;
	bool ended;
	bool has_more; /* there were bytes behind END */
	uint32_t app_status;
	uint8_t protocol_status;
};

static void
put_head(const struct client *c, struct buf *up)
{
	const struct exchange *x = c->x;
	struct fcgi_params_writer w;

	fcgi_add_begin(up, c->id, FCGI_RESPONDER,
	    x->backend->keep_alive > 0 ? FCGI_KEEP_CONN : 0);
	fcgi_params_start(&w, up, c->id);
	for (size_t i = 0; i < x->params->n; i++)
		fcgi_params_add(
		    &w, x->params->at[i].name, x->params->at[i].value);
	fcgi_params_end(&w);
}

static bool
refill(void *context, struct buf *up)
{
	struct client *c = context;
	struct exchange *x = c->x;
	UNINITIALIZED char bytes[STDIN_PIECE];
	ssize_t n = spool_read(x->body, x->body_at, bytes, sizeof(bytes));

	if (n < 0) {
		err_set(&x->error, "the spooled body can not be read");
		up->failed = true;
		return false;
	}
	x->body_at += (uint64_t)n;
	fcgi_add_record(
	    up, FCGI_STDIN, c->id, (struct str){ bytes, (size_t)n });
	if (n > 0 && x->body_at == x->body->bytes) {
		fcgi_add_record(up, FCGI_STDIN, c->id, STR_NONE);
		return false;
	}
	return n > 0;
}

/* Takes what is there of the open record's content. */
static enum pump_verdict
take_content(struct client *c, struct str piece, struct buf *down)
{
	struct exchange *x = c->x;

	switch (c->h.type) {
	case FCGI_STDOUT:
		return response_take(&x->response, piece, down);
	case FCGI_STDERR:
		exchange_complain(x, piece);
		break;
	case FCGI_END_REQUEST:
		if (piece.len > END_BYTES - c->end_len)
			piece.len = END_BYTES - c->end_len;
		memcpy(c->end + c->end_len, piece.p, piece.len);
		c->end_len += piece.len;
		break;
	default:
		break;
	}
	return PUMP_HEAD_MORE;
}

static bool
open_record(struct client *c)
{
	fcgi_header_read(c->header, &c->h);
	c->content_left = c->h.content;
	c->padding_left = c->h.padding;
	if (c->h.version != 1)
		return err_set(&c->x->error, "not a FastCGI response");
	c->has_stray = c->h.id != c->id;
	if (c->has_stray)
		return false;
	c->heard = true;
	if (c->h.type == FCGI_END_REQUEST && c->h.content < END_BYTES)
		return err_set(
		    &c->x->error, "an END of %u bytes", (unsigned)c->h.content);
	if (c->h.type == FCGI_STDOUT && c->h.content == 0)
		c->stdout_ended = true;
	return true;
}

static void
close_record(struct client *c)
{
	if (c->h.type == FCGI_END_REQUEST && c->end_len == END_BYTES) {
		c->ended = true;
		c->app_status = (uint32_t)c->end[0] << 24 |
		    (uint32_t)c->end[1] << 16 | (uint32_t)c->end[2] << 8 |
		    c->end[3];
		c->protocol_status = c->end[4];
	}
	c->header_len = 0;
}

static size_t
least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* One step along the stream; returns how many bytes it took. */
static size_t
take_some(struct client *c, struct str in, struct buf *down,
    enum pump_verdict *verdict)
{
	size_t n;

	*verdict = PUMP_HEAD_MORE;
	if (c->header_len < FCGI_HEADER_BYTES) {
		n = least(FCGI_HEADER_BYTES - c->header_len, in.len);
		memcpy(c->header + c->header_len, in.p, n);
		c->header_len += n;
		if (c->header_len == FCGI_HEADER_BYTES && !open_record(c)) {
			*verdict = PUMP_BROKEN;
			return n;
		}
	} else if (c->content_left > 0) {
		n = least(c->content_left, in.len);
		c->content_left -= n;
		*verdict = take_content(c, (struct str){ in.p, n }, down);
	} else {
		n = least(c->padding_left, in.len);
		c->padding_left -= n;
	}
	if (c->header_len == FCGI_HEADER_BYTES && c->content_left == 0 &&
	    c->padding_left == 0)
		close_record(c);
	return n;
}

static enum pump_verdict
take(void *context, struct str in, struct buf *down)
{
	struct client *c = context;

	while (in.len > 0 && !c->ended) {
		enum pump_verdict verdict;
		size_t n = take_some(c, in, down, &verdict);

		if (verdict == PUMP_BROKEN)
			return verdict;
		in.p += n;
		in.len -= n;
	}
	c->has_more = in.len > 0;
	if (c->ended)
		return PUMP_WHOLE;
	return c->x->response.has_head ? PUMP_GO_ON : PUMP_HEAD_MORE;
}

static void
begun(void *context)
{
	struct client *c = context;

	exchange_begun(c->x);
}

static enum exchange_end
conclude(struct client *c, struct pump *pump, enum pump_end end)
{
	struct exchange *x = c->x;
	bool whole =
	    end == PUMP_END_WHOLE || (end == PUMP_END_EOF && c->stdout_ended);

	if (whole && c->protocol_status != FCGI_REQUEST_COMPLETE &&
	    !x->response.has_head) {
		err_set(&x->error, "refused with protocol status %u",
		    (unsigned)c->protocol_status);
		return c->protocol_status == FCGI_UNKNOWN_ROLE
		    ? EXCHANGE_BROKEN
		    : EXCHANGE_OVERLOADED;
	}
	/* Behind a head it is only told to the log, as web servers ignore it. */
	if (c->protocol_status != FCGI_REQUEST_COMPLETE)
		err_set(&x->error, "ended with protocol status %u",
		    (unsigned)c->protocol_status);
	else if (c->app_status != 0)
		err_set(&x->error, "ended with status %lu",
		    (unsigned long)c->app_status);
	if (whole && response_is_whole(&x->response))
		return exchange_finish(x, pump);
	if (c->has_stray)
		err_set(&x->error, "a record of another request came");
	return exchange_give_up(x, pump, end);
}

/* RFC 9110, 9.2.1: it asks for nothing by being asked twice. */
static bool
is_safe(const struct exchange *x)
{
	struct str method = x->subject->method;

	return x->body->bytes == 0 &&
	    (str_eq(method, STR("GET")) || str_eq(method, STR("HEAD")) ||
		str_eq(method, STR("OPTIONS")));
}

/* The connection was of no use: closed, or with what is none of ours first. */
static bool
has_no_response(const struct client *c, enum pump_end end)
{
	if (c->heard)
		return false;
	return c->has_stray || (end == PUMP_END_EOF && c->header_len == 0);
}

/*
 * A kept connection turned out to be of no use, and nothing was consumed. As
 * long as the head has not gone up whole that is certain: no application
 * runs half a head. Beyond that nothing tells it from a request that ran and
 * died (php-fpm half-closes, and then reads away what still comes), so only
 * a safe one is sent again.
 */
static bool
was_in_vain(const struct client *c, const struct pump *pump,
    const struct reach *reach, enum pump_end end)
{
	return reach->uses > 0 && has_no_response(c, end) &&
	    (pump->up_bytes < c->head_bytes || is_safe(c->x));
}

/* Is there nothing left on either side that a next request would meet? */
static bool
can_be_kept(const struct client *c, const struct pump *pump, enum pump_end end)
{
	return c->x->backend->keep_alive > 0 && end == PUMP_END_WHOLE &&
	    c->protocol_status == FCGI_REQUEST_COMPLETE && !c->has_more &&
	    response_is_whole(&c->x->response) && pump->all_up;
}

static void
prepare(struct client *c, struct pump *pump)
{
	static const struct pump_ops ops = { refill, take, begun, NULL };
	struct exchange *x = c->x;

	pump_init(pump, &ops, c);
	put_head(c, &pump->up);
	c->head_bytes = pump->up.len;
	pump->no_more_up = !refill(c, &pump->up);
	pump->front = x->front;
	pump->stop = x->stop;
	pump->send_timeout_us = x->backend->send_timeout_us;
	pump->first_byte_timeout_us = x->backend->first_byte_timeout_us;
	pump->idle_timeout_us = x->backend->idle_timeout_us;
}

/* false: in vain, and it may be sent again. */
static bool
run_once(struct exchange *x, enum reach_wants wants, enum exchange_end *end)
{
	struct client client = { .x = x, .id = FIRST_ID };
	struct pump pump;
	struct reach reach;
	enum pump_end ended;
	bool in_vain;

	*end = EXCHANGE_BROKEN;
	prepare(&client, &pump);
	/* Then at once: an application's accept wakes it to find it there. */
	if (!reach_open(
		&reach, x->backend, x->addresses, wants, x->arena, &x->error)) {
		pump_release(&pump);
		return true;
	}
	/* Of addresses that were tried before. */
	x->error.text[0] = '\0';
	if (reach.uses > 0) {
		client.id = (uint16_t)(FIRST_ID + reach.uses % IDS);
		fcgi_set_id(&pump.up, client.id);
	}
	pump.in = pump.out = reach.fd;
	ended = pump.up.failed ? PUMP_END_BROKEN : pump_run(&pump);
	in_vain = was_in_vain(&client, &pump, &reach, ended);
	reach_leave(&reach, can_be_kept(&client, &pump, ended));
	if (!in_vain)
		*end = conclude(&client, &pump, ended);
	pump_release(&pump);
	reach_close(&reach);
	return !in_vain;
}

enum exchange_end
backend_fastcgi_run(struct exchange *x)
{
	enum exchange_end end;

	if (run_once(x, is_safe(x) ? REACH_ANY : REACH_CERTAIN, &end))
		return end;
	counter_add(COUNTER_backend_kept_dead, 1);
	x->body_at = 0;
	run_once(x, REACH_NEW_ONE, &end);
	return end;
}
