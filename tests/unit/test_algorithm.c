/*
 * Single decisions, each with the figures that the definitions give for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pure/algorithm.h"
#include "pure/settlement.h"

#define MAX  ALGORITHM_PRODUCT_MAX
#define BASE INT64_C(1790000000123456) /* some day in 2026 */

struct row {
	const char *what;
	struct check check;
	struct state state;
	int64_t now_us;
	struct verdict want;
};

#define S  INT64_C(1000000)
#define FW ALGORITHM_FIXED_WINDOW
#define SW ALGORITHM_SLIDING_WINDOW
#define TB ALGORITHM_TOKEN_BUCKET
#define LB ALGORITHM_LEAKY_BUCKET
#define CHECK(law, alignment, n, period, b, units, offset)              \
	{                                                               \
		.algorithm = (law), .align = (alignment), .count = (n), \
		.period_us = (period), .burst = (b), .cost = (units),   \
		.offset_us = (offset)                                   \
	}
#define LEAKY(n, b, units, delay)                                            \
	{                                                                    \
		.algorithm = LB, .count = (n), .period_us = S, .burst = (b), \
		.cost = (units), .delay_max_us = (delay)                     \
	}
#define STATE(first, second, third)                                       \
	{                                                                 \
		.exists = true, .a = (first), .b = (second), .c = (third) \
	}
#define VERDICT(what, n, left, next, full, retry)                         \
	{                                                                 \
		.kind = (what), .limit = (n), .remaining = (left),        \
		.next_us = (next), .full_us = (full), .retry_us = (retry) \
	}

