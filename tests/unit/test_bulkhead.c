/*
 * ENGINE.md, "Bulkhead": never more than a gate's or the total's places are
 * taken, and nobody is lost in a queue.
 */
#include "domain/bulkhead.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "draw.h"

static enum bulkhead_entry
enter(struct bulkhead *b, struct gate *gate, struct waiter *w, uint64_t handle)
{
	*w = (struct waiter){ .handle = handle };
	return bulkhead_enter(b, gate, w);
}

static void
expect_next(struct bulkhead *b, uint64_t handle, const struct gate *gate)
{
	struct gate *next = NULL;
	uint64_t got = 0;

	assert_true(bulkhead_admit(b, &got, &next));
	assert_int_equal(got, handle);
	assert_ptr_equal(next, gate);
}

static void
expect_nobody(struct bulkhead *b)
{
	struct gate *next = NULL;
	uint64_t got = 0;

	assert_false(bulkhead_admit(b, &got, &next));
}

/* max_inflight are let in, queue wait in their order, the rest is told. */
static void
test_one_gate(void **state)
{
	struct bulkhead *b = bulkhead_new(100);
	struct gate *g = bulkhead_open_gate(b, "a", 2, 3);
	struct waiter w[6];

	(void)state;
	expect_nobody(b);
	assert_int_equal(enter(b, g, &w[0], 10), BULKHEAD_IN);
	assert_int_equal(enter(b, g, &w[1], 11), BULKHEAD_IN);
	assert_null(w[0].gate);
	for (size_t i = 2; i < 5; i++)
		assert_int_equal(enter(b, g, &w[i], 10 + i), BULKHEAD_QUEUED);
	assert_int_equal(enter(b, g, &w[5], 15), BULKHEAD_FULL);
	assert_int_equal(bulkhead_inflight(b), 2);
	expect_nobody(b);
	bulkhead_leave(b, g);
	assert_int_equal(bulkhead_inflight(b), 1);
	expect_next(b, 12, g);
	assert_int_equal(bulkhead_inflight(b), 2);
	expect_nobody(b);
	/* His place in the queue is free again. */
	assert_int_equal(enter(b, g, &w[5], 15), BULKHEAD_QUEUED);
	assert_true(bulkhead_is_queued(b, &w[3]));
	bulkhead_forget(b, &w[3]);
	assert_false(bulkhead_is_queued(b, &w[3]));
	bulkhead_forget(b, &w[3]);
	assert_false(bulkhead_is_queued(b, &w[2])); /* he is inside by now */
	bulkhead_forget(b, &w[2]);
	assert_true(bulkhead_is_queued(b, &w[4]));
	bulkhead_leave(b, g);
	bulkhead_leave(b, g);
	expect_next(b, 14, g);
	expect_next(b, 15, g);
	expect_nobody(b);
	bulkhead_leave(b, g);
	bulkhead_leave(b, g);
	assert_int_equal(bulkhead_inflight(b), 0);
	bulkhead_close_gate(b, g);
	bulkhead_free(b);
}

/*
 * Whoever comes does not overtake those who wait; when a reload has made
 * room, all who fit are let in.
 */
static void
test_no_overtaking(void **state)
{
	struct bulkhead *b = bulkhead_new(100);
	struct gate *g = bulkhead_open_gate(b, "a", 1, 10);
	struct waiter w[5];

	(void)state;
	assert_int_equal(enter(b, g, &w[0], 0), BULKHEAD_IN);
	assert_int_equal(enter(b, g, &w[1], 1), BULKHEAD_QUEUED);
	assert_int_equal(enter(b, g, &w[2], 2), BULKHEAD_QUEUED);
	assert_ptr_equal(bulkhead_open_gate(b, "a", 3, 10), g);
	assert_int_equal(enter(b, g, &w[3], 3), BULKHEAD_QUEUED);
	expect_next(b, 1, g);
	expect_next(b, 2, g);
	expect_nobody(b);
	/* And where it has taken places away, they are left first. */
	assert_ptr_equal(bulkhead_open_gate(b, "a", 1, 10), g);
	bulkhead_leave(b, g);
	expect_nobody(b);
	bulkhead_leave(b, g);
	expect_nobody(b);
	bulkhead_leave(b, g);
	expect_next(b, 3, g);
	bulkhead_leave(b, g);
	for (int i = 0; i < 3; i++)
		bulkhead_close_gate(b, g);
	bulkhead_free(b);
}

