/*
 * law_oracle: what a count has to say, by the definitions of the limits
 * alone, in whole numbers that lose nothing.
 *
 * It keeps what was taken and when, and knows one thing: would this much
 * pass at that moment, if nobody takes any more? Figures are not worked out
 * here: law_judge.h holds those of a verdict against that.
 *
 * `after_us` is counted from the moment that the count believes in: a clock
 * that stepped back stands until it is where it was.
 */
#ifndef SLUICE_TESTS_LAW_ORACLE_H
#define SLUICE_TESTS_LAW_ORACLE_H

#include <assert.h>
#include <stddef.h>

#include "pure/algorithm.h"

__extension__ typedef __int128 oracle_wide;

#define ORACLE_TAKEN   1024
#define ORACLE_BUSY_US 1000000  /* concurrency: when to ask again */
#define ORACLE_HOLD_US 15000000 /* concurrency: until a slot is free anyway */

struct oracle_taken {
	int64_t at_us;
	int64_t cost;
};

/* Windows of one width, but that all after one are moved by so much. */
struct oracle_calendar {
	int64_t first_us;
	int64_t width_us;
	int64_t moved_after;
	int64_t moved_us; /* less than the width */
};

/* One key of one limit. */
struct oracle {
	struct oracle_calendar calendar;
	size_t n;
	struct oracle_taken taken[ORACLE_TAKEN];
	oracle_wide level;  /* buckets, at the last: units * period */
	oracle_wide before; /* the last was taken */
	int64_t held;       /* concurrency */
	bool is_punished;
	int64_t punished_us; /* since then */
};

static int64_t
oracle_floor(int64_t a, int64_t b)
{
	int64_t q = a / b;

	return q * b > a ? q - 1 : q;
}

static int64_t
oracle_gcd(int64_t a, int64_t b)
{
	return b == 0 ? a : oracle_gcd(b, a % b);
}

static int64_t
oracle_boundary(const struct oracle_calendar *c, int64_t i)
{
	return c->first_us + i * c->width_us +
	    (i > c->moved_after ? c->moved_us : 0);
}

/* Which of its windows a moment is in. */
static int64_t
oracle_day(const struct oracle_calendar *c, int64_t t)
{
	int64_t i = oracle_floor(t - c->first_us, c->width_us);

	while (oracle_boundary(c, i) > t)
		i--;
	while (oracle_boundary(c, i + 1) <= t)
		i++;
	return i;
}

/* A window begins with the first hit after the one before has ended. */
static int64_t
oracle_first(const struct check *c, const struct oracle *o, int64_t t)
{
	int64_t start = INT64_MIN / 2;

	for (size_t i = 0; i < o->n; i++)
		if (o->taken[i].at_us >= start + c->period_us)
			start = o->taken[i].at_us;
	return t >= start + c->period_us ? t : start;
}

/* fixed_window: where the one begins that a moment is in. */
static int64_t
oracle_window(const struct check *c, const struct oracle *o, int64_t t)
{
	switch (c->align) {
	case ALIGN_FIRST:
		return oracle_first(c, o, t);
	case ALIGN_CALENDAR:
		return oracle_boundary(
		    &o->calendar, oracle_day(&o->calendar, t));
	case ALIGN_EPOCH:
	case ALIGN_SPREAD:
		break;
	}
	return oracle_floor(t - c->offset_us, c->period_us) * c->period_us +
	    c->offset_us;
}

/* sliding_window: the bucket, and how many milliseconds of it are over. */
static int64_t
oracle_bucket(const struct check *c, int64_t t, int64_t *e)
{
	int64_t w = c->period_us / 1000, m = oracle_floor(t, 1000);
	int64_t i = oracle_floor(m - c->offset_us / 1000, w);

	*e = m - c->offset_us / 1000 - i * w;
	return i;
}

/* now = max(now, stored) */
static int64_t
oracle_now(const struct check *c, const struct oracle *o, int64_t now_us)
{
	int64_t stored, e;

	if (o->n == 0)
		return now_us;
	stored = o->taken[o->n - 1].at_us;
	if (c->algorithm == ALGORITHM_FIXED_WINDOW)
		stored = oracle_window(c, o, stored);
	if (c->algorithm == ALGORITHM_SLIDING_WINDOW) {
		oracle_bucket(c, stored, &e);
		stored = (stored / 1000 - e) * 1000;
	}
	return now_us > stored ? now_us : stored;
}

