#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/counter.h"
#include "domain/store_memory.h"
#include "pure/siphash.h"

#define HOUR_US INT64_C(3600000000)

static struct store_check
limit(const char *key, int64_t count)
{
	struct store_check c = { 0 };

	c.key = str_of(key);
	c.check = (struct check){
		.algorithm = ALGORITHM_FIXED_WINDOW,
		.align = ALIGN_FIRST,
		.count = count,
		.period_us = HOUR_US,
		.burst = count,
		.cost = 1,
	};
	return c;
}

static struct store_answer
ask(struct store *s, struct store_check *c, size_t n)
{
	struct store_question q = { .check = c, .n = n };
	struct store_answer a;

	memset(&a, 0x5a, sizeof(a));
	s->ops->ask(s, &q, &a);
	assert_int_equal(a.status, STORE_ANSWERED);
	assert_in_range(a.wait_us, 0, 5000000);
	assert_true(a.retry_us == 0);
	return a;
}

static void
test_counts(void **context)
{
	struct store *s = store_memory_new(100);
	struct store_check c = limit("a", 3);

	(void)context;
	for (int i = 0; i < 3; i++) {
		struct store_answer a = ask(s, &c, 1);

		assert_int_equal(a.verdict[0].kind, VERDICT_ALLOWED);
		assert_int_equal(a.verdict[0].remaining, 2 - i);
		assert_true(a.taken_us > INT64_C(1700000000000000));
	}
	assert_int_equal(ask(s, &c, 1).verdict[0].kind, VERDICT_REFUSED);
	c.check.cost = 0;
	assert_int_equal(ask(s, &c, 1).verdict[0].kind, VERDICT_ALLOWED);
	c = limit("never asked", 1);
	c.check.cost = 0;
	ask(s, &c, 1);
	assert_int_equal(store_memory_count(s), 1);
	s->ops->free(s);
}

/* The count and its penalty; no other. */
static void
test_clear(void **context)
{
	struct store *s = store_memory_new(100);
	struct store_check a = limit("a", 1), b = limit("b", 1);

	(void)context;
	a.check.penalty_us = 2 * HOUR_US;
	for (int i = 0; i < 2; i++) {
		ask(s, &a, 1);
		ask(s, &b, 1);
	}
	store_memory_clear(s, STR("none"));
	store_memory_clear(s, a.key);
	assert_int_equal(store_memory_count(s), 1);
	assert_int_equal(ask(s, &a, 1).verdict[0].kind, VERDICT_ALLOWED);
	assert_int_equal(ask(s, &b, 1).verdict[0].kind, VERDICT_REFUSED);
	s->ops->free(s);
}

/* Law 6. */
static void
test_all_or_nothing(void **context)
{
	struct store *s = store_memory_new(100);
	struct store_check c[3] = { limit("wide", 10), limit("narrow", 1),
		limit("watched", 10) };
	struct store_answer a;

	(void)context;
	c[2].check.observe = true;
	ask(s, c, 3);
	a = ask(s, c, 3);
	assert_int_equal(a.verdict[0].kind, VERDICT_ALLOWED);
	assert_int_equal(a.verdict[0].remaining, 9);
	assert_int_equal(a.verdict[1].kind, VERDICT_REFUSED);
	assert_int_equal(a.verdict[2].remaining, 8);
	c[0].check.cost = 0;
	assert_int_equal(ask(s, c, 1).verdict[0].remaining, 9);
	/* A watched one that is over refuses nobody. */
	c[1].check.observe = true;
	a = ask(s, c, 3);
	assert_int_equal(a.verdict[1].kind, VERDICT_REFUSED);
	assert_int_equal(a.verdict[2].remaining, 7);
	s->ops->free(s);
}

static void
test_refund(void **context)
{
	struct store *s = store_memory_new(100);
	struct store_check c[2] = { limit("a", 3), limit("b", 1) };
	struct store_question q = { .check = c, .n = 2 };
	struct store_answer a = ask(s, c, 2);

	(void)context;
	assert_int_equal(store_memory_count(s), 2);
	s->ops->refund(s, &q, a.taken_us);
	assert_int_equal(store_memory_count(s), 0);
	s->ops->refund(s, &q, a.taken_us);
	ask(s, c, 1);
	a = ask(s, c, 2);
	s->ops->refund(s, &q, a.taken_us);
	assert_int_equal(store_memory_count(s), 1);
	assert_int_equal(ask(s, c, 1).verdict[0].remaining, 1);
	s->ops->free(s);
}

