/* What was not spent goes back: when, and what of it. */
#include "domain/lease.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/counter.h"
#include "domain/denied.h"
#include "domain/lease_own.h"
#include "domain/lease_told.h"

#define IDLE_US 100000
/* How often the maintenance thread looks; and when there is nothing. */
#define PASS_US  50000
#define SLEEP_US 1000000
/* Of the maintenance thread's time, which has other things to do as well. */
#define TURN_US 50000

void
lease_own_settle(struct leases *l, struct store *store,
    const struct store_settlement *s, size_t n)
{
	if (n > 0)
		store->ops->settle(store, s, n);
	for (size_t i = 0; i < n; i++)
		denied_forget(l->denied, &s[i].check, 1);
}

void
lease_own_expire(struct leases *l, struct lease *lease)
{
	counter_add(COUNTER_lease_units_expired, (uint64_t)lease->units);
	lease_table_remove(&l->table, lease);
}

static bool
is_due(const struct lease *lease, int64_t now_us)
{
	return now_us >= lease->spend_until_us ||
	    now_us - lease->used_us >= IDLE_US;
}

static bool
is_any(const struct lease *lease, int64_t now_us)
{
	(void)lease;
	(void)now_us;
	return true;
}

/* False: nothing of it is left to give back. */
static bool
settlement_of(const struct lease *lease, int64_t now_us,
    struct store_settlement *settlement)
{
	if (lease->units == 0)
		return false;
	if (now_us >= lease->gone_us) {
		counter_add(
		    COUNTER_lease_units_expired, (uint64_t)lease->units);
		return false;
	}
	counter_add(COUNTER_lease_units_returned, (uint64_t)lease->units);
	*settlement = (struct store_settlement){ lease->check, lease->taken_us,
		-lease->units };
	settlement->check.check.full_us = lease->full_us;
	return true;
}

/* As many as one trip gives back; sent: what is to be freed after it. */
static size_t
collect(struct leases *l, struct lease_walk *walk,
    bool is_wanted(const struct lease *lease, int64_t now_us),
    struct store_settlement *back, struct lease **sent)
{
	int64_t now_us = clock_mono_us();
	size_t n = 0;

	while (n < STORE_CHECKS_MAX) {
		struct lease *some = lease_table_take_out(&l->table, walk,
		    STORE_CHECKS_MAX - n, is_wanted, now_us, lease_told_give);

		if (some == NULL)
			break;
		while (some != NULL) {
			struct lease *lease = some;

			some = lease->next;
			n += settlement_of(lease, now_us, &back[n]);
			lease->next = *sent;
			*sent = lease;
		}
	}
	return n;
}

static void
free_all(struct lease *lease)
{
	while (lease != NULL) {
		struct lease *next = lease->next;

		free(lease);
		lease = next;
	}
}

/* A trip at least; none is begun from until_us on: the rest stays. */
static void
give_back(struct leases *l, struct store *store, struct lease_walk *walk,
    bool is_wanted(const struct lease *lease, int64_t now_us), int64_t until_us)
{
	UNINITIALIZED struct store_settlement back[STORE_CHECKS_MAX];
	size_t n;

	do {
		struct lease *sent = NULL;

		n = collect(l, walk, is_wanted, back, &sent);
		lease_own_settle(l, store, back, n);
		free_all(sent);
	} while (n == STORE_CHECKS_MAX && clock_mono_us() < until_us);
}

/* Cleared before the table is looked at: who adds one then wakes us again. */
int64_t
leases_maintain(struct leases *l, struct store *store)
{
	int64_t now_us = clock_mono_us();

	if (!atomic_load(&l->awake))
		return now_us + SLEEP_US;
	if (now_us < l->pass_us)
		return l->pass_us;
	atomic_store(&l->awake, false);
	give_back(l, store, &l->walk, is_due, now_us + TURN_US);
	l->pass_us = clock_mono_us() + PASS_US;
	if (lease_table_count(&l->table) == 0)
		return now_us + SLEEP_US;
	atomic_store(&l->awake, true);
	return l->pass_us;
}

void
leases_return(struct leases *l, struct store *store, int64_t for_us)
{
	struct lease_walk walk = { 0, 0 };

	give_back(l, store, &walk, is_any, clock_mono_us() + for_us);
}

static void
tell_nobody(struct lease_shard *s, const struct lease *lease)
{
	(void)s;
	(void)lease;
}

void
leases_end(struct leases *l, struct store *store, int64_t for_us)
{
	struct lease_walk walk = { 0, 0 };
	struct lease *lost;

	leases_return(l, store, for_us);
	lost = lease_table_take_out(
	    &l->table, &walk, LEASE_MAX, is_any, 0, tell_nobody);
	for (const struct lease *i = lost; i != NULL; i = i->next)
		counter_add(COUNTER_lease_units_expired, (uint64_t)i->units);
	free_all(lost);
}

/* What is being taken is its thread's: that one sees to it. */
void
leases_drop(struct leases *l, struct str key)
{
	uint64_t hash = lease_table_hash(&l->table, key);
	struct lease_shard *s = lease_table_lock(&l->table, hash);
	struct lease *lease = lease_table_find_key(s, hash, key, NULL);

	while (lease != NULL) {
		struct lease *next = lease_table_find_key(s, hash, key, lease);

		if (lease->id == 0)
			lease->is_void = true;
		else
			lease_own_expire(l, lease);
		lease = next;
	}
	lease_table_unlock(s);
}
