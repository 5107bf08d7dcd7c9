/*
 * A question locks the shards of its keys in ascending order, so that two
 * of them never wait for each other, and is then decided as if alone.
 *
 * Places are counted over all shards. When none is left the new entry gets
 * the place of the one that would end soonest, wherever that is; other
 * shards are only tried for, as their order may be the wrong one by then.
 */
#include "domain/store_memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/log.h"
#include "domain/held_slots.h"
#include "domain/table.h"
#include "domain/unsettled.h"
#include "pure/settlement.h"
#include "pure/siphash.h"

#define SHARDS 16
/* Entries one shard gives up in a row while its lock is held. */
#define SWEEP 256
/* How long to wait before sweeping again: nothing, or more left to do. */
#define SWEEP_IDLE_US 500000
#define SWEEP_BUSY_US 5000

struct shard {
	pthread_mutex_t lock;
	struct table table;
};

struct store_memory {
	struct store store;
	uint64_t secret[2];
	_Atomic size_t max_keys;
	_Atomic size_t count;
	atomic_bool told; /* that it is full, since it last was not */
	struct held_slots slots;
	struct shard shard[SHARDS];
};

/* A question's keys, and what has been decided for each. */
struct work {
	unsigned shards; /* a bit each: those locked */
	uint64_t hash[STORE_CHECKS_MAX];
	struct state after[STORE_CHECKS_MAX];
	int64_t end_us[STORE_CHECKS_MAX];
};

static struct store_memory *
memory_of(struct store *store)
{
	return (struct store_memory *)store;
}

static unsigned
shard_index(uint64_t hash)
{
	return (unsigned)(hash >> 32) % SHARDS;
}

static void
lock_shards(struct store_memory *m, unsigned shards)
{
	for (unsigned i = 0; i < SHARDS; i++)
		if (shards >> i & 1)
			pthread_mutex_lock(&m->shard[i].lock);
}

static void
unlock_shards(struct store_memory *m, unsigned shards)
{
	for (unsigned i = 0; i < SHARDS; i++)
		if (shards >> i & 1)
			pthread_mutex_unlock(&m->shard[i].lock);
}

static void
begin(struct store_memory *m, const struct store_question *q, struct work *w)
{
	w->shards = 0;
	for (size_t i = 0; i < q->n; i++) {
		w->hash[i] = siphash(m->secret, q->check[i].key);
		w->shards |= 1U << shard_index(w->hash[i]);
	}
	lock_shards(m, w->shards);
}

static void
say_full(struct store_memory *m)
{
	if (!atomic_exchange(&m->told, true))
		log_event(LOG_LEVEL_WARN, "store_full",
		    "the memory store holds max_keys = %zu keys; those that "
		    "would end soonest go",
		    atomic_load(&m->max_keys));
}

/*
 * Loses the entry that would end soonest; `held` are the shards the caller
 * has locked. Its place is still counted: the caller's to use.
 */
static bool
evict(struct store_memory *m, unsigned held, int64_t now_us)
{
	struct entry *best = NULL;
	unsigned best_shard = 0;

	for (unsigned i = 0; i < SHARDS; i++) {
		struct entry *e;

		if (!(held >> i & 1) &&
		    pthread_mutex_trylock(&m->shard[i].lock) != 0)
			continue;
		e = table_soonest(&m->shard[i].table, now_us);
		if (e != NULL &&
		    (best == NULL || table_end_us(e) < table_end_us(best))) {
			if (best != NULL && !(held >> best_shard & 1))
				pthread_mutex_unlock(
				    &m->shard[best_shard].lock);
			best = e;
			best_shard = i;
		} else if (!(held >> i & 1)) {
			pthread_mutex_unlock(&m->shard[i].lock);
		}
	}
	if (best == NULL)
		return false;
	if (table_end_us(best) > now_us)
		counter_add(COUNTER_store_keys_evicted, 1);
	table_remove(&m->shard[best_shard].table, best);
	if (!(held >> best_shard & 1))
		pthread_mutex_unlock(&m->shard[best_shard].lock);
	return true;
}

