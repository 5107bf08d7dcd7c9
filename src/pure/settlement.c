/*
 * A count may go to twice its limit (a bucket as far below 0 as it is deep)
 * and no further. Within that a sliding window is weighed as it is when it
 * decides, so a bucket that has almost faded has almost all of that room.
 */
#include "pure/settlement.h"

#include <stddef.h>

#include "pure/standing.h"

__extension__ typedef __int128 wide;

static int64_t
max64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t
min64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* How far a count may go. */
static int64_t
ceiling(const struct check *c)
{
	return c->count > ALGORITHM_PRODUCT_MAX / 2 ? ALGORITHM_PRODUCT_MAX
						    : 2 * c->count;
}

static int64_t
charge_window(const struct check *c, struct standing *at)
{
	int64_t room = max64(0, ceiling(c) - at->used);
	int64_t charged = min64(c->cost, room);

	at->used += charged;
	return charged;
}

/* before * left + used * width is to stay within ceiling * width. */
static int64_t
charge_sliding(const struct check *c, struct standing *at, int64_t taken_us)
{
	int64_t left = at->width - at->elapsed;
	int64_t then = standing_bucket(c, taken_us / 1000);
	int64_t top = ceiling(c), charged;
	wide room;

	if (then == at->start - at->width) {
		room = (wide)(top - at->used) * at->width / left;
		room = (room < top ? room : top) - at->before;
		charged = room > 0 ? min64(c->cost, (int64_t)room) : 0;
		at->before += charged;
		return charged;
	}
	room = top - at->before - at->used +
	    (wide)at->before * at->elapsed / at->width;
	charged = room > 0 ? min64(c->cost, (int64_t)room) : 0;
	at->used += charged;
	return charged;
}

static int64_t
charge_bucket(const struct check *c, struct standing *at)
{
	int64_t full = c->burst * at->p;
	/* What a cost then lacks is to be exact too. */
	int64_t deepest = min64(full, ALGORITHM_PRODUCT_MAX - full);
	int64_t room = max64(0, at->used + deepest) / at->p;
	int64_t charged = min64(c->cost, room);

	at->used -= charged * at->p;
	return charged;
}

int64_t
settlement_charge(const struct check *check, struct state *state,
    int64_t taken_us, int64_t now_us, int64_t *end_us)
{
	struct standing at = { 0 };
	int64_t charged = 0;

	standing_of(check, state, now_us, &at);
	switch (check->algorithm) {
	case ALGORITHM_FIXED_WINDOW:
		charged = charge_window(check, &at);
		break;
	case ALGORITHM_SLIDING_WINDOW:
		charged = charge_sliding(check, &at, taken_us);
		break;
	case ALGORITHM_TOKEN_BUCKET:
		charged = charge_bucket(check, &at);
		break;
	case ALGORITHM_SLIDING_LOG:
	case ALGORITHM_LEAKY_BUCKET:
	case ALGORITHM_CONCURRENCY:
		break;
	}
	if (charged > 0)
		standing_keep(check, &at, state);
	*end_us = standing_end(check, &at);
	return check->cost - charged;
}

static void
refund_window(
    const struct check *c, struct state *s, int64_t taken_us, int64_t now_us)
{
	if (taken_us >= s->a && now_us < s->a + c->period_us)
		s->b = max64(0, s->b - c->cost);
	s->exists = s->b > 0;
}

static void
refund_sliding(
    const struct check *c, struct state *s, int64_t taken_us, int64_t now_us)
{
	int64_t bucket = standing_bucket(c, taken_us / 1000);
	int64_t width = c->period_us / 1000;

	if (now_us / 1000 >= s->a + 2 * width)
		return;
	if (bucket == s->a)
		s->b = max64(0, s->b - c->cost);
	else if (bucket == s->a - width)
		s->c = max64(0, s->c - c->cost);
	s->exists = s->b > 0 || s->c > 0;
}

/* a >= 0, b > 0. */
static int64_t
ceil_div(int64_t a, int64_t b)
{
	return a / b + (a % b > 0 ? 1 : 0);
}

/*
 * What flowed in since then may have found the bucket full, had the cost
 * not been taken; as nobody knows, that much is not given back.
 */
static void
refund_bucket(
    const struct check *c, struct state *s, int64_t taken_us, int64_t now_us)
{
	struct standing at = { 0 };
	int64_t back, elapsed_us, full;

	standing_of(c, s, now_us, &at);
	full = c->burst * at.p;
	back = min64(c->cost, c->burst) * at.p;
	elapsed_us = max64(0, now_us - taken_us);
	if (elapsed_us >= ceil_div(back, at.r))
		return;
	back -= at.r * elapsed_us;
	at.used = back < full - at.used ? at.used + back : full;
	standing_keep(c, &at, s);
	s->exists = at.used < full;
}

void
settlement_refund(const struct check *check, struct state *state,
    int64_t taken_us, int64_t now_us)
{
	if (!state->exists || check->cost == 0)
		return;
	now_us = algorithm_now(check, state, now_us);
	switch (check->algorithm) {
	case ALGORITHM_FIXED_WINDOW:
		refund_window(check, state, taken_us, now_us);
		break;
	case ALGORITHM_SLIDING_WINDOW:
		refund_sliding(check, state, taken_us, now_us);
		break;
	case ALGORITHM_TOKEN_BUCKET:
		refund_bucket(check, state, taken_us, now_us);
		break;
	case ALGORITHM_SLIDING_LOG:
	case ALGORITHM_LEAKY_BUCKET:
	case ALGORITHM_CONCURRENCY:
		break;
	}
}
