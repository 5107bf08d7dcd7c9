/*
 * lease_wait: waiting for a lease that another thread is taking, which may
 * suffice for others too.
 *
 * With the lock of the count's shard.
 */
#ifndef SLUICE_LEASE_WAIT_H
#define SLUICE_LEASE_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "domain/lease_table.h"

/* How long a request waits for other threads at the most, and did. */
struct lease_patience {
	int64_t until_us; /* by clock_mono_us */
	int64_t waited_us;
};

/* Is it there, and may the cost be spent of it now? */
bool lease_wait_suffices(
    const struct lease *lease, int64_t cost, int64_t now_us);
/*
 * The newest lease of the count: where one is being taken that is promised to
 * no others yet, when it has been, or when the patience is at its end. The
 * lock is let go meanwhile. To be called by nobody who is taking one.
 */
struct lease *lease_wait_newest(struct lease_shard *s, uint64_t hash,
    const struct store_check *check, struct lease_patience *p);

#endif
