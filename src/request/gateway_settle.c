/*
 * Where a connection goes between the chapters of the story, and when it is
 * over.
 */
#include "request/gateway_own.h"

#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/counter.h"
#include "request/intake.h"

#define DRAIN_TIMEOUT_US 30000000

void
gateway_about_to_block(struct gateway *g)
{
	g->about_to_block(g->about_to_block_context);
}

void
gateway_about_to_ask(struct gateway *g)
{
	if (g->stores.shared != NULL && g->stores.shared->may_block)
		gateway_about_to_block(g);
}

enum next
gateway_park(struct gateway *g, struct connection *c, enum parked reason,
    uint32_t events, int64_t deadline_us)
{
	if (connection_park(g->lot, c, reason, events, deadline_us))
		return NEXT_PARKED;
	return c->request != NULL ? answer_nothing(c, 0) : NEXT_CLOSE;
}

/* The next head comes under what is in force now. */
static void
expect_head(struct gateway *g, struct connection *c)
{
	struct generation *current = gateway_generation(g);

	intake_expect(c, &current->config->gateway);
	generation_unref(current);
}

enum next
gateway_hear_head(struct gateway *g, struct connection *c)
{
	expect_head(g, c);
	return gateway_park(g, c, PARKED_HEAD, EPOLLIN, c->head_deadline_us);
}

enum next
gateway_await_head(struct gateway *g, struct connection *c)
{
	bool idle = c->guard.served && !c->guard.begun && c->in.len == 0;
	enum next next;

	if (idle) {
		if (atomic_load(&g->stopping))
			return connection_has_input(c) ? gateway_hear_head(g, c)
						       : NEXT_CLOSE;
		buf_shrink(&c->in);
		return gateway_park(g, c, PARKED_IDLE, EPOLLIN, INT64_MAX);
	}
	buf_shrink(&c->in);
	buf_shrink(&c->guard.pairs);
	next = gateway_park(g, c, PARKED_HEAD, EPOLLIN, c->head_deadline_us);
	while (lot_half_heads_full(g->lot)) {
		struct connection *oldest =
		    connection_claim_oldest(g->lot, PARKED_HEAD);

		if (oldest == NULL)
			break;
		counter_add(COUNTER_heads_rejected, 1);
		connection_close(g->lot, oldest);
	}
	return next;
}

static enum next
begin_drain(struct gateway *g, struct connection *c)
{
	shutdown(c->fd, SHUT_WR);
	buf_release(&c->in); /* whatever it was */
	c->drained_bytes = 0;
	return gateway_park(g, c, PARKED_DRAIN, EPOLLIN | EPOLLRDHUP,
	    clock_mono_us() + DRAIN_TIMEOUT_US);
}

enum next
gateway_drain(struct gateway *g, struct connection *c)
{
	if (!intake_drain(c))
		return NEXT_CLOSE;
	return gateway_park(g, c, PARKED_DRAIN, EPOLLIN, c->deadline_us);
}

/*
 * A kept connection. What came with the last request is looked at in its
 * own turn (a socket that can be written to is ready at once), so that one
 * peer that sends without pause does not hold a worker.
 */
static enum next
keep_connection(struct gateway *g, struct connection *c)
{
	guard_reset(&c->guard, c->guard.id);
	if (c->in.len == 0)
		return gateway_await_head(g, c);
	expect_head(g, c);
	return gateway_park(
	    g, c, PARKED_HEAD, EPOLLIN | EPOLLOUT, c->head_deadline_us);
}

void
gateway_settle(struct gateway *g, struct connection *c, enum next next)
{
	if (next == NEXT_KEEP)
		next = keep_connection(g, c);
	else if (next == NEXT_DRAIN)
		next = begin_drain(g, c);
	if (next == NEXT_CLOSE)
		connection_close(g->lot, c);
}
