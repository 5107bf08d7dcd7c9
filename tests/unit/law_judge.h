/*
 * law_judge: a verdict held against the oracle. What is left passes, and one
 * more does not; after a wait it passes, and a microsecond before it does
 * not.
 */
#ifndef SLUICE_TESTS_LAW_JUDGE_H
#define SLUICE_TESTS_LAW_JUDGE_H

#include "law_oracle.h"

/* NULL, or what is wrong with the wait of a refusal; before any is taken. */
static const char *
oracle_judge_retry(const struct check *c, const struct oracle *o,
    int64_t now_us, const struct verdict *v)
{
	int64_t left = oracle_penalty_left(c, o, now_us);
	int64_t w = v->retry_us;

	if (oracle_never_allows(c))
		return w == ALGORITHM_NEVER ? NULL : "retry: it never passes";
	if (w <= 0)
		return "retry: none";
	if (c->algorithm == ALGORITHM_CONCURRENCY) {
		if (o->held >= c->count && left < ORACLE_BUSY_US)
			left = ORACLE_BUSY_US;
		return w == left ? NULL : "retry: busy";
	}
	if (!oracle_allows(c, o, now_us, w))
		return "retry: does not pass after it";
	if (oracle_allows(c, o, now_us, w - 1))
		return "retry: passes before it";
	return NULL;
}

/* Slots come back when somebody says so: their time is not known. */
static const char *
oracle_judge_slots(const struct check *c, const struct oracle *o,
    int64_t now_us, const struct verdict *v)
{
	int64_t left = oracle_penalty_left(c, o, now_us);

	return v->next_us == left && v->full_us == left ? NULL : "slots: times";
}

/* NULL, or what is wrong with them; after it was taken, if it was. */
static const char *
oracle_judge_figures(const struct check *c, const struct oracle *o,
    int64_t now_us, const struct verdict *v)
{
	static const struct oracle fresh;
	int64_t left = v->remaining;

	if (!oracle_units_pass(c, &fresh, 0, v->limit) ||
	    oracle_units_pass(c, &fresh, 0, v->limit + 1))
		return "limit";
	if (left < 0 || left > v->limit)
		return "remaining: out of bounds";
	if (!oracle_has_left(c, o, now_us, 0, left))
		return "remaining: too much";
	if (left < v->limit && oracle_has_left(c, o, now_us, 0, left + 1))
		return "remaining: too little";
	if (c->algorithm == ALGORITHM_CONCURRENCY)
		return oracle_judge_slots(c, o, now_us, v);
	if (left == v->limit)
		return v->next_us == 0 && v->full_us == 0 ? NULL
							  : "untouched: times";
	if (!oracle_has_left(c, o, now_us, v->next_us, left + 1))
		return "next: too early";
	if (oracle_has_left(c, o, now_us, v->next_us - 1, left + 1))
		return "next: too late";
	if (!oracle_is_untouched(c, o, now_us, v->full_us, v->limit))
		return "full: too early";
	if (oracle_is_untouched(c, o, now_us, v->full_us - 1, v->limit))
		return "full: too late";
	return NULL;
}

/* NULL, or what is wrong with what a lease took; before it is taken. */
static const char *
oracle_judge_taken(const struct check *c, const struct oracle *o,
    int64_t now_us, bool taken, const struct verdict *v)
{
	if (!taken || c->most <= c->cost)
		return v->taken == 0 ? NULL : "lease: took what it is not to";
	if (v->taken < c->cost || v->taken > c->most)
		return "lease: taken: out of bounds";
	if (!oracle_has_left(c, o, now_us, 0, v->taken))
		return "lease: took what was not left";
	if (v->taken < c->most &&
	    oracle_has_left(c, o, now_us, 0, v->taken + 1))
		return "lease: left some that it could take";
	return NULL;
}

#endif
