/*
 * Buckets of a few entries, chosen by a keyed hash of the key alone, so that
 * all that is known of a key is in one. A full bucket loses the entry that
 * would be over soonest. A lock stands for many buckets and is held for a
 * look at one.
 *
 * A key is known again by 128 bits of hashes whose secrets nobody outside
 * knows.
 */
#include "domain/deny_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/counter.h"
#include "base/hash_secret.h"
#include "pure/siphash.h"

#define WAYS  8
#define LOCKS 64

struct name {
	uint64_t hash[2];
};

struct entry {
	struct name key;
	uint64_t serial;
	int64_t count;
	int64_t period_us;
	int64_t burst;
	int64_t cost;
	int64_t until_us; /* 0: free */
	struct deny_cache_answer answer;
};

struct bucket {
	int64_t forgot_us; /* what was sent until then is not remembered */
	struct entry entry[WAYS];
};

struct deny_cache {
	uint64_t secret[2][2];
	_Atomic int64_t ttl_us;
	_Atomic int64_t flushed_us;
	size_t ways;
	size_t n_buckets;
	struct bucket *bucket;
	pthread_mutex_t lock[LOCKS];
};

struct deny_cache *
deny_cache_new(size_t entries, int64_t ttl_us)
{
	struct deny_cache *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->ways = entries < WAYS ? entries : WAYS;
	c->n_buckets = entries / c->ways;
	/* Pages that nobody writes to take no memory. */
	c->bucket = calloc(c->n_buckets, sizeof(*c->bucket));
	if (c->bucket == NULL) {
		free(c);
		return NULL;
	}
	hash_secret_draw(c->secret[0], 2);
	hash_secret_draw(c->secret[1], 2);
	atomic_init(&c->ttl_us, ttl_us);
	atomic_init(&c->flushed_us, INT64_MIN);
	for (size_t i = 0; i < LOCKS; i++)
		pthread_mutex_init(&c->lock[i], NULL);
	return c;
}

void
deny_cache_free(struct deny_cache *c)
{
	if (c == NULL)
		return;
	for (size_t i = 0; i < LOCKS; i++)
		pthread_mutex_destroy(&c->lock[i]);
	free(c->bucket);
	free(c);
}

void
deny_cache_set_ttl(struct deny_cache *c, int64_t ttl_us)
{
	atomic_store(&c->ttl_us, ttl_us);
}

static struct name
name_of(const struct deny_cache *c, struct str key)
{
	return (struct name){ { siphash(c->secret[0], key),
	    siphash(c->secret[1], key) } };
}

static size_t
index_of(const struct deny_cache *c, const struct name *name)
{
	return (size_t)(name->hash[0] % c->n_buckets);
}

static struct bucket *
lock_bucket(struct deny_cache *c, const struct name *name)
{
	size_t i = index_of(c, name);

	pthread_mutex_lock(&c->lock[i % LOCKS]);
	return &c->bucket[i];
}

static void
unlock_bucket(struct deny_cache *c, const struct name *name)
{
	pthread_mutex_unlock(&c->lock[index_of(c, name) % LOCKS]);
}

static bool
is_named(const struct entry *e, const struct name *name)
{
	return e->until_us != 0 && e->key.hash[0] == name->hash[0] &&
	    e->key.hash[1] == name->hash[1];
}

static bool
is_of(const struct entry *e, const struct name *name,
    const struct deny_cache_id *id)
{
	const struct check *check = &id->check->check;

	return is_named(e, name) && e->serial == id->serial &&
	    e->cost == check->cost && e->count == check->count &&
	    e->period_us == check->period_us && e->burst == check->burst;
}

static bool
is_over(const struct deny_cache *c, const struct entry *e, int64_t now_us)
{
	return e->until_us <= now_us ||
	    e->answer.sent_us <= atomic_load(&c->flushed_us);
}

/*
 * The entry of the same check, a free one, or the one to lose. NULL: a later
 * answer is there.
 */
static struct entry *
place_for(struct deny_cache *c, struct bucket *b, const struct name *name,
    const struct deny_cache_id *id, const struct deny_cache_answer *answer)
{
	struct entry *soonest = &b->entry[0];

	for (size_t i = 0; i < c->ways; i++)
		if (is_of(&b->entry[i], name, id))
			return b->entry[i].answer.sent_us > answer->sent_us
			    ? NULL
			    : &b->entry[i];
	for (size_t i = 0; i < c->ways; i++) {
		struct entry *e = &b->entry[i];

		if (is_over(c, e, answer->answered_us))
			return e;
		if (e->until_us < soonest->until_us)
			soonest = e;
	}
	counter_add(COUNTER_deny_cache_evictions, 1);
	return soonest;
}

