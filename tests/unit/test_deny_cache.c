/*
 * What the store has refused and is not asked again: never more than it
 * would refuse, never told otherwise, within its bound, and gone at once when
 * that is asked for.
 */
#include "domain/deny_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/counter.h"
#include "draw.h"

#define SECOND 1000000
#define START  INT64_C(1790000000123456)
#define STEPS  60000
#define KEY    STR("sluice:{192.0.2.1}:login:s60000")

static int64_t
up_to(unsigned *seed, int64_t max)
{
	return (
	    int64_t)(((uint64_t)rand_r(seed) << 31 | (uint64_t)rand_r(seed)) %
	    (uint64_t)(max + 1));
}

/* --- A law: what it says is what the store would ------------------------- */

struct world {
	struct deny_cache *cache;
	struct store_check check;
	struct state state;
	int64_t now_us;
	int64_t ttl_us;
	int64_t latency_us; /* at most, each way */
	unsigned seed;
	size_t cached;
};

static const struct check limits[] = {
	{ .algorithm = ALGORITHM_SLIDING_WINDOW,
	    .count = 5,
	    .period_us = 2 * SECOND },
	{ .algorithm = ALGORITHM_FIXED_WINDOW,
	    .count = 7,
	    .period_us = 3 * SECOND },
	{ .algorithm = ALGORITHM_TOKEN_BUCKET,
	    .count = 7,
	    .period_us = 3 * SECOND,
	    .burst = 9 },
	{ .algorithm = ALGORITHM_SLIDING_LOG,
	    .count = 6,
	    .period_us = 2 * SECOND },
	{ .algorithm = ALGORITHM_LEAKY_BUCKET,
	    .count = 7,
	    .period_us = 3 * SECOND,
	    .burst = 9,
	    .delay_max_us = SECOND },
};

/* The store's answer at its own moment, and whether a commit has changed it. */
static bool
ask_store(struct world *w, struct verdict *v)
{
	const struct check *c = &w->check.check;
	struct state after;
	int64_t end_us;

	algorithm_check(c, &w->state, w->now_us, v, &after, &end_us);
	if (v->kind == VERDICT_ALLOWED ||
	    after.penalty_us != w->state.penalty_us)
		assert_true(algorithm_keep(c, &w->state, &after));
	return v->kind == VERDICT_ALLOWED;
}

static void
ask_on(struct world *w, const struct deny_cache_id *id)
{
	struct deny_cache_answer a = { .sent_us = w->now_us };

	w->now_us += up_to(&w->seed, w->latency_us);
	a.taken_us = w->now_us;
	if (ask_store(w, &a.verdict)) {
		deny_cache_forget(w->cache, w->check.key, w->now_us);
		return;
	}
	w->now_us += up_to(&w->seed, w->latency_us);
	a.answered_us = w->now_us;
	deny_cache_put(w->cache, id, &a, w->ttl_us);
}

static void
is_at_most_later(int64_t told_us, int64_t true_us, int64_t by_us)
{
	assert_true(told_us >= true_us);
	assert_true(told_us <= true_us + by_us);
}

/* Had it been asked, it would have refused, and said the same. */
static void
is_what_the_store_says(struct world *w, const struct deny_cache_answer *a)
{
	const struct verdict *told = &a->verdict;
	struct state after;
	struct verdict v;
	int64_t end_us;

	algorithm_check(
	    &w->check.check, &w->state, w->now_us, &v, &after, &end_us);
	assert_int_equal(v.kind, VERDICT_REFUSED);
	assert_int_equal(after.penalty_us, w->state.penalty_us);
	assert_int_equal(told->kind, VERDICT_REFUSED);
	assert_int_equal(told->limit, v.limit);
	assert_int_equal(told->remaining, v.remaining);
	is_at_most_later(told->retry_us, v.retry_us, w->latency_us);
	is_at_most_later(told->next_us, v.next_us, w->latency_us);
	/* A queue that fits in the longest delay is untouched all at once. */
	if (v.penalty_us > 0 && w->check.check.delay_max_us > 0)
		assert_true(told->full_us >= v.full_us);
	else
		is_at_most_later(told->full_us, v.full_us, w->latency_us);
	is_at_most_later(w->now_us, a->taken_us, w->latency_us);
	w->cached++;
}

