/*
 * Settlements in both stores: none is lost while the store answers, none
 * goes further than it may, and what fails is counted.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/counter.h"
#include "domain/store_memory.h"
#include "store_fixture.h"

#define YEAR_US  INT64_C(31536000000000)
#define GATEWAYS 4
#define THREADS  8 /* of all gateways */
#define EACH     1250

static struct redis_server server;

static struct store_check
limit(const char *key, enum algorithm algorithm, int64_t count)
{
	struct store_check c = { 0 };

	c.key = str_of(key);
	c.check = (struct check){
		.algorithm = algorithm,
		.align = ALIGN_FIRST,
		.count = count,
		.period_us = YEAR_US,
		.burst = count,
		.cost = 1,
	};
	return c;
}

static int64_t
ask(struct store *store, struct store_check c, int64_t cost, int64_t *taken_us)
{
	struct store_question q = { .check = &c, .n = 1 };
	struct store_answer a;

	c.check.cost = cost;
	store->ops->ask(store, &q, &a);
	assert_int_equal(a.status, STORE_ANSWERED);
	*taken_us = a.taken_us;
	return a.verdict[0].remaining;
}

/* 10,000 settlements by many threads, and what is left afterwards. */
struct race {
	struct store *store[GATEWAYS];
	struct store_check check[2];
	int64_t taken_us;
	pthread_barrier_t start;
	atomic_int next;
};

static void *
racer(void *context)
{
	struct race *r = context;
	int number = atomic_fetch_add(&r->next, 1);
	struct store *store = r->store[number % GATEWAYS];

	pthread_barrier_wait(&r->start);
	for (int i = 0; i < EACH; i++) {
		struct store_settlement s[2] = {
			{ r->check[0], r->taken_us, i % 7 },
			{ r->check[1], r->taken_us, i % 2 == 0 ? 3 : -1 },
		};

		store->ops->settle(store, s, 2);
	}
	return NULL;
}

static void
race(struct race *r)
{
	uint64_t lost = counter_get(COUNTER_settlements_lost);
	int64_t taken_us, sum = 0;
	pthread_t thread[THREADS];

	r->check[0] = limit("bucket", ALGORITHM_TOKEN_BUCKET, 100000);
	r->check[1] = limit("window", ALGORITHM_FIXED_WINDOW, 100000);
	ask(r->store[0], r->check[0], 1, &r->taken_us);
	ask(r->store[0], r->check[1], 10000, &r->taken_us);
	pthread_barrier_init(&r->start, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, racer, r), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&r->start);
	for (int i = 0; i < EACH; i++)
		sum += i % 7;
	assert_int_equal(counter_get(COUNTER_settlements_lost), lost);
	assert_int_equal(ask(r->store[0], r->check[0], 0, &taken_us),
	    100000 - 1 - THREADS * sum);
	assert_int_equal(ask(r->store[0], r->check[1], 0, &taken_us),
	    100000 - 10000 - THREADS * (EACH / 2) * (3 - 1));
}

static void
test_exact_in_memory(void **context)
{
	struct race r = { 0 };

	(void)context;
	r.store[0] = store_memory_new(100);
	for (int i = 1; i < GATEWAYS; i++)
		r.store[i] = r.store[0];
	race(&r);
	r.store[0]->ops->free(r.store[0]);
}

static void
test_exact_over_four_gateways(void **context)
{
	struct store_redis_settings settings = settings_for(server.path);
	struct fixture f[GATEWAYS];
	struct race r = { 0 };

	(void)context;
	settings.timeout_us = 20000000;
	for (int i = 0; i < GATEWAYS; i++) {
		begin(&f[i], &settings);
		assert_true(await(&f[i], true));
		r.store[i] = f[i].store;
	}
	race(&r);
	for (int i = 0; i < GATEWAYS; i++)
		end(&f[i]);
}

/* In both stores alike: a charge, its end, what is given back. */
static void
settle_all(struct store *store, enum algorithm algorithm)
{
	struct store_check c = limit("k", algorithm, 10);
	uint64_t cut = counter_get(COUNTER_settlements_cut);
	struct store_settlement s = { .check = c };
	int64_t unused;

	assert_int_equal(ask(store, c, 1, &s.taken_us), 9);
	s.delta = 4;
	store->ops->settle(store, &s, 1);
	assert_int_equal(ask(store, c, 0, &unused), 5);
	s.delta = -2;
	store->ops->settle(store, &s, 1);
	assert_int_equal(ask(store, c, 0, &unused), 7);
	s.delta = 0;
	store->ops->settle(store, &s, 1);
	store->ops->settle(store, &s, 0);
	assert_int_equal(ask(store, c, 0, &unused), 7);
	assert_int_equal(counter_get(COUNTER_settlements_cut), cut);
	s.delta = 1000;
	store->ops->settle(store, &s, 1);
	assert_int_equal(counter_get(COUNTER_settlements_cut), cut + 1);
	s.delta = -15;
	store->ops->settle(store, &s, 1);
	assert_in_range(ask(store, c, 0, &unused), 4, 5);
}