/* Counts a place for one more entry, if need be another's. */
static bool
take_place(struct store_memory *m, unsigned held, int64_t now_us)
{
	if (atomic_fetch_add(&m->count, 1) < atomic_load(&m->max_keys))
		return true;
	atomic_fetch_sub(&m->count, 1);
	say_full(m);
	if (evict(m, held, now_us))
		return true;
	counter_add(COUNTER_store_full, 1);
	return false;
}

static struct entry *
add(struct store_memory *m, unsigned held, struct str key, uint64_t hash,
    int64_t now_us)
{
	struct entry *e;

	if (!take_place(m, held, now_us))
		return NULL;
	e = table_add(&m->shard[shard_index(hash)].table, key, (unsigned)hash);
	if (e == NULL)
		atomic_fetch_sub(&m->count, 1);
	return e;
}

static void
drop(struct store_memory *m, struct table *t, struct entry *e)
{
	table_remove(t, e);
	atomic_fetch_sub(&m->count, 1);
}

/* What there is of a key now, whatever has become of it meanwhile. */
static const struct state *
state_of(struct store_memory *m, const struct store_check *c, uint64_t hash)
{
	static const struct state none = { 0 };
	struct entry *e = table_find(
	    &m->shard[shard_index(hash)].table, c->key, (unsigned)hash);

	return e != NULL ? table_state(e) : &none;
}

/* Evaluates all; false when one that enforces refuses. */
static bool
evaluate(struct store_memory *m, const struct store_question *q, struct work *w,
    struct store_answer *a)
{
	bool allowed = true;

	for (size_t i = 0; i < q->n; i++) {
		const struct store_check *c = &q->check[i];

		algorithm_check(&c->check, state_of(m, c, w->hash[i]),
		    a->taken_us, &a->verdict[i], &w->after[i], &w->end_us[i]);
		if (a->verdict[i].kind == VERDICT_REFUSED && !c->check.observe)
			allowed = false;
	}
	return allowed;
}

/* At its limit until then; a count of slots that are held never goes. */
static int64_t
full_until(const struct check *c, const struct state *s,
    const struct verdict *v, int64_t now_us)
{
	if (c->algorithm == ALGORITHM_CONCURRENCY && s->exists)
		return INT64_MAX;
	return v->remaining == 0 ? now_us + v->next_us : 0;
}

/* Looked up again: making room for the one before may have lost it. */
static struct entry *
find_or_add(struct store_memory *m, const struct store_check *c,
    const struct work *w, size_t i, int64_t now_us)
{
	struct table *t = &m->shard[shard_index(w->hash[i])].table;
	struct entry *e = table_find(t, c->key, (unsigned)w->hash[i]);

	if (e != NULL)
		return e;
	return add(m, w->shards, c->key, w->hash[i], now_us);
}

/* False: no memory. */
static bool
keep(struct store_memory *m, const struct store_check *c, struct work *w,
    size_t i, struct entry *e, const struct store_answer *a)
{
	struct table *t = &m->shard[shard_index(w->hash[i])].table;
	const struct verdict *v = &a->verdict[i];
	bool holds = v->kind == VERDICT_ALLOWED &&
	    c->check.algorithm == ALGORITHM_CONCURRENCY;
	struct state s = *table_state(e);

	if (holds && !held_slots_hold(&m->slots, c))
		return false;
	if (!algorithm_keep(&c->check, &s, &w->after[i]))
		return false;
	table_keep(t, e, &s, w->end_us[i],
	    full_until(&c->check, &s, v, a->taken_us), a->taken_us);
	return true;
}

static void
commit(struct store_memory *m, const struct store_check *c, struct work *w,
    size_t i, struct store_answer *a)
{
	struct verdict *v = &a->verdict[i];
	struct entry *e = find_or_add(m, c, w, i, a->taken_us);

	if (e != NULL && keep(m, c, w, i, e, a))
		return;
	a->reason = e == NULL ? "the memory store is full" : "out of memory";
	v->kind = VERDICT_ERROR;
}

