/*
 * The lease of one key: what is spent from it, how it is taken, and what is
 * known of its count meanwhile.
 */
#include "domain/lease_own.h"

#include "base/clock.h"
#include "base/counter.h"
#include "domain/denied.h"
#include "domain/lease.h"
#include "domain/lease_told.h"
#include "domain/lease_wait.h"
#include "pure/lease_size.h"

#define SPAN_US   200000
#define MARGIN_US 1000

/* With the lock. */
static void
tell(const struct lease *lease, int64_t now_us, struct verdict *v,
    struct lease_unit *unit)
{
	int64_t at_us = lease->told.store_us + now_us - lease->told.told_us;

	*unit = (struct lease_unit){
		.id = lease->id,
		.taken_us = lease->taken_us,
		.full_us = lease->full_us,
		.age_us = at_us - lease->taken_us,
	};
	*v = (struct verdict){ .kind = VERDICT_ALLOWED };
	lease_told_figures(lease->shard, lease->hash, &lease->check, at_us, v);
}

/* With the lock. before: NULL: it is not known how fast the key is spent. */
static int64_t
auto_size(const struct lease *before, int64_t now_us)
{
	if (before == NULL)
		return 0;
	return lease_size(before->taken - before->units,
	    now_us - before->begun_us, before->told.verdict.remaining);
}

/*
 * With the lock: a new one; NULL: there can be none, or is to be none. What
 * is left of the one before is too old or too little, and goes back in time.
 */
static struct lease *
begin(struct leases *l, struct lease_shard *s, struct lease *before,
    uint64_t hash, const struct store_check *check, int64_t size,
    int64_t now_us)
{
	struct lease_told told = { .told_us = 0 };
	bool is_paced = size == LEASE_AUTO;
	struct lease *lease;

	if (is_paced)
		size = auto_size(before, now_us);
	if (before != NULL)
		told = before->told;
	if (before != NULL && before->units == 0)
		lease_table_remove(&l->table, before);
	if (!is_paced && size <= check->check.cost)
		return NULL;
	lease = lease_table_add(&l->table, s, hash, check);
	if (lease == NULL)
		return NULL;
	lease->told = told;
	lease->is_paced = is_paced;
	lease->check.check.most = size;
	return lease;
}

bool
lease_own_spend(struct leases *l, const struct store_check *check, int64_t size,
    struct lease_patience *p, struct verdict *v, struct lease_unit *unit,
    struct lease **taking)
{
	uint64_t hash = lease_table_hash(&l->table, check->key);
	struct lease_shard *s = lease_table_lock(&l->table, hash);
	struct lease *lease = p != NULL ? lease_wait_newest(s, hash, check, p)
					: lease_table_find(s, hash, check);
	int64_t cost = check->check.cost, now_us = clock_mono_us();
	bool spent = lease_wait_suffices(lease, cost, now_us);

	*taking = NULL;
	*unit = (struct lease_unit){ .id = 0 };
	if (spent) {
		lease->units -= cost;
		lease->used_us = now_us;
		tell(lease, now_us, v, unit);
	} else if (cost > 0 && (lease == NULL || lease->id != 0)) {
		*taking = begin(l, s, lease, hash, check, size, now_us);
	}
	lease_table_unlock(s);
	return spent;
}

static void
see_to_it(struct leases *l)
{
	if (!atomic_exchange(&l->awake, true) && l->wake != NULL)
		l->wake(l->wake_context);
}

/* With the lock. Only a fixed window ends for all of its units at once. */
static void
date(struct lease *lease, int64_t asked_us)
{
	const struct check *c = &lease->check.check;
	int64_t full_us = lease->full_us;

	lease->spend_until_us = asked_us + SPAN_US;
	lease->gone_us = INT64_MAX;
	if (c->algorithm != ALGORITHM_FIXED_WINDOW)
		return;
	lease->gone_us = lease->begun_us + full_us;
	if (full_us - MARGIN_US < SPAN_US)
		lease->spend_until_us = asked_us + full_us - MARGIN_US;
}

/* With the lock. */
static void
count_lease(const struct lease *lease)
{
	int64_t taken = lease->taken;

	counter_add(COUNTER_leases_taken, 1);
	counter_add(COUNTER_lease_units_taken, (uint64_t)taken);
	counter_add(
	    COUNTER_lease_units_spent, (uint64_t)(taken - lease->units));
}

