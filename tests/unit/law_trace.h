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

#define TRACE_LIMITS 3
#define TRACE_STEPS  120
#define TRACE_HELD   64

struct trace;

/* Any may be NULL. */
struct trace_watch {
	/* Before any of it is taken: what the oracle knows is of then. */
	void (*asked)(struct trace *t, const struct store_question *q,
	    const struct store_answer *a, const bool *taken);
	void (*released)(struct trace *t, const struct store_check *slot);
	/* What was over by now is gone. */
	void (*swept)(struct trace *t);
};

struct trace_slot {
	char name[24];
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
	int64_t earliest_us; /* a clock goes no further back: what is gone is */
	int64_t latest_us;   /* the latest that any count believes in */
	unsigned step;
	struct trace_slot held[TRACE_HELD];
	size_t n_held;
	size_t at;         /* the limit that is wrong */
	const char *wrong; /* NULL: nothing */
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
	}
}

static void
take(struct trace *t, size_t i, struct str slot)
{
	struct law_limit *l = &t->limit[i];

	oracle_take(&l->check, &l->oracle, t->now_us);
	l->gone_us =
	    oracle_end_us(&l->check, &l->oracle, t->now_us, l->verdict.full_us);
	if (trace_is_slots(l))
		hold(t, i, slot);
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
		trace_fail(t, i,
		    oracle_judge_figures(
			&l->check, &l->oracle, t->now_us, &l->verdict));
	}
}

/* True if the request is allowed. */
static bool
ask(struct trace *t)
{
	struct store_check check[TRACE_LIMITS];
	char slot[TRACE_LIMITS][24];
	struct store_question q = { check, t->n };
	struct store_answer a;
	bool allows[TRACE_LIMITS], taken[TRACE_LIMITS], allowed = true;

	t->step++;
	for (size_t i = 0; i < t->n; i++) {
		struct law_limit *l = &t->limit[i];

		if (l->oracle.calendar.width_us > 0)
			law_draw_boundaries(&t->lot, l, t->now_us);
		check[i] = (struct store_check){ .key = str_of(l->key),
			.check = l->check };
		if (trace_is_slots(l)) {
			snprintf(
			    slot[i], sizeof(slot[i]), "%u.%zu", t->step, i);
			check[i].slot = str_of(slot[i]);
		}
		allows[i] = oracle_allows(&l->check, &l->oracle, t->now_us, 0);
		allowed = allowed && (allows[i] || l->check.observe);
	}
	for (size_t i = 0; i < t->n; i++)
		taken[i] = allows[i] && check[i].check.cost > 0 &&
		    (allowed || check[i].check.observe);
	trace_clock_us = t->now_us;
	t->store->ops->ask(t->store, &q, &a);
	if (t->watch != NULL && t->watch->asked != NULL)
		t->watch->asked(t, &q, &a, taken);
	judge(t, &q, &a, allows, taken);
	return allowed;
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
	if (t->watch != NULL && t->watch->released != NULL)
		t->watch->released(t, &check);
}

static void
release_some(struct trace *t)
{
	while (t->n_held > TRACE_HELD - TRACE_LIMITS ||
	    (t->n_held > 0 && law_one_in(&t->lot, 3)))
		release(
		    t, (size_t)law_draw(&t->lot, 0, (int64_t)t->n_held - 1));
}

/* What is over counts for nothing, whatever the rate is after that. */
static void
sweep(struct trace *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->limit[i].gone_us <= t->now_us)
			t->limit[i].oracle.n = 0;
	trace_clock_us = t->now_us;
	t->store->ops->maintain(t->store);
	t->earliest_us = t->now_us;
	if (t->watch != NULL && t->watch->swept != NULL)
		t->watch->swept(t);
}

/*
 * In memory, where no clock ever steps back, what ends is worked out as if
 * a penalty had not begun in the future.
 */
static bool
may_sweep(const struct trace *t)
{
	for (size_t i = 0; i < t->n && !t->is_steady; i++)
		if (oracle_penalty_left(
			&t->limit[i].check, &t->limit[i].oracle, t->now_us) > 0)
			return false;
	return t->now_us >= t->latest_us;
}