static const enum algorithm plain[] = { ALGORITHM_FIXED_WINDOW,
	ALGORITHM_SLIDING_WINDOW };

static void
test_memory(void **context)
{
	(void)context;
	for (size_t i = 0; i < 2; i++) {
		struct store *store = store_memory_new(100);

		settle_all(store, plain[i]);
		store->ops->free(store);
	}
}

static void
test_redis(void **context)
{
	struct store_redis_settings settings = settings_for(server.path);
	struct fixture f;

	(void)context;
	settings.timeout_us = 5000000;
	begin(&f, &settings);
	assert_true(await(&f, true));
	for (size_t i = 0; i < 2; i++) {
		assert_true(redis_server_command(&server, "FLUSHALL"));
		settle_all(f.store, plain[i]);
	}
	end(&f);
}

/* Settlements of several moments go out as they are given. */
static void
test_many_at_once(void **context)
{
	struct store_redis_settings settings = settings_for(server.path);
	struct store_settlement s[3 * STORE_CHECKS_MAX];
	int64_t taken_us, unused;
	struct store_check c = limit("k", ALGORITHM_FIXED_WINDOW, 1000);
	struct fixture f;

	(void)context;
	settings.timeout_us = 5000000;
	begin(&f, &settings);
	assert_true(await(&f, true));
	ask(f.store, c, 1, &taken_us);
	for (size_t i = 0; i < 3 * STORE_CHECKS_MAX; i++)
		s[i] = (struct store_settlement){ c,
			taken_us + (i >= STORE_CHECKS_MAX / 2), 2 };
	f.store->ops->settle(f.store, s, 3 * STORE_CHECKS_MAX);
	assert_int_equal(
	    ask(f.store, c, 0, &unused), 1000 - 1 - 3 * STORE_CHECKS_MAX * 2);
	end(&f);
}

/* A store that is out takes none, holds nobody up, and all are counted. */
static void
test_lost(void **context)
{
	struct store_redis_settings settings = settings_for(server.path);
	struct store_settlement s[2] = {
		{ limit("k", ALGORITHM_FIXED_WINDOW, 9), 1, 2 },
		{ limit("l", ALGORITHM_FIXED_WINDOW, 9), 1, 2 },
	};
	uint64_t lost = counter_get(COUNTER_settlements_lost);
	int64_t begun_us;
	struct fixture f;

	(void)context;
	begin(&f, &settings);
	assert_true(await(&f, true));
	assert_true(redis_server_command(&server, "LPUSH l x"));
	f.store->ops->settle(f.store, s, 2);
	assert_int_equal(counter_get(COUNTER_settlements_lost), lost + 1);
	kill(server.pid, SIGSTOP);
	begun_us = clock_mono_us();
	f.store->ops->settle(f.store, s, 2);
	if (!is_slow())
		assert_in_range(
		    clock_mono_us() - begun_us, 0, TIMEOUT_US + 50000);
	assert_int_equal(counter_get(COUNTER_settlements_lost), lost + 3);
	kill(server.pid, SIGCONT);
	end(&f);
}

static void
test_memory_is_full(void **context)
{
	struct store *store = store_memory_new(1);
	struct store_check c = limit("at its limit", ALGORITHM_FIXED_WINDOW, 1);
	struct store_settlement s = { limit("k", ALGORITHM_FIXED_WINDOW, 9), 1,
		2 };
	uint64_t lost = counter_get(COUNTER_settlements_lost);
	int64_t unused;

	(void)context;
	ask(store, c, 1, &unused);
	store->ops->settle(store, &s, 1);
	assert_int_equal(counter_get(COUNTER_settlements_lost), lost + 1);
	store->ops->free(store);
}

static int
flush(void **context)
{
	(void)context;
	return redis_server_command(&server, "FLUSHALL") ? 0 : -1;
}

static int
set_up(void **context)
{
	(void)context;
	signal(SIGPIPE, SIG_IGN);
	redis_server_init(&server);
	return 0;
}

static int
tear_down(void **context)
{
	(void)context;
	redis_server_release(&server);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact_in_memory),
		cmocka_unit_test_setup(test_exact_over_four_gateways, flush),
		cmocka_unit_test(test_memory),
		cmocka_unit_test_setup(test_redis, flush),
		cmocka_unit_test_setup(test_many_at_once, flush),
		cmocka_unit_test_setup(test_lost, flush),
		cmocka_unit_test(test_memory_is_full),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
