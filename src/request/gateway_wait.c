/*
 * The chapter in which a whole request waits: for the time that a limit
 * holds it back, then for a place in its backend, without a worker.
 */
#include "request/gateway.h"

#include <stdatomic.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/counter.h"
#include "request/relay.h"
#include "request/request.h"

/* Serves who waits for a backend, until no place is free for anybody. */
void
gateway_serve_waiters(struct gateway *g)
{
	const struct claim claim = { PARKED_QUEUE, INT64_MAX };
	uint64_t handle;
	struct gate *gate;

	while (!atomic_load(&g->given_up) &&
	    bulkhead_admit(g->bulkhead, &handle, &gate)) {
		enum parked reason;
		struct connection *c =
		    connection_claim(g->lot, handle, &claim, &reason);

		if (c != NULL) {
			bulkhead_forget(g->bulkhead, &c->request->waiter);
			g->about_to_block(g->about_to_block_context);
			/* Where a reload made much room, another helps. */
			if (bulkhead_can_admit(g->bulkhead))
				lot_kick(g->lot);
			gateway_settle(g, c, relay_run(c, g->stop));
		}
		bulkhead_leave(g->bulkhead, gate);
	}
}

/*
 * Nobody may claim the connection before it is both in the backend's queue
 * and parked, or the place that came free in between would be lost on it.
 */
static enum next
enter_backend(struct gateway *g, struct connection *c, bool *inside)
{
	struct request *r = c->request;
	int64_t deadline_us =
	    clock_mono_us() + r->subject.backend->queue_timeout_us;

	*inside = false;
	r->gate = generation_gate(r->generation, r->subject.backend);
	r->waiter.handle = lot_name(c);
	connection_hold(c);
	switch (bulkhead_enter(g->bulkhead, r->gate, &r->waiter)) {
	case BULKHEAD_IN:
		connection_release(c);
		*inside = true;
		return NEXT_CLOSE;
	case BULKHEAD_QUEUED:
		if (connection_park_held(
			g->lot, c, PARKED_QUEUE, EPOLLRDHUP, deadline_us))
			return NEXT_PARKED;
		bulkhead_forget(g->bulkhead, &r->waiter);
		return answer_nothing(c, 0);
	case BULKHEAD_FULL:
		break;
	}
	connection_release(c);
	counter_add(COUNTER_queue_full, 1);
	err_set(&r->error, "the queue of backend %s is full",
	    r->subject.backend->name);
	return answer_send(c, 503, ANSWER_BUSY_RETRY_US);
}

/* A whole request: to its backend, and this worker's turn is over. */
static enum next
relay_request(struct gateway *g, struct connection *c)
{
	struct gate *gate;
	bool inside;
	enum next next;

	if (atomic_load(&g->given_up))
		return answer_out_of_time(c);
	next = enter_backend(g, c, &inside);
	if (!inside && next != NEXT_PARKED)
		return next;
	if (inside) {
		g->about_to_block(g->about_to_block_context);
		gate = c->request->gate;
		gateway_settle(g, c, relay_run(c, g->stop));
		bulkhead_leave(g->bulkhead, gate);
	}
	/* Also after one who queued: max_inflight may have grown. */
	gateway_serve_waiters(g);
	return NEXT_PARKED;
}

static enum next
hold_back(struct gateway *g, struct connection *c)
{
	if (connection_park(
		g->lot, c, PARKED_DELAY, EPOLLRDHUP, c->request->held_until_us))
		return NEXT_PARKED;
	return answer_nothing(c, 0);
}

/* All of it is here; what a limit delays is held back without a worker. */
enum next
gateway_carry_on(struct gateway *g, struct connection *c)
{
	struct request *r = c->request;

	if (r->decision.delay_us > 0 && clock_mono_us() < r->held_until_us)
		return hold_back(g, c);
	return relay_request(g, c);
}

/* What was taken for a request that was only held back is forgotten. */
static enum next
client_left_delay(struct gateway *g, struct connection *c)
{
	decision_withdraw(&c->request->decision, &g->stores);
	counter_add(COUNTER_clients_gone, 1);
	return answer_nothing(c, REQUEST_CLIENT_GONE);
}

static enum next
client_left_queue(struct gateway *g, struct connection *c)
{
	bulkhead_forget(g->bulkhead, &c->request->waiter);
	counter_add(COUNTER_clients_gone, 1);
	return answer_nothing(c, REQUEST_CLIENT_GONE);
}

enum next
gateway_client_left(struct gateway *g, struct connection *c, enum parked reason)
{
	gateway_about_to_ask(g);
	return reason == PARKED_DELAY ? client_left_delay(g, c)
				      : client_left_queue(g, c);
}

enum next
gateway_waited(struct gateway *g, struct connection *c, enum parked reason)
{
	if (reason == PARKED_DELAY) {
		/* This worker goes with it; another sees to who is next. */
		lot_kick(g->lot);
		return relay_request(g, c);
	}
	gateway_about_to_ask(g);
	bulkhead_forget(g->bulkhead, &c->request->waiter);
	counter_add(COUNTER_queue_timed_out, 1);
	err_set(&c->request->error, "no place in backend %s in time",
	    c->request->subject.backend->name);
	return answer_send(c, 503, ANSWER_BUSY_RETRY_US);
}