static int64_t
shorter(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* What it says may have changed since, or will be no news any more. */
static bool
is_late(const struct deny_cache *c, const struct bucket *b,
    const struct deny_cache_answer *answer, int64_t ttl_us)
{
	return answer->sent_us <= b->forgot_us ||
	    answer->sent_us <= atomic_load(&c->flushed_us) ||
	    answer->sent_us + ttl_us <= answer->answered_us;
}

int64_t
deny_cache_stands_us(const struct verdict *refusal)
{
	int64_t for_us = INT64_MAX;

	if (refusal->retry_us != ALGORITHM_NEVER)
		for_us = refusal->retry_us;
	if (refusal->penalty_us > 0)
		for_us = shorter(for_us, refusal->penalty_us);
	if (refusal->next_us > 0)
		for_us = shorter(for_us, refusal->next_us);
	return for_us;
}

void
deny_cache_put(struct deny_cache *c, const struct deny_cache_id *id,
    const struct deny_cache_answer *answer, int64_t ttl_us)
{
	const struct check *check = &id->check->check;
	struct name name = name_of(c, id->check->key);
	struct bucket *b = lock_bucket(c, &name);
	struct entry *e;

	ttl_us = shorter(
	    ttl_us, atomic_load_explicit(&c->ttl_us, memory_order_relaxed));
	if (answer->verdict.kind == VERDICT_REFUSED)
		ttl_us =
		    shorter(ttl_us, deny_cache_stands_us(&answer->verdict));
	e = is_late(c, b, answer, ttl_us) ? NULL
					  : place_for(c, b, &name, id, answer);
	if (e != NULL)
		*e = (struct entry){
			.key = name,
			.serial = id->serial,
			.count = check->count,
			.period_us = check->period_us,
			.burst = check->burst,
			.cost = check->cost,
			.until_us = answer->sent_us + ttl_us,
			.answer = *answer,
		};
	unlock_bucket(c, &name);
}

static int64_t
aged(int64_t wait_us, int64_t age_us, int64_t least_us)
{
	return wait_us - age_us > least_us ? wait_us - age_us : least_us;
}

/* As the store would say it so much later. */
static void
grow_older(struct deny_cache_answer *a, int64_t now_us)
{
	int64_t age_us = now_us > a->answered_us ? now_us - a->answered_us : 0;
	struct verdict *v = &a->verdict;

	a->taken_us += age_us;
	if (v->retry_us != ALGORITHM_NEVER)
		v->retry_us = aged(v->retry_us, age_us, 1);
	v->next_us = aged(v->next_us, age_us, v->next_us > 0 ? 1 : 0);
	v->full_us = aged(v->full_us, age_us, v->full_us > 0 ? 1 : 0);
	v->penalty_us = aged(v->penalty_us, age_us, 0);
}

static enum deny_cache_known
tell(const struct entry *e, int64_t now_us, struct deny_cache_answer *answer)
{
	*answer = e->answer;
	if (answer->verdict.kind != VERDICT_REFUSED)
		return DENY_CACHE_TOLD;
	grow_older(answer, now_us);
	return DENY_CACHE_REFUSED;
}

enum deny_cache_known
deny_cache_find(struct deny_cache *c, const struct deny_cache_id *id,
    int64_t now_us, struct deny_cache_answer *answer)
{
	struct name name = name_of(c, id->check->key);
	struct bucket *b = lock_bucket(c, &name);
	enum deny_cache_known known = DENY_CACHE_UNKNOWN;

	for (size_t i = 0; i < c->ways && known == DENY_CACHE_UNKNOWN; i++)
		if (is_of(&b->entry[i], &name, id) &&
		    !is_over(c, &b->entry[i], now_us))
			known = tell(&b->entry[i], now_us, answer);
	unlock_bucket(c, &name);
	return known;
}

void
deny_cache_forget(struct deny_cache *c, struct str key, int64_t now_us)
{
	struct name name = name_of(c, key);
	struct bucket *b = lock_bucket(c, &name);

	if (now_us > b->forgot_us)
		b->forgot_us = now_us;
	for (size_t i = 0; i < c->ways; i++)
		if (is_named(&b->entry[i], &name))
			b->entry[i].until_us = 0;
	unlock_bucket(c, &name);
}

void
deny_cache_flush(struct deny_cache *c, int64_t now_us)
{
	atomic_store(&c->flushed_us, now_us);
}