static oracle_wide
oracle_used_since(const struct oracle *o, int64_t t)
{
	oracle_wide used = 0;

	for (size_t i = o->n; i > 0 && o->taken[i - 1].at_us >= t; i--)
		used += o->taken[i - 1].cost;
	return used;
}

static bool
oracle_sliding_passes(
    const struct check *c, const struct oracle *o, int64_t t, int64_t cost)
{
	oracle_wide cur = 0, prev = 0, w = c->period_us / 1000;
	int64_t e, ignored, bucket = oracle_bucket(c, t, &e);

	for (size_t i = o->n; i > 0; i--) {
		const struct oracle_taken *taken = &o->taken[i - 1];
		int64_t b = oracle_bucket(c, taken->at_us, &ignored);

		if (b == bucket)
			cur += taken->cost;
		else if (b == bucket - 1)
			prev += taken->cost;
		else
			break;
	}
	return prev * (w - e) + (cur + cost) * w <= c->count * w;
}

/*
 * Buckets: N units flow in each period, so N parts of a period in each
 * microsecond, and what is kept is whole units of the rate in lowest terms:
 * of one that another N has left the rest is lost, never given.
 */
static oracle_wide
oracle_tokens(const struct check *c, const struct oracle *o, int64_t t)
{
	oracle_wide full = (oracle_wide)c->burst * c->period_us, v = full;
	int64_t part = oracle_gcd(c->count, c->period_us);

	if (o->n > 0 && o->level - o->level % part < full)
		v = o->level - o->level % part;
	if (o->n > 0)
		v += (oracle_wide)c->count * (t - o->taken[o->n - 1].at_us);
	return v < full ? v : full;
}

static oracle_wide
oracle_queue(const struct check *c, const struct oracle *o, int64_t t)
{
	int64_t part = oracle_gcd(c->count, c->period_us);
	oracle_wide x = (o->level + part - 1) / part * part;

	if (o->n == 0)
		return 0;
	x -= (oracle_wide)c->count * (t - o->taken[o->n - 1].at_us);
	return x > 0 ? x : 0;
}

/* What an allowed one waits is at most delay_max, so x <= N * delay_max. */
static bool
oracle_queue_passes(const struct check *c, oracle_wide x, int64_t cost)
{
	return x <= (oracle_wide)c->count * c->delay_max_us &&
	    x + (oracle_wide)cost * c->period_us <=
	    (oracle_wide)c->burst * c->period_us;
}

/* Would it pass at t, whatever penalty there is? */
static bool
oracle_passes(
    const struct check *c, const struct oracle *o, int64_t t, int64_t cost)
{
	switch (c->algorithm) {
	case ALGORITHM_FIXED_WINDOW:
		if (o->n == 0)
			return cost <= c->count;
		return oracle_used_since(o, oracle_window(c, o, t)) + cost <=
		    c->count;
	case ALGORITHM_SLIDING_WINDOW:
		return oracle_sliding_passes(c, o, t, cost);
	case ALGORITHM_TOKEN_BUCKET:
		return oracle_tokens(c, o, t) >=
		    (oracle_wide)cost * c->period_us;
	case ALGORITHM_SLIDING_LOG:
		return oracle_used_since(o, t - c->period_us + 1) + cost <=
		    c->count;
	case ALGORITHM_LEAKY_BUCKET:
		return oracle_queue_passes(c, oracle_queue(c, o, t), cost);
	case ALGORITHM_CONCURRENCY:
		return o->held + 1 <= c->count;
	}
	return false;
}

/* Would so many units of 1 pass at t, one after the other? */
static bool
oracle_units_pass(
    const struct check *c, const struct oracle *o, int64_t t, int64_t units)
{
	oracle_wide x;

	if (units == 0)
		return true;
	if (c->algorithm == ALGORITHM_CONCURRENCY)
		return o->held + units <= c->count;
	if (c->algorithm != ALGORITHM_LEAKY_BUCKET)
		return oracle_passes(c, o, t, units);
	x = oracle_queue(c, o, t);
	return oracle_queue_passes(
	    c, x + (oracle_wide)(units - 1) * c->period_us, 1);
}

