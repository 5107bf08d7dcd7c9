/*
 * lease_own: the leases of a process, and what is known of them. Nobody
 * else's than lease.c's, lease_one.c's and lease_return.c's. Any thread.
 */
#ifndef SLUICE_LEASE_OWN_H
#define SLUICE_LEASE_OWN_H

#include "domain/lease_table.h"
#include "domain/store.h"

struct deny_cache;
struct lease_news;
struct lease_patience;
struct lease_unit;

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

/* lease_one.c, without a lock */

/*
 * Of a lease's units the check's cost is spent: v and unit tell. False: none
 * was; *taking: the lease that is to be asked for, or NULL. p: how long
 * another's is waited for; NULL: not at all.
 */
bool lease_own_spend(struct leases *l, const struct store_check *check,
    int64_t size, struct lease_patience *p, struct verdict *v,
    struct lease_unit *unit, struct lease **taking);
/* Was enough for the check taken meanwhile by somebody? */
bool lease_own_is_there(struct leases *l, const struct store_check *check,
    struct lease_patience *p);
/* v: the store's answer to who is taking that lease. */
void lease_own_conclude(struct leases *l, struct lease *lease,
    const struct lease_news *news, struct verdict *v, struct lease_unit *unit);
/* To who asked for the check's cost alone: v gets what is held here. */
void lease_own_tell_asked(struct leases *l, const struct store_check *check,
    const struct lease_news *news, struct verdict *v);
/* As lease_put_back. v: its figures then; NULL: nobody asks. */
bool lease_own_put_back(struct leases *l, const struct store_check *check,
    uint64_t id, struct verdict *v);

/* lease_return.c */

/* Without a lock: so much goes back to the store. n may be 0. */
void lease_own_settle(struct leases *l, struct store *store,
    const struct store_settlement *s, size_t n);
/* With the lock: what is left of it is lost. Frees it. */
void lease_own_expire(struct leases *l, struct lease *lease);

#endif
