/*
 * The chapter in which a whole request waits: for the time that a limit
 * holds it back, then for a place in its backend, without a worker.
 *
 * Meanwhile its client may leave. Web servers close the connection then;
 * HAProxy says ABORT_REQUEST, so what comes is read, a header at most. If
 * that belongs to the next request nothing more is, or a level-triggered
 * EPOLLIN would wake a worker for it again and again; only that the peer
 * closes is watched from then on.
 */
#include "request/gateway_own.h"

#include <stdatomic.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/counter.h"
#include "request/intake.h"
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
			gateway_about_to_block(g);
			/* Where a reload made much room, another helps. */
			if (bulkhead_can_admit(g->bulkhead))
				lot_kick(g->lot);
			gateway_settle(g, c, relay_run(c, g->stop));
		}
		bulkhead_leave(g->bulkhead, gate);
	}
}

static uint32_t
watched(const struct request *r)
{
	return r->is_unheard ? EPOLLRDHUP : EPOLLIN | EPOLLRDHUP;
}

/* The connection is held, its request in the queue. */
static enum next
park_in_queue(struct gateway *g, struct connection *c)
{
	struct request *r = c->request;

	buf_shrink(&c->in);
	if (connection_park_held(
		g->lot, c, PARKED_QUEUE, watched(r), r->queued_until_us))
		return NEXT_PARKED;
	bulkhead_forget(g->bulkhead, &r->waiter);
	return answer_nothing(c, 0);
}

/*
 * Nobody may claim the connection before it is both in the backend's queue
 * and parked, or the place that came free in between would be lost on it.
 */
static enum next
enter_backend(struct gateway *g, struct connection *c, bool *inside)
{
	struct request *r = c->request;

	*inside = false;
	r->gate = generation_backend(r->generation, r->subject.backend)->gate;
	r->waiter.handle = lot_name(c);
	if (r->queued_until_us == 0)
		r->queued_until_us =
		    clock_mono_us() + r->subject.backend->queue_timeout_us;
	connection_hold(c);
	switch (bulkhead_enter(g->bulkhead, r->gate, &r->waiter)) {
	case BULKHEAD_IN:
		connection_release(c);
		*inside = true;
		return NEXT_CLOSE;
	case BULKHEAD_QUEUED:
		return park_in_queue(g, c);
	case BULKHEAD_FULL:
		break;
	}
	connection_release(c);
	counter_add(COUNTER_queue_full, 1);
	err_set(&r->error, "the queue of backend %s is full",
	    r->subject.backend->name);
	return answer_send(c, 503, ANSWER_BUSY_RETRY_US);
}

/*
 * A whole request: to its backend, and this worker's turn is over. One that
 * was only asked about is answered.
 */
static enum next
relay_request(struct gateway *g, struct connection *c)
{
	struct gate *gate;
	bool inside;
	enum next next;

	if (atomic_load(&g->given_up))
		return answer_out_of_time(c);
	if (subject_is_only_asked(&c->request->subject))
		return answer_send(c, 204, ANSWER_NO_RETRY);
	next = enter_backend(g, c, &inside);
	if (!inside && next != NEXT_PARKED)
		return next;
	if (inside) {
		gateway_about_to_block(g);
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
	struct request *r = c->request;

	buf_shrink(&c->in);
	return gateway_park(g, c, PARKED_DELAY, watched(r), r->held_until_us);
}

/* What was taken for a request that is still held back is forgotten. */
static enum next
end_waiting(struct gateway *g, struct connection *c, bool held, int status)
{
	struct request *r = c->request;

	gateway_about_to_ask(g);
	bulkhead_forget(g->bulkhead, &r->waiter);
	if (held)
		decision_withdraw(&r->decision, &g->stores);
	return answer_nothing(c, status);
}

/* Listens to its client; true: that was its end, and *next is what then. */
static bool
has_ended(struct gateway *g, struct connection *c, bool held, enum next *next)
{
	struct request *r = c->request;
	/* Who is no longer read wakes us by closing alone. */
	enum intake_news news = r->is_unheard ? INTAKE_LEFT : intake_listen(c);

	switch (news) {
	case INTAKE_SILENT:
		break;
	case INTAKE_NEXT:
		r->is_unheard = true;
		break;
	case INTAKE_LEFT:
		counter_add(COUNTER_clients_gone, 1);
		*next = end_waiting(g, c, held, REQUEST_CLIENT_GONE);
		return true;
	case INTAKE_BROKEN:
		err_set(&r->error, "what follows the request is no FastCGI");
		*next = end_waiting(g, c, held, 0);
		return true;
	}
	return false;
}

/* Its place may have come free while it was not parked; then it is lost. */
static enum next
queue_again(struct gateway *g, struct connection *c)
{
	connection_hold(c);
	if (bulkhead_is_queued(g->bulkhead, &c->request->waiter))
		return park_in_queue(g, c);
	connection_release(c);
	return relay_request(g, c);
}

/* All of it is here; what a limit delays is held back without a worker. */
enum next
gateway_carry_on(struct gateway *g, struct connection *c)
{
	const struct request *r = c->request;
	bool held =
	    r->decision.delay_us > 0 && clock_mono_us() < r->held_until_us;
	enum next next;

	/* It may have come with what it says last. */
	if (!r->is_unheard && c->in.len > 0 && has_ended(g, c, held, &next))
		return next;
	return held ? hold_back(g, c) : relay_request(g, c);
}

enum next
gateway_hear(struct gateway *g, struct connection *c, enum parked reason)
{
	bool held = reason == PARKED_DELAY;
	enum next next;

	if (has_ended(g, c, held, &next))
		return next;
	return held ? hold_back(g, c) : queue_again(g, c);
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