static const struct row rows[] = {
	{ "B18: the first of three", CHECK(FW, ALIGN_EPOCH, 3, 10 * S, 3, 1, 0),
	    { 0 }, 1234 * S + 5,
	    VERDICT(VERDICT_ALLOWED, 3, 2, 6 * S - 5, 6 * S - 5, 0) },
	{ "the window starts with the first hit",
	    CHECK(FW, ALIGN_FIRST, 3, 10 * S, 3, 1, 0), { 0 }, 1234 * S + 5,
	    VERDICT(VERDICT_ALLOWED, 3, 2, 10 * S, 10 * S, 0) },
	{ "spread: its own boundary",
	    CHECK(FW, ALIGN_SPREAD, 3, 10 * S, 3, 1, 7 * S), { 0 }, 1234 * S,
	    VERDICT(VERDICT_ALLOWED, 3, 2, 3 * S, 3 * S, 0) },
	{ "the last one", CHECK(FW, ALIGN_EPOCH, 3, 10 * S, 3, 1, 0),
	    STATE(1230 * S, 2, 0), 1239 * S,
	    VERDICT(VERDICT_ALLOWED, 3, 0, S, S, 0) },
	{ "one too many", CHECK(FW, ALIGN_EPOCH, 3, 10 * S, 3, 1, 0),
	    STATE(1230 * S, 3, 0), 1239 * S,
	    VERDICT(VERDICT_REFUSED, 3, 0, S, S, S) },
	{ "B15: a refusal of 3 leaves the 2",
	    CHECK(FW, ALIGN_EPOCH, 5, 10 * S, 5, 3, 0), STATE(1230 * S, 3, 0),
	    1239 * S, VERDICT(VERDICT_REFUSED, 5, 2, S, S, S) },
	{ "more than the limit: never",
	    CHECK(FW, ALIGN_EPOCH, 5, 10 * S, 5, 6, 0), { 0 }, 1239 * S,
	    VERDICT(VERDICT_REFUSED, 5, 5, 0, 0, ALGORITHM_NEVER) },
	{ "B03: a window that is over is none",
	    CHECK(FW, ALIGN_FIRST, 3, 10 * S, 3, 1, 0), STATE(1230 * S, 3, 0),
	    1240 * S, VERDICT(VERDICT_ALLOWED, 3, 2, 10 * S, 10 * S, 0) },
	{ "B21: nothing is never refused",
	    CHECK(FW, ALIGN_EPOCH, 3, 10 * S, 3, 0, 0), STATE(1230 * S, 3, 0),
	    1239 * S, VERDICT(VERDICT_ALLOWED, 3, 0, S, S, 0) },
	{ "B98: a lower limit is in force at once",
	    CHECK(FW, ALIGN_EPOCH, 2, 10 * S, 2, 1, 0), STATE(1230 * S, 5, 0),
	    1239 * S, VERDICT(VERDICT_REFUSED, 2, 0, S, S, S) },
	{ "a lower limit, nothing asked",
	    CHECK(SW, ALIGN_SPREAD, 2, 10 * S, 2, 0, 0), STATE(1230000, 5, 9),
	    1234 * S, VERDICT(VERDICT_ALLOWED, 2, 0, 14 * S, 16 * S, 0) },
	{ "sliding, untouched", CHECK(SW, ALIGN_SPREAD, 4, 10 * S, 4, 1, 0),
	    { 0 }, 1232 * S,
	    VERDICT(VERDICT_ALLOWED, 4, 3, 18 * S, 18 * S, 0) },
	{ "sliding: half of the bucket before",
	    CHECK(SW, ALIGN_SPREAD, 4, 10 * S, 4, 1, 0), STATE(1230000, 1, 4),
	    1235 * S, VERDICT(VERDICT_ALLOWED, 4, 0, 25 * S / 10, 15 * S, 0) },
	{ "sliding: it has to fade",
	    CHECK(SW, ALIGN_SPREAD, 4, 10 * S, 4, 1, 0), STATE(1230000, 2, 4),
	    1235 * S - 999,
	    VERDICT(VERDICT_REFUSED, 4, 0, 25 * S / 10 + 999, 15 * S + 999,
		25 * S / 10 + 999) },
	{ "sliding: all of this bucket",
	    CHECK(SW, ALIGN_SPREAD, 4, 10 * S, 4, 4, 0), STATE(1230000, 1, 0),
	    1235 * S, VERDICT(VERDICT_REFUSED, 4, 3, 15 * S, 15 * S, 15 * S) },
	{ "B19: one token is not five",
	    CHECK(TB, ALIGN_SPREAD, 1, 1 * S, 10, 5, 0),
	    STATE(100 * S, 1 * S, 1 * S), 100 * S,
	    VERDICT(VERDICT_REFUSED, 10, 1, S, 9 * S, 4 * S) },
	{ "B25: a slow bucket fills",
	    CHECK(TB, ALIGN_SPREAD, 1, 3600 * S, 1, 1, 0),
	    STATE(100 * S, 1, 3600 * S), 100 * S + 3600 * S - 1,
	    VERDICT(VERDICT_ALLOWED, 1, 0, 3600 * S, 3600 * S, 0) },
	{ "B30: it fills inside a second",
	    CHECK(TB, ALIGN_SPREAD, 10, 1 * S, 10, 1, 0),
	    STATE(100 * S, 0, 100000), 100 * S + 99999,
	    VERDICT(VERDICT_REFUSED, 10, 0, 1, 900001, 1) },
	{ "B32: a clock set back fills nothing",
	    CHECK(TB, ALIGN_SPREAD, 1, 1 * S, 10, 1, 0),
	    STATE(100 * S, 0, 1 * S), 40 * S,
	    VERDICT(VERDICT_REFUSED, 10, 0, S, 10 * S, S) },
	{ "B32: and drains nothing",
	    CHECK(TB, ALIGN_SPREAD, 1, 1 * S, 10, 1, 0),
	    STATE(100 * S, 4 * S, 1 * S), 40 * S,
	    VERDICT(VERDICT_ALLOWED, 10, 3, S, 7 * S, 0) },
	{ "B33: a million a second",
	    CHECK(TB, ALIGN_SPREAD, 1000000, 1 * S, 5, 1, 0),
	    STATE(100 * S, 0, 1), 100 * S + 1,
	    VERDICT(VERDICT_ALLOWED, 5, 0, 1, 5, 0) },
	{ "a full bucket is no key", CHECK(TB, ALIGN_SPREAD, 3, 1 * S, 2, 0, 0),
	    STATE(100 * S, 0, 1 * S), 101 * S,
	    VERDICT(VERDICT_ALLOWED, 2, 2, 0, 0, 0) },
	/* 10/s, burst 20, 1 s: no more than 11 at once. */
	{ "leaky: the first of all goes at once", LEAKY(10, 20, 1, S), { 0 },
	    100 * S, VERDICT(VERDICT_ALLOWED, 11, 10, S / 10, S / 10, 0) },
	{ "leaky: the last that waits its second", LEAKY(10, 20, 1, S),
	    STATE(100 * S, 10 * 100000, 100000), 100 * S,
	    VERDICT(VERDICT_ALLOWED, 11, 0, S / 10, 11 * S / 10, 0) },
	{ "leaky: one more would wait longer", LEAKY(10, 20, 1, S),
	    STATE(100 * S, 11 * 100000, 100000), 100 * S,
	    VERDICT(VERDICT_REFUSED, 11, 0, S / 10, 11 * S / 10, S / 10) },
	{ "leaky: a small burst ends first", LEAKY(10, 5, 1, S),
	    STATE(100 * S, 5 * 100000, 100000), 100 * S,
	    VERDICT(VERDICT_REFUSED, 5, 0, S / 10, 5 * S / 10, S / 10) },
	{ "leaky: a cost that fits once it is empty", LEAKY(10, 20, 20, S),
	    STATE(100 * S, 1, 100000), 100 * S,
	    VERDICT(VERDICT_REFUSED, 11, 10, 1, 1, 1) },
	{ "leaky: more than the burst never", LEAKY(10, 20, 21, S), { 0 },
	    100 * S, VERDICT(VERDICT_REFUSED, 11, 11, 0, 0, -1) },
	{ "leaky: a changed N and its P, rounded up", LEAKY(3, 20, 0, 100 * S),
	    STATE(100 * S, 200001, 100000), 100 * S,
	    VERDICT(VERDICT_ALLOWED, 20, 17, 4, 666670, 0) },
	/* 7 tokens of 1/s are 7 tokens of 3/2s, P 1 s and 2 s. */
	{ "a changed N and its P", CHECK(TB, ALIGN_SPREAD, 3, 2 * S, 10, 1, 0),
	    STATE(100 * S, 7 * S, 1 * S), 100 * S,
	    VERDICT(VERDICT_ALLOWED, 10, 6, 666667, 2666667, 0) },
};