static struct store_check
slot(const char *key, int64_t count, const char *name)
{
	struct store_check c = { .key = str_of(key), .slot = str_of(name) };

	c.check = (struct check){
		.algorithm = ALGORITHM_CONCURRENCY, .count = count, .cost = 1
	};
	return c;
}

/* A slot goes back once, and only one that was taken. */
static void
test_slots(void **context)
{
	struct store *s = store_memory_new(100);
	struct store_check c[3] = { slot("k", 2, "a"), slot("k", 2, "b"),
		slot("k", 2, "c") };
	struct store_check both[2] = { slot("k", 2, "d"), limit("full", 1) };
	struct store_question q = { .check = c, .n = 1 };

	(void)context;
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(ask(s, &c[i], 1).verdict[0].kind,
		    i < 2 ? VERDICT_ALLOWED : VERDICT_REFUSED);
	s->ops->release(s, &c[2], 1);
	assert_int_equal(ask(s, &c[2], 1).verdict[0].kind, VERDICT_REFUSED);
	for (size_t i = 0; i < 3; i++)
		s->ops->release(s, c, 1);
	assert_int_equal(ask(s, &c[2], 1).verdict[0].remaining, 0);
	s->ops->release(s, c, 3);
	assert_int_equal(store_memory_count(s), 0);
	/* Not taken as another refuses; a refund gives it back too. */
	ask(s, &both[1], 1);
	assert_int_equal(ask(s, both, 2).verdict[0].remaining, 2);
	assert_int_equal(store_memory_count(s), 1);
	ask(s, c, 1);
	s->ops->refund(s, &q, 0);
	s->ops->release(s, c, 1);
	assert_int_equal(store_memory_count(s), 1);
	s->ops->free(s);
}

/* Room is made of anything but what is held. */
static void
test_held_slots_stay(void **context)
{
	struct store *s = store_memory_new(2);
	struct store_check held = slot("held", 5, "a");
	char key[16];

	(void)context;
	ask(s, &held, 1);
	for (int i = 0; i < 100; i++) {
		struct store_check c;

		snprintf(key, sizeof(key), "k%d", i);
		c = limit(key, 9);
		assert_int_equal(
		    ask(s, &c, 1).verdict[0].kind, VERDICT_ALLOWED);
		s->ops->maintain(s);
	}
	held.check.cost = 0;
	assert_int_equal(ask(s, &held, 1).verdict[0].remaining, 4);
	held.check.cost = 1;
	s->ops->release(s, &held, 1);
	assert_int_equal(store_memory_count(s), 1);
	s->ops->free(s);
}

/* A refusal's penalty outlives the count, all or nothing or not. */
static void
test_penalty(void **context)
{
	struct store *s = store_memory_new(100);
	struct store_check c[2] = { limit("a", 1), limit("b", 9) };
	struct store_question q = { .check = c, .n = 2 };
	struct store_answer a;

	(void)context;
	c[0].check.penalty_us = c[1].check.penalty_us = 2 * HOUR_US;
	a = ask(s, c, 2);
	assert_int_equal(ask(s, c, 2).verdict[0].retry_us, 2 * HOUR_US);
	s->ops->refund(s, &q, a.taken_us);
	assert_int_equal(store_memory_count(s), 1);
	a = ask(s, c, 2);
	assert_int_equal(a.verdict[0].kind, VERDICT_REFUSED);
	assert_int_equal(a.verdict[0].remaining, 0);
	assert_in_range(
	    a.verdict[0].retry_us, 2 * HOUR_US - 60000000, 2 * HOUR_US);
	assert_int_equal(a.verdict[1].kind, VERDICT_ALLOWED);
	assert_int_equal(a.verdict[1].remaining, 9);
	c[0].check.penalty_us = 0;
	assert_int_equal(ask(s, c, 2).verdict[0].kind, VERDICT_ALLOWED);
	s->ops->free(s);
}