/* Costs up to one that never passes; now and then exactly when one was told. */
static void
step(struct world *w)
{
	static const int64_t pauses[] = { 0, 10, 1000, 100000, 3 * SECOND };
	struct deny_cache_id id = { &w->check, 1 };
	struct deny_cache_answer a;
	const struct check *c = &w->check.check;

	w->check.check.cost = up_to(&w->seed, (int64_t)c->count + 3);
	switch (deny_cache_find(w->cache, &id, w->now_us, &a)) {
	case DENY_CACHE_REFUSED:
		assert_true(c->cost > 0);
		is_what_the_store_says(w, &a);
		if (a.verdict.retry_us > 0 && draw_below(&w->seed, 4) == 0) {
			w->now_us += a.verdict.retry_us -
			    (int64_t)draw_below(&w->seed, 2);
			return;
		}
		break;
	case DENY_CACHE_TOLD:
	case DENY_CACHE_UNKNOWN:
		ask_on(w, &id);
		break;
	}
	w->now_us += up_to(&w->seed, pauses[draw_below(&w->seed, 5)]);
}

static void
run_law(const struct check *limit, int64_t ttl_us, int64_t latency_us,
    int64_t penalty_us, unsigned seed)
{
	struct world w = {
		.cache = deny_cache_new(100, 60 * SECOND),
		.check = { .key = KEY, .check = *limit },
		.now_us = START,
		.ttl_us = ttl_us,
		.latency_us = latency_us,
		.seed = seed,
	};

	assert_non_null(w.cache);
	w.check.check.penalty_us = penalty_us;
	for (int i = 0; i < STEPS; i++)
		step(&w);
	assert_true(w.cached > STEPS / 100);
	algorithm_forget(&w.state);
	deny_cache_free(w.cache);
}

static void
test_law(void **state)
{
	static const int64_t ttls[] = { 20000, SECOND, 60 * SECOND };
	unsigned seed = draw_seed();

	(void)state;
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		for (size_t k = 0; k < 3; k++) {
			run_law(&limits[i], ttls[k], 0, 0, seed);
			run_law(&limits[i], ttls[k], 3000, 0, seed);
			run_law(&limits[i], ttls[k], 0, 400000, seed);
		}
}

/* --- Rows ---------------------------------------------------------------- */

static const struct store_check plain = {
	.key = KEY,
	.check = { .count = 5, .period_us = SECOND, .burst = 5, .cost = 1 },
};

static struct deny_cache_answer
refusal(int64_t sent_us, int64_t retry_us)
{
	return (struct deny_cache_answer){
		.verdict = { .kind = VERDICT_REFUSED,
		    .limit = 5,
		    .retry_us = retry_us,
		    .next_us = retry_us > 0 ? retry_us : 0,
		    .full_us = 90 * SECOND },
		.sent_us = sent_us,
		.answered_us = sent_us + 10,
		.taken_us = 7000 + sent_us,
	};
}

static void
put(struct deny_cache *c, const struct store_check *check, int64_t sent_us,
    int64_t retry_us)
{
	struct deny_cache_answer a = refusal(sent_us, retry_us);

	deny_cache_put(c, &(struct deny_cache_id){ check, 1 }, &a, INT64_MAX);
}

static bool
refuses(struct deny_cache *c, const struct store_check *check, int64_t now_us)
{
	struct deny_cache_answer a;

	return deny_cache_find(c, &(struct deny_cache_id){ check, 1 }, now_us,
		   &a) == DENY_CACHE_REFUSED;
}

/* The least of wait, ttl of the cache and ttl of the limit; from the sending. */
static void
test_how_long(void **state)
{
	static const struct {
		int64_t retry_us, cache_us, limit_us, want_us;
	} t[] = {
		{ 500, SECOND, INT64_MAX, 500 },
		{ 5 * SECOND, SECOND, INT64_MAX, SECOND },
		{ 5 * SECOND, SECOND, 100000, 100000 },
		{ 5 * SECOND, 50000, 100000, 50000 },
		{ ALGORITHM_NEVER, SECOND, INT64_MAX, SECOND },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct deny_cache *c = deny_cache_new(10, 60 * SECOND);
		struct deny_cache_answer a = refusal(START, t[i].retry_us);
		struct deny_cache_id id = { &plain, 1 };
		int64_t end_us = START + t[i].want_us;

		deny_cache_set_ttl(c, t[i].cache_us);
		deny_cache_put(c, &id, &a, t[i].limit_us);
		assert_true(refuses(c, &plain, START));
		assert_true(refuses(c, &plain, end_us - 1));
		assert_false(refuses(c, &plain, end_us));
		deny_cache_free(c);
	}
}

