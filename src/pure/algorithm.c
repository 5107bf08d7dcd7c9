/*
 * What all laws (see law.h) have in common. A penalty lies over the verdict
 * of any of them.
 *
 * Nothing is rounded but where a figure is printed, and nothing is added
 * or multiplied before it is known to fit: whatever passes algorithm_fits
 * stays below 2^53, so the same steps in Lua's doubles are exact too.
 */
#include "pure/algorithm.h"

#include <assert.h>
#include <stddef.h>

#include "pure/law.h"
#include "pure/sliding_log.h"

static const struct law *const laws[] = {
	[ALGORITHM_SLIDING_WINDOW] = &law_sliding,
	[ALGORITHM_FIXED_WINDOW] = &law_fixed,
	[ALGORITHM_TOKEN_BUCKET] = &law_token,
	[ALGORITHM_SLIDING_LOG] = &law_log,
	[ALGORITHM_LEAKY_BUCKET] = &law_leaky,
	[ALGORITHM_CONCURRENCY] = &law_slots,
};

int64_t
algorithm_limit(const struct check *check)
{
	switch (check->algorithm) {
	case ALGORITHM_TOKEN_BUCKET:
		return check->burst;
	case ALGORITHM_LEAKY_BUCKET:
		return law_leaky_limit(check);
	case ALGORITHM_SLIDING_WINDOW:
	case ALGORITHM_FIXED_WINDOW:
	case ALGORITHM_SLIDING_LOG:
	case ALGORITHM_CONCURRENCY:
		break;
	}
	return check->count;
}

int64_t
algorithm_cost_max(const struct check *check)
{
	switch (check->algorithm) {
	case ALGORITHM_TOKEN_BUCKET:
	case ALGORITHM_LEAKY_BUCKET:
		return check->burst;
	case ALGORITHM_CONCURRENCY:
		return INT64_MAX;
	case ALGORITHM_SLIDING_WINDOW:
	case ALGORITHM_FIXED_WINDOW:
	case ALGORITHM_SLIDING_LOG:
		break;
	}
	return check->count;
}

int64_t
algorithm_now(
    const struct check *check, const struct state *state, int64_t now_us)
{
	size_t n = sliding_log_count(state->log);

	if (!state->exists)
		return now_us;
	switch (check->algorithm) {
	case ALGORITHM_SLIDING_WINDOW:
		/* Within the stored millisecond the microseconds stand. */
		return now_us / 1000 < state->a ? state->a * 1000 : now_us;
	case ALGORITHM_SLIDING_LOG:
		if (n == 0)
			return now_us;
		return law_max(
		    now_us, sliding_log_at(state->log, n - 1)->at_us);
	case ALGORITHM_CONCURRENCY:
		return now_us;
	case ALGORITHM_FIXED_WINDOW:
	case ALGORITHM_TOKEN_BUCKET:
	case ALGORITHM_LEAKY_BUCKET:
		break;
	}
	return law_max(now_us, state->a);
}

static const struct law *
stand(const struct check *c, const struct state *s, int64_t now_us,
    struct standing *at)
{
	const struct law *law = laws[c->algorithm];

	assert(c->count >= 1 && c->cost >= 0);
	assert(c->period_us >= 1000 || c->algorithm == ALGORITHM_CONCURRENCY);
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
	return laws[check->algorithm]->end(check, at);
}

void
standing_keep(const struct check *c, const struct standing *at, struct state *s)
{
	s->exists = true;
	laws[c->algorithm]->keep(c, at, s);
}

/* How long the key is still refused, whatever its count. */
static int64_t
penalty_left(const struct check *c, const struct state *s, int64_t now_us)
{
	int64_t elapsed_us = law_max(0, now_us - s->penalty_us);

	return s->penalty_us > 0 ? law_max(0, c->penalty_us - elapsed_us) : 0;
}

static void
lay_penalty(struct verdict *v, int64_t left_us)
{
	v->penalty_us = left_us;
	if (left_us == 0)
		return;
	v->next_us = v->remaining == 0 ? law_max(v->next_us, left_us) : left_us;
	v->full_us = law_max(v->full_us, left_us);
	v->remaining = 0;
}

