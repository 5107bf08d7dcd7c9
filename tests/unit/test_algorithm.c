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

/* Windows beyond the boundaries are as long as the nearest. */
static int64_t
calendar_of(const struct check *c, int64_t t)
{
	const int64_t *b = c->boundary_us;
	int64_t start = b[0];

	while (start > t)
		start -= b[1] - b[0];
	for (size_t i = 1; i < 3 && t >= b[i]; i++)
		start = b[i];
	while (start >= b[2] && t >= start + b[3] - b[2])
		start += b[3] - b[2];
	return start;
}

static int64_t
window_of(const struct check *c, const struct history *h, int64_t t)
{
	int64_t start = INT64_MIN / 2;

	if (c->align == ALIGN_CALENDAR)
		return calendar_of(c, t);
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
log_passes(
    const struct check *c, const struct history *h, int64_t t, int64_t cost)
{
	int64_t used = 0;

	for (size_t i = 0; i < h->n; i++)
		if (h->at[i].at_us > t - c->period_us)
			used += h->at[i].cost;
	return used + cost <= c->count;
}

/* What waits in a leaky bucket, in units of 1/period. */
static wide
queue_of(const struct check *c, const struct history *h, int64_t t)
{
	int64_t last = BASE - 1;
	wide x = 0;

	for (size_t i = 0; i <= h->n; i++) {
		int64_t at = i < h->n ? h->at[i].at_us : t;

		x -= (wide)c->count * (at - last);
		x = x < 0 ? 0 : x;
		if (i < h->n)
			x += (wide)h->at[i].cost * c->period_us;
		last = at;
	}
	return x;
}

/* `before` units having been put in at that very moment. */
static bool
leaky_passes(const struct check *c, const struct history *h, int64_t t,
    int64_t before, int64_t cost)
{
	wide x = queue_of(c, h, t) + (wide)before * c->period_us;

	return x + (wide)cost * c->period_us <= (wide)c->burst * c->period_us &&
	    x <= (wide)c->count * c->delay_max_us;
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
		return log_passes(c, h, t, cost);
	case ALGORITHM_LEAKY_BUCKET:
		return leaky_passes(c, h, t, 0, cost);
	case ALGORITHM_CONCURRENCY:
		break;
	}
	abort();
}

/* So many at once, each of one: only a queue tells them from one cost. */
static bool
has(const struct check *c, const struct history *h, int64_t t, int64_t units)
{
	if (c->algorithm != ALGORITHM_LEAKY_BUCKET)
		return passes(c, h, t, units);
	return units == 0 || leaky_passes(c, h, t, units - 1, 1);
}

static bool
is_untouched(
    const struct check *c, const struct history *h, int64_t t, int64_t units)
{
	if (c->algorithm != ALGORITHM_LEAKY_BUCKET)
		return passes(c, h, t, units);
	return queue_of(c, h, t) == 0;
}

static int64_t
cost_max(const struct check *c)
{
	return c->algorithm == ALGORITHM_TOKEN_BUCKET ||
		c->algorithm == ALGORITHM_LEAKY_BUCKET
	    ? c->burst
	    : c->count;
}

