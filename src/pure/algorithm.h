/*
 * algorithm: the arithmetic of limits, exact, in whole microseconds.
 * Pure; any thread. lua/check.lua is the same law for Redis; the tests hold
 * the two against each other.
 *
 * fixed window, sliding window counter (two weighted buckets, as Cloudflare
 * described in 2017), token bucket (kept as tokens * period, so that no
 * fraction is ever lost), sliding log (exact), leaky bucket (a queue: who
 * is allowed waits for those before), concurrency (slots held at a time).
 */
#ifndef SLUICE_ALGORITHM_H
#define SLUICE_ALGORITHM_H

#include <stdbool.h>
#include <stdint.h>

#include "pure/check.h"

/* now_us after what the state has already seen (a clock stepped back). */
int64_t algorithm_now(
    const struct check *check, const struct state *state, int64_t now_us);
/*
 * May it pass? Evaluates only: `after` is what algorithm_keep is to be given
 * if the whole request is allowed, and `end_us` the time (same clock as
 * now_us) after which that is worth nothing. The verdict is that of a commit
 * if allowed. A refusal that begins a penalty is to be kept too: then
 * penalty_us of `after` is another than that of the state.
 */
void algorithm_check(const struct check *check, const struct state *state,
    int64_t now_us, struct verdict *verdict, struct state *after,
    int64_t *end_us);
/*
 * Keeps what algorithm_check has said of this state. False: no memory, and
 * nothing was taken. algorithm_forget frees what a state that is no longer
 * kept holds.
 */
bool algorithm_keep(
    const struct check *check, struct state *state, const struct state *after);
void algorithm_forget(struct state *state);
/*
 * The verdict to print for a check that would have passed but was not
 * committed since another limit of the request refused: its figures now.
 */
void algorithm_peek(const struct check *check, const struct state *state,
    int64_t now_us, struct verdict *verdict);
/* The time after which what is kept is worth nothing, by the rate of now. */
int64_t algorithm_end(
    const struct check *check, const struct state *state, int64_t now_us);
/* What a verdict calls the limit: the units that an untouched count has. */
int64_t algorithm_limit(const struct check *check);
/* A cost above it never passes. */
int64_t algorithm_cost_max(const struct check *check);
/* Period and count in lowest terms: R units every P microseconds. */
void algorithm_lowest_terms(
    int64_t count, int64_t period_us, int64_t *r, int64_t *p);
/* False when N*W or B*P is beyond ALGORITHM_PRODUCT_MAX, or a log's N. */
bool algorithm_fits(const struct check *check);

#endif
