/*
 * settlement: what changes of a count after a request has passed, as its
 * response says more or less was used than was taken.
 * Pure; any thread. lua/settle.lua is the same law for Redis.
 */
#ifndef SLUICE_SETTLEMENT_H
#define SLUICE_SETTLEMENT_H

#include "pure/algorithm.h"

/*
 * Charges check->cost units more than were taken at taken_us: to the window
 * of then if that still lasts, else to the current one; at most until the
 * count is its limit beyond its limit. Returns what was cut. end_us: as in
 * algorithm_check.
 */
int64_t settlement_charge(const struct check *check, struct state *state,
    int64_t taken_us, int64_t now_us, int64_t *end_us);
/*
 * Takes a cost back, from the window that holds it if that still lasts. A
 * bucket, which check->full_us is for, then stands as if the cost had not
 * been taken, or at most 1 us of its rate lower. It can stand lower than
 * that where something was taken in between, and higher where something
 * else was given back: what that did to the time in which it would have
 * been full is not known.
 */
void settlement_refund(const struct check *check, struct state *state,
    int64_t taken_us, int64_t now_us);

#endif