/* The total binds gates that are not full; who waited longest is next. */
static void
test_total(void **state)
{
	struct bulkhead *b = bulkhead_new(3);
	struct gate *a = bulkhead_open_gate(b, "a", 2, 10);
	struct gate *c = bulkhead_open_gate(b, "c", 3, 10);
	struct waiter w[8];

	(void)state;
	assert_int_equal(enter(b, a, &w[0], 0), BULKHEAD_IN);
	assert_int_equal(enter(b, a, &w[1], 1), BULKHEAD_IN);
	assert_int_equal(enter(b, a, &w[2], 2), BULKHEAD_QUEUED);
	assert_int_equal(enter(b, c, &w[3], 3), BULKHEAD_IN);
	assert_int_equal(enter(b, c, &w[4], 4), BULKHEAD_QUEUED);
	assert_int_equal(enter(b, a, &w[5], 5), BULKHEAD_QUEUED);
	assert_int_equal(enter(b, c, &w[6], 6), BULKHEAD_QUEUED);
	assert_int_equal(bulkhead_inflight(b), 3);
	expect_nobody(b);
	/* 2 has waited longest, but a is full. */
	bulkhead_leave(b, c);
	expect_next(b, 4, c);
	/* A place in a: his turn, and then 5's before 6's. */
	bulkhead_leave(b, a);
	expect_next(b, 2, a);
	bulkhead_leave(b, a);
	expect_next(b, 5, a);
	bulkhead_leave(b, c);
	expect_next(b, 6, c);
	expect_nobody(b);
	bulkhead_leave(b, a);
	bulkhead_leave(b, a);
	bulkhead_leave(b, c);
	expect_nobody(b);
	assert_int_equal(bulkhead_inflight(b), 0);
	bulkhead_close_gate(b, a);
	bulkhead_close_gate(b, c);
	bulkhead_free(b);
}

/* A gate nobody is in gets its turn beside one that always has a queue. */
static void
test_nobody_starves(void **state)
{
	struct bulkhead *b = bulkhead_new(2);
	struct gate *busy = bulkhead_open_gate(b, "busy", 2, 10);
	struct gate *other = bulkhead_open_gate(b, "other", 1, 10);
	struct waiter w[4], mine;

	(void)state;
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(enter(b, busy, &w[i], i),
		    i < 2 ? BULKHEAD_IN : BULKHEAD_QUEUED);
	assert_int_equal(enter(b, other, &mine, 99), BULKHEAD_QUEUED);
	for (uint64_t i = 2; i < 4; i++) {
		bulkhead_leave(b, busy);
		expect_next(b, i, busy);
		/* Each that is served is followed by another. */
		assert_int_equal(
		    enter(b, busy, &w[i - 2], 10 + i), BULKHEAD_QUEUED);
	}
	bulkhead_leave(b, busy);
	expect_next(b, 99, other);
	bulkhead_leave(b, other);
	expect_next(b, 12, busy);
	bulkhead_forget(b, &w[1]);
	bulkhead_leave(b, busy);
	bulkhead_leave(b, busy);
	bulkhead_close_gate(b, busy);
	bulkhead_close_gate(b, other);
	bulkhead_free(b);
}

/* A queue of none: a place or a 503. */
static void
test_no_queue(void **state)
{
	struct bulkhead *b = bulkhead_new(1);
	struct gate *g = bulkhead_open_gate(b, "a", 1, 0);
	struct waiter w;

	(void)state;
	assert_int_equal(enter(b, g, &w, 0), BULKHEAD_IN);
	assert_int_equal(enter(b, g, &w, 0), BULKHEAD_FULL);
	assert_null(w.gate);
	bulkhead_forget(b, &w);
	bulkhead_leave(b, g);
	expect_nobody(b);
	bulkhead_close_gate(b, g);
	bulkhead_free(b);
}