/* A refusal that begins a penalty; where there is no room it is none. */
static void
keep_penalty(struct store_memory *m, const struct store_check *c,
    struct work *w, size_t i, const struct store_answer *a)
{
	struct entry *e;

	if (w->after[i].penalty_us == state_of(m, c, w->hash[i])->penalty_us)
		return;
	e = find_or_add(m, c, w, i, a->taken_us);
	if (e != NULL)
		keep(m, c, w, i, e, a);
}

static void
conclude(struct store_memory *m, const struct store_question *q, struct work *w,
    bool allowed, struct store_answer *a)
{
	for (size_t i = 0; i < q->n; i++) {
		const struct store_check *c = &q->check[i];

		if (c->check.cost == 0)
			continue;
		if (a->verdict[i].kind == VERDICT_REFUSED)
			keep_penalty(m, c, w, i, a);
		else if (allowed || c->check.observe)
			commit(m, c, w, i, a);
		else
			algorithm_peek(&c->check, state_of(m, c, w->hash[i]),
			    a->taken_us, &a->verdict[i]);
	}
}

static void
memory_ask(struct store *store, const struct store_question *q,
    struct store_answer *answer)
{
	struct store_memory *m = memory_of(store);
	int64_t asked_us = clock_mono_us();
	struct work w;
	bool allowed;

	answer->status = STORE_ANSWERED;
	answer->retry_us = 0;
	answer->reason = NULL;
	begin(m, q, &w);
	answer->taken_us = clock_steady_us();
	allowed = evaluate(m, q, &w, answer);
	conclude(m, q, &w, allowed, answer);
	unlock_shards(m, w.shards);
	answer->wait_us = clock_mono_us() - asked_us;
}

static void
keep_settled(struct table *t, struct entry *e, const struct check *c,
    const struct state *s, int64_t end_us, int64_t now_us)
{
	struct verdict v;

	algorithm_peek(c, s, now_us, &v);
	if (!s->exists)
		end_us = now_us + v.full_us;
	table_keep(t, e, s, end_us, full_until(c, s, &v, now_us), now_us);
}

static void
refund_one(struct store_memory *m, const struct store_check *c, uint64_t hash,
    int64_t taken_us, int64_t now_us)
{
	struct table *t = &m->shard[shard_index(hash)].table;
	struct entry *e = table_find(t, c->key, (unsigned)hash);
	struct state s;

	if (c->check.algorithm == ALGORITHM_CONCURRENCY &&
	    !held_slots_drop(&m->slots, c->slot))
		return;
	if (e == NULL)
		return;
	s = *table_state(e);
	settlement_refund(&c->check, &s, taken_us, now_us);
	if (s.exists || s.penalty_us > 0)
		keep_settled(t, e, &c->check, &s, table_end_us(e), now_us);
	else
		drop(m, t, e);
}

static void
memory_refund(
    struct store *store, const struct store_question *q, int64_t taken_us)
{
	struct store_memory *m = memory_of(store);
	struct work w;
	int64_t now_us;

	begin(m, q, &w);
	now_us = clock_steady_us();
	for (size_t i = 0; i < q->n; i++)
		refund_one(m, &q->check[i], w.hash[i], taken_us, now_us);
	unlock_shards(m, w.shards);
}

static void
charge_one(struct store_memory *m, const struct store_check *c, uint64_t hash,
    int64_t taken_us, int64_t now_us)
{
	unsigned shard = shard_index(hash);
	struct table *t = &m->shard[shard].table;
	struct entry *e = table_find(t, c->key, (unsigned)hash);
	struct state s = { 0 };
	int64_t end_us, cut;

	if (e == NULL)
		e = add(m, 1U << shard, c->key, hash, now_us);
	if (e == NULL) {
		unsettled_lost(1);
		return;
	}
	s = *table_state(e);
	cut = settlement_charge(&c->check, &s, taken_us, now_us, &end_us);
	if (end_us < table_end_us(e))
		end_us = table_end_us(e);
	keep_settled(t, e, &c->check, &s, end_us, now_us);
	if (cut > 0)
		unsettled_cut(c->key, cut);
}

