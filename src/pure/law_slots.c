/*
 * The law of concurrency: how many are held, whatever the time. A refused
 * one is to ask again in a second, as nobody knows when one is given back.
 */
#include <stddef.h>

#include "pure/law.h"

#define BUSY_US 1000000

static void
slots_stand(const struct check *c, const struct state *s, int64_t now_us,
    struct standing *at)
{
	(void)c;
	at->now_us = now_us;
	at->used = s->exists ? s->b : 0;
}

static int64_t
slots_wait(const struct check *c, const struct standing *at, int64_t cost)
{
	(void)cost;
	return at->used < c->count ? 0 : BUSY_US;
}

static void
slots_take(struct standing *at, int64_t cost)
{
	(void)cost;
	at->used++;
}

static void
slots_figures(
    const struct check *c, const struct standing *at, struct verdict *v)
{
	v->remaining = law_max(0, c->count - at->used);
	v->next_us = 0;
	v->full_us = 0;
}

static int64_t
slots_end(const struct check *c, const struct standing *at)
{
	(void)c;
	return at->used > 0 ? INT64_MAX : at->now_us;
}

static void
slots_keep(const struct check *c, const struct standing *at, struct state *s)
{
	(void)c;
	s->a = at->now_us;
	s->b = at->used;
}

const struct law law_slots = { slots_stand, slots_wait, slots_take,
	slots_figures, slots_end, slots_keep };
