/*
 * The oracle knows one thing, written from the definitions over a log of
 * what was taken: would this cost pass at that moment, if nobody takes any
 * more? remaining, next, full and retry are then searched for, not worked
 * out: the largest cost that passes now, the least wait after which more
 * does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "pure/algorithm.h"
#include "pure/settlement.h"

#define MAX  ALGORITHM_PRODUCT_MAX
#define BASE INT64_C(1790000000123456) /* some day in 2026 */
#define LOG  64

__extension__ typedef __int128 wide;

struct taken {
	int64_t at_us;
	int64_t cost;
};

struct history {
	size_t n;
	struct taken at[LOG];
};

static uint64_t seed;

/* Fewer where each takes long: SLUICE_SLOW=1, an instrumented run. */
static int
rounds(int n)
{
	return getenv("SLUICE_SLOW") != NULL ? n / 10 : n;
}

static int64_t
draw(int64_t low, int64_t high)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return low + (int64_t)(seed % (uint64_t)(high - low + 1));
}

static int64_t
divide(int64_t a, int64_t b)
{
	int64_t q = a / b;

	return q * b > a ? q - 1 : q;
}

static int64_t
window_of(const struct check *c, const struct history *h, int64_t t)
{
	int64_t start = INT64_MIN / 2;

	if (c->align != ALIGN_FIRST)
		return divide(t - c->offset_us, c->period_us) * c->period_us +
		    c->offset_us;
	for (size_t i = 0; i < h->n; i++)
		if (h->at[i].at_us >= start + c->period_us)
			start = h->at[i].at_us;
	return t >= start + c->period_us ? t : start;
}

static bool
fixed_passes(
    const struct check *c, const struct history *h, int64_t t, int64_t cost)
{
	int64_t start = window_of(c, h, t);
	int64_t used = 0;

	for (size_t i = 0; i < h->n; i++)
		if (h->at[i].at_us >= start)
			used += h->at[i].cost;
	return used + cost <= c->count;
}

static bool
sliding_passes(
    const struct check *c, const struct history *h, int64_t t, int64_t cost)
{
	int64_t w = c->period_us / 1000, off = c->offset_us / 1000;
	int64_t bucket = divide(t / 1000 - off, w);
	int64_t e = t / 1000 - off - bucket * w;
	wide sum = (wide)cost * w;

	for (size_t i = 0; i < h->n; i++) {
		int64_t b = divide(h->at[i].at_us / 1000 - off, w);

		if (b == bucket)
			sum += (wide)h->at[i].cost * w;
		else if (b == bucket - 1)
			sum += (wide)h->at[i].cost * (w - e);
	}
	return sum <= (wide)c->count * w;
}

/* In units of 1/period of a token. */
static bool
bucket_passes(
    const struct check *c, const struct history *h, int64_t t, int64_t cost)
{
	wide cap = (wide)c->burst * c->period_us;
	wide v = cap;
	int64_t last = BASE - 1;

	for (size_t i = 0; i < h->n; i++) {
		v += (wide)c->count * (h->at[i].at_us - last);
		v = v > cap ? cap : v;
		v -= (wide)h->at[i].cost * c->period_us;
		last = h->at[i].at_us;
	}
	v += (wide)c->count * (t - last);
	v = v > cap ? cap : v;
	return v >= (wide)cost * c->period_us;
}

static bool
passes(const struct check *c, const struct history *h, int64_t t, int64_t cost)
{
	switch (c->algorithm) {
	case ALGORITHM_FIXED_WINDOW:
		return fixed_passes(c, h, t, cost);
	case ALGORITHM_SLIDING_WINDOW:
		return sliding_passes(c, h, t, cost);
	case ALGORITHM_TOKEN_BUCKET:
		return bucket_passes(c, h, t, cost);
	case ALGORITHM_SLIDING_LOG:
	case ALGORITHM_LEAKY_BUCKET:
	case ALGORITHM_CONCURRENCY:
		break;
	}
	abort();
}

static int64_t
limit_of(const struct check *c)
{
	return c->algorithm == ALGORITHM_TOKEN_BUCKET ? c->burst : c->count;
}

