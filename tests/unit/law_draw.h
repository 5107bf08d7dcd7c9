/*
 * law_draw: limits, and what is asked of them, drawn by lot: rates from one
 * in 366 days to the largest there are, N that changes, costs about what is
 * left, a clock that stands, steps both ways, is idle for a year, or arrives
 * exactly when a verdict said, or a microsecond before.
 */
#ifndef SLUICE_TESTS_LAW_DRAW_H
#define SLUICE_TESTS_LAW_DRAW_H

#include <string.h>

#include "law_oracle.h"

#define LAW_MAX     ALGORITHM_PRODUCT_MAX
#define LAW_BASE    INT64_C(1790000000123456) /* some day in 2026 */
#define LAW_EARLIER INT64_C(1000000000000000)
#define LAW_LATEST  INT64_C(5000000000000000)
#define LAW_YEAR    INT64_C(31536000000000)
#define LAW_LARGEST INT64_C(1000000000000) /* N and B in a configuration */

struct law_kind {
	const char *name;
	enum algorithm algorithm;
	enum align align;
};

static const struct law_kind law_kinds[] = {
	{ "fixed_window first", ALGORITHM_FIXED_WINDOW, ALIGN_FIRST },
	{ "fixed_window epoch", ALGORITHM_FIXED_WINDOW, ALIGN_EPOCH },
	{ "fixed_window spread", ALGORITHM_FIXED_WINDOW, ALIGN_SPREAD },
	{ "fixed_window calendar", ALGORITHM_FIXED_WINDOW, ALIGN_CALENDAR },
	{ "sliding_window", ALGORITHM_SLIDING_WINDOW, ALIGN_SPREAD },
	{ "token_bucket", ALGORITHM_TOKEN_BUCKET, ALIGN_SPREAD },
	{ "sliding_log", ALGORITHM_SLIDING_LOG, ALIGN_SPREAD },
	{ "leaky_bucket", ALGORITHM_LEAKY_BUCKET, ALIGN_SPREAD },
	{ "concurrency", ALGORITHM_CONCURRENCY, ALIGN_SPREAD },
};
#define LAW_KINDS (sizeof(law_kinds) / sizeof(law_kinds[0]))

struct law_limit {
	char key[32];
	const char *name;
	struct check check;
	struct oracle oracle;
	struct verdict verdict; /* the last */
	bool changes;           /* N does, now and then */
	int64_t bound_us;       /* what is kept is gone after it */
	int64_t gone_us;        /* when, after what was taken last */
};

/* xorshift64 */
static int64_t
law_draw(uint64_t *lot, int64_t low, int64_t high)
{
	*lot ^= *lot << 13;
	*lot ^= *lot >> 7;
	*lot ^= *lot << 17;
	return low + (int64_t)(*lot % (uint64_t)(high - low + 1));
}

static bool
law_one_in(uint64_t *lot, int64_t n)
{
	return law_draw(lot, 1, n) == 1;
}