/* A gate lives as long as one configuration has it, and what waits there. */
static void
test_names(void **state)
{
	struct bulkhead *b = bulkhead_new(10);
	struct gate *one = bulkhead_open_gate(b, "a", 1, 1);
	struct gate *other = bulkhead_open_gate(b, "b", 1, 1);
	struct gate *third = bulkhead_open_gate(b, "c", 1, 1);
	struct gate *again = bulkhead_open_gate(b, "a", 1, 1);
	struct waiter w;

	(void)state;
	assert_ptr_equal(one, again);
	assert_ptr_not_equal(one, other);
	assert_int_equal(enter(b, one, &w, 1), BULKHEAD_IN);
	bulkhead_close_gate(b, one);
	assert_int_equal(enter(b, again, &w, 2), BULKHEAD_QUEUED);
	bulkhead_leave(b, again);
	expect_next(b, 2, again);
	bulkhead_leave(b, again);
	/* One goes, the others keep their names. */
	bulkhead_close_gate(b, other);
	assert_ptr_equal(bulkhead_open_gate(b, "c", 1, 1), third);
	assert_ptr_equal(bulkhead_open_gate(b, "a", 1, 1), again);
	bulkhead_close_gate(b, third);
	bulkhead_close_gate(b, third);
	bulkhead_close_gate(b, again);
	bulkhead_close_gate(b, again);
	again = bulkhead_open_gate(b, "a", 1, 1);
	assert_int_equal(enter(b, again, &w, 1), BULKHEAD_IN);
	bulkhead_leave(b, again);
	bulkhead_close_gate(b, again);
	bulkhead_free(b);
}

/* --- Raced ---------------------------------------------------------------- */

#define GATES    3
#define THREADS  6
#define REQUESTS 4000
#define TOTAL    5

enum fate { NOT_YET, WAITING, CLAIMED, PASSED };

/* As a connection: claimed under its lock by one of all who want it. */
struct request {
	pthread_mutex_t lock;
	struct waiter waiter;
	size_t gate;
	enum fate fate;
};

struct race {
	struct bulkhead *b;
	pthread_barrier_t start;
	struct gate *gate[GATES];
	_Atomic int inside[GATES];
	_Atomic int total;
	_Atomic int worst_inside[GATES];
	_Atomic int worst_total;
	_Atomic size_t next;
	_Atomic size_t in, queued, full, served, forgotten;
	struct request request[REQUESTS];
};

static const int gate_max[GATES] = { 1, 2, 4 };

static void
raise_to(_Atomic int *worst, int value)
{
	int seen = atomic_load(worst);

	while (
	    seen < value && !atomic_compare_exchange_weak(worst, &seen, value))
		;
}

/* A place that is held for a moment. */
static void
work(struct race *r, size_t gate)
{
	raise_to(
	    &r->worst_inside[gate], atomic_fetch_add(&r->inside[gate], 1) + 1);
	raise_to(&r->worst_total, atomic_fetch_add(&r->total, 1) + 1);
	/* Let the others come meanwhile. */
	sched_yield();
	sched_yield();
	atomic_fetch_sub(&r->total, 1);
	atomic_fetch_sub(&r->inside[gate], 1);
}

static bool
claim(struct request *request)
{
	bool waits;

	pthread_mutex_lock(&request->lock);
	waits = request->fate == WAITING;
	if (waits)
		request->fate = CLAIMED;
	pthread_mutex_unlock(&request->lock);
	return waits;
}

/* As gateway.c does it: whoever is named and still there, runs. */
static void
serve_waiters(struct race *r)
{
	struct gate *gate;
	uint64_t handle;

	while (bulkhead_admit(r->b, &handle, &gate)) {
		struct request *named = &r->request[handle];

		assert_ptr_equal(r->gate[named->gate], gate);
		if (claim(named)) {
			bulkhead_forget(r->b, &named->waiter);
			atomic_fetch_add(&r->served, 1);
			work(r, named->gate);
		}
		bulkhead_leave(r->b, gate);
	}
}

