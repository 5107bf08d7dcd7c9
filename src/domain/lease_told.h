/*
 * lease_told: what is printed of a count of which units are held here: the
 * store's newest figures, and the units of all its leases that are unspent.
 * Who alone asks for a key is told exactly what is left of it.
 *
 * With the lock of the count's shard.
 */
#ifndef SLUICE_LEASE_TOLD_H
#define SLUICE_LEASE_TOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "domain/store.h"

struct lease;
struct lease_shard;

/* An answer of the store. */
struct lease_news {
	int64_t store_us; /* when, on its clock */
	int64_t asked_us; /* by clock_mono_us: before it was asked for */
	bool is_taken;    /* the cost is; not if another check refused */
	/* These three are of one check of it, and set by lease.c. */
	const struct verdict *verdict; /* as the store gave it */
	int64_t told_us;               /* by clock_mono_us: it was here then */
	int64_t cost; /* of what was taken, so much is held by no lease */
};

/* Of two that were asked for at once the older one changes nothing. */
void lease_told_learn(struct lease_shard *s, uint64_t hash,
    const struct store_check *check, const struct lease_news *news);
/*
 * v's figures become those of the count, and its times count from at_us, on
 * the store's clock. Nothing is held of it: v is left as it is.
 */
void lease_told_figures(struct lease_shard *s, uint64_t hash,
    const struct store_check *check, int64_t at_us, struct verdict *v);
/* That lease, which is out of the table, is to be given back. */
void lease_told_give(struct lease_shard *s, const struct lease *lease);

#endif