static int64_t
law_min_of(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Small ones as often as large ones. */
static int64_t
law_draw_size(uint64_t *lot, int64_t max)
{
	static const int64_t sizes[] = { 1, 3, 12, 12, 1000, 1000000, LAW_MAX };

	return law_draw(lot, 1, law_min_of(max, sizes[law_draw(lot, 0, 6)]));
}

static int64_t
law_draw_period(uint64_t *lot)
{
	static const int64_t ms[] = { 1, 7, 1000, 10000, 60000, 3599999,
		3600000, 86400000, 604800000, 31622400000 };

	if (law_one_in(lot, 5))
		return law_draw(lot, 1, 10000000) * 1000;
	return ms[law_draw(lot, 0, 9)] * 1000;
}

static int64_t
law_count_max(const struct check *c)
{
	switch (c->algorithm) {
	case ALGORITHM_SLIDING_WINDOW:
		return law_min_of(LAW_LARGEST, LAW_MAX / (c->period_us / 1000));
	case ALGORITHM_SLIDING_LOG:
		return ALGORITHM_LOG_MAX;
	case ALGORITHM_CONCURRENCY:
		return 40;
	case ALGORITHM_FIXED_WINDOW:
	case ALGORITHM_TOKEN_BUCKET:
	case ALGORITHM_LEAKY_BUCKET:
		break;
	}
	return LAW_LARGEST;
}

static bool
law_is_bucket(const struct check *c)
{
	return c->algorithm == ALGORITHM_TOKEN_BUCKET ||
	    c->algorithm == ALGORITHM_LEAKY_BUCKET;
}

static int64_t
law_draw_delay_max(uint64_t *lot, const struct check *c)
{
	switch (law_draw(lot, 0, 4)) {
	case 0:
		return 0;
	case 1:
		return law_draw(lot, 0, 3 * c->period_us / c->count + 1);
	case 2:
		return law_draw(lot, 0, c->period_us);
	case 3:
		return 366 * INT64_C(86400000000);
	default:
		return 1000000;
	}
}

/* How long a count that has just been written lasts at most. */
static int64_t
law_bound_us(const struct law_limit *l)
{
	const struct check *c = &l->check;
	oracle_wide full = (oracle_wide)c->burst * c->period_us / c->count + 1;
	int64_t moved_us = l->oracle.calendar.moved_us;
	int64_t width_us = 2 * c->period_us + (moved_us > 0 ? moved_us : 0);

	if (law_is_bucket(c))
		return (int64_t)full + c->penalty_us;
	return width_us + c->penalty_us;
}

/*
 * N and burst. Where they change a queue of one rate has to fit whatever
 * comes after it.
 */
static void
law_draw_rate(uint64_t *lot, struct law_limit *l)
{
	struct check *c = &l->check;
	int64_t most = LAW_LARGEST;

	c->count = law_draw_size(lot, law_count_max(c));
	if (law_is_bucket(c)) {
		int64_t part = oracle_gcd(c->count, c->period_us);

		most =
		    LAW_MAX / (l->changes ? c->period_us : c->period_us / part);
	}
	most = law_min_of(most, LAW_LARGEST);
	c->burst = law_min_of(most, c->count);
	if (law_one_in(lot, 2))
		c->burst = law_draw_size(lot, most);
	c->delay_max_us = law_draw_delay_max(lot, c);
	if (law_bound_us(l) > l->bound_us)
		l->bound_us = law_bound_us(l);
}

static void
law_draw_calendar(uint64_t *lot, struct oracle_calendar *c, int64_t width_us)
{
	c->width_us = width_us;
	c->first_us = LAW_BASE - law_draw(lot, 0, width_us - 1);
	c->moved_after = law_draw(lot, -1, 4);
	c->moved_us = law_draw(lot, -width_us / 2, width_us / 2);
}

static void
law_draw_limit(uint64_t *lot, struct law_limit *l, const struct law_kind *kind)
{
	struct check *c = &l->check;

	l->name = kind->name;
	l->changes = law_one_in(lot, 2);
	c->algorithm = kind->algorithm;
	c->align = kind->align;
	c->period_us = law_draw_period(lot);
	if (c->algorithm == ALGORITHM_SLIDING_WINDOW)
		c->offset_us = law_draw(lot, 0, c->period_us / 1000 - 1) * 1000;
	else if (c->algorithm == ALGORITHM_FIXED_WINDOW &&
	    c->align == ALIGN_SPREAD)
		c->offset_us = law_draw(lot, 0, c->period_us - 1);
	if (c->algorithm == ALGORITHM_FIXED_WINDOW &&
	    c->align == ALIGN_CALENDAR)
		law_draw_calendar(lot, &l->oracle.calendar, c->period_us);
	/* In memory a penalty keeps the count too, a bucket that is full. */
	if (!(l->changes && law_is_bucket(c)) && law_one_in(lot, 5))
		c->penalty_us = law_draw(lot, 1, 2 * c->period_us);
	law_draw_rate(lot, l);
}

/* The gateway's clock may be a window before the store's, or behind it. */
static void
law_draw_boundaries(uint64_t *lot, struct law_limit *l, int64_t now_us)
{
	const struct oracle_calendar *calendar = &l->oracle.calendar;
	int64_t seen_us = oracle_now(&l->check, &l->oracle, now_us);
	int64_t day = oracle_day(calendar, seen_us) + law_draw(lot, -1, 1);

	for (int i = 0; i < 4; i++)
		l->check.boundary_us[i] =
		    oracle_boundary(calendar, day - 1 + i);
}

static int64_t
law_draw_cost(uint64_t *lot, const struct law_limit *l)
{
	const struct check *c = &l->check;
	int64_t most = law_is_bucket(c) ? c->burst : c->count;

	if (c->algorithm == ALGORITHM_CONCURRENCY)
		return law_one_in(lot, 6) ? 0 : 1;
	switch (law_draw(lot, 0, 9)) {
	case 0:
		return 0;
	case 1:
		return 2;
	case 2:
		return law_draw(lot, 1, most);
	case 3:
		return most;
	case 4:
		return most + 1;
	case 5:
		return l->verdict.remaining;
	case 6:
		return l->verdict.remaining + 1;
	case 7:
		return law_one_in(lot, 50) ? INT64_MAX : 1;
	default:
		return 1;
	}
}

/* A lease; 0: none. A limit with a penalty has none. */
static int64_t
law_draw_most(uint64_t *lot, const struct law_limit *l)
{
	const struct check *c = &l->check;

	if (c->algorithm != ALGORITHM_FIXED_WINDOW &&
	    c->algorithm != ALGORITHM_SLIDING_WINDOW &&
	    c->algorithm != ALGORITHM_TOKEN_BUCKET)
		return 0;
	if (c->penalty_us > 0)
		return 0;
	switch (law_draw(lot, 0, 7)) {
	case 0:
		return law_draw(lot, 1, 16);
	case 1:
		return l->verdict.remaining;
	case 2:
		return law_one_in(lot, 8) ? LAW_MAX : 16;
	default:
		return 0;
	}
}

/* How far the clock goes from here. */
static int64_t
law_draw_step(uint64_t *lot, const struct law_limit *l)
{
	int64_t width_us = l->check.period_us;
	int64_t each_us = width_us / l->check.count;

	switch (law_draw(lot, 0, 14)) {
	case 0:
	case 1:
		return 0;
	case 2:
		return law_draw(lot, 1, 2000);
	case 3:
		return -law_draw(lot, 1, 2000);
	case 4:
		return each_us;
	case 5:
		return law_draw(lot, 0, each_us + 2);
	case 6:
		return law_draw(lot, 0, width_us);
	case 7:
		return law_draw(lot, 0, 3 * width_us);
	case 8:
		return -law_draw(lot, 0, 2 * width_us);
	case 9:
		return width_us;
	case 10:
		return l->verdict.retry_us - law_draw(lot, 0, 1);
	case 11:
		return l->verdict.next_us - law_draw(lot, 0, 1);
	case 12:
		return l->verdict.full_us - law_draw(lot, 0, 1);
	case 13:
		return law_one_in(lot, 8) ? LAW_YEAR : 1;
	default:
		return 1;
	}
}

/* A clock stands within its bounds. */
static int64_t
law_step(int64_t now_us, int64_t step_us, int64_t earliest_us)
{
	if (step_us > LAW_LATEST - now_us)
		return now_us;
	return now_us + step_us > earliest_us ? now_us + step_us : earliest_us;
}

#endif