static void
test_table(void **context)
{
	(void)context;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		struct state after;
		struct verdict v;
		int64_t end_us;

		algorithm_check(
		    &r->check, &r->state, r->now_us, &v, &after, &end_us);
		if (v.kind != r->want.kind || v.limit != r->want.limit ||
		    v.remaining != r->want.remaining ||
		    v.next_us != r->want.next_us ||
		    v.full_us != r->want.full_us ||
		    v.retry_us != r->want.retry_us)
			fail_msg("%s: %d %ld %ld next %ld full %ld retry %ld",
			    r->what, v.kind, (long)v.limit, (long)v.remaining,
			    (long)v.next_us, (long)v.full_us, (long)v.retry_us);
	}
}

static void
test_largest_numbers(void **context)
{
	struct check c = CHECK(SW, ALIGN_SPREAD, MAX / 1000, S, 1, 1, 0);
	struct state s = STATE(1000, MAX / 1000, MAX / 1000), after;
	struct verdict v;
	int64_t end_us;

	(void)context;
	assert_true(algorithm_fits(&c));
	algorithm_check(&c, &s, 1500000, &v, &after, &end_us);
	assert_int_equal(v.kind, VERDICT_REFUSED);
	assert_int_equal(v.remaining, 0);
	c.count++;
	assert_false(algorithm_fits(&c));

	c = (struct check)CHECK(TB, ALIGN_SPREAD, 1, S, MAX / S, 1, 0);
	assert_true(algorithm_fits(&c));
	s = (struct state)STATE(0, 0, S);
	algorithm_check(&c, &s, BASE, &v, &after, &end_us);
	assert_int_equal(v.remaining, BASE / S - 1);
	c.burst++;
	assert_false(algorithm_fits(&c));

	c = (struct check)CHECK(FW, ALIGN_EPOCH, MAX, S, MAX, INT64_MAX, 0);
	assert_true(algorithm_fits(&c));
	s = (struct state)STATE(0, MAX - 1, 0);
	algorithm_check(&c, &s, 1, &v, &after, &end_us);
	assert_int_equal(v.retry_us, ALGORITHM_NEVER);
	c.cost = 1;
	algorithm_check(&c, &s, 1, &v, &after, &end_us);
	assert_int_equal(v.kind, VERDICT_ALLOWED);
	algorithm_check(&c, &after, 1, &v, &s, &end_us);
	assert_int_equal(v.kind, VERDICT_REFUSED);
}

