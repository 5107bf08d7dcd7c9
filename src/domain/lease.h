/*
 * lease: units taken from a count ahead, in one trip to the store, and spent
 * without any. What a lease is allowed to be stands in lease.c.
 *
 * Any thread. No lock is held while a store is asked.
 */
#ifndef SLUICE_LEASE_H
#define SLUICE_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "domain/store.h"

/* A size that follows from how fast the key was spent here of late. */
#define LEASE_AUTO INT64_C(-1)

struct deny_cache;
struct leases;

/* What a decision has to know of a check that a lease was asked for. */
struct lease_unit {
	uint64_t id;      /* the lease its units are of; 0: of none */
	int64_t taken_us; /* when they were taken, on the store's clock */
	int64_t full_us;  /* of the verdict then: what a refund has to know */
	int64_t age_us;   /* how much later the figures count from */
};

/*
 * denied: gets to know what makes the store allow more, or a lease; NULL: need
 * not. wait_us: how long one thread waits at the most for what another takes.
 * NULL: no memory.
 */
struct leases *leases_new(struct deny_cache *denied, int64_t wait_us);
/* From now on. Any thread, at any time. */
void leases_set_wait(struct leases *l, int64_t wait_us);
void leases_free(struct leases *l);
/*
 * Gets leases_maintain called at once; NULL: nobody calls it any more. While
 * no other thread asks.
 */
void leases_set_waker(
    struct leases *l, void (*wake)(void *context), void *context);

/*
 * As store->ops->ask, which may be called after wait_us only, of a question
 * whose checks all enforce and may all be leased, up to size[i] units each, or
 * LEASE_AUTO. What there is of leases is spent; the rest goes to the store as
 * one question. If that refuses, nothing is spent. If the store is out, what
 * was spent stands, and the other verdicts are VERDICT_ERROR.
 */
void lease_ask(struct leases *l, struct store *store,
    const struct store_question *q, const int64_t *size,
    struct store_answer *answer, struct lease_unit *unit);
/*
 * The store was asked in another way, since asked_us: the figures of checks
 * that have leases get the units that are held here.
 */
void lease_learn(struct leases *l, const struct store_question *q,
    int64_t asked_us, struct store_answer *answer);
/*
 * The check's cost goes back to the lease it came from. False: that one has
 * ended, and the store is to be told.
 */
bool lease_put_back(
    struct leases *l, const struct store_check *check, uint64_t id);

/*
 * Gives back what was not spent in time, or by nobody for a while. On the
 * maintenance thread; returns the clock_mono_us time of its next call. A store
 * that is slow is asked for so long only that the thread can do its other work
 * meanwhile.
 */
int64_t leases_maintain(struct leases *l, struct store *store);
/*
 * The key's count begins anew: what is left of its leases is neither spent nor
 * given back; nor is what is being taken at that moment, but for the cost of
 * the request that asked.
 */
void leases_drop(struct leases *l, struct str key);
/*
 * Gives all of them back, when the configuration changes. No trip but the
 * first begins when for_us has passed: the maintenance thread does the rest.
 */
void leases_return(struct leases *l, struct store *store, int64_t for_us);
/*
 * The same at the end: nobody asks any more. What could not be given back is
 * lost until its window ends.
 */
void leases_end(struct leases *l, struct store *store, int64_t for_us);

#endif