/* Taken, given back, full, and freed with what it holds. */
static void
test_logs_and_queues(void **context)
{
	struct store *s = store_memory_new(100);
	struct store_check c[2] = { limit("log", 20), limit("queue", 20) };
	struct store_question q = { .check = c, .n = 2 };
	struct store_answer a;
	int64_t taken_us = 0;

	(void)context;
	c[0].check.algorithm = ALGORITHM_SLIDING_LOG;
	c[1].check.algorithm = ALGORITHM_LEAKY_BUCKET;
	c[1].check.delay_max_us = 24 * HOUR_US;
	for (int i = 0; i < 21; i++) {
		a = ask(s, c, 2);
		assert_int_equal(a.verdict[0].kind,
		    i < 20 ? VERDICT_ALLOWED : VERDICT_REFUSED);
		assert_int_equal(a.verdict[1].limit, 20);
		if (i == 19) {
			c[1].check.full_us = a.verdict[1].full_us;
			taken_us = a.taken_us;
		}
	}
	assert_in_range(c[1].check.full_us, 19 * HOUR_US / 20, HOUR_US);
	s->ops->refund(s, &q, taken_us);
	a = ask(s, c, 2);
	assert_int_equal(a.verdict[0].kind, VERDICT_ALLOWED);
	s->ops->free(s);
}

/* B89: what is over goes, by maintain alone. */
static void
test_expires(void **context)
{
	struct store *s = store_memory_new(5000);
	int64_t deadline_us = clock_mono_us() + 20000000;
	char key[16];

	(void)context;
	for (int i = 0; i < 2000; i++) {
		struct store_check c;

		snprintf(key, sizeof(key), "k%d", i);
		c = limit(key, i % 2 + 1);
		c.check.period_us = 20000;
		c.check.algorithm = (enum algorithm)(i % ALGORITHM_CONCURRENCY);
		ask(s, &c, 1);
	}
	while (store_memory_count(s) > 0) {
		int64_t next_us = s->ops->maintain(s);

		assert_true(next_us <= clock_mono_us() + 1000000);
		assert_true(clock_mono_us() < deadline_us);
		sched_yield();
	}
	s->ops->free(s);
}

/* B64: bounded; the soonest goes, but none at its limit. */
static void
test_max_keys(void **context)
{
	struct store *s = store_memory_new(3);
	struct store_check c[4] = { limit("at its limit", 1), limit("soon", 9),
		limit("late", 9), limit("new", 9) };
	uint64_t evicted = counter_get(COUNTER_store_keys_evicted);
	uint64_t full = counter_get(COUNTER_store_full);
	struct store_answer a;

	(void)context;
	c[1].check.period_us = HOUR_US / 2;
	c[0].check.period_us = HOUR_US / 4;
	for (int i = 0; i < 4; i++)
		ask(s, &c[i], 1);
	assert_int_equal(store_memory_count(s), 3);
	assert_int_equal(counter_get(COUNTER_store_keys_evicted), evicted + 1);
	for (int i = 0; i < 4; i++)
		c[i].check.cost = 0;
	a = ask(s, c, 4);
	assert_int_equal(a.verdict[0].remaining, 0);
	assert_int_equal(a.verdict[1].remaining, 9);
	assert_int_equal(a.verdict[2].remaining, 8);
	assert_int_equal(a.verdict[3].remaining, 8);

	c[2].check.cost = c[3].check.cost = 8;
	ask(s, c, 4);
	c[1].check.cost = 1;
	a = ask(s, c, 2);
	assert_int_equal(a.verdict[1].kind, VERDICT_ERROR);
	assert_non_null(a.reason);
	assert_int_equal(a.verdict[0].kind, VERDICT_ALLOWED);
	assert_int_equal(counter_get(COUNTER_store_full), full + 1);
	s->ops->free(s);
}

static void
test_smaller_max_keys(void **context)
{
	struct store *s = store_memory_new(1000);
	char key[16];

	(void)context;
	for (int i = 0; i < 1000; i++) {
		struct store_check c;

		snprintf(key, sizeof(key), "k%d", i);
		c = limit(key, i < 200 ? 1 : 2);
		ask(s, &c, 1);
	}
	store_memory_set_max_keys(s, 300);
	s->ops->maintain(s);
	assert_int_equal(store_memory_count(s), 300);
	store_memory_set_max_keys(s, 100);
	s->ops->maintain(s);
	assert_int_equal(store_memory_count(s), 200);
	s->ops->free(s);
}

