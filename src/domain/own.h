/*
 * own: a key's own counts, which `sluice set` gives it. They stand at
 * PREFIX:{TAG}:LIMIT:own as "N[,N...]", one for each rate of the limit, and
 * replace its N before any other; periods stay. Where a tier has other rates,
 * those of the same periods: one whose period the limit does not have keeps
 * the tier's N. A burst keeps its proportion to N: B * own / N, rounded down,
 * at least 1.
 */
#ifndef SLUICE_OWN_H
#define SLUICE_OWN_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "config/config.h"

/* False: keys of this limit can have none; err, if any, says why. */
bool own_possible(const struct config_store *store,
    const struct config_limit *limit, struct err *err);
/* Where the counts of a tag (own_key.h) stand. p NULL: no memory. */
struct str own_name(const struct config_store *store,
    const struct config_limit *limit, const char *tag, struct arena *arena);
/* Is this a count for each rate, and none that could never be met? */
bool own_counts_good(
    const struct config_limit *limit, struct str counts, struct err *err);

#endif
