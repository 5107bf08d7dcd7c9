/*
 * lease_own: the leases of a process, and what is known of them. Nobody
 * else's than lease.c's and lease_return.c's. Any thread.
 */
#ifndef SLUICE_LEASE_OWN_H
#define SLUICE_LEASE_OWN_H

#include "domain/lease_table.h"

struct deny_cache;

struct leases {
	struct lease_table table;
	struct deny_cache *denied;
	_Atomic int64_t wait_us;
	_Atomic uint64_t last_id;
	atomic_bool awake;      /* the maintenance thread will look in time */
	int64_t pass_us;        /* that thread's: when to look next */
	struct lease_walk walk; /* that thread's: from where on */
	void (*wake)(void *context);
	void *wake_context;
};

/* Without a lock: so much goes back to the store. n may be 0. */
void lease_own_settle(struct leases *l, struct store *store,
    const struct store_settlement *s, size_t n);
/* With the lock: what is left of it is lost. Frees it. */
void lease_own_expire(struct leases *l, struct lease *lease);

#endif