static int64_t
wait_of(const struct law *law, const struct check *c, const struct standing *at)
{
	if (c->cost == 0)
		return 0;
	if (c->cost > algorithm_cost_max(c))
		return ALGORITHM_NEVER;
	return law->wait(c, at, c->cost);
}

/* A lease takes more than the cost, as far as it remains. */
static int64_t
leased_units(
    const struct law *law, const struct check *c, const struct standing *at)
{
	struct verdict v;

	law->figures(c, at, &v);
	return law_max(c->cost, law_min(c->most, v.remaining));
}

void
algorithm_check(const struct check *check, const struct state *state,
    int64_t now_us, struct verdict *verdict, struct state *after,
    int64_t *end_us)
{
	struct standing at = { 0 };
	const struct law *law = stand(check, state, now_us, &at);
	int64_t left_us = penalty_left(check, state, now_us);
	int64_t retry_us = wait_of(law, check, &at);

	*after = *state;
	if (retry_us != 0 && left_us == 0 && check->penalty_us > 0) {
		after->penalty_us = now_us;
		left_us = check->penalty_us;
	}
	if (retry_us != ALGORITHM_NEVER && check->cost > 0)
		retry_us = law_max(retry_us, left_us);
	*verdict = (struct verdict){
		.kind = retry_us == 0 ? VERDICT_ALLOWED : VERDICT_REFUSED,
		.limit = algorithm_limit(check),
		.retry_us = retry_us,
	};
	if (retry_us == 0 && check->cost > 0) {
		verdict->delay_us = at.delay_us;
		if (check->most > check->cost)
			verdict->taken = leased_units(law, check, &at);
		law->take(
		    &at, verdict->taken > 0 ? verdict->taken : check->cost);
		standing_keep(check, &at, after);
	}
	*end_us = law_max(law->end(check, &at), now_us + left_us);
	law->figures(check, &at, verdict);
	lay_penalty(verdict, left_us);
}

void
algorithm_peek(const struct check *check, const struct state *state,
    int64_t now_us, struct verdict *verdict)
{
	struct standing at = { 0 };
	const struct law *law = stand(check, state, now_us, &at);

	*verdict = (struct verdict){
		.kind = VERDICT_ALLOWED,
		.limit = algorithm_limit(check),
	};
	law->figures(check, &at, verdict);
	lay_penalty(verdict, penalty_left(check, state, now_us));
}

int64_t
algorithm_end(
    const struct check *check, const struct state *state, int64_t now_us)
{
	struct standing at = { 0 };

	return stand(check, state, now_us, &at)->end(check, &at);
}

/* What is out goes before what was taken comes in. */
static bool
keep_log(const struct check *c, struct state *s, const struct state *after)
{
	struct standing at = { 0 };
	struct state next = *after;

	standing_of(c, s, after->a, &at);
	next.log = s->log;
	sliding_log_drop(next.log, at.out);
	next.b = at.used;
	s->b = at.used;
	if (!sliding_log_add(&next.log, after->a, after->c))
		return false;
	next.b += after->c;
	next.c = 0;
	*s = next;
	return true;
}

bool
algorithm_keep(
    const struct check *check, struct state *state, const struct state *after)
{
	struct sliding_log *log = state->log;

	if (check->algorithm == ALGORITHM_SLIDING_LOG && after->c > 0)
		return keep_log(check, state, after);
	*state = *after;
	state->log = log;
	return true;
}

void
algorithm_forget(struct state *state)
{
	sliding_log_free(state->log);
	*state = (struct state){ 0 };
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
	case ALGORITHM_CONCURRENCY:
		break;
	case ALGORITHM_SLIDING_WINDOW:
		return check->count <=
		    ALGORITHM_PRODUCT_MAX / (check->period_us / 1000);
	case ALGORITHM_TOKEN_BUCKET:
	case ALGORITHM_LEAKY_BUCKET:
		algorithm_lowest_terms(check->count, check->period_us, &r, &p);
		return check->burst <= ALGORITHM_PRODUCT_MAX / p;
	case ALGORITHM_SLIDING_LOG:
		return check->count <= ALGORITHM_LOG_MAX;
	}
	return true;
}
