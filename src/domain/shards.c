/*
 * Locks are taken in ascending order, so that two callers never wait for
 * each other.
 *
 * Places are counted over all shards. When none is left the new entry gets
 * the place of the one that would end soonest, wherever that is; other
 * shards are only tried for, as their order may be the wrong one by then.
 */
#include "domain/shards.h"

#include "base/counter.h"
#include "base/hash_secret.h"
#include "base/log.h"
#include "pure/siphash.h"

/* Entries one shard gives up in a row while its lock is held. */
#define SWEEP 256

static unsigned
shard_index(uint64_t hash)
{
	return (unsigned)(hash >> 32) % SHARDS;
}

uint64_t
shards_hash(const struct shards *s, struct str key)
{
	return siphash(s->secret, key);
}

unsigned
shards_bit(uint64_t hash)
{
	return 1U << shard_index(hash);
}

void
shards_lock(struct shards *s, unsigned bits)
{
	for (unsigned i = 0; i < SHARDS; i++)
		if (bits >> i & 1)
			pthread_mutex_lock(&s->shard[i].lock);
}

void
shards_unlock(struct shards *s, unsigned bits)
{
	for (unsigned i = 0; i < SHARDS; i++)
		if (bits >> i & 1)
			pthread_mutex_unlock(&s->shard[i].lock);
}

struct table *
shards_table(struct shards *s, uint64_t hash)
{
	return &s->shard[shard_index(hash)].table;
}

static void
say_full(struct shards *s)
{
	if (!atomic_exchange(&s->told, true))
		log_event(LOG_LEVEL_WARN, "store_full",
		    "the memory store holds max_keys = %zu keys; those that "
		    "would end soonest go",
		    atomic_load(&s->max_keys));
}

/*
 * Loses the entry that would end soonest; `held` are the shards the caller
 * has locked. Its place is still counted: the caller's to use.
 */
static bool
evict(struct shards *s, unsigned held, int64_t now_us)
{
	struct entry *best = NULL;
	unsigned best_shard = 0;

	for (unsigned i = 0; i < SHARDS; i++) {
		struct entry *e;

		if (!(held >> i & 1) &&
		    pthread_mutex_trylock(&s->shard[i].lock) != 0)
			continue;
		e = table_soonest(&s->shard[i].table, now_us);
		if (e != NULL &&
		    (best == NULL || table_end_us(e) < table_end_us(best))) {
			if (best != NULL && !(held >> best_shard & 1))
				pthread_mutex_unlock(
				    &s->shard[best_shard].lock);
			best = e;
			best_shard = i;
		} else if (!(held >> i & 1)) {
			pthread_mutex_unlock(&s->shard[i].lock);
		}
	}
	if (best == NULL)
		return false;
	if (table_end_us(best) > now_us)
		counter_add(COUNTER_store_keys_evicted, 1);
	table_remove(&s->shard[best_shard].table, best);
	if (!(held >> best_shard & 1))
		pthread_mutex_unlock(&s->shard[best_shard].lock);
	return true;
}

/* Counts a place for one more entry, if need be another's. */
static bool
take_place(struct shards *s, unsigned held, int64_t now_us)
{
	if (atomic_fetch_add(&s->count, 1) < atomic_load(&s->max_keys))
		return true;
	atomic_fetch_sub(&s->count, 1);
	say_full(s);
	if (evict(s, held, now_us))
		return true;
	counter_add(COUNTER_store_full, 1);
	return false;
}

struct entry *
shards_add(struct shards *s, unsigned bits, struct str key, uint64_t hash,
    int64_t now_us)
{
	struct entry *e;

	if (!take_place(s, bits, now_us))
		return NULL;
	e = table_add(shards_table(s, hash), key, (unsigned)hash);
	if (e == NULL)
		atomic_fetch_sub(&s->count, 1);
	return e;
}

void
shards_remove(struct shards *s, uint64_t hash, struct entry *e)
{
	table_remove(shards_table(s, hash), e);
	atomic_fetch_sub(&s->count, 1);
}

/* True when there is more to do in this shard. */
static bool
sweep(struct shards *s, unsigned i, int64_t now_us)
{
	struct table *t = &s->shard[i].table;
	size_t n = 0;

	pthread_mutex_lock(&s->shard[i].lock);
	for (; n < SWEEP; n++) {
		struct entry *e = table_soonest(t, now_us);

		if (e == NULL ||
		    (table_end_us(e) > now_us &&
			atomic_load(&s->count) <= atomic_load(&s->max_keys)))
			break;
		if (table_end_us(e) > now_us)
			counter_add(COUNTER_store_keys_evicted, 1);
		table_remove(t, e);
		atomic_fetch_sub(&s->count, 1);
	}
	pthread_mutex_unlock(&s->shard[i].lock);
	return n == SWEEP;
}

bool
shards_sweep(struct shards *s, int64_t now_us)
{
	size_t max = atomic_load(&s->max_keys);
	bool more = false;

	for (unsigned i = 0; i < SHARDS; i++)
		if (sweep(s, i, now_us))
			more = true;
	if (atomic_load(&s->count) < max - max / 8)
		atomic_store(&s->told, false);
	return more;
}

void
shards_init(struct shards *s, size_t max_keys)
{
	hash_secret_draw(s->secret, 2);
	atomic_init(&s->max_keys, max_keys);
	atomic_init(&s->count, 0);
	atomic_init(&s->told, false);
	for (unsigned i = 0; i < SHARDS; i++) {
		pthread_mutex_init(&s->shard[i].lock, NULL);
		table_init(&s->shard[i].table);
	}
}

void
shards_release(struct shards *s)
{
	for (unsigned i = 0; i < SHARDS; i++) {
		table_release(&s->shard[i].table);
		pthread_mutex_destroy(&s->shard[i].lock);
	}
}
