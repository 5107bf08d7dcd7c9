/*
 * The exact law: of the period that ends now every cost is known. What is
 * out of it is passed over, and dropped when something is kept.
 */
#include <stddef.h>

#include "pure/law.h"
#include "pure/sliding_log.h"

static void
log_stand(const struct check *c, const struct state *s, int64_t now_us,
    struct standing *at)
{
	size_t n = s->exists ? sliding_log_count(s->log) : 0;

	at->now_us = now_us;
	at->log = s->log;
	at->used = s->exists ? s->b : 0;
	for (; at->out < n; at->out++) {
		const struct sliding_log_entry *e =
		    sliding_log_at(s->log, at->out);

		if (e->at_us > now_us - c->period_us)
			break;
		at->used -= e->units;
	}
	if (at->out == n)
		return;
	at->start = sliding_log_at(s->log, at->out)->at_us;
	at->finish = sliding_log_at(s->log, n - 1)->at_us;
}

/* When so many of the units are out. */
static int64_t
age_out(const struct check *c, const struct standing *at, int64_t units)
{
	int64_t last_us = at->now_us;

	for (size_t i = at->out; units > 0; i++) {
		const struct sliding_log_entry *e = sliding_log_at(at->log, i);

		units -= e->units;
		last_us = e->at_us;
	}
	return last_us + c->period_us - at->now_us;
}

static int64_t
log_wait(const struct check *c, const struct standing *at, int64_t cost)
{
	if (at->used <= c->count - cost)
		return 0;
	return age_out(c, at, at->used + cost - c->count);
}

static void
log_take(struct standing *at, int64_t cost)
{
	if (at->used == 0)
		at->start = at->now_us;
	at->finish = at->now_us;
	at->used += cost;
	at->taken = cost;
}

static void
log_figures(const struct check *c, const struct standing *at, struct verdict *v)
{
	v->remaining = law_max(0, c->count - at->used);
	v->next_us = 0;
	v->full_us = 0;
	if (at->used == 0)
		return;
	v->full_us = at->finish + c->period_us - at->now_us;
	if (at->used > c->count)
		v->next_us = age_out(c, at, at->used + 1 - c->count);
	else
		v->next_us = at->start + c->period_us - at->now_us;
}

static int64_t
log_end(const struct check *c, const struct standing *at)
{
	return (at->used > 0 ? at->finish : at->now_us) + c->period_us;
}

/* The entry itself is added by algorithm_keep. */
static void
log_keep(const struct check *c, const struct standing *at, struct state *s)
{
	(void)c;
	s->a = at->now_us;
	s->c = at->taken;
}

const struct law law_log = { log_stand, log_wait, log_take, log_figures,
	log_end, log_keep };