static int64_t
search_wait(
    const struct check *c, const struct history *h, int64_t t, int64_t cost)
{
	int64_t low = 0, high = 1;

	if (cost > limit_of(c))
		return ALGORITHM_NEVER;
	while (!passes(c, h, t + high, cost))
		high *= 2;
	while (low < high) {
		int64_t middle = low + (high - low) / 2;

		if (passes(c, h, t + middle, cost))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static int64_t
search_remaining(const struct check *c, const struct history *h, int64_t t)
{
	int64_t low = 0, high = limit_of(c);

	while (low < high) {
		int64_t middle = high - (high - low) / 2;

		if (passes(c, h, t, middle))
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

static void
compare_figures(const struct check *c, const struct history *h, int64_t t,
    const struct verdict *v)
{
	int64_t left = search_remaining(c, h, t);

	assert_int_equal(v->limit, limit_of(c));
	assert_int_equal(v->remaining, left);
	assert_int_equal(v->next_us,
	    left == limit_of(c) ? 0 : search_wait(c, h, t, left + 1));
	assert_int_equal(v->full_us, search_wait(c, h, t, limit_of(c)));
}

static struct check
draw_check(void)
{
	static const int64_t periods[] = { 1000, 7000, 10000, 1000000, 60000000,
		86400000000 };
	struct check c = { 0 };

	c.algorithm = (enum algorithm)draw(0, 2);
	c.align = (enum align)draw(0, 2);
	c.count = draw(0, 3) == 0 ? draw(1, 5000) : draw(1, 12);
	c.period_us = periods[draw(0, 5)];
	c.burst = draw(0, 1) ? c.count : draw(1, 40);
	if (c.algorithm == ALGORITHM_SLIDING_WINDOW)
		c.offset_us = draw(0, c.period_us / 1000 - 1) * 1000;
	else if (c.align == ALIGN_SPREAD)
		c.offset_us = draw(0, c.period_us - 1);
	return c;
}

static int64_t
draw_step(const struct check *c)
{
	switch (draw(0, 5)) {
	case 0:
		return 0;
	case 1:
		return draw(1, 1500);
	case 2:
		return draw(1, 3 * c->period_us);
	default:
		return draw(1, c->period_us / c->count + 2);
	}
}

static void
ask(const struct check *c, struct state *s, struct history *h, int64_t t)
{
	int64_t wait = search_wait(c, h, t, c->cost);
	struct state after;
	struct verdict v;
	int64_t end_us;

	algorithm_check(c, s, t, &v, &after, &end_us);
	if (c->cost == 0)
		wait = 0;
	assert_int_equal(v.retry_us, wait);
	assert_int_equal(v.kind, wait == 0 ? VERDICT_ALLOWED : VERDICT_REFUSED);
	if (wait == 0 && c->cost > 0)
		h->at[h->n++] = (struct taken){ t, c->cost };
	else
		assert_memory_equal(&after, s, sizeof(after));
	compare_figures(c, h, t, &v);
	if (after.exists)
		assert_true(end_us >= t + v.full_us);
	*s = after;
	algorithm_peek(c, s, t, &v);
	assert_int_equal(v.kind, VERDICT_ALLOWED);
	compare_figures(c, h, t, &v);
}

static void
test_oracle(void **context)
{
	(void)context;
	for (int round = 0; round < rounds(4000); round++) {
		struct check c = draw_check();
		struct state s = { 0 };
		struct history h = { 0 };
		int64_t t = BASE;

		for (int i = 0; i < 50; i++) {
			t += draw_step(&c);
			c.cost = draw(0, 4) > 0 ? 1 : draw(0, c.count + 1);
			ask(&c, &s, &h, t);
		}
	}
}

/* Law 3, by the room alone: retry passes, a microsecond less does not. */
static void
test_retry_is_exact(void **context)
{
	(void)context;
	for (int round = 0; round < rounds(20000); round++) {
		struct check c = draw_check();
		struct state s = { 0 }, after;
		struct verdict v;
		int64_t t = BASE, end_us;

		for (int i = 0; i < 30; i++) {
			t += draw_step(&c);
			c.cost = draw(1, c.count);
			algorithm_check(&c, &s, t, &v, &after, &end_us);
			s = after;
			if (v.retry_us <= 0)
				continue;
			t += v.retry_us - 1;
			algorithm_check(&c, &s, t, &v, &after, &end_us);
			assert_int_equal(v.kind, VERDICT_REFUSED);
			t++;
			algorithm_check(&c, &s, t, &v, &after, &end_us);
			assert_int_equal(v.kind, VERDICT_ALLOWED);
			s = after;
		}
	}
}

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
#define CHECK(law, alignment, n, period, b, units, offset)              \
	{                                                               \
		.algorithm = (law), .align = (alignment), .count = (n), \
		.period_us = (period), .burst = (b), .cost = (units),   \
		.offset_us = (offset)                                   \
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
	{ "B33: a million a second",
	    CHECK(TB, ALIGN_SPREAD, 1000000, 1 * S, 5, 1, 0),
	    STATE(100 * S, 0, 1), 100 * S + 1,
	    VERDICT(VERDICT_ALLOWED, 5, 0, 1, 5, 0) },
	{ "a full bucket is no key", CHECK(TB, ALIGN_SPREAD, 3, 1 * S, 2, 0, 0),
	    STATE(100 * S, 0, 1 * S), 101 * S,
	    VERDICT(VERDICT_ALLOWED, 2, 2, 0, 0, 0) },
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

/* B32, law 5: a clock set back gives nothing back. */
static void
test_clock_steps_back(void **context)
{
	(void)context;
	for (int round = 0; round < rounds(5000); round++) {
		struct check c = draw_check();
		struct state s = { 0 }, after;
		struct verdict v, back;
		int64_t t = BASE, end_us;

		for (int i = 0; i < 20; i++) {
			t += draw_step(&c);
			c.cost = draw(1, c.count);
			algorithm_check(&c, &s, t, &v, &after, &end_us);
			s = after;
			algorithm_peek(&c, &s, t, &v);
			algorithm_peek(
			    &c, &s, t - draw(1, 3 * c.period_us), &back);
			if (s.exists)
				assert_true(back.remaining <= v.remaining);
		}
	}
}

/*
 * Any N after any other, in mid-state: the figures stay within their
 * bounds, and a bucket's tokens are worth at most what they were.
 */
static void
test_limit_changes(void **context)
{
	(void)context;
	for (int round = 0; round < rounds(5000); round++) {
		struct check c = draw_check();
		struct state s = { 0 }, after;
		struct verdict v;
		int64_t t = BASE, end_us;

		for (int i = 0; i < 20; i++) {
			struct state was = s;
			wide before, now;

			c.count = draw(1, 40);
			c.burst = draw(1, 40);
			c.cost = draw(0, 3);
			algorithm_check(&c, &s, t, &v, &after, &end_us);
			s = after;
			assert_in_range(v.remaining, 0, v.limit);
			assert_true(v.next_us <= v.full_us);
			assert_true((v.remaining == v.limit) == !v.full_us);
			if (c.algorithm != TB || !was.exists || !s.exists)
				continue;
			before = (wide)was.b * s.c;
			now = (wide)(s.b + c.cost * s.c) * was.c;
			if (v.kind == VERDICT_ALLOWED && c.cost > 0)
				assert_true(now <= before);
		}
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

/* Taken and given back at once: as if it had not been. */
static void
test_refund(void **context)
{
	(void)context;
	for (int round = 0; round < rounds(20000); round++) {
		struct check c = draw_check();
		struct state s = { 0 }, after;
		struct verdict v, was;
		int64_t t = BASE, end_us;

		for (int i = 0; i < 10; i++) {
			t += draw_step(&c);
			c.cost = draw(1, c.count);
			algorithm_peek(&c, &s, t, &was);
			algorithm_check(&c, &s, t, &v, &after, &end_us);
			if (v.kind == VERDICT_ALLOWED && draw(0, 1)) {
				settlement_refund(&c, &after, t, t);
				algorithm_peek(&c, &after, t, &v);
				assert_int_equal(v.remaining, was.remaining);
			}
			s = after;
		}
	}
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
		cmocka_unit_test(test_oracle),
		cmocka_unit_test(test_retry_is_exact),
		cmocka_unit_test(test_clock_steps_back),
		cmocka_unit_test(test_limit_changes),
		cmocka_unit_test(test_largest_numbers),
		cmocka_unit_test(test_refund),
		cmocka_unit_test(test_late_refund),
		cmocka_unit_test(test_lowest_terms),
	};
	const char *given = getenv("SEED");

	seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
	seed += seed == 0;
	printf("SEED=%llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