struct race {
	struct store *store;
	pthread_barrier_t start;
	atomic_int passed;
	const char *first;
	const char *second;
};

static void *
racer(void *context)
{
	struct race *r = context;
	struct store_check c[2] = { limit(r->first, 100),
		limit(r->second, 1000) };
	struct store_check other[2] = { c[1], c[0] };

	pthread_barrier_wait(&r->start);
	for (int i = 0; i < 200; i++) {
		struct store_answer a = ask(r->store, i % 2 ? c : other, 2);

		if (a.verdict[0].kind == VERDICT_ALLOWED &&
		    a.verdict[1].kind == VERDICT_ALLOWED)
			atomic_fetch_add(&r->passed, 1);
	}
	return NULL;
}

/* Law 2: 8 threads, 1600 requests, exactly 100 pass; B18. */
static void
test_truth(void **context)
{
	struct race r = { .first = "a", .second = "b" };
	struct store_check c = limit("b", 1000);
	pthread_t thread[8];

	(void)context;
	r.store = store_memory_new(100);
	pthread_barrier_init(&r.start, NULL, 8);
	for (int i = 0; i < 8; i++)
		assert_int_equal(
		    pthread_create(&thread[i], NULL, racer, &r), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(thread[i], NULL);
	c.check.cost = 0;
	/* The refused ones show verdict ALLOWED for b and REFUSED for a. */
	assert_int_equal(r.passed, 100);
	assert_int_equal(ask(r.store, &c, 1).verdict[0].remaining, 900);
	pthread_barrier_destroy(&r.start);
	r.store->ops->free(r.store);
}

static void *
flooder(void *context)
{
	struct race *r = context;
	char key[4][32];
	struct store_check c[4];

	pthread_barrier_wait(&r->start);
	for (int i = 0; i < 3000; i++) {
		struct store_question q = { .check = c, .n = 4 };
		struct store_answer a;

		for (int k = 0; k < 4; k++) {
			snprintf(key[k], sizeof(key[k]), "%p-%d", (void *)key,
			    i * 4 + k);
			c[k] = limit(key[k], 1 + i % 3);
		}
		a = ask(r->store, c, 4);
		if (i % 5 == 0)
			r->store->ops->refund(r->store, &q, a.taken_us);
	}
	return NULL;
}

/* Shards that make room in each other never wait for each other. */
static void
test_flood(void **context)
{
	struct race r = { 0 };
	pthread_t thread[4];

	(void)context;
	r.store = store_memory_new(500);
	pthread_barrier_init(&r.start, NULL, 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(
		    pthread_create(&thread[i], NULL, flooder, &r), 0);
	for (int i = 0; i < 50; i++) {
		r.store->ops->maintain(r.store);
		assert_in_range(store_memory_count(r.store), 0, 504);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	assert_in_range(store_memory_count(r.store), 0, 500);
	pthread_barrier_destroy(&r.start);
	r.store->ops->free(r.store);
}

/* The paper's SipHash-1-3 of 00 01 .. 0e under key 00 01 .. 0f. */
static void
test_siphash(void **context)
{
	const uint64_t secret[2] = { UINT64_C(0x0706050403020100),
		UINT64_C(0x0f0e0d0c0b0a0908) };
	char bytes[15];

	(void)context;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)i;
	assert_true(siphash(secret, (struct str){ bytes, 0 }) ==
	    UINT64_C(0xabac0158050fc4dc));
	assert_true(siphash(secret, (struct str){ bytes, 15 }) !=
	    siphash(secret, (struct str){ bytes, 14 }));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_all_or_nothing),
		cmocka_unit_test(test_refund),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_held_slots_stay),
		cmocka_unit_test(test_penalty),
		cmocka_unit_test(test_logs_and_queues),
		cmocka_unit_test(test_expires),
		cmocka_unit_test(test_clear),
		cmocka_unit_test(test_max_keys),
		cmocka_unit_test(test_smaller_max_keys),
		cmocka_unit_test(test_truth),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_siphash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
