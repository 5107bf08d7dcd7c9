#include "domain/lease_told.h"

#include "domain/lease_table.h"
#include "pure/leased.h"

/* How many of its units are missing in figures of that time? */
static int64_t
missing(const struct lease *lease, int64_t store_us)
{
	if (lease->id == 0)
		return 0;
	return leased_missing(&lease->check.check, lease->own_count,
	    lease->units, lease->taken_us + lease->full_us - store_us);
}

static int64_t
held(const struct lease *lease, int64_t store_us)
{
	int64_t units = 0;

	for (; lease != NULL; lease = lease_table_next(lease))
		units += missing(lease, store_us);
	return units;
}

/* The store's clock may step back: then what was asked for later is. */
static bool
is_newer(const struct lease_news *a, const struct lease_told *b)
{
	if (a->asked_us > b->told_us || a->store_us > b->store_us)
		return true;
	return a->store_us == b->store_us &&
	    a->verdict->remaining <= b->verdict.remaining;
}

/*
 * A bucket flows over, and a window fades, by what is in it: with the units
 * that are held it would be full, and less its cost. That is all there can be.
 */
static struct lease_told
told_of(const struct lease_news *news, int64_t units)
{
	struct lease_told told = { *news->verdict, news->store_us,
		news->told_us };
	int64_t most = told.verdict.limit - news->cost - units;

	if (told.verdict.remaining > most)
		told.verdict.remaining = most;
	return told;
}

void
lease_told_learn(struct lease_shard *s, uint64_t hash,
    const struct store_check *check, const struct lease_news *news)
{
	struct lease *lease = lease_table_find(s, hash, check);
	struct lease_told told;

	if (lease == NULL || !is_newer(news, &lease->told))
		return;
	told = told_of(news, held(lease, news->store_us));
	for (; lease != NULL; lease = lease_table_next(lease))
		lease->told = told;
}

void
lease_told_figures(struct lease_shard *s, uint64_t hash,
    const struct store_check *check, int64_t at_us, struct verdict *v)
{
	const struct lease *lease = lease_table_find(s, hash, check);
	struct verdict now;

	if (lease == NULL || lease->told.told_us == 0)
		return;
	leased_figures(&check->check, &lease->told.verdict,
	    held(lease, lease->told.store_us), at_us - lease->told.store_us,
	    &now);
	v->limit = now.limit;
	v->own_count = now.own_count;
	v->remaining = now.remaining;
	v->next_us = now.next_us;
	v->full_us = now.full_us;
}

/* What they say does not change: the units are in the store's part now. */
void
lease_told_give(struct lease_shard *s, const struct lease *lease)
{
	struct lease *other = lease_table_find(s, lease->hash, &lease->check);

	for (; other != NULL; other = lease_table_next(other))
		other->told.verdict.remaining +=
		    missing(lease, other->told.store_us);
}
