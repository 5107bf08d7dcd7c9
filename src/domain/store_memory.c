/*
 * A question locks the shards of all its keys, and is then decided as if it
 * were alone.
 */
#include "domain/store_memory.h"

#include <stdlib.h>

#include "base/clock.h"
#include "domain/held_slots.h"
#include "domain/shards.h"
#include "domain/unsettled.h"
#include "pure/settlement.h"

/* How long to wait before sweeping again: nothing, or more left to do. */
#define SWEEP_IDLE_US 500000
#define SWEEP_BUSY_US 5000

struct store_memory {
	struct store store;
	struct held_slots slots;
	struct shards shards;
};

/* A question's keys, and what has been decided for each. */
struct work {
	unsigned shards; /* those locked */
	uint64_t hash[STORE_CHECKS_MAX];
	struct state after[STORE_CHECKS_MAX];
	int64_t end_us[STORE_CHECKS_MAX];
};

static struct store_memory *
memory_of(struct store *store)
{
	return (struct store_memory *)store;
}

static void
begin(struct store_memory *m, const struct store_question *q, struct work *w)
{
	w->shards = 0;
	for (size_t i = 0; i < q->n; i++) {
		w->hash[i] = shards_hash(&m->shards, q->check[i].key);
		w->shards |= shards_bit(w->hash[i]);
	}
	shards_lock(&m->shards, w->shards);
}

/* What there is of a key now, whatever has become of it meanwhile. */
static const struct state *
state_of(struct store_memory *m, const struct store_check *c, uint64_t hash)
{
	static const struct state none = { 0 };
	struct entry *e =
	    table_find(shards_table(&m->shards, hash), c->key, (unsigned)hash);

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
	struct table *t = shards_table(&m->shards, w->hash[i]);
	struct entry *e = table_find(t, c->key, (unsigned)w->hash[i]);

	if (e != NULL)
		return e;
	return shards_add(&m->shards, w->shards, c->key, w->hash[i], now_us);
}

/* False: no memory. */
static bool
keep(struct store_memory *m, const struct store_check *c, struct work *w,
    size_t i, struct entry *e, const struct store_answer *a)
{
	struct table *t = shards_table(&m->shards, w->hash[i]);
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

/*
 * Tokens that were taken by a larger N come back later than was said then.
 * (What waits in a leaky bucket has been told when it may go.)
 */
static void
outlast(struct store_memory *m, const struct store_check *c, uint64_t hash,
    const struct verdict *v, int64_t now_us)
{
	struct table *t = shards_table(&m->shards, hash);
	struct entry *e = table_find(t, c->key, (unsigned)hash);
	struct state s;
	int64_t end_us;

	if (e == NULL || c->check.algorithm != ALGORITHM_TOKEN_BUCKET)
		return;
	s = *table_state(e);
	end_us = algorithm_end(&c->check, &s, now_us);
	if (end_us > table_end_us(e))
		table_keep(t, e, &s, end_us,
		    full_until(&c->check, &s, v, now_us), now_us);
}

static void
conclude(struct store_memory *m, const struct store_question *q, struct work *w,
    bool allowed, struct store_answer *a)
{
	for (size_t i = 0; i < q->n; i++) {
		const struct store_check *c = &q->check[i];
		struct verdict *v = &a->verdict[i];

		if (c->check.cost == 0)
			continue;
		if (v->kind == VERDICT_ALLOWED &&
		    (allowed || c->check.observe)) {
			commit(m, c, w, i, a);
			continue;
		}
		if (v->kind == VERDICT_REFUSED)
			keep_penalty(m, c, w, i, a);
		else
			algorithm_peek(&c->check, state_of(m, c, w->hash[i]),
			    a->taken_us, v);
		outlast(m, c, w->hash[i], v, a->taken_us);
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
	shards_unlock(&m->shards, w.shards);
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
	struct table *t = shards_table(&m->shards, hash);
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
		shards_remove(&m->shards, hash, e);
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
	shards_unlock(&m->shards, w.shards);
}

static void
charge_one(struct store_memory *m, const struct store_check *c, uint64_t hash,
    int64_t taken_us, int64_t now_us)
{
	struct table *t = shards_table(&m->shards, hash);
	struct entry *e = table_find(t, c->key, (unsigned)hash);
	struct state s = { 0 };
	int64_t end_us, cut;

	if (e == NULL)
		e = shards_add(
		    &m->shards, shards_bit(hash), c->key, hash, now_us);
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

	begin(m, &(struct store_question){ .check = &c, .n = 1 }, &w);
	if (s->delta > 0) {
		c.check.cost = s->delta;
		charge_one(m, &c, w.hash[0], s->taken_us, clock_steady_us());
	} else {
		c.check.cost = -s->delta;
		refund_one(m, &c, w.hash[0], s->taken_us, clock_steady_us());
	}
	shards_unlock(&m->shards, w.shards);
}

static void
memory_settle(struct store *store, const struct store_settlement *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s[i].delta != 0 &&
		    s[i].check.check.algorithm != ALGORITHM_CONCURRENCY)
			settle_one(memory_of(store), &s[i]);
}

static int64_t
memory_maintain(struct store *store)
{
	bool more = shards_sweep(&memory_of(store)->shards, clock_steady_us());

	return clock_mono_us() + (more ? SWEEP_BUSY_US : SWEEP_IDLE_US);
}

static void
memory_free(struct store *store)
{
	struct store_memory *m = memory_of(store);

	shards_release(&m->shards);
	held_slots_release(&m->slots);
	free(m);
}

static void
memory_release(struct store *store, const struct store_check *check, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (check[i].check.algorithm == ALGORITHM_CONCURRENCY)
			memory_refund(store,
			    &(struct store_question){
				.check = &check[i], .n = 1 },
			    0);
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
	m->store.is_steady = true;
	held_slots_init(&m->slots);
	shards_init(&m->shards, max_keys);
	return &m->store;
}

void
store_memory_set_max_keys(struct store *store, size_t max_keys)
{
	atomic_store(&memory_of(store)->shards.max_keys, max_keys);
}

void
store_memory_clear(struct store *store, struct str key)
{
	struct shards *s = &memory_of(store)->shards;
	uint64_t hash = shards_hash(s, key);
	struct entry *e;

	shards_lock(s, shards_bit(hash));
	e = table_find(shards_table(s, hash), key, (unsigned)hash);
	if (e != NULL)
		shards_remove(s, hash, e);
	shards_unlock(s, shards_bit(hash));
}

size_t
store_memory_count(struct store *store)
{
	return atomic_load(&memory_of(store)->shards.count);
}
