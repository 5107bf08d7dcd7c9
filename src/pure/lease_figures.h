/*
 * lease_figures: what to print of a count while units taken from it ahead
 * have not been spent. Pure; any thread.
 */
#ifndef SLUICE_LEASE_FIGURES_H
#define SLUICE_LEASE_FIGURES_H

#include "pure/check.h"

/*
 * As if the unspent units were still in the count: `then` was said when they
 * were taken, age_us ago. Fixed and sliding windows and token buckets; the
 * verdict is that of an allowed check. What has flowed back since, or what
 * others have taken, is not known: of the count itself it never tells more
 * than there is.
 */
void lease_figures(const struct check *check, const struct verdict *then,
    int64_t unspent, int64_t age_us, struct verdict *now);

#endif
