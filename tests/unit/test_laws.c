/*
 * The laws of SPEC section 4, but the second, which is raced elsewhere, as
 * properties of the store in memory: drawn limits, drawn traces, each answer
 * held against the oracle. See law_oracle.h and law_run.h.
 *
 * STEPS: how many for each algorithm. SEED: the same draws again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "law_run.h"

static uint64_t seed;

/* Fewer where each takes long: SLUICE_SLOW=1, an instrumented run. */
static unsigned
steps_wanted(void)
{
	const char *given = getenv("STEPS");

	if (given != NULL)
		return (unsigned)strtoul(given, NULL, 10);
	return getenv("SLUICE_SLOW") != NULL ? 5000 : 100000;
}

static void
run_kind(size_t kind)
{
	static struct trace t;
	struct store *store = store_memory_new(100);
	unsigned wanted = steps_wanted(), steps = 0;

	assert_non_null(store);
	for (unsigned i = 0; steps < wanted; i++) {
		trace_begin(&t, store, NULL, kind, trace_lot(seed, kind, i));
		steps += trace_run(&t);
		if (t.wrong != NULL) {
			trace_print(&t, stderr);
			fail_msg("SEED=%llu: %s, trace %u, step %u: %s",
			    (unsigned long long)seed, law_kinds[kind].name, i,
			    t.step, t.wrong);
		}
	}
	store->ops->free(store);
}

static void
test_kind(void **state)
{
	const struct law_kind *kind = *state;

	run_kind((size_t)(kind - law_kinds));
}

/* What is settled has the clock of its check, wherever the other is. */
static void
test_settled_by_the_same_clock(void **state)
{
	struct store *store = store_memory_new(100);
	struct store_check c = { .key = str_of("key"),
		.check = { .algorithm = ALGORITHM_FIXED_WINDOW,
		    .align = ALIGN_FIRST,
		    .count = 10,
		    .period_us = 1000000,
		    .cost = 1 } };
	struct store_question q = { .check = &c, .n = 1 };
	struct store_answer a;

	(void)state;
	trace_clock_us = LAW_EARLIER;
	store->ops->ask(store, &q, &a);
	trace_clock_us += 300000;
	store->ops->settle(
	    store, &(struct store_settlement){ c, a.taken_us, 4 }, 1);
	store->ops->settle(
	    store, &(struct store_settlement){ c, a.taken_us, -2 }, 1);
	c.check.cost = 0;
	store->ops->ask(store, &q, &a);
	assert_int_equal(a.verdict[0].remaining, 7);
	assert_int_equal(a.verdict[0].full_us, 700000);
	store->ops->free(store);
}

static int64_t
left_of(struct store *store, struct store_check c)
{
	struct store_answer a;

	c.check.cost = 0;
	store->ops->maintain(store);
	store->ops->ask(
	    store, &(struct store_question){ .check = &c, .n = 1 }, &a);
	return a.verdict[0].remaining;
}

/*
 * B09, B11: a bucket is kept for as long as it is not full, counted from
 * its last use, and from what it owes.
 */
static void
test_a_bucket_is_kept(void **state)
{
	const int64_t minute_us = 60000000;
	struct store *store = store_memory_new(100);
	struct store_check c = { .key = str_of("key"),
		.check = { .algorithm = ALGORITHM_TOKEN_BUCKET,
		    .count = 4,
		    .period_us = 4 * minute_us,
		    .burst = 4,
		    .cost = 2 } };
	struct store_question q = { .check = &c, .n = 1 };
	struct store_answer a;

	(void)state;
	trace_clock_us = LAW_EARLIER;
	for (int i = 0; i < 9; i++) {
		store->ops->ask(store, &q, &a);
		assert_int_equal(a.verdict[0].kind, VERDICT_ALLOWED);
		trace_clock_us += 2 * minute_us - 1;
		assert_int_equal(left_of(store, c), 3);
	}
	store->ops->ask(store, &q, &a);
	store->ops->settle(
	    store, &(struct store_settlement){ c, a.taken_us, 4 }, 1);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(left_of(store, c), i < 3 ? 0 : i - 3);
		trace_clock_us += minute_us;
	}
	trace_clock_us += minute_us;
	assert_int_equal(left_of(store, c), 4);
	assert_int_equal(store_memory_count(store), 0);
	store->ops->free(store);
}

/*
 * B10: ten tokens a minute were back in a minute; one a minute is back in
 * ten, and so is what was taken before.
 */
static void
test_a_smaller_n_lasts_longer(void **state)
{
	const int64_t minute_us = 60000000;
	struct store *store = store_memory_new(100);
	struct store_check c = { .key = str_of("key"),
		.check = { .algorithm = ALGORITHM_TOKEN_BUCKET,
		    .count = 10,
		    .period_us = minute_us,
		    .burst = 10,
		    .cost = 10 } };
	struct store_question q = { .check = &c, .n = 1 };
	struct store_answer a;

	(void)state;
	trace_clock_us = LAW_EARLIER;
	store->ops->ask(store, &q, &a);
	assert_int_equal(a.verdict[0].full_us, minute_us);
	c.check.count = 1;
	for (int i = 1; i < 10; i++) {
		store->ops->ask(store, &q, &a);
		assert_int_equal(a.verdict[0].kind, VERDICT_REFUSED);
		assert_int_equal(a.verdict[0].full_us, (11 - i) * minute_us);
		trace_clock_us += minute_us;
		store->ops->maintain(store);
	}
	trace_clock_us = LAW_EARLIER + 10 * minute_us;
	store->ops->maintain(store);
	assert_int_equal(store_memory_count(store), 0);
	store->ops->free(store);
}

int
main(void)
{
	const char *given = getenv("SEED");
	struct CMUnitTest tests[LAW_KINDS + 3] = {
		[LAW_KINDS] = cmocka_unit_test(test_settled_by_the_same_clock),
		cmocka_unit_test(test_a_bucket_is_kept),
		cmocka_unit_test(test_a_smaller_n_lasts_longer),
	};

	for (size_t i = 0; i < LAW_KINDS; i++)
		tests[i] = (struct CMUnitTest){ .name = law_kinds[i].name,
			.test_func = test_kind,
			.initial_state = (void *)(uintptr_t)&law_kinds[i] };
	seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
	printf("SEED=%llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
