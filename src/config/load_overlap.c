/*
 * A rate N2/W2 can never refuse when another rate N1/W1 over the same key,
 * whose limit applies to at least the same requests, lets too little pass.
 * In any time w a window of N1/W1 lets pass at most N1 * (ceil(w/W1) + 1),
 * a token bucket B1 + N1 * ceil(w/W1).
 */
#include "config/load.h"

#include <string.h>

#include "config/option.h"

#define DAY_US          INT64_C(86400000000)
#define CLOCK_CHANGE_US INT64_C(3600000000)

__extension__ typedef __int128 wide;

static bool
is_bucket(enum algorithm algorithm)
{
	return algorithm == ALGORITHM_TOKEN_BUCKET ||
	    algorithm == ALGORITHM_LEAKY_BUCKET;
}

static wide
ceil_div(int64_t a, int64_t b)
{
	return (wide)(a / b) + (a % b > 0 ? 1 : 0);
}

/*
 * A window of the calendar has no fixed length: a change of the clocks makes
 * it longer or shorter by an hour at most, and the length that is written
 * for a month or a year is that of the longest.
 */
static int64_t
longest(const struct config_limit *l, const struct rate *rate)
{
	return rate->period_us +
	    (l->align == ALIGN_CALENDAR ? CLOCK_CHANGE_US : 0);
}

static int64_t
shortest(const struct config_limit *l, const struct rate *rate)
{
	int64_t us = rate->period_us;

	if (l->align != ALIGN_CALENDAR)
		return us;
	if (rate->calendar == RATE_MONTH)
		us -= 3 * DAY_US;
	else if (rate->calendar == RATE_YEAR)
		us -= DAY_US;
	return us > 2 * CLOCK_CHANGE_US ? us - CLOCK_CHANGE_US : us / 2;
}

/* The most that `a` lets pass in any time `w_us`. */
static wide
passes_at_most(
    const struct config_limit *limit, const struct rate *a, int64_t w_us)
{
	enum algorithm algorithm = (enum algorithm)limit->algorithm;
	wide periods = ceil_div(w_us, shortest(limit, a));

	if (is_bucket(algorithm))
		return a->burst + a->count * periods;
	return a->count * (periods + 1);
}

/*
 * Is `a` slower than the bucket `b` fills, and the most it lets pass at
 * once within b's burst? Of two buckets that are alike neither is idle.
 */
static bool
starves_bucket(
    enum algorithm algorithm, const struct rate *a, const struct rate *b)
{
	bool bucket = is_bucket(algorithm);
	wide burst = bucket ? (wide)a->burst : (wide)a->count * 2;
	wide slow = (wide)a->count * b->period_us;
	wide fast = (wide)b->count * a->period_us;

	if (bucket && burst == b->burst && slow == fast)
		return false;
	return burst <= b->burst && slow <= fast;
}

static bool
covers(const struct config_limit *a, const struct rate *rate_a,
    const struct config_limit *b, const struct rate *rate_b)
{
	enum algorithm algorithm = (enum algorithm)a->algorithm;

	if (b->algorithm == ALGORITHM_TOKEN_BUCKET)
		return starves_bucket(algorithm, rate_a, rate_b);
	return rate_b->count >= passes_at_most(a, rate_a, longest(b, rate_b));
}

static struct str
text_of(const struct source_section *section, const char *key)
{
	const struct source_entry *e = source_entry(section, key);

	return e != NULL
	    ? e->value
	    : str_of(option_find(section->kind, str_of(key))->preset);
}

bool
load_is_wider(const struct source_section *a, const struct source_section *b)
{
	static const char *const narrowing[] = { "host", "path", "method",
		"client", "header", "query", "backend", "role", "except_path",
		"except_method", "except_client" };

	for (size_t i = 0; i < sizeof(narrowing) / sizeof(narrowing[0]); i++) {
		struct str of_a = text_of(a, narrowing[i]);

		if (of_a.p != NULL && !str_eq(of_a, text_of(b, narrowing[i])))
			return false;
	}
	return true;
}

/* Do both take the same units from the same requests of the same key? */
static bool
counts_alike(const struct source_section *a, const struct source_section *b)
{
	static const char *const counting[] = { "key", "scope", "missing_key",
		"cost", "count", "preflight" };

	for (size_t i = 0; i < sizeof(counting) / sizeof(counting[0]); i++)
		if (!str_eq(text_of(a, counting[i]), text_of(b, counting[i])))
			return false;
	return true;
}

/* What delays, or counts what runs, is idle beside no other. */
static bool
can_be_idle(const struct config_limit *limit)
{
	return limit->algorithm != ALGORITHM_LEAKY_BUCKET &&
	    limit->algorithm != ALGORITHM_CONCURRENCY;
}

/* One that is only observed refuses nothing before another. */
static bool
is_comparable(const struct load *l, size_t a, size_t b)
{
	const struct config_limit *limit_a = &l->config->limit[a];
	const struct config_limit *limit_b = &l->config->limit[b];

	return (limit_a->mode == CONFIG_MODE_ENFORCE || a == b) &&
	    can_be_idle(limit_b) &&
	    limit_a->algorithm != ALGORITHM_CONCURRENCY &&
	    limit_a->n_tiers == 0 && limit_b->n_tiers == 0 &&
	    counts_alike(l->limit[a], l->limit[b]) &&
	    load_is_wider(l->limit[a], l->limit[b]);
}

/* The i-th rate as it was written. */
static struct str
rate_text(const struct source_section *section, size_t i)
{
	struct str rest = text_of(section, "rate");
	struct str text;

	do
		text = str_trim(str_cut(&rest, ','));
	while (i-- > 0);
	return text;
}

/* Reports the first rate of limit a that covers the rate; false: none. */
static bool
report_if_covered(struct load *l, size_t b, size_t rate_b, size_t a)
{
	const struct config_limit *limit_a = &l->config->limit[a];
	const struct config_limit *limit_b = &l->config->limit[b];
	struct place place = load_place(l->limit[b], "rate");

	for (size_t i = 0; i < limit_a->rates.n; i++) {
		if (limit_a->rates.rate[i].period_us == 0 ||
		    limit_b->rates.rate[rate_b].period_us == 0 ||
		    !covers(limit_a, &limit_a->rates.rate[i], limit_b,
			&limit_b->rates.rate[rate_b]))
			continue;
		finding_warning(&l->findings, &place,
		    "%.*s can never refuse: %.*s of %s always does first",
		    STR_ARG(rate_text(l->limit[b], rate_b)),
		    STR_ARG(rate_text(l->limit[a], i)),
		    l->limit[a]->place.section);
		return true;
	}
	return false;
}

void
load_overlap(struct load *l)
{
	for (size_t b = 0; b < l->config->n_limits; b++)
		for (size_t i = 0; i < l->config->limit[b].rates.n; i++)
			for (size_t a = 0; a < l->config->n_limits; a++)
				if (is_comparable(l, a, b) &&
				    report_if_covered(l, b, i, a))
					break;
}
