/*
 * law_trace: a store in memory is asked what is drawn, and each of its
 * answers is held against the oracle. Its clock is a variable: the program
 * is to be linked with --wrap=clock_steady_us.
 *
 * A trace is one to three limits, each with a key, all asked by every
 * request. What happens in it is told to whoever has set `watch`.
 */
#ifndef SLUICE_TESTS_LAW_TRACE_H
#define SLUICE_TESTS_LAW_TRACE_H

#include <stdio.h>
#include <stdlib.h>

#include "domain/store_memory.h"
#include "law_draw.h"
#include "law_judge.h"

#define TRACE_LIMITS 3
#define TRACE_STEPS  120
#define TRACE_HELD   64

struct trace;

struct trace_watch {
	/* Before any of it is taken: what the oracle knows is of then. */
	void (*asked)(struct trace *t, const struct store_question *q,
	    const struct store_answer *a, const bool *taken);
	void (*released)(struct trace *t, const struct store_check *slot);
	void (*refunded)(
	    struct trace *t, const struct store_question *q, int64_t taken_us);
	/* What was over by now is gone. */
	void (*swept)(struct trace *t);
};

struct trace_slot {
	char name[32];
	size_t limit;
};

struct trace {
	struct store *store;
	const struct trace_watch *watch;
	uint64_t lot;
	size_t n;
	struct law_limit limit[TRACE_LIMITS];
	int64_t now_us;
	bool is_steady;      /* the clock only goes on */
	int64_t earliest_us; /* it goes no further back: what is gone is gone */
	int64_t latest_us;   /* the latest that any count believes in */
	unsigned step;
	struct trace_slot held[TRACE_HELD];
	size_t n_held;
	size_t at;         /* the limit that is wrong */
	const char *wrong; /* NULL: nothing */
	/* The last request. */
	struct store_check question[TRACE_LIMITS];
	char slot[TRACE_LIMITS][32];
	bool taken[TRACE_LIMITS];
};

static int64_t trace_clock_us;

int64_t __wrap_clock_steady_us(void);

int64_t
__wrap_clock_steady_us(void)
{
	return trace_clock_us;
}

/* Those next to each other have nothing in common: splitmix64. */
static uint64_t
trace_lot(uint64_t seed, uint64_t kind, uint64_t i)
{
	uint64_t x = seed + (kind << 40) + (i + 1) * 0x9e3779b97f4a7c15U;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
	x = (x ^ x >> 27) * 0x94d049bb133111ebU;
	x ^= x >> 31;
	return x != 0 ? x : 1;
}

static void
trace_begin(struct trace *t, struct store *store,
    const struct trace_watch *watch, size_t kind, uint64_t lot)
{
	memset(t, 0, sizeof(*t));
	t->store = store;
	t->watch = watch;
	t->lot = lot;
	t->now_us = LAW_BASE + law_draw(&t->lot, 0, 1000000000000);
	t->earliest_us = LAW_EARLIER;
	t->is_steady = law_one_in(&t->lot, 3);
	t->n = law_one_in(&t->lot, 2) ? 1 : 2;
	if (law_one_in(&t->lot, 6))
		t->n = 3;
	for (size_t i = 0; i < t->n; i++) {
		struct law_limit *l = &t->limit[i];

		if (i > 0)
			kind = (size_t)law_draw(&t->lot, 0, LAW_KINDS - 1);
		law_draw_limit(&t->lot, l, &law_kinds[kind]);
		l->check.observe = law_one_in(&t->lot, t->n == 1 ? 10 : 4);
		snprintf(l->key, sizeof(l->key), "limit%zu", i);
	}
}

static void
trace_fail(struct trace *t, size_t i, const char *wrong)
{
	if (wrong == NULL || t->wrong != NULL)
		return;
	t->at = i;
	t->wrong = wrong;
}