/* The least wait until it is true of so many units. */
static int64_t
search_wait(bool (*is_true)(
		const struct check *, const struct history *, int64_t, int64_t),
    const struct check *c, const struct history *h, int64_t t, int64_t units)
{
	int64_t low = 0, high = 1;

	while (!is_true(c, h, t + high, units))
		high *= 2;
	while (low < high) {
		int64_t middle = low + (high - low) / 2;

		if (is_true(c, h, t + middle, units))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static int64_t
search_remaining(const struct check *c, const struct history *h, int64_t t)
{
	int64_t low = 0, high = cost_max(c);

	while (low < high) {
		int64_t middle = high - (high - low) / 2;

		if (has(c, h, t, middle))
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

static int64_t
limit_of(const struct check *c)
{
	const struct history none = { 0 };

	return search_remaining(c, &none, BASE);
}

static void
compare_figures(const struct check *c, const struct history *h, int64_t t,
    const struct verdict *v)
{
	int64_t left = search_remaining(c, h, t), limit = limit_of(c);

	assert_int_equal(v->limit, limit);
	assert_int_equal(v->remaining, left);
	if (left == limit) {
		assert_true(v->next_us == 0 && v->full_us == 0);
		return;
	}
	assert_int_equal(v->next_us, search_wait(has, c, h, t, left + 1));
	assert_int_equal(v->full_us, search_wait(is_untouched, c, h, t, limit));
}

/* Of unlike lengths, the first of them about now. */
static void
draw_boundaries(struct check *c)
{
	c->boundary_us[0] = BASE + draw(-3 * c->period_us, c->period_us);
	for (int i = 1; i < 4; i++)
		c->boundary_us[i] =
		    c->boundary_us[i - 1] + draw(1000, 2 * c->period_us);
}

static struct check
draw_check(void)
{
	static const int64_t periods[] = { 1000, 7000, 10000, 1000000, 60000000,
		86400000000 };
	struct check c = { 0 };

	c.algorithm = (enum algorithm)draw(0, ALGORITHM_LEAKY_BUCKET);
	c.align = (enum align)draw(0, ALIGN_CALENDAR);
	c.count = draw(0, 3) == 0 ? draw(1, 5000) : draw(1, 12);
	c.period_us = periods[draw(0, 5)];
	c.burst = draw(0, 1) ? c.count : draw(1, 40);
	c.delay_max_us = draw(0, 3) * draw(0, c.period_us);
	draw_boundaries(&c);
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

/* Until what was there before has left. */
static int64_t
delay_of(
    const struct check *c, const struct history *h, int64_t t, int64_t wait)
{
	if (c->algorithm != ALGORITHM_LEAKY_BUCKET || wait != 0 || c->cost == 0)
		return 0;
	return search_wait(is_untouched, c, h, t, 0);
}

static void
ask(const struct check *c, struct state *s, struct history *h, int64_t t)
{
	int64_t wait = ALGORITHM_NEVER, end_us;
	struct state after;
	struct verdict v;

	if (c->cost == 0)
		wait = 0;
	else if (c->cost <= cost_max(c))
		wait = search_wait(passes, c, h, t, c->cost);
	algorithm_check(c, s, t, &v, &after, &end_us);
	assert_int_equal(v.retry_us, wait);
	assert_int_equal(v.kind, wait == 0 ? VERDICT_ALLOWED : VERDICT_REFUSED);
	assert_int_equal(v.delay_us, delay_of(c, h, t, wait));
	if (wait == 0 && c->cost > 0)
		h->at[h->n++] = (struct taken){ t, c->cost };
	else
		assert_memory_equal(&after, s, sizeof(after));
	compare_figures(c, h, t, &v);
	if (after.exists)
		assert_true(end_us >= t + v.full_us);
	assert_true(algorithm_keep(c, s, &after));
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
		algorithm_forget(&s);
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
			assert_true(algorithm_keep(&c, &s, &after));
			if (v.retry_us <= 0)
				continue;
			t += v.retry_us - 1;
			algorithm_check(&c, &s, t, &v, &after, &end_us);
			assert_int_equal(v.kind, VERDICT_REFUSED);
			t++;
			algorithm_check(&c, &s, t, &v, &after, &end_us);
			assert_int_equal(v.kind, VERDICT_ALLOWED);
			assert_true(algorithm_keep(&c, &s, &after));
		}
		algorithm_forget(&s);
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
			assert_true(algorithm_keep(&c, &s, &after));
			algorithm_peek(&c, &s, t, &v);
			algorithm_peek(
			    &c, &s, t - draw(1, 3 * c.period_us), &back);
			if (s.exists)
				assert_true(back.remaining <= v.remaining);
		}
		algorithm_forget(&s);
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
			assert_true(algorithm_keep(&c, &s, &after));
			assert_in_range(v.remaining, 0, v.limit);
			assert_true(v.next_us <= v.full_us);
			assert_true((v.remaining == v.limit) == !v.full_us);
			if (c.algorithm != ALGORITHM_TOKEN_BUCKET ||
			    !was.exists || !s.exists)
				continue;
			before = (wide)was.b * s.c;
			now = (wide)(s.b + c.cost * s.c) * was.c;
			if (v.kind == VERDICT_ALLOWED && c.cost > 0)
				assert_true(now <= before);
		}
		algorithm_forget(&s);
	}
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
			assert_true(algorithm_keep(&c, &s, &after));
			if (v.kind == VERDICT_ALLOWED && draw(0, 1)) {
				settlement_refund(&c, &s, t, t);
				algorithm_peek(&c, &s, t, &v);
				assert_int_equal(v.remaining, was.remaining);
			}
		}
		algorithm_forget(&s);
	}
}

static int64_t
longer(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* What the count alone says, with a penalty laid over it. */
static struct verdict
with_penalty(
    const struct check *c, const struct state *s, int64_t t, int64_t *until_us)
{
	struct check bare = *c;
	struct state after;
	struct verdict v;
	int64_t end_us, left, retry_us;

	bare.penalty_us = 0;
	algorithm_check(&bare, s, t, &v, &after, &end_us);
	if (v.kind == VERDICT_REFUSED && t >= *until_us)
		*until_us = t + c->penalty_us;
	left = longer(0, *until_us - t);
	if (left == 0)
		return v;
	retry_us = v.retry_us;
	algorithm_peek(&bare, s, t, &v);
	v.next_us = v.remaining > 0 ? left : longer(left, v.next_us);
	v.full_us = longer(left, v.full_us);
	v.remaining = 0;
	if (c->cost > 0) {
		v.kind = VERDICT_REFUSED;
		v.retry_us = retry_us < 0 ? retry_us : longer(left, retry_us);
	}
	return v;
}

static void
test_penalty(void **context)
{
	(void)context;
	for (int round = 0; round < rounds(5000); round++) {
		struct check c = draw_check();
		struct state s = { 0 }, after;
		struct verdict v, want;
		int64_t t = BASE, until_us = 0, end_us;

		c.penalty_us = draw(1, 4) * draw(1000, c.period_us);
		for (int i = 0; i < 30; i++) {
			t += draw_step(&c);
			c.cost = draw(0, 3) > 0 ? 1 : draw(0, c.count + 1);
			want = with_penalty(&c, &s, t, &until_us);
			algorithm_check(&c, &s, t, &v, &after, &end_us);
			assert_int_equal(v.kind, want.kind);
			assert_int_equal(v.retry_us, want.retry_us);
			assert_int_equal(v.remaining, want.remaining);
			assert_int_equal(v.next_us, want.next_us);
			assert_int_equal(v.full_us, want.full_us);
			assert_int_equal(v.delay_us, want.delay_us);
			if (after.exists || until_us > t)
				assert_true(end_us >= t + v.full_us);
			assert_true(algorithm_keep(&c, &s, &after));
		}
		algorithm_forget(&s);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_oracle),
		cmocka_unit_test(test_retry_is_exact),
		cmocka_unit_test(test_clock_steps_back),
		cmocka_unit_test(test_limit_changes),
		cmocka_unit_test(test_refund),
		cmocka_unit_test(test_penalty),
	};
	const char *given = getenv("SEED");

	seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
	seed += seed == 0;
	printf("SEED=%llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