static void
settle_one(struct store_memory *m, const struct store_settlement *s)
{
	struct store_check c = s->check;
	struct work w;

	begin(m, &(struct store_question){ &c, 1 }, &w);
	if (s->delta > 0) {
		c.check.cost = s->delta;
		charge_one(m, &c, w.hash[0], s->taken_us, clock_steady_us());
	} else {
		c.check.cost = -s->delta;
		refund_one(m, &c, w.hash[0], s->taken_us, clock_steady_us());
	}
	unlock_shards(m, w.shards);
}

static void
memory_settle(struct store *store, const struct store_settlement *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s[i].delta != 0 &&
		    s[i].check.check.algorithm != ALGORITHM_CONCURRENCY)
			settle_one(memory_of(store), &s[i]);
}

/* True when there is more to do in this shard. */
static bool
sweep(struct store_memory *m, struct shard *shard, int64_t now_us)
{
	size_t n = 0;

	pthread_mutex_lock(&shard->lock);
	for (; n < SWEEP; n++) {
		struct entry *e = table_soonest(&shard->table, now_us);

		if (e == NULL ||
		    (table_end_us(e) > now_us &&
			atomic_load(&m->count) <= atomic_load(&m->max_keys)))
			break;
		if (table_end_us(e) > now_us)
			counter_add(COUNTER_store_keys_evicted, 1);
		drop(m, &shard->table, e);
	}
	pthread_mutex_unlock(&shard->lock);
	return n == SWEEP;
}

static int64_t
memory_maintain(struct store *store)
{
	struct store_memory *m = memory_of(store);
	int64_t now_us = clock_steady_us();
	size_t max = atomic_load(&m->max_keys);
	bool more = false;

	for (unsigned i = 0; i < SHARDS; i++)
		if (sweep(m, &m->shard[i], now_us))
			more = true;
	if (atomic_load(&m->count) < max - max / 8)
		atomic_store(&m->told, false);
	return clock_mono_us() + (more ? SWEEP_BUSY_US : SWEEP_IDLE_US);
}

static void
memory_free(struct store *store)
{
	struct store_memory *m = memory_of(store);

	for (unsigned i = 0; i < SHARDS; i++) {
		table_release(&m->shard[i].table);
		pthread_mutex_destroy(&m->shard[i].lock);
	}
	held_slots_release(&m->slots);
	free(m);
}

static void
memory_release(struct store *store, const struct store_check *check, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (check[i].check.algorithm == ALGORITHM_CONCURRENCY)
			memory_refund(
			    store, &(struct store_question){ &check[i], 1 }, 0);
}

static const struct store_ops memory_ops = {
	.ask = memory_ask,
	.refund = memory_refund,
	.release = memory_release,
	.settle = memory_settle,
	.maintain = memory_maintain,
	.free = memory_free,
};

struct store *
store_memory_new(size_t max_keys)
{
	struct store_memory *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return NULL;
	m->store.ops = &memory_ops;
	/* Early at boot it may give nothing: then the address has to do. */
	if (getrandom(m->secret, sizeof(m->secret), GRND_NONBLOCK) !=
	    sizeof(m->secret))
		m->secret[0] ^= (uint64_t)(uintptr_t)m;
	atomic_init(&m->max_keys, max_keys);
	held_slots_init(&m->slots);
	for (unsigned i = 0; i < SHARDS; i++) {
		pthread_mutex_init(&m->shard[i].lock, NULL);
		table_init(&m->shard[i].table);
	}
	return &m->store;
}

void
store_memory_set_max_keys(struct store *store, size_t max_keys)
{
	atomic_store(&memory_of(store)->max_keys, max_keys);
}

size_t
store_memory_count(struct store *store)
{
	return atomic_load(&memory_of(store)->count);
}