static void
test_it_ages(void **state)
{
	struct deny_cache *c = deny_cache_new(10, SECOND);
	struct deny_cache_id id = { &plain, 1 };
	struct deny_cache_answer a;

	(void)state;
	put(c, &plain, START, 300);
	assert_int_equal(
	    deny_cache_find(c, &id, START + 110, &a), DENY_CACHE_REFUSED);
	assert_int_equal(a.verdict.retry_us, 200);
	assert_int_equal(a.verdict.next_us, 200);
	assert_int_equal(a.verdict.full_us, 90 * SECOND - 100);
	assert_int_equal(a.taken_us, START + 7100);
	put(c, &plain, START + 1, ALGORITHM_NEVER);
	assert_int_equal(
	    deny_cache_find(c, &id, START + 110, &a), DENY_CACHE_REFUSED);
	assert_int_equal(a.verdict.retry_us, ALGORITHM_NEVER);
	assert_int_equal(a.verdict.next_us, 0);
	deny_cache_free(c);
}

/* More is there by then, which would have to be told. */
static void
test_until_one_more_is_there(void **state)
{
	struct deny_cache *c = deny_cache_new(10, SECOND);
	struct deny_cache_id id = { &plain, 1 };
	struct deny_cache_answer a = refusal(START, 900);

	(void)state;
	a.verdict.next_us = 400;
	deny_cache_put(c, &id, &a, INT64_MAX);
	assert_true(refuses(c, &plain, START + 399));
	assert_int_equal(
	    deny_cache_find(c, &id, START + 400, &a), DENY_CACHE_UNKNOWN);
	deny_cache_free(c);
}

static void
test_whose_it_is(void **state)
{
	struct deny_cache *c = deny_cache_new(10, SECOND);
	struct deny_cache_answer a;
	struct store_check other[5];

	(void)state;
	for (size_t i = 0; i < 5; i++)
		other[i] = plain;
	other[0].key = STR("sluice:{192.0.2.2}:login:s60000");
	other[1].check.count = 6;
	other[2].check.period_us = 2 * SECOND;
	other[3].check.burst = 6;
	other[4].check.cost = 2;
	put(c, &plain, START, SECOND);
	assert_true(refuses(c, &plain, START + 10));
	for (size_t i = 0; i < 5; i++)
		assert_false(refuses(c, &other[i], START + 10));
	/* Another configuration may mean something else by it. */
	assert_int_equal(
	    deny_cache_find(
		c, &(struct deny_cache_id){ &plain, 2 }, START + 10, &a),
	    DENY_CACHE_UNKNOWN);
	deny_cache_free(c);
}

/* What was sent before is not remembered, whenever its answer comes. */
static void
test_forgotten(void **state)
{
	struct store_check dear = plain, other = plain;

	(void)state;
	dear.check.cost = 3;
	other.key = STR("sluice:{192.0.2.2}:login:s60000");
	for (int all = 0; all < 2; all++) {
		struct deny_cache *c = deny_cache_new(1000, SECOND);

		put(c, &plain, START, SECOND);
		put(c, &dear, START, SECOND);
		put(c, &other, START, SECOND);
		if (all)
			deny_cache_flush(c, START + 20);
		else
			deny_cache_forget(c, KEY, START + 20);
		assert_false(refuses(c, &plain, START + 30));
		assert_false(refuses(c, &dear, START + 30));
		assert_int_equal(refuses(c, &other, START + 30), !all);
		put(c, &plain, START + 20, SECOND);
		assert_false(refuses(c, &plain, START + 30));
		put(c, &plain, START + 21, SECOND);
		assert_true(refuses(c, &plain, START + 30));
		deny_cache_free(c);
	}
}

/* Of two answers the one to the later question stays. */
static void
test_the_later_one(void **state)
{
	struct deny_cache *c = deny_cache_new(10, SECOND);

	(void)state;
	put(c, &plain, START + 100, 500);
	put(c, &plain, START, 300);
	assert_true(refuses(c, &plain, START + 599));
	put(c, &plain, START + 200, 300);
	assert_false(refuses(c, &plain, START + 500));
	deny_cache_free(c);
}

/* --- Bounds -------------------------------------------------------------- */

static struct store_check
numbered(char name[32], size_t i)
{
	struct store_check check = plain;

	snprintf(name, 32, "sluice:{%zu}:a:s60000", i);
	check.key = str_of(name);
	return check;
}

static void
test_no_more_than_there_is_room_for(void **state)
{
	static const size_t sizes[] = { 1, 7, 8, 100, 1000 };
	char name[32];

	(void)state;
	for (size_t k = 0; k < 5; k++) {
		struct deny_cache *c = deny_cache_new(sizes[k], SECOND);
		uint64_t lost = counter_get(COUNTER_deny_cache_evictions);
		size_t n = 0;

		for (size_t i = 0; i < 5000; i++) {
			struct store_check check = numbered(name, i);

			put(c, &check, START, SECOND);
			assert_true(refuses(c, &check, START + 10));
		}
		for (size_t i = 0; i < 5000; i++) {
			struct store_check check = numbered(name, i);

			n += refuses(c, &check, START + 10);
		}
		/* Whole buckets, of 8: all are full by then. */
		assert_int_equal(n, sizes[k] < 8 ? sizes[k] : sizes[k] / 8 * 8);
		assert_int_equal(
		    counter_get(COUNTER_deny_cache_evictions), lost + 5000 - n);
		deny_cache_free(c);
	}
}