/* With the lock. v: allowed; what was taken beyond the cost is kept. */
static void
fill(struct leases *l, struct lease *lease, int64_t asked_us, int64_t taken_us,
    const struct verdict *v)
{
	int64_t cost = lease->check.check.cost;

	/* 0: the cost alone. Less than that no store is to be believed. */
	lease->taken = v->taken > cost ? v->taken : cost;
	lease->units = lease->taken - cost;
	lease->taken_us = taken_us;
	lease->full_us = v->full_us;
	lease->own_count = v->own_count;
	lease->begun_us = clock_mono_us();
	lease->used_us = lease->begun_us;
	date(lease, asked_us);
	lease->id = atomic_fetch_add(&l->last_id, 1) + 1;
}

/* With the lock. What the store says of a count, and what is held of it. */
static void
learn(struct lease_shard *s, uint64_t hash, const struct store_check *check,
    struct lease_news news, struct verdict *v)
{
	if (v->kind == VERDICT_ERROR)
		return;
	news.verdict = v;
	news.told_us = clock_mono_us();
	news.cost = news.is_taken ? check->check.cost : 0;
	lease_told_learn(s, hash, check, &news);
	lease_told_figures(s, hash, check, news.store_us, v);
}

/*
 * With the lock: of a count that has begun anew since it was asked for. The
 * units may be of the one before: all but the cost are lost.
 */
static void
conclude_void(struct leases *l, struct lease *lease)
{
	if (lease->units > 0)
		count_lease(lease);
	lease_own_expire(l, lease);
}

/* Without any units beyond the cost there is no lease, but for its pace. */
void
lease_own_conclude(struct leases *l, struct lease *lease,
    const struct lease_news *news, struct verdict *v, struct lease_unit *unit)
{
	struct lease_shard *s = lease_table_lock(&l->table, lease->hash);

	if (v->kind == VERDICT_ALLOWED)
		fill(l, lease, news->asked_us, news->store_us, v);
	learn(s, lease->hash, &lease->check, *news, v);
	if (lease->is_void) {
		conclude_void(l, lease);
	} else if (lease->units > 0) {
		count_lease(lease);
		tell(lease, clock_mono_us(), v, unit);
		/* Whom it refused beside us is not to be refused unasked. */
		denied_forget(l->denied, &lease->check, 1);
	} else if (lease->id == 0 || !lease->is_paced) {
		lease_table_remove(&l->table, lease);
	}
	pthread_cond_broadcast(&s->concluded);
	lease_table_unlock(s);
	see_to_it(l);
}

void
lease_own_tell_asked(struct leases *l, const struct store_check *check,
    const struct lease_news *news, struct verdict *v)
{
	struct lease_shard *s;
	uint64_t hash;

	/* Without any limit that leases that is all it costs. */
	if (lease_table_count(&l->table) == 0)
		return;
	hash = lease_table_hash(&l->table, check->key);
	s = lease_table_lock(&l->table, hash);
	learn(s, hash, check, *news, v);
	lease_table_unlock(s);
}

bool
lease_own_put_back(struct leases *l, const struct store_check *check,
    uint64_t id, struct verdict *v)
{
	uint64_t hash = lease_table_hash(&l->table, check->key);
	struct lease_shard *s = lease_table_lock(&l->table, hash);
	struct lease *lease = lease_table_find_id(s, hash, id);
	struct lease_unit unit;

	if (lease != NULL)
		lease->units += check->check.cost;
	if (lease != NULL && v != NULL)
		tell(lease, clock_mono_us(), v, &unit);
	if (lease != NULL)
		denied_forget(l->denied, &lease->check, 1);
	lease_table_unlock(s);
	return lease != NULL;
}

bool
lease_own_is_there(
    struct leases *l, const struct store_check *check, struct lease_patience *p)
{
	uint64_t hash = lease_table_hash(&l->table, check->key);
	struct lease_shard *s = lease_table_lock(&l->table, hash);
	struct lease *lease = lease_wait_newest(s, hash, check, p);
	bool is =
	    lease_wait_suffices(lease, check->check.cost, clock_mono_us());

	lease_table_unlock(s);
	return is;
}