/* In one line, how to see it again too. */
static void
trace_print(const struct trace *t, FILE *out)
{
	const struct law_limit *l = &t->limit[t->at];
	const struct check *c = &l->check;
	const struct verdict *v = &l->verdict;

	fprintf(out,
	    "%s: step %u, limit %zu of %zu, %s%s: N %lld per %lld us, burst "
	    "%lld, cost %lld, offset %lld us, delay_max %lld us, penalty %lld "
	    "us; now %lld: %s, limit %lld, remaining %lld, next %lld, full "
	    "%lld, retry %lld, delay %lld\n",
	    t->wrong, t->step, t->at + 1, t->n, l->name,
	    c->observe ? " (observed)" : "", (long long)c->count,
	    (long long)c->period_us, (long long)c->burst, (long long)c->cost,
	    (long long)c->offset_us, (long long)c->delay_max_us,
	    (long long)c->penalty_us, (long long)t->now_us,
	    v->kind == VERDICT_ALLOWED ? "allowed" : "refused",
	    (long long)v->limit, (long long)v->remaining, (long long)v->next_us,
	    (long long)v->full_us, (long long)v->retry_us,
	    (long long)v->delay_us);
}

static bool
trace_is_slots(const struct law_limit *l)
{
	return l->check.algorithm == ALGORITHM_CONCURRENCY;
}

/* What is wrong with one verdict, as things were before it. */
static const char *
judge_decision(const struct law_limit *l, int64_t now_us, bool allows,
    bool taken, const struct verdict *v)
{
	int64_t delay_us =
	    taken ? oracle_delay(&l->check, &l->oracle, now_us) : 0;

	if (v->kind == VERDICT_ERROR)
		return "an error";
	if ((v->kind == VERDICT_ALLOWED) != allows)
		return allows ? "refused" : "allowed";
	if (v->delay_us != delay_us)
		return "delay";
	if (allows)
		return v->retry_us == 0 ? NULL : "retry: of an allowed one";
	return oracle_judge_retry(&l->check, &l->oracle, now_us, v);
}

static void
hold(struct trace *t, size_t i, struct str slot)
{
	struct trace_slot *held = &t->held[t->n_held++];

	assert(t->n_held <= TRACE_HELD);
	snprintf(held->name, sizeof(held->name), "%.*s", (int)slot.len, slot.p);
	held->limit = i;
}

static void
forget_slot(struct trace *t, const char *name)
{
	size_t i = 0;

	while (strcmp(t->held[i].name, name) != 0)
		i++;
	t->held[i] = t->held[--t->n_held];
}

/* Before any is taken; a refusal begins its penalty. */
static void
judge_decisions(struct trace *t, const struct store_answer *a,
    const bool *allows, const bool *taken)
{
	for (size_t i = 0; i < t->n; i++) {
		struct law_limit *l = &t->limit[i];

		l->verdict = a->verdict[i];
		if (!allows[i])
			oracle_refuse(&l->check, &l->oracle, t->now_us);
		trace_fail(t, i,
		    judge_decision(
			l, t->now_us, allows[i], taken[i], &l->verdict));
		trace_fail(t, i,
		    oracle_judge_taken(&l->check, &l->oracle, t->now_us,
			taken[i], &l->verdict));
	}
}

static void
take(struct trace *t, size_t i, struct str slot)
{
	struct law_limit *l = &t->limit[i];
	struct check check = l->check;

	if (l->verdict.taken > 0)
		check.cost = t->question[i].check.cost = l->verdict.taken;
	oracle_take(&check, &l->oracle, t->now_us);
	l->gone_us =
	    oracle_end_us(&l->check, &l->oracle, t->now_us, l->verdict.full_us);
	if (trace_is_slots(l))
		hold(t, i, slot);
}

/* With a smaller N tokens come back later than they were to. */
static void
outlast(struct law_limit *l, int64_t now_us)
{
	const struct check *c = &l->check;
	int64_t end_us;

	if (!l->changes || c->algorithm != ALGORITHM_TOKEN_BUCKET ||
	    c->cost == 0 || l->oracle.n == 0)
		return;
	end_us = oracle_end_us(c, &l->oracle, now_us, l->verdict.full_us);
	if (end_us > l->gone_us)
		l->gone_us = end_us;
}

