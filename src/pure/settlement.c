/*
 * A count may go to twice its limit (a bucket as far below 0 as it is deep)
 * and no further. Within that a sliding window is weighed as it is when it
 * decides, so a bucket that has almost faded has almost all of that room.
 */
#include "pure/settlement.h"

#include <stddef.h>

#include "pure/law.h"
#include "pure/sliding_log.h"

__extension__ typedef __int128 wide;

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
	int64_t room = law_max(0, ceiling(c) - at->used);
	int64_t charged = law_min(c->cost, room);

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
		charged = room > 0 ? law_min(c->cost, (int64_t)room) : 0;
		at->before += charged;
		return charged;
	}
	room = top - at->before - at->used +
	    (wide)at->before * at->elapsed / at->width;
	charged = room > 0 ? law_min(c->cost, (int64_t)room) : 0;
	at->used += charged;
	return charged;
}

static int64_t
charge_bucket(const struct check *c, struct standing *at)
{
	int64_t full = c->burst * at->p;
	/* What a cost then lacks is to be exact too. */
	int64_t deepest = law_min(full, ALGORITHM_PRODUCT_MAX - full);
	int64_t room = law_max(0, at->used + deepest) / at->p;
	int64_t charged = law_min(c->cost, room);

	at->used -= charged * at->p;
	return charged;
}

static int64_t
charge_leaky(const struct check *c, struct standing *at)
{
	int64_t size = c->burst * at->p;
	/* What a cost then has to wait for is to be exact too. */
	int64_t most = size + law_min(size, ALGORITHM_PRODUCT_MAX - size);
	int64_t room = law_max(0, most - at->used) / at->p;
	int64_t charged = law_min(c->cost, room);

	at->used += charged * at->p;
	return charged;
}

/* A log was changed itself, and slots are not charged for. */
static bool
keeps_as_it_stands(const struct check *c)
{
	return c->algorithm != ALGORITHM_SLIDING_LOG &&
	    c->algorithm != ALGORITHM_CONCURRENCY;
}

/* To the time of the check, if that is still in. */
static int64_t
charge_log(const struct check *c, struct state *s, struct standing *at,
    int64_t taken_us)
{
	int64_t room = law_max(0, ceiling(c) - at->used);
	int64_t charged = law_min(c->cost, room);
	int64_t when_us = at->now_us;

	if (taken_us > at->now_us - c->period_us && taken_us < at->now_us)
		when_us = taken_us;
	if (charged == 0 || !sliding_log_add(&s->log, when_us, charged))
		return 0;
	s->exists = true;
	s->b += charged;
	at->used += charged;
	at->finish = law_max(at->finish, when_us);
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
	case ALGORITHM_LEAKY_BUCKET:
		charged = charge_leaky(check, &at);
		break;
	case ALGORITHM_SLIDING_LOG:
		charged = charge_log(check, state, &at, taken_us);
		break;
	case ALGORITHM_CONCURRENCY:
		charged = check->cost;
		break;
	}
	if (charged > 0 && keeps_as_it_stands(check))
		standing_keep(check, &at, state);
	*end_us = standing_end(check, &at);
	return check->cost - charged;
}

static void
refund_window(
    const struct check *c, struct state *s, int64_t taken_us, int64_t now_us)
{
	if (taken_us >= s->a && now_us < standing_window_end(c, s))
		s->b = law_max(0, s->b - c->cost);
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
		s->b = law_max(0, s->b - c->cost);
	else if (bucket == s->a - width)
		s->c = law_max(0, s->c - c->cost);
	s->exists = s->b > 0 || s->c > 0;
}

/*
 * What a cost given back still makes a bucket lack, times P. Without it the
 * bucket would have been full (a queue empty) that much earlier, and from
 * then on nothing would have flowed in: so much has been made good since.
 * After the cost it lacked more than full_us - 1 of its rate, and no less
 * than the cost.
 */
static int64_t
still_lacking(
    const struct check *c, const struct standing *at, int64_t taken_us)
{
	int64_t back = law_min(c->cost, c->burst) * at->p;
	int64_t elapsed_us = law_max(0, at->now_us - taken_us);
	wide lacks = (wide)at->r * (c->full_us - 1 - elapsed_us) + 1;
	wide of_cost = back - (wide)at->r * elapsed_us;

	if (lacks < of_cost)
		lacks = of_cost;
	if (lacks < 0)
		return 0;
	return lacks < back ? (int64_t)lacks : back;
}

static void
refund_bucket(
    const struct check *c, struct state *s, int64_t taken_us, int64_t now_us)
{
	struct standing at = { 0 };
	int64_t back, full;

	standing_of(c, s, now_us, &at);
	full = c->burst * at.p;
	back = still_lacking(c, &at, taken_us);
	if (back == 0)
		return;
	at.used = back < full - at.used ? at.used + back : full;
	standing_keep(c, &at, s);
	s->exists = at.used < full;
}

static void
refund_leaky(
    const struct check *c, struct state *s, int64_t taken_us, int64_t now_us)
{
	struct standing at = { 0 };
	int64_t back;

	standing_of(c, s, now_us, &at);
	back = still_lacking(c, &at, taken_us);
	if (at.used == 0 || back == 0)
		return;
	at.used = law_max(0, at.used - back);
	standing_keep(c, &at, s);
	s->exists = at.used > 0;
}

/*
 * The first of so many units at that time; or after it, if the clock stood
 * behind what had been seen.
 */
static void
refund_log(
    const struct check *c, struct state *s, int64_t taken_us, int64_t now_us)
{
	for (size_t i = 0;
	     taken_us > now_us - c->period_us && i < sliding_log_count(s->log);
	     i++) {
		const struct sliding_log_entry *e = sliding_log_at(s->log, i);

		if (e->at_us >= taken_us && e->units == c->cost) {
			sliding_log_remove(s->log, i);
			s->b -= c->cost;
			break;
		}
	}
	s->exists = s->b > 0;
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
	case ALGORITHM_LEAKY_BUCKET:
		refund_leaky(check, state, taken_us, now_us);
		break;
	case ALGORITHM_SLIDING_LOG:
		refund_log(check, state, taken_us, now_us);
		break;
	case ALGORITHM_CONCURRENCY:
		state->b--;
		state->exists = state->b > 0;
		break;
	}
}