static void
refund_at(struct check c, struct state s, int64_t taken_us, int64_t now_us,
    struct state want)
{
	settlement_refund(&c, &s, taken_us, now_us);
	assert_int_equal(s.exists, want.exists);
	if (!s.exists)
		return;
	assert_int_equal(s.a, want.a);
	assert_int_equal(s.b, want.b);
	assert_int_equal(s.c, want.c);
}

/* A window that is gone, or another one, gets nothing. */
static void
test_late_refund(void **context)
{
	struct check fixed = CHECK(FW, ALIGN_EPOCH, 9, 10 * S, 9, 2, 0);
	struct check sliding = CHECK(SW, ALIGN_SPREAD, 9, 10 * S, 9, 2, 0);
	struct check bucket = CHECK(TB, ALIGN_SPREAD, 1, S, 9, 2, 0);
	struct state kept = STATE(20 * S, 5, 0);

	(void)context;
	refund_at(
	    fixed, kept, 21 * S, 29 * S, (struct state)STATE(20 * S, 3, 0));
	refund_at(fixed, kept, 19 * S, 29 * S, kept);
	refund_at(fixed, kept, 21 * S, 30 * S, kept);
	refund_at(fixed, (struct state)STATE(20 * S, 2, 0), 21 * S, 22 * S,
	    (struct state){ 0 });
	kept = (struct state)STATE(20000, 5, 4);
	refund_at(
	    sliding, kept, 21 * S, 29 * S, (struct state)STATE(20000, 3, 4));
	refund_at(
	    sliding, kept, 19 * S, 29 * S, (struct state)STATE(20000, 5, 2));
	refund_at(sliding, kept, 9 * S, 29 * S, kept);
	kept = (struct state)STATE(20 * S, 3 * S, S);
	refund_at(bucket, kept, 20 * S, 20 * S,
	    (struct state)STATE(20 * S, 5 * S, S));
	refund_at(bucket, kept, 20 * S, 21 * S,
	    (struct state)STATE(21 * S, 5 * S, S));
	refund_at(bucket, kept, 20 * S, 22 * S, kept);
	refund_at(bucket, (struct state)STATE(20 * S, 7 * S, S), 20 * S, 20 * S,
	    (struct state){ 0 });
	refund_at(
	    bucket, (struct state){ 0 }, 20 * S, 20 * S, (struct state){ 0 });
	/* Full 5 s after it, so 3 s after it without: lost is what came then. */
	bucket.full_us = 5 * S;
	refund_at(bucket, (struct state)STATE(23 * S, 6 * S, S), 20 * S, 23 * S,
	    (struct state)STATE(23 * S, 8 * S, S));
	refund_at(bucket, (struct state)STATE(23 * S, 6 * S, S), 20 * S, 24 * S,
	    (struct state)STATE(24 * S, 8 * S, S));
	refund_at(bucket, (struct state)STATE(23 * S, 3 * S, S), 20 * S, 25 * S,
	    (struct state)STATE(23 * S, 3 * S, S));
}

/* Days of 23 and 25 hours; a window that was begun runs to its end. */
static void
test_calendar(void **context)
{
	const int64_t hour = 3600 * S, day = 24 * hour;
	struct check c = { .algorithm = FW,
		.align = ALIGN_CALENDAR,
		.count = 2,
		.period_us = day,
		.cost = 1,
		.boundary_us = {
		    100 * day, 101 * day, 102 * day - hour, 103 * day } };
	const struct {
		int64_t now_us;
		int64_t full_us;
	} steps[] = {
		{ 100 * day, day },
		{ 101 * day - 1, 1 },
		{ 101 * day, 23 * hour },
		{ 102 * day - hour, 25 * hour },
		{ 103 * day - 1, 1 },
		{ 103 * day, 25 * hour },
		{ 100 * day - 1, 1 },
	};
	struct state s = { 0 }, after;
	struct verdict v;
	int64_t end_us;

	(void)context;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		algorithm_check(&c, &s, steps[i].now_us, &v, &after, &end_us);
		assert_int_equal(v.remaining, 1);
		assert_int_equal(v.full_us, steps[i].full_us);
		assert_int_equal(end_us, steps[i].now_us + steps[i].full_us);
	}
	algorithm_check(&c, &s, 100 * day, &v, &after, &end_us);
	c.boundary_us[1] -= hour;
	algorithm_peek(&c, &after, 101 * day - hour, &v);
	assert_int_equal(v.remaining, 1);
	assert_int_equal(v.full_us, hour);
	c.cost = 1;
	settlement_refund(&c, &after, 100 * day, 101 * day - 1);
	assert_false(after.exists);
}