/* A client that goes away while it waits, as an event or the timer finds. */
static void
go_away(struct race *r, struct request *request)
{
	if (!claim(request))
		return;
	bulkhead_forget(r->b, &request->waiter);
	assert_null(request->waiter.gate);
	atomic_fetch_add(&r->forgotten, 1);
}

static enum bulkhead_entry
come(struct race *r, size_t i)
{
	struct request *request = &r->request[i];
	enum bulkhead_entry entry;

	request->waiter.handle = i;
	pthread_mutex_lock(&request->lock);
	entry = bulkhead_enter(r->b, r->gate[request->gate], &request->waiter);
	request->fate = entry == BULKHEAD_QUEUED ? WAITING : PASSED;
	pthread_mutex_unlock(&request->lock);
	return entry;
}

static void *
run(void *context)
{
	struct race *r = context;
	size_t i;

	pthread_barrier_wait(&r->start);
	while ((i = atomic_fetch_add(&r->next, 1)) < REQUESTS) {
		switch (come(r, i)) {
		case BULKHEAD_IN:
			atomic_fetch_add(&r->in, 1);
			work(r, r->request[i].gate);
			bulkhead_leave(r->b, r->gate[r->request[i].gate]);
			serve_waiters(r);
			break;
		case BULKHEAD_QUEUED:
			atomic_fetch_add(&r->queued, 1);
			serve_waiters(r);
			break;
		case BULKHEAD_FULL:
			atomic_fetch_add(&r->full, 1);
			break;
		}
		if (i % 3 == 0)
			go_away(r, &r->request[i < 5 ? 0 : i - 5]);
	}
	return NULL;
}

/* All requests once; false: too little happened at the same time. */
static bool
race_once(struct race *r, unsigned *seed)
{
	pthread_t thread[THREADS];

	*r = (struct race){ .b = bulkhead_new(TOTAL) };
	pthread_barrier_init(&r->start, NULL, THREADS);
	for (size_t i = 0; i < GATES; i++) {
		char name[2] = { (char)('a' + i), '\0' };

		r->gate[i] =
		    bulkhead_open_gate(r->b, name, (size_t)gate_max[i], 50);
	}
	for (size_t i = 0; i < REQUESTS; i++) {
		pthread_mutex_init(&r->request[i].lock, NULL);
		r->request[i].gate = draw_below(seed, GATES);
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, run, r), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (size_t i = 0; i < GATES; i++)
		assert_in_range(r->worst_inside[i], 1, gate_max[i]);
	assert_in_range(r->worst_total, 1, TOTAL);
	/* All are out, and each that waited was served or has gone. */
	assert_int_equal(bulkhead_inflight(r->b), 0);
	assert_int_equal(r->in + r->queued + r->full, REQUESTS);
	assert_int_equal(r->served + r->forgotten, r->queued);
	for (size_t i = 0; i < REQUESTS; i++)
		pthread_mutex_destroy(&r->request[i].lock);
	for (size_t i = 0; i < GATES; i++)
		bulkhead_close_gate(r->b, r->gate[i]);
	pthread_barrier_destroy(&r->start);
	bulkhead_free(r->b);
	return r->served > 0 && r->forgotten > 0;
}

static void
test_raced(void **state)
{
	static struct race race;
	unsigned seed = draw_seed();
	bool raced = false;

	(void)state;
	for (int round = 0; round < 50 && !(raced && round >= 5); round++)
		raced = race_once(&race, &seed) || raced;
	assert_true(raced);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_gate),
		cmocka_unit_test(test_no_overtaking),
		cmocka_unit_test(test_total),
		cmocka_unit_test(test_nobody_starves),
		cmocka_unit_test(test_no_queue),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_raced),
	};

	return cmocka_run_group_tests_name("bulkhead", tests, NULL, NULL);
}
