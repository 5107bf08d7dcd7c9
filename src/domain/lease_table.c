#include "domain/lease_table.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash_secret.h"
#include "pure/siphash.h"

void
lease_table_init(struct lease_table *t)
{
	pthread_condattr_t attr;

	atomic_init(&t->count, 0);
	hash_secret_draw(t->secret, 2);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	for (size_t i = 0; i < LEASE_SHARDS; i++) {
		pthread_mutex_init(&t->shard[i].lock, NULL);
		pthread_cond_init(&t->shard[i].concluded, &attr);
	}
	pthread_condattr_destroy(&attr);
}

void
lease_table_release(struct lease_table *t)
{
	for (size_t i = 0; i < LEASE_SHARDS; i++) {
		struct lease_shard *s = &t->shard[i];

		for (size_t k = 0; k < LEASE_CHAINS; k++)
			while (s->chain[k] != NULL)
				lease_table_remove(t, s->chain[k]);
		pthread_cond_destroy(&s->concluded);
		pthread_mutex_destroy(&s->lock);
	}
}

uint64_t
lease_table_hash(const struct lease_table *t, struct str key)
{
	return siphash(t->secret, key);
}

struct lease_shard *
lease_table_lock(struct lease_table *t, uint64_t hash)
{
	struct lease_shard *s = &t->shard[(hash >> 32) % LEASE_SHARDS];

	pthread_mutex_lock(&s->lock);
	return s;
}

void
lease_table_unlock(struct lease_shard *s)
{
	pthread_mutex_unlock(&s->lock);
}

bool
lease_table_wait(struct lease_shard *s, int64_t for_us)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	for_us += at.tv_nsec / 1000;
	at.tv_sec += for_us / 1000000;
	at.tv_nsec = for_us % 1000000 * 1000;
	return pthread_cond_timedwait(&s->concluded, &s->lock, &at) == 0;
}

static struct lease *
first_of(const struct lease_shard *s, uint64_t hash)
{
	return s->chain[hash % LEASE_CHAINS];
}

static bool
is_of(const struct lease *lease, const struct store_check *check)
{
	const struct check *a = &lease->check.check, *b = &check->check;

	return a->count == b->count && a->burst == b->burst &&
	    a->align == b->align &&
	    str_eq(lease->check.own_key, check->own_key) &&
	    str_eq(lease->check.key, check->key);
}

struct lease *
lease_table_find(
    const struct lease_shard *s, uint64_t hash, const struct store_check *check)
{
	struct lease *lease = first_of(s, hash);

	while (lease != NULL && (lease->hash != hash || !is_of(lease, check)))
		lease = lease->next;
	return lease;
}

struct lease *
lease_table_next(const struct lease *lease)
{
	struct lease *next = lease->next;

	while (next != NULL &&
	    (next->hash != lease->hash || !is_of(next, &lease->check)))
		next = next->next;
	return next;
}

struct lease *
lease_table_find_id(const struct lease_shard *s, uint64_t hash, uint64_t id)
{
	struct lease *lease = first_of(s, hash);

	while (lease != NULL && lease->id != id)
		lease = lease->next;
	return lease;
}

struct lease *
lease_table_find_key(const struct lease_shard *s, uint64_t hash, struct str key,
    const struct lease *after)
{
	struct lease *lease = after != NULL ? after->next : first_of(s, hash);

	while (lease != NULL &&
	    (lease->hash != hash || !str_eq(lease->check.key, key)))
		lease = lease->next;
	return lease;
}

struct lease *
lease_table_add(struct lease_table *t, struct lease_shard *s, uint64_t hash,
    const struct store_check *check)
{
	struct str key = check->key, own = check->own_key;
	struct lease *lease;

	if (key.len + own.len > LEASE_TEXT_MAX ||
	    atomic_load(&t->count) >= LEASE_MAX)
		return NULL;
	lease = calloc(1, sizeof(*lease) + key.len + own.len);
	if (lease == NULL)
		return NULL;
	lease->hash = hash;
	lease->check = *check;
	lease->check.key.p = memcpy(lease->text, key.p, key.len);
	if (own.p != NULL)
		lease->check.own_key.p =
		    memcpy(lease->text + key.len, own.p, own.len);
	lease->shard = s;
	lease->serial = ++s->last_serial;
	lease->next = first_of(s, hash);
	s->chain[hash % LEASE_CHAINS] = lease;
	s->n++;
	atomic_fetch_add(&t->count, 1);
	return lease;
}

static void
unlink_at(struct lease_table *t, struct lease_shard *s, struct lease **at)
{
	*at = (*at)->next;
	s->n--;
	atomic_fetch_sub(&t->count, 1);
}

void
lease_table_remove(struct lease_table *t, struct lease *lease)
{
	struct lease_shard *s = lease->shard;
	struct lease **at = &s->chain[lease->hash % LEASE_CHAINS];

	while (*at != lease)
		at = &(*at)->next;
	unlink_at(t, s, at);
	free(lease);
}

/* What is to be taken out, and what has been. */
struct taking_out {
	bool (*is_due)(const struct lease *lease, int64_t now_us);
	int64_t now_us;
	void (*tell)(struct lease_shard *s, const struct lease *lease);
	size_t most; /* still */
	struct lease *out;
};

static void
take_out_of(struct lease_table *t, struct lease_shard *s, struct lease **at,
    struct taking_out *o)
{
	while (*at != NULL && o->most > 0) {
		struct lease *lease = *at;

		if (lease->id == 0 || !o->is_due(lease, o->now_us)) {
			at = &lease->next;
			continue;
		}
		unlink_at(t, s, at);
		o->tell(s, lease);
		lease->next = o->out;
		o->out = lease;
		o->most--;
	}
}

/* A chain in which it stopped is looked at once more. */
static void
walk_shard(struct lease_table *t, struct lease_walk *walk, struct taking_out *o)
{
	struct lease_shard *s = &t->shard[walk->shard];

	pthread_mutex_lock(&s->lock);
	while (walk->chain < LEASE_CHAINS && s->n > 0) {
		take_out_of(t, s, &s->chain[walk->chain], o);
		if (o->most == 0)
			break;
		walk->chain++;
	}
	pthread_mutex_unlock(&s->lock);
}

struct lease *
lease_table_take_out(struct lease_table *t, struct lease_walk *walk,
    size_t most, bool is_due(const struct lease *lease, int64_t now_us),
    int64_t now_us, void tell(struct lease_shard *s, const struct lease *lease))
{
	struct taking_out o = { is_due, now_us, tell, most, NULL };

	while (walk->shard < LEASE_SHARDS && o.most > 0) {
		walk_shard(t, walk, &o);
		if (o.most > 0)
			*walk = (struct lease_walk){ walk->shard + 1, 0 };
	}
	if (o.out == NULL)
		*walk = (struct lease_walk){ 0, 0 };
	return o.out;
}

size_t
lease_table_count(const struct lease_table *t)
{
	return atomic_load(&t->count);
}