static void
draw_question(struct trace *t)
{
	for (size_t i = 0; i < t->n; i++) {
		struct law_limit *l = &t->limit[i];

		if (l->changes && law_one_in(&t->lot, 10))
			law_draw_rate(&t->lot, l);
		l->check.cost = law_draw_cost(&t->lot, l);
	}
}

/* Law 5: before now there is no more left than now. */
static void
look_back(struct trace *t)
{
	int64_t now_us = t->now_us, left[TRACE_LIMITS];
	const struct law_limit *l =
	    &t->limit[law_draw(&t->lot, 0, (int64_t)t->n - 1)];

	for (size_t i = 0; i < t->n; i++) {
		left[i] = t->limit[i].verdict.remaining;
		t->limit[i].check.cost = 0;
	}
	t->now_us = law_step(now_us,
	    -law_draw(&t->lot, 1, 3 * l->check.period_us), t->earliest_us);
	ask(t);
	for (size_t i = 0; i < t->n; i++)
		if (t->limit[i].verdict.remaining > left[i])
			trace_fail(t, i, "more is left before than now");
	t->now_us = now_us;
}

/* How long the request has to wait; 0: unknown to a client that waits. */
static int64_t
retry_of(const struct trace *t)
{
	int64_t retry_us = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct law_limit *l = &t->limit[i];
		int64_t its_us = l->verdict.retry_us;

		if (trace_is_slots(l) || l->check.penalty_us > 0 ||
		    its_us == ALGORITHM_NEVER ||
		    oracle_now(&l->check, &l->oracle, t->now_us) != t->now_us)
			return 0;
		if (!l->check.observe && its_us > retry_us)
			retry_us = its_us;
	}
	return retry_us;
}

/* Law 3: the same request passes after its wait, and not before. */
static void
wait_for_it(struct trace *t)
{
	int64_t retry_us = retry_of(t);

	if (retry_us == 0 || retry_us > LAW_LATEST - t->now_us)
		return;
	t->now_us += retry_us - 1;
	if (retry_us > 1 && ask(t))
		trace_fail(t, 0, "passes before its wait is over");
	t->now_us++;
	if (!ask(t))
		trace_fail(t, 0, "does not pass when its wait is over");
}

static void
trace_step(struct trace *t)
{
	const struct law_limit *l =
	    &t->limit[law_draw(&t->lot, 0, (int64_t)t->n - 1)];
	int64_t step_us = law_draw_step(&t->lot, l);
	bool allowed;

	if (step_us > 0 || !t->is_steady)
		t->now_us = law_step(t->now_us, step_us, t->earliest_us);
	release_some(t);
	if (may_sweep(t) && law_one_in(&t->lot, 10))
		sweep(t);
	draw_question(t);
	allowed = ask(t);
	if (!allowed && law_one_in(&t->lot, 2))
		wait_for_it(t);
	if (!t->is_steady && law_one_in(&t->lot, 5))
		look_back(t);
}

/* Law 4: what is kept goes within the bound that follows from its limit. */
static void
trace_end(struct trace *t)
{
	int64_t longest_us = 0;

	while (t->n_held > 0)
		release(t, 0);
	for (size_t i = 0; i < t->n; i++)
		if (t->limit[i].bound_us > longest_us)
			longest_us = t->limit[i].bound_us;
	trace_clock_us = t->latest_us + longest_us;
	t->store->ops->maintain(t->store);
	if (t->wrong == NULL && store_memory_count(t->store) > 0)
		trace_fail(t, 0, "kept for longer than its bound");
}

/* Stops where something is wrong. Returns how many requests were asked. */
static unsigned
trace_run(struct trace *t)
{
	int64_t steps = law_draw(&t->lot, 10, TRACE_STEPS);

	while (t->step < steps && t->wrong == NULL)
		trace_step(t);
	trace_end(t);
	return t->step;
}

#endif
