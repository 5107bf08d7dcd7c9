/*
 * tier: which rates a request comes under. Any thread.
 */
#ifndef SLUICE_TIER_H
#define SLUICE_TIER_H

#include "config/config.h"
#include "domain/subject.h"

/*
 * Those of the first tier, in file order, that the request belongs to and
 * that speaks of the limit; else the limit's own.
 */
const struct rates *tier_rates(
    const struct config_limit *limit, const struct subject *subject);

#endif
