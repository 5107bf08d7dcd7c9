/*
 * law_run: the course of a trace, drawn step by step, and the laws that are
 * about more than one request.
 */
#ifndef SLUICE_TESTS_LAW_RUN_H
#define SLUICE_TESTS_LAW_RUN_H

#include "law_trace.h"

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
	if (t->watch != NULL)
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
		l->check.most = law_draw_most(&t->lot, l);
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
	/* A clock that stepped back goes no further than to what was kept. */
	if (t->is_steady && law_one_in(&t->lot, 6))
		refund(t);
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
