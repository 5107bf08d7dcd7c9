/*
 * Each law answers four questions about a count: how it stands now, how
 * long a cost has to wait, what it is once a cost was taken, and what to
 * print. algorithm_check puts them together.
 *
 * Nothing is rounded but where a figure is printed, and nothing is added
 * or multiplied before it is known to fit: whatever passes algorithm_fits
 * stays below 2^53, so the same steps in Lua's doubles are exact too.
 */
#include "pure/algorithm.h"

#include <assert.h>
#include <stddef.h>

#include "pure/standing.h"

struct law {
	void (*stand)(const struct check *c, const struct state *s,
	    int64_t now_us, struct standing *at);
	/* 0: passes now. The cost is at least 1 and within the limit. */
	int64_t (*wait)(
	    const struct check *c, const struct standing *at, int64_t cost);
	void (*take)(struct standing *at, int64_t cost);
	void (*figures)(const struct check *c, const struct standing *at,
	    struct verdict *v);
	int64_t (*end)(const struct check *c, const struct standing *at);
};

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

/* b > 0. */
static int64_t
floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0 ? 1 : 0);
}

/* a >= 0, b > 0. */
static int64_t
ceil_div(int64_t a, int64_t b)
{
	return a / b + (a % b > 0 ? 1 : 0);
}

int64_t
algorithm_limit(const struct check *c)
{
	return c->algorithm == ALGORITHM_TOKEN_BUCKET ? c->burst : c->count;
}

int64_t
algorithm_now(
    const struct check *check, const struct state *state, int64_t now_us)
{
	if (!state->exists)
		return now_us;
	if (check->algorithm != ALGORITHM_SLIDING_WINDOW)
		return max64(now_us, state->a);
	/* Within the stored millisecond the microseconds stand. */
	return now_us / 1000 < state->a ? state->a * 1000 : now_us;
}

/* A window that was begun runs to its end, whatever `align` says now. */
static void
fixed_stand(const struct check *c, const struct state *s, int64_t now_us,
    struct standing *at)
{
	at->now_us = now_us;
	at->used = 0;
	if (s->exists && now_us < s->a + c->period_us) {
		at->start = s->a;
		at->used = s->b;
	} else if (c->align == ALIGN_FIRST) {
		at->start = now_us;
	} else {
		at->start = floor_div(now_us - c->offset_us, c->period_us) *
			c->period_us +
		    c->offset_us;
	}
}

static int64_t
fixed_end(const struct check *c, const struct standing *at)
{
	return at->start + c->period_us;
}

static int64_t
fixed_wait(const struct check *c, const struct standing *at, int64_t cost)
{
	return at->used <= c->count - cost ? 0 : fixed_end(c, at) - at->now_us;
}

static void
window_take(struct standing *at, int64_t cost)
{
	at->used += cost;
}

static void
fixed_figures(
    const struct check *c, const struct standing *at, struct verdict *v)
{
	v->remaining = max64(0, c->count - at->used);
	v->full_us = at->used > 0 ? fixed_end(c, at) - at->now_us : 0;
	v->next_us = v->full_us;
}

int64_t
standing_bucket(const struct check *c, int64_t ms)
{
	int64_t width = c->period_us / 1000;
	int64_t offset = c->offset_us / 1000;

	return floor_div(ms - offset, width) * width + offset;
}

static void
sliding_stand(const struct check *c, const struct state *s, int64_t now_us,
    struct standing *at)
{
	int64_t ms = now_us / 1000;

	at->now_us = now_us;
	at->width = c->period_us / 1000;
	at->start = standing_bucket(c, ms);
	at->elapsed = ms - at->start;
	at->used = 0;
	at->before = 0;
	if (!s->exists)
		return;
	if (at->start <= s->a) {
		at->used = s->b;
		at->before = s->c;
	} else if (at->start - s->a <= at->width) {
		at->before = s->b;
	}
}

static int64_t
sliding_us(const struct standing *at, int64_t ms)
{
	return ms > 0 ? ms * 1000 - at->now_us % 1000 : 0;
}

/*
 * The weighted sum is before * (width - elapsed) + used * width, out of
 * count * width. Where the cost fits beside `used`, the bucket before has
 * to fade; else this one has to end and then fade itself.
 */
static int64_t
sliding_wait(const struct check *c, const struct standing *at, int64_t cost)
{
	int64_t left = at->width - at->elapsed;
	int64_t room;

	if (at->used > c->count - cost)
		return sliding_us(at,
		    left + at->width -
			(c->count - cost) * at->width / at->used);
	room = (c->count - cost - at->used) * at->width;
	if (at->before * left <= room)
		return 0;
	return sliding_us(at, left - room / at->before);
}

static void
sliding_figures(
    const struct check *c, const struct standing *at, struct verdict *v)
{
	int64_t left = at->width - at->elapsed;
	int64_t room = (c->count - at->used) * at->width - at->before * left;

	v->remaining = room > 0 ? room / at->width : 0;
	v->next_us = v->remaining == c->count
	    ? 0
	    : sliding_wait(c, at, v->remaining + 1);
	v->full_us = 0;
	if (at->used > 0)
		v->full_us = sliding_us(at, left + at->width);
	else if (at->before > 0)
		v->full_us = sliding_us(at, left);
}

static int64_t
sliding_end(const struct check *c, const struct standing *at)
{
	(void)c;
	return (at->start + 2 * at->width) * 1000;
}