static void
test_who_would_be_over_soonest_goes(void **state)
{
	static const int64_t retry_us[] = { 900, 500, 300, 700 };
	struct deny_cache *c = deny_cache_new(4, SECOND);
	struct store_check check;
	char name[32];

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		check = numbered(name, i);
		put(c, &check, START, retry_us[i]);
	}
	check = numbered(name, 4);
	put(c, &check, START, 800);
	for (size_t i = 0; i < 5; i++) {
		check = numbered(name, i);
		assert_int_equal(refuses(c, &check, START + 10), i != 2);
	}
	deny_cache_free(c);
}

/* --- Threads ------------------------------------------------------------- */

#define THREADS 4
#define TURNS   40000

struct race {
	struct deny_cache *cache;
	_Atomic int64_t now_us;
	_Atomic int failures;
	unsigned seed;
};

struct racer {
	struct race *race;
	size_t number;
	unsigned seed;
};

/* Of a key; no other has the same, and all its figures are of one kind. */
static bool
is_whole(const struct deny_cache_answer *a, size_t key)
{
	int64_t limit = (int64_t)key * 1000;

	return a->verdict.limit == limit && a->verdict.own_count == limit;
}

/* Its own key no other touches: what it forgot it must not find. */
static bool
race_own(struct racer *r)
{
	struct race *race = r->race;
	char name[32];
	struct store_check check = numbered(name, 1000 + r->number);
	int64_t now_us = atomic_fetch_add(&race->now_us, 3);
	bool ok;

	put(race->cache, &check, now_us, SECOND);
	deny_cache_forget(race->cache, check.key, now_us + 1);
	ok = !refuses(race->cache, &check, now_us + 2);
	put(race->cache, &check, now_us + 1, SECOND);
	return ok && !refuses(race->cache, &check, now_us + 2);
}

static bool
race_shared(struct racer *r)
{
	struct race *race = r->race;
	size_t key = 1 + draw_below(&r->seed, 20);
	char name[32];
	struct store_check check = numbered(name, key);
	struct deny_cache_id id = { &check, 1 };
	int64_t now_us = atomic_fetch_add(&race->now_us, 1);
	struct deny_cache_answer a;

	if (deny_cache_find(race->cache, &id, now_us, &a) != DENY_CACHE_UNKNOWN)
		return is_whole(&a, key);
	a = refusal(now_us, SECOND);
	a.verdict.limit = a.verdict.own_count = (int64_t)key * 1000;
	deny_cache_put(race->cache, &id, &a, INT64_MAX);
	return true;
}

static void *
race_run(void *context)
{
	struct racer *r = context;

	for (int i = 0; i < TURNS; i++) {
		bool ok = i % 8 == 0 ? race_own(r) : race_shared(r);

		if (!ok)
			atomic_fetch_add(&r->race->failures, 1);
		if (i % 1000 == 999)
			deny_cache_flush(r->race->cache,
			    atomic_load(&r->race->now_us) - 100);
	}
	return NULL;
}

static void
test_threads(void **state)
{
	struct race race = { .cache = deny_cache_new(16, SECOND) };
	struct racer racer[THREADS];
	pthread_t thread[THREADS];
	unsigned seed = draw_seed();

	(void)state;
	atomic_init(&race.now_us, START);
	for (size_t i = 0; i < THREADS; i++) {
		racer[i] = (struct racer){ &race, i, seed + (unsigned)i };
		assert_int_equal(
		    pthread_create(&thread[i], NULL, race_run, &racer[i]), 0);
	}
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(race.failures, 0);
	deny_cache_free(race.cache);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_law),
		cmocka_unit_test(test_how_long),
		cmocka_unit_test(test_it_ages),
		cmocka_unit_test(test_until_one_more_is_there),
		cmocka_unit_test(test_whose_it_is),
		cmocka_unit_test(test_forgotten),
		cmocka_unit_test(test_the_later_one),
		cmocka_unit_test(test_no_more_than_there_is_room_for),
		cmocka_unit_test(test_who_would_be_over_soonest_goes),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests_name("deny_cache", tests, NULL, NULL);
}
