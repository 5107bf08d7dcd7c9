#include "pure/leased.h"

#include "pure/algorithm.h"
#include "pure/law.h"

/* What a store says is not always so; of what is, no product comes near. */
#define MOST (INT64_MAX / 2)

/* Of figures that are not below 0; MOST at the most. */
static int64_t
times(int64_t a, int64_t b)
{
	int64_t product;

	return __builtin_mul_overflow(a, b, &product) ? MOST
						      : law_min(product, MOST);
}

/*
 * A sliding window in which nothing has been before this bucket: one unit
 * more is there when the bucket, which has become the one before, has faded
 * so far (see sliding_wait). With fewer units in it that is later than it was
 * said to be. Else the bucket before is what fades, as was said.
 */
static int64_t
sliding_next(const struct check *c, const struct verdict *then, int64_t unspent)
{
	int64_t width = c->period_us / 1000;
	int64_t used = then->limit - then->remaining - unspent;

	if (then->full_us - then->next_us >= c->period_us || used <= 0)
		return then->next_us;
	return then->full_us - times(used - 1, width) / used * 1000;
}

/* r units every p us. */
static void
flow_of(const struct check *c, int64_t own_count, int64_t *r, int64_t *p)
{
	algorithm_lowest_terms(
	    own_count > 0 ? own_count : c->count, c->period_us, r, p);
}

static int64_t
bucket_full(const struct check *c, const struct verdict *then, int64_t unspent)
{
	int64_t r, p;

	flow_of(c, then->own_count, &r, &p);
	return then->full_us - times(unspent, p) / r;
}

void
leased_figures(const struct check *check, const struct verdict *then,
    int64_t unspent, int64_t age_us, struct verdict *now)
{
	int64_t next_us = then->next_us, full_us = then->full_us;

	if (check->algorithm == ALGORITHM_SLIDING_WINDOW)
		next_us = sliding_next(check, then, unspent);
	if (check->algorithm == ALGORITHM_TOKEN_BUCKET)
		full_us = bucket_full(check, then, unspent);
	*now = *then;
	now->taken = 0;
	now->remaining =
	    law_max(0, law_min(then->remaining + unspent, then->limit));
	now->next_us = 0;
	now->full_us = 0;
	if (now->remaining == now->limit)
		return;
	/* Less than all is there, so something is still to come. */
	now->next_us = law_max(1, next_us - age_us);
	now->full_us = law_max(now->next_us, full_us - age_us);
}

int64_t
leased_missing(const struct check *check, int64_t own_count, int64_t unspent,
    int64_t left_us)
{
	int64_t r, p;

	if (check->algorithm == ALGORITHM_SLIDING_WINDOW)
		return left_us > check->period_us ? unspent : 0;
	if (left_us <= 0)
		return 0;
	if (check->algorithm != ALGORITHM_TOKEN_BUCKET)
		return unspent;
	flow_of(check, own_count, &r, &p);
	/* As it would be given back (settlement.c): full_us was rounded up. */
	return left_us / p >= unspent / r + 2
	    ? unspent
	    : law_min(unspent, (times(left_us - 1, r) + 1) / p);
}