/* Set once, not extended; a clock set back does not shorten it. */
static void
test_penalty_is_set_once(void **context)
{
	struct check c = CHECK(FW, ALIGN_EPOCH, 1, S, 1, 1, 0);
	struct state s = { 0 };
	struct verdict v;
	const struct {
		int64_t now_us;
		int64_t retry_us;
	} steps[] = { { 100 * S, 0 }, { 100 * S + 1, 60 * S },
		{ 101 * S, 59 * S + 1 }, { 90 * S, 60 * S }, { 160 * S, 1 },
		{ 160 * S + 1, 0 }, { 160 * S + 2, 60 * S }, { 221 * S, 0 } };

	(void)context;
	c.penalty_us = 60 * S;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct state after;
		int64_t end_us;

		algorithm_check(&c, &s, steps[i].now_us, &v, &after, &end_us);
		assert_int_equal(v.retry_us, steps[i].retry_us);
		assert_true(algorithm_keep(&c, &s, &after));
	}
}

static void
test_concurrency(void **context)
{
	struct check c = {
		.algorithm = ALGORITHM_CONCURRENCY, .count = 2, .cost = 1
	};
	struct state s = { 0 }, after;
	struct verdict v;
	int64_t end_us;

	(void)context;
	for (int i = 0; i < 4; i++) {
		algorithm_check(&c, &s, BASE + i, &v, &after, &end_us);
		assert_int_equal(v.retry_us, i < 2 ? 0 : S);
		assert_int_equal(v.remaining, i < 2 ? 1 - i : 0);
		assert_true(v.next_us == 0 && v.full_us == 0);
		assert_true(algorithm_keep(&c, &s, &after));
	}
	settlement_refund(&c, &s, 0, BASE);
	algorithm_peek(&c, &s, BASE, &v);
	assert_int_equal(v.remaining, 1);
	settlement_refund(&c, &s, 0, BASE);
	assert_false(s.exists);
}

/* One who leaves the queue while it waits leaves it as if never in it. */
static void
test_leaving_a_queue(void **context)
{
	struct check c = LEAKY(10, 20, 1, S);
	struct state s = { 0 }, after;
	struct verdict v;
	int64_t end_us;

	(void)context;
	for (int i = 0; i < 6; i++) {
		algorithm_check(&c, &s, 100 * S, &v, &after, &end_us);
		assert_int_equal(v.delay_us, i * S / 10);
		assert_true(algorithm_keep(&c, &s, &after));
	}
	c.full_us = v.full_us;
	settlement_refund(&c, &s, 100 * S, 100 * S + 4 * S / 10);
	assert_int_equal(s.b, 1 * 100000);
	algorithm_keep(&c, &s, &after);
	settlement_refund(&c, &s, 100 * S, 100 * S + S / 2 + 50000);
	assert_false(s.exists);
	s = after;
	s.b = 20 * 100000;
	settlement_refund(&c, &s, 100 * S, 100 * S + S / 2 + 25000);
	assert_int_equal(s.b, 2000000 - 525000 - 75000);
	settlement_refund(&c, &s, 100 * S, 100 * S + S);
	assert_int_equal(s.b, 1400000);
}

static void
test_lowest_terms(void **context)
{
	int64_t r, p;

	(void)context;
	algorithm_lowest_terms(100, 60 * S, &r, &p);
	assert_int_equal(r, 1);
	assert_int_equal(p, 600000);
	algorithm_lowest_terms(7, 1000, &r, &p);
	assert_int_equal(r, 7);
	assert_int_equal(p, 1000);
	algorithm_lowest_terms(5000000, 1000, &r, &p);
	assert_int_equal(r, 5000);
	assert_int_equal(p, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_largest_numbers),
		cmocka_unit_test(test_late_refund),
		cmocka_unit_test(test_calendar),
		cmocka_unit_test(test_penalty_is_set_once),
		cmocka_unit_test(test_concurrency),
		cmocka_unit_test(test_leaving_a_queue),
		cmocka_unit_test(test_lowest_terms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
