/*
 * The two laws of windows: a fixed one, and two buckets of which the one
 * before fades (sliding window counter, as Cloudflare described in 2017).
 */
#include <stddef.h>

#include "pure/law.h"

int64_t
standing_window_end(const struct check *check, const struct state *state)
{
	return check->align == ALIGN_CALENDAR ? state->c
					      : state->a + check->period_us;
}

/* Beyond the boundaries windows go on, as long as the nearest. */
static void
calendar_window(const struct check *c, struct standing *at)
{
	const int64_t *b = c->boundary_us;
	size_t i = 0;
	int64_t width;

	while (i < 2 && at->now_us >= b[i + 1])
		i++;
	width = b[i + 1] - b[i];
	at->start = b[i] + law_floor(at->now_us - b[i], width) * width;
	at->finish = at->start + width;
}

/* A window that was begun runs to its end, whatever `align` says now. */
static void
fixed_stand(const struct check *c, const struct state *s, int64_t now_us,
    struct standing *at)
{
	at->now_us = now_us;
	if (s->exists && now_us < standing_window_end(c, s)) {
		at->start = s->a;
		at->finish = standing_window_end(c, s);
		at->used = s->b;
		return;
	}
	switch (c->align) {
	case ALIGN_CALENDAR:
		calendar_window(c, at);
		return;
	case ALIGN_FIRST:
		at->start = now_us;
		break;
	case ALIGN_SPREAD:
	case ALIGN_EPOCH:
		at->start = law_floor(now_us - c->offset_us, c->period_us) *
			c->period_us +
		    c->offset_us;
		break;
	}
	at->finish = at->start + c->period_us;
}

static int64_t
fixed_end(const struct check *c, const struct standing *at)
{
	(void)c;
	return at->finish;
}

static int64_t
fixed_wait(const struct check *c, const struct standing *at, int64_t cost)
{
	return at->used <= c->count - cost ? 0 : at->finish - at->now_us;
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
	v->remaining = law_max(0, c->count - at->used);
	v->full_us = at->used > 0 ? at->finish - at->now_us : 0;
	v->next_us = v->full_us;
}

static void
fixed_keep(const struct check *c, const struct standing *at, struct state *s)
{
	s->a = at->start;
	s->b = at->used;
	s->c = c->align == ALIGN_CALENDAR ? at->finish : 0;
}

int64_t
standing_bucket(const struct check *c, int64_t ms)
{
	int64_t width = c->period_us / 1000;
	int64_t offset = c->offset_us / 1000;

	return law_floor(ms - offset, width) * width + offset;
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

static void
sliding_keep(const struct check *c, const struct standing *at, struct state *s)
{
	(void)c;
	s->a = at->start;
	s->b = at->used;
	s->c = at->before;
}

const struct law law_fixed = { fixed_stand, fixed_wait, window_take,
	fixed_figures, fixed_end, fixed_keep };
const struct law law_sliding = { sliding_stand, sliding_wait, window_take,
	sliding_figures, sliding_end, sliding_keep };