static void
judge(struct trace *t, const struct store_question *q,
    const struct store_answer *a, const bool *allows, const bool *taken)
{
	judge_decisions(t, a, allows, taken);
	for (size_t i = 0; i < t->n && t->wrong == NULL; i++) {
		struct law_limit *l = &t->limit[i];
		int64_t seen_us = oracle_now(&l->check, &l->oracle, t->now_us);

		if (seen_us > t->latest_us)
			t->latest_us = seen_us;
		if (taken[i])
			take(t, i, q->check[i].slot);
		else
			outlast(l, t->now_us);
		trace_fail(t, i,
		    oracle_judge_figures(
			&l->check, &l->oracle, t->now_us, &l->verdict));
	}
}

/* As if alone; taken: if all of the request allow. Returns whether they do. */
static bool
foresee(const struct trace *t, bool *allows, bool *taken)
{
	bool allowed = true;

	for (size_t i = 0; i < t->n; i++) {
		const struct law_limit *l = &t->limit[i];

		allows[i] = oracle_allows(&l->check, &l->oracle, t->now_us, 0);
		allowed = allowed && (allows[i] || l->check.observe);
	}
	for (size_t i = 0; i < t->n; i++) {
		const struct check *c = &t->limit[i].check;

		taken[i] = allows[i] && c->cost > 0 && (allowed || c->observe);
	}
	return allowed;
}

static void
put_question(struct trace *t)
{
	for (size_t i = 0; i < t->n; i++) {
		struct law_limit *l = &t->limit[i];
		struct store_check *check = &t->question[i];

		if (l->oracle.calendar.width_us > 0)
			law_draw_boundaries(&t->lot, l, t->now_us);
		*check = (struct store_check){ .key = str_of(l->key),
			.check = l->check };
		if (!trace_is_slots(l))
			continue;
		snprintf(t->slot[i], sizeof(t->slot[i]), "%u.%zu", t->step, i);
		check->slot = str_of(t->slot[i]);
	}
}

/* True if the request is allowed. */
static bool
ask(struct trace *t)
{
	struct store_question q = { .check = t->question, .n = t->n };
	struct store_answer a;
	bool allows[TRACE_LIMITS], allowed;

	t->step++;
	put_question(t);
	allowed = foresee(t, allows, t->taken);
	trace_clock_us = t->now_us;
	t->store->ops->ask(t->store, &q, &a);
	if (t->watch != NULL)
		t->watch->asked(t, &q, &a, t->taken);
	judge(t, &q, &a, allows, t->taken);
	return allowed;
}

/* At once: as if it had not been taken. */
static void
refund(struct trace *t)
{
	struct store_check back[TRACE_LIMITS];
	struct store_question q = { .check = back, .n = 0 };

	for (size_t i = 0; i < t->n; i++) {
		struct law_limit *l = &t->limit[i];

		if (!t->taken[i] || (l->changes && law_is_bucket(&l->check)))
			continue;
		back[q.n] = t->question[i];
		back[q.n++].check.full_us = l->verdict.full_us;
		oracle_untake(&l->check, &l->oracle);
		t->taken[i] = false;
		if (trace_is_slots(l))
			forget_slot(t, t->slot[i]);
	}
	if (q.n == 0)
		return;
	trace_clock_us = t->now_us;
	t->store->ops->refund(t->store, &q, t->now_us);
	if (t->watch != NULL)
		t->watch->refunded(t, &q, t->now_us);
}

static void
release(struct trace *t, size_t i)
{
	struct trace_slot slot = t->held[i];
	struct law_limit *l = &t->limit[slot.limit];
	struct store_check check = { .key = str_of(l->key),
		.check = l->check,
		.slot = str_of(slot.name) };

	t->held[i] = t->held[--t->n_held];
	l->oracle.held--;
	check.check.cost = 1;
	trace_clock_us = t->now_us;
	t->store->ops->release(t->store, &check, 1);
	if (t->watch != NULL)
		t->watch->released(t, &check);
}

#endif
