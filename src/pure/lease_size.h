/*
 * lease_size: how much `lease = auto` takes. Pure; any thread.
 */
#ifndef SLUICE_LEASE_SIZE_H
#define SLUICE_LEASE_SIZE_H

#include <stdint.h>

/*
 * As many units as are spent in LEASE_SIZE_US by the rate of the lease
 * before, of which so many were spent in elapsed_us, and no more than a share
 * of what remained after that. Never less than 0; below the cost: no lease.
 */
int64_t lease_size(int64_t spent, int64_t elapsed_us, int64_t remaining);

#define LEASE_SIZE_US 100000

#endif
