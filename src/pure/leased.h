/*
 * leased: what to print of a count while units taken from it ahead
 * have not been spent. Pure; any thread.
 */
#ifndef SLUICE_LEASED_H
#define SLUICE_LEASED_H

#include "pure/check.h"

/*
 * Whatever is given for figures up to this, on both sides of 0 where they may
 * be below, nothing overflows: a store can say anything.
 */
#define LEASED_FIGURE_MAX (INT64_C(1) << 60)

/*
 * As if the unspent units were still in the count: `then` was said when they
 * were taken, age_us ago. Fixed and sliding windows and token buckets; the
 * verdict is that of an allowed check. What has flowed back since, or what
 * others have taken, is not known: of the count itself it never tells more
 * than there is.
 */
void leased_figures(const struct check *check, const struct verdict *then,
    int64_t unspent, int64_t age_us, struct verdict *now);

/*
 * How many of unspent units are still missing in a count, left_us before it
 * is what it was without those, as was said when they were taken: what faded
 * since, or flowed in and would have flowed over, is not. own_count: of that
 * verdict.
 */
int64_t leased_missing(const struct check *check, int64_t own_count,
    int64_t unspent, int64_t left_us);

#endif
