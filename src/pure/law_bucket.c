/*
 * The two laws of buckets, kept in units * P so that no fraction is lost:
 * one of tokens, which a cost takes out, and one that leaks, into which it
 * is put and where it waits until what was there before has left.
 */
#include <stddef.h>

#include "pure/algorithm.h"
#include "pure/law.h"

__extension__ typedef __int128 wide;

/*
 * N changed: tokens * old P become tokens * new P, never rounded up. Where
 * that is below 0 at all it is at most one full bucket (+-full).
 */
static int64_t
convert_tokens(const struct state *s, int64_t p, int64_t full)
{
	wide v = (wide)s->b * p;

	v = v / s->c - (v % s->c < 0 ? 1 : 0);
	if (v > full)
		return full;
	return v < -full ? -full : (int64_t)v;
}

static void
bucket_stand(const struct check *c, const struct state *s, int64_t now_us,
    struct standing *at)
{
	int64_t full, elapsed_us;

	at->now_us = now_us;
	algorithm_lowest_terms(c->count, c->period_us, &at->r, &at->p);
	full = c->burst * at->p;
	at->used = full;
	if (!s->exists)
		return;
	at->used = s->c == at->p ? law_min(full, s->b)
				 : convert_tokens(s, at->p, full);
	/* What it owes of a smaller burst: no more than stays exact. */
	at->used = law_max(at->used, full - ALGORITHM_PRODUCT_MAX);
	elapsed_us = now_us - s->a;
	if (elapsed_us < law_ceil(full - at->used, at->r))
		at->used += at->r * elapsed_us;
	else
		at->used = full;
}

static int64_t
bucket_wait(const struct check *c, const struct standing *at, int64_t cost)
{
	int64_t missing = cost * at->p - at->used;

	(void)c;
	return missing > 0 ? law_ceil(missing, at->r) : 0;
}

static void
bucket_take(struct standing *at, int64_t cost)
{
	at->used -= cost * at->p;
}

static void
bucket_figures(
    const struct check *c, const struct standing *at, struct verdict *v)
{
	v->remaining = law_max(0, at->used) / at->p;
	v->full_us = bucket_wait(c, at, c->burst);
	v->next_us =
	    v->remaining == c->burst ? 0 : bucket_wait(c, at, v->remaining + 1);
}

static int64_t
bucket_end(const struct check *c, const struct standing *at)
{
	return at->now_us + bucket_wait(c, at, c->burst);
}

static void
bucket_keep(const struct check *c, const struct standing *at, struct state *s)
{
	(void)c;
	s->a = at->now_us;
	s->b = at->used;
	s->c = at->p;
}

/* N changed: units * old P become units * new P, never rounded down. */
static int64_t
convert_queue(const struct state *s, int64_t p)
{
	wide x;

	if (s->c == p)
		return s->b;
	x = ((wide)s->b * p + s->c - 1) / s->c;
	return x > ALGORITHM_PRODUCT_MAX ? ALGORITHM_PRODUCT_MAX : (int64_t)x;
}

static void
leaky_stand(const struct check *c, const struct state *s, int64_t now_us,
    struct standing *at)
{
	int64_t elapsed_us;

	at->now_us = now_us;
	algorithm_lowest_terms(c->count, c->period_us, &at->r, &at->p);
	if (!s->exists)
		return;
	at->used = convert_queue(s, at->p);
	elapsed_us = now_us - s->a;
	if (elapsed_us < law_ceil(at->used, at->r))
		at->used -= at->r * elapsed_us;
	else
		at->used = 0;
	at->delay_us = law_ceil(at->used, at->r);
}

static int64_t
leaky_wait(const struct check *c, const struct standing *at, int64_t cost)
{
	int64_t over = at->used - (c->burst - cost) * at->p;
	int64_t room_us = over > 0 ? law_ceil(over, at->r) : 0;

	return law_max(room_us, at->delay_us - c->delay_max_us);
}

static void
leaky_take(struct standing *at, int64_t cost)
{
	at->used += cost * at->p;
}

/* What leaves within the longest delay: at most the whole bucket. */
static int64_t
reach_of(const struct check *c, int64_t r, int64_t p)
{
	int64_t size = c->burst * p;

	return c->delay_max_us <= (size - 1) / r ? r * c->delay_max_us : size;
}

static int64_t
leaky_remaining(const struct check *c, const struct standing *at, int64_t reach)
{
	int64_t room = c->burst * at->p - at->used;

	if (at->used > reach || room < 0)
		return 0;
	return law_min(room / at->p, (reach - at->used) / at->p + 1);
}

static void
leaky_figures(
    const struct check *c, const struct standing *at, struct verdict *v)
{
	int64_t reach = reach_of(c, at->r, at->p);
	int64_t target;

	v->remaining = leaky_remaining(c, at, reach);
	v->next_us = 0;
	v->full_us = 0;
	if (v->remaining >= algorithm_limit(c))
		return;
	target = law_min((c->burst - v->remaining - 1) * at->p,
	    reach - v->remaining * at->p);
	v->next_us = law_ceil(at->used - target, at->r);
	v->full_us = law_ceil(at->used, at->r);
}

static int64_t
leaky_end(const struct check *c, const struct standing *at)
{
	(void)c;
	return at->now_us + law_ceil(at->used, at->r);
}

int64_t
law_leaky_limit(const struct check *c)
{
	int64_t r, p;

	algorithm_lowest_terms(c->count, c->period_us, &r, &p);
	return law_min(c->burst, reach_of(c, r, p) / p + 1);
}

const struct law law_token = { bucket_stand, bucket_wait, bucket_take,
	bucket_figures, bucket_end, bucket_keep };
const struct law law_leaky = { leaky_stand, leaky_wait, leaky_take,
	leaky_figures, leaky_end, bucket_keep };