/*
 * N changed: tokens * old P become tokens * new P, never rounded up. Where
 * that is below 0 at all it is at most one full bucket (+-full).
 */
static int64_t
convert_tokens(const struct state *s, int64_t p, int64_t full)
{
	__extension__ typedef __int128 wide;
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
	at->used =
	    s->c == at->p ? min64(full, s->b) : convert_tokens(s, at->p, full);
	elapsed_us = now_us - s->a;
	if (elapsed_us < ceil_div(full - at->used, at->r))
		at->used += at->r * elapsed_us;
	else
		at->used = full;
}

static int64_t
bucket_wait(const struct check *c, const struct standing *at, int64_t cost)
{
	int64_t missing = cost * at->p - at->used;

	(void)c;
	return missing > 0 ? ceil_div(missing, at->r) : 0;
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
	v->remaining = max64(0, at->used) / at->p;
	v->full_us = bucket_wait(c, at, c->burst);
	v->next_us =
	    v->remaining == c->burst ? 0 : bucket_wait(c, at, v->remaining + 1);
}

static int64_t
bucket_end(const struct check *c, const struct standing *at)
{
	return at->now_us + bucket_wait(c, at, c->burst);
}

static const struct law laws[] = {
	[ALGORITHM_SLIDING_WINDOW] = { sliding_stand, sliding_wait, window_take,
	    sliding_figures, sliding_end },
	[ALGORITHM_FIXED_WINDOW] = { fixed_stand, fixed_wait, window_take,
	    fixed_figures, fixed_end },
	[ALGORITHM_TOKEN_BUCKET] = { bucket_stand, bucket_wait, bucket_take,
	    bucket_figures, bucket_end },
};

static const struct law *
stand(const struct check *c, const struct state *s, int64_t now_us,
    struct standing *at)
{
	const struct law *law = &laws[c->algorithm];

	assert(c->count >= 1 && c->period_us >= 1000 && c->cost >= 0);
	law->stand(c, s, algorithm_now(c, s, now_us), at);
	return law;
}

void
standing_of(const struct check *check, const struct state *state,
    int64_t now_us, struct standing *at)
{
	stand(check, state, now_us, at);
}

int64_t
standing_end(const struct check *check, const struct standing *at)
{
	return laws[check->algorithm].end(check, at);
}

void
standing_keep(const struct check *c, const struct standing *at, struct state *s)
{
	s->exists = true;
	switch (c->algorithm) {
	case ALGORITHM_FIXED_WINDOW:
		*s = (struct state){ true, at->start, at->used, 0 };
		break;
	case ALGORITHM_SLIDING_WINDOW:
		*s = (struct state){ true, at->start, at->used, at->before };
		break;
	case ALGORITHM_TOKEN_BUCKET:
		*s = (struct state){ true, at->now_us, at->used, at->p };
		break;
	case ALGORITHM_SLIDING_LOG:
	case ALGORITHM_LEAKY_BUCKET:
	case ALGORITHM_CONCURRENCY:
		break;
	}
}

void
algorithm_check(const struct check *check, const struct state *state,
    int64_t now_us, struct verdict *verdict, struct state *after,
    int64_t *end_us)
{
	struct standing at = { 0 };
	const struct law *law = stand(check, state, now_us, &at);
	int64_t limit = algorithm_limit(check);
	int64_t retry_us = 0;

	if (check->cost > limit)
		retry_us = ALGORITHM_NEVER;
	else if (check->cost > 0)
		retry_us = law->wait(check, &at, check->cost);
	*after = *state;
	if (retry_us == 0 && check->cost > 0) {
		law->take(&at, check->cost);
		standing_keep(check, &at, after);
	}
	*end_us = law->end(check, &at);
	verdict->kind = retry_us == 0 ? VERDICT_ALLOWED : VERDICT_REFUSED;
	verdict->limit = limit;
	verdict->retry_us = retry_us;
	law->figures(check, &at, verdict);
}

void
algorithm_peek(const struct check *check, const struct state *state,
    int64_t now_us, struct verdict *verdict)
{
	struct standing at = { 0 };
	const struct law *law = stand(check, state, now_us, &at);

	verdict->kind = VERDICT_ALLOWED;
	verdict->limit = algorithm_limit(check);
	verdict->retry_us = 0;
	law->figures(check, &at, verdict);
}

void
algorithm_lowest_terms(int64_t count, int64_t period_us, int64_t *r, int64_t *p)
{
	int64_t a = count, b = period_us;

	while (b != 0) {
		int64_t rest = a % b;

		a = b;
		b = rest;
	}
	*r = count / a;
	*p = period_us / a;
}

bool
algorithm_fits(const struct check *check)
{
	int64_t r, p;

	if (check->count > ALGORITHM_PRODUCT_MAX)
		return false;
	switch (check->algorithm) {
	case ALGORITHM_FIXED_WINDOW:
		break;
	case ALGORITHM_SLIDING_WINDOW:
		return check->count <=
		    ALGORITHM_PRODUCT_MAX / (check->period_us / 1000);
	case ALGORITHM_TOKEN_BUCKET:
		algorithm_lowest_terms(check->count, check->period_us, &r, &p);
		return check->burst <= ALGORITHM_PRODUCT_MAX / p;
	case ALGORITHM_SLIDING_LOG:
	case ALGORITHM_LEAKY_BUCKET:
	case ALGORITHM_CONCURRENCY:
		break;
	}
	return true;
}