static int64_t
oracle_penalty_left(const struct check *c, const struct oracle *o, int64_t now)
{
	int64_t left;

	if (!o->is_punished)
		return 0;
	if (now < o->punished_us)
		now = o->punished_us;
	left = o->punished_us + c->penalty_us - now;
	return left > 0 ? left : 0;
}

static bool
oracle_allows(const struct check *c, const struct oracle *o, int64_t now_us,
    int64_t after_us)
{
	return c->cost == 0 ||
	    (after_us >= oracle_penalty_left(c, o, now_us) &&
		oracle_passes(
		    c, o, oracle_now(c, o, now_us) + after_us, c->cost));
}

static bool
oracle_has_left(const struct check *c, const struct oracle *o, int64_t now_us,
    int64_t after_us, int64_t units)
{
	return units == 0 ||
	    (after_us >= oracle_penalty_left(c, o, now_us) &&
		oracle_units_pass(
		    c, o, oracle_now(c, o, now_us) + after_us, units));
}

/* Has all its units, and, if it had not to begin with, an empty queue. */
static bool
oracle_is_untouched(const struct check *c, const struct oracle *o,
    int64_t now_us, int64_t after_us, int64_t limit)
{
	int64_t seen = oracle_now(c, o, now_us);

	if (after_us < oracle_penalty_left(c, o, now_us))
		return false;
	if (oracle_units_pass(c, o, seen, limit))
		return true;
	if (c->algorithm == ALGORITHM_LEAKY_BUCKET)
		return oracle_queue(c, o, seen + after_us) == 0;
	return oracle_units_pass(c, o, seen + after_us, limit);
}

static bool
oracle_never_allows(const struct check *c)
{
	static const struct oracle fresh;

	return c->cost > 0 && !oracle_passes(c, &fresh, 0, c->cost);
}

/* What a leaky bucket has to say of one that passes: ceil(x / R). */
static int64_t
oracle_delay(const struct check *c, const struct oracle *o, int64_t now_us)
{
	oracle_wide x;

	if (c->algorithm != ALGORITHM_LEAKY_BUCKET)
		return 0;
	x = oracle_queue(c, o, oracle_now(c, o, now_us));
	return (int64_t)((x + c->count - 1) / c->count);
}

static void
oracle_take(const struct check *c, struct oracle *o, int64_t now_us)
{
	int64_t t = oracle_now(c, o, now_us);

	if (c->algorithm == ALGORITHM_CONCURRENCY) {
		o->held++;
		return;
	}
	assert(o->n < ORACLE_TAKEN);
	o->before = o->level;
	if (c->algorithm == ALGORITHM_TOKEN_BUCKET)
		o->level = oracle_tokens(c, o, t) -
		    (oracle_wide)c->cost * c->period_us;
	if (c->algorithm == ALGORITHM_LEAKY_BUCKET)
		o->level =
		    oracle_queue(c, o, t) + (oracle_wide)c->cost * c->period_us;
	o->taken[o->n++] = (struct oracle_taken){ t, c->cost };
}

/* The last was never taken. */
static void
oracle_untake(const struct check *c, struct oracle *o)
{
	if (c->algorithm == ALGORITHM_CONCURRENCY) {
		o->held--;
		return;
	}
	o->n--;
	o->level = o->before;
}

/* A refusal begins a penalty, if none lasts. */
static void
oracle_refuse(const struct check *c, struct oracle *o, int64_t now_us)
{
	if (c->penalty_us == 0 || oracle_penalty_left(c, o, now_us) > 0)
		return;
	o->is_punished = true;
	o->punished_us = now_us;
}

/*
 * When a count that has just been taken from goes: at now + full, but for
 * the two buckets of a sliding window.
 */
static int64_t
oracle_end_us(const struct check *c, const struct oracle *o, int64_t now_us,
    int64_t full_us)
{
	int64_t t = oracle_now(c, o, now_us), e;

	if (c->algorithm == ALGORITHM_CONCURRENCY)
		return t + ORACLE_HOLD_US;
	if (c->algorithm != ALGORITHM_SLIDING_WINDOW)
		return t + full_us;
	oracle_bucket(c, t, &e);
	return (t / 1000 - e) * 1000 + 2 * c->period_us;
}

#endif
