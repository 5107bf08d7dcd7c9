/*
 * A lease is of a key, by its effective N and burst, and of units that one
 * trip took together: min(N, what remains), at least the cost of the request
 * that asked. They have one time at which they were taken, so one window.
 *
 * A unit is spent once: `units` goes down under the lock of its shard, and
 * what is given back has left the table before. It is spent within 200 ms of
 * being taken: counted from before the question was sent, so never late. A
 * fixed window ends on the store's clock, full_us after the units were taken;
 * counted from before the question it ends too early here by a trip, and by
 * MARGIN_US more, which two clocks may differ in as they go.
 *
 * Of a request with several limits or rates each key has a lease of its own.
 * What is there is spent first; all that is missing is asked for in one
 * question, and if that refuses, what was spent goes back.
 *
 * Of many who miss the same lease at once, one takes a new one, which stands
 * in the table meanwhile, and is that thread's alone. As many others as it may
 * suffice for wait for it, no longer than for the store, and then spend from
 * it; all else ask for their own cost alone. Who is refused then may be so by
 * what was taken at that moment, and looks once more; he stays refused if the
 * store is out then. Nobody who is taking a lease waits for another's.
 *
 * With `auto` what is taken follows from how fast the lease before was spent
 * (lease_size.h), so one stays in the table for a while when it is empty, and
 * a request that took its cost alone leaves an empty one.
 *
 * What is left of a lease that is too old, too small for a cost, or that
 * nobody has spent from for IDLE_US is given back by the maintenance thread,
 * once: the return names when the units were taken, and the store drops it
 * if their window has gone. One that gets no answer is not sent again.
 */
#include "domain/lease.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/counter.h"
#include "domain/denied.h"
#include "domain/lease_own.h"
#include "domain/lease_told.h"
#include "domain/lease_wait.h"
#include "pure/lease_size.h"

#define SPAN_US   200000
#define MARGIN_US 1000

/* What a question lacks, and for which of it a lease is being taken. */
struct missing {
	size_t n;
	size_t at[STORE_CHECKS_MAX]; /* in the question */
	struct lease *lease[STORE_CHECKS_MAX];
};

struct leases *
leases_new(struct deny_cache *denied, int64_t wait_us)
{
	struct leases *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	lease_table_init(&l->table);
	l->denied = denied;
	leases_set_wait(l, wait_us);
	return l;
}

void
leases_set_wait(struct leases *l, int64_t wait_us)
{
	atomic_store(&l->wait_us, wait_us);
}

void
leases_free(struct leases *l)
{
	if (l == NULL)
		return;
	lease_table_release(&l->table);
	free(l);
}

void
leases_set_waker(struct leases *l, void (*wake)(void *context), void *context)
{
	l->wake = wake;
	l->wake_context = context;
}

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

/*
 * False: nothing was spent; *taking: the lease that is to be asked for. p:
 * NULL: it does not wait.
 */
static bool
spend(struct leases *l, const struct store_check *check, int64_t size,
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
static void
conclude(struct leases *l, struct lease *lease, const struct lease_news *news,
    struct verdict *v, struct lease_unit *unit)
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

static void
tell_asked(struct leases *l, const struct store_check *check,
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

/* v: its figures then; NULL: nobody asks. */
static bool
put_back(struct leases *l, const struct store_check *check, uint64_t id,
    struct verdict *v)
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
lease_put_back(struct leases *l, const struct store_check *check, uint64_t id)
{
	return put_back(l, check, id, NULL);
}

/* Of a request that was refused: what its other checks had spent. */
static void
unspend(struct leases *l, struct store *store, const struct store_question *q,
    struct store_answer *answer, const struct lease_unit *unit)
{
	UNINITIALIZED struct store_settlement back[STORE_CHECKS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < q->n; i++) {
		int64_t cost = q->check[i].check.cost;

		if (unit[i].id == 0 || cost == 0 ||
		    put_back(l, &q->check[i], unit[i].id, &answer->verdict[i]))
			continue;
		back[n] = (struct store_settlement){ q->check[i],
			unit[i].taken_us, -cost };
		back[n++].check.check.full_us = unit[i].full_us;
	}
	lease_own_settle(l, store, back, n);
}

/* What the store was asked for and has taken, and no lease has. */
static void
refund(struct leases *l, struct store *store, const struct store_question *q,
    const struct store_answer *answer, const struct lease_unit *unit)
{
	UNINITIALIZED struct store_settlement back[STORE_CHECKS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < q->n; i++) {
		const struct verdict *v = &answer->verdict[i];
		int64_t cost = q->check[i].check.cost;

		if (v->kind != VERDICT_ALLOWED || unit[i].id != 0 || cost == 0)
			continue;
		back[n] = (struct store_settlement){ q->check[i],
			answer->taken_us, -cost };
		back[n++].check.check.full_us = v->full_us;
	}
	lease_own_settle(l, store, back, n);
}

static bool
lacks_answers(const struct store_answer *answer, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (answer->verdict[i].kind == VERDICT_ERROR)
			return true;
	return false;
}

void
lease_learn(struct leases *l, const struct store_question *q, int64_t asked_us,
    struct store_answer *answer)
{
	struct lease_news news = {
		.store_us = answer->taken_us,
		.asked_us = asked_us,
		.is_taken = true,
	};

	if (answer->status != STORE_ANSWERED)
		return;
	for (size_t i = 0; i < q->n; i++)
		if (answer->verdict[i].kind == VERDICT_REFUSED &&
		    !q->check[i].check.observe)
			news.is_taken = false;
	for (size_t i = 0; i < q->n; i++)
		tell_asked(l, &q->check[i], &news, &answer->verdict[i]);
}

/* The answer is of all the question then: each has its own verdict. */
static void
share(struct leases *l, const struct store_question *q, const struct missing *m,
    const struct store_answer *of, int64_t asked_us, bool refused,
    struct store_answer *answer, struct lease_unit *unit)
{
	static const struct verdict none = { .kind = VERDICT_ERROR };
	const struct lease_news news = {
		.store_us = of->taken_us,
		.asked_us = asked_us,
		.is_taken = !refused,
	};

	answer->status = STORE_ANSWERED;
	answer->taken_us = of->taken_us;
	answer->wait_us = of->wait_us;
	answer->retry_us = of->retry_us;
	answer->reason = of->reason;
	for (size_t i = 0; i < m->n; i++) {
		struct verdict *v = &answer->verdict[m->at[i]];

		*v = of->status == STORE_ANSWERED ? of->verdict[i] : none;
		if (m->lease[i] != NULL)
			conclude(l, m->lease[i], &news, v, &unit[m->at[i]]);
		else
			tell_asked(l, &q->check[m->at[i]], &news, v);
		v->taken = 0;
	}
}

static void
ask_for(struct leases *l, struct store *store, const struct store_question *q,
    const struct missing *m, int64_t until_us, struct store_answer *answer,
    struct lease_unit *unit)
{
	UNINITIALIZED struct store_check check[STORE_CHECKS_MAX];
	struct store_question rest = { check, m->n, until_us };
	int64_t asked_us = clock_mono_us();
	UNINITIALIZED struct store_answer of;
	bool refused;

	for (size_t i = 0; i < m->n; i++) {
		check[i] = q->check[m->at[i]];
		if (m->lease[i] != NULL)
			check[i].check.most = m->lease[i]->check.check.most;
	}
	store->ops->ask(store, &rest, &of);
	refused = store_refuses(&rest, &of);
	share(l, q, m, &of, asked_us, refused, answer, unit);
	if (refused)
		unspend(l, store, q, answer, unit);
}

/* Spends what there is, and asks for the rest. */
static void
spend_or_ask(struct leases *l, struct store *store,
    const struct store_question *q, const int64_t *size,
    struct lease_patience *p, struct store_answer *answer,
    struct lease_unit *unit)
{
	UNINITIALIZED struct missing m;
	bool is_taking = false;
	int64_t spent = 0;

	m.n = 0;
	for (size_t i = 0; i < q->n; i++) {
		if (spend(l, &q->check[i], size[i], is_taking ? NULL : p,
			&answer->verdict[i], &unit[i], &m.lease[m.n])) {
			spent += q->check[i].check.cost;
			continue;
		}
		is_taking |= m.lease[m.n] != NULL;
		m.at[m.n++] = i;
	}
	if (spent > 0)
		counter_add(COUNTER_lease_units_spent, (uint64_t)spent);
	if (m.n > 0) {
		ask_for(l, store, q, &m, p->until_us, answer, unit);
		return;
	}
	answer->status = STORE_ANSWERED;
	answer->taken_us = unit[0].taken_us;
	answer->wait_us = 0;
	answer->retry_us = 0;
	answer->reason = NULL;
}

static bool
is_there(
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

/* Of a question that was refused: did another take meanwhile what it lacks? */
static bool
is_there_now(struct leases *l, const struct store_question *q,
    const struct store_answer *answer, struct lease_patience *p)
{
	for (size_t i = 0; i < q->n; i++)
		if (answer->verdict[i].kind == VERDICT_REFUSED &&
		    !is_there(l, &q->check[i], p))
			return false;
	return true;
}

/*
 * Who was refused is not let pass because the store is out by now: then the
 * refusal stands, and what was taken goes back.
 */
static void
ask_again(struct leases *l, struct store *store, const struct store_question *q,
    const int64_t *size, struct lease_patience *p, struct store_answer *answer,
    struct lease_unit *unit)
{
	UNINITIALIZED struct store_answer again;
	UNINITIALIZED struct lease_unit of[STORE_CHECKS_MAX];

	p->waited_us += answer->wait_us;
	spend_or_ask(l, store, q, size, p, &again, of);
	if (!lacks_answers(&again, q->n)) {
		*answer = again;
		memcpy(unit, of, q->n * sizeof(*unit));
		return;
	}
	answer->wait_us = again.wait_us;
	if (store_refuses(q, &again))
		return;
	unspend(l, store, q, &again, of);
	refund(l, store, q, &again, of);
}

void
lease_ask(struct leases *l, struct store *store, const struct store_question *q,
    const int64_t *size, struct store_answer *answer, struct lease_unit *unit)
{
	struct lease_patience p = {
		.until_us = clock_mono_us() + atomic_load(&l->wait_us),
	};

	spend_or_ask(l, store, q, size, &p, answer, unit);
	if (store_refuses(q, answer) && is_there_now(l, q, answer, &p))
		ask_again(l, store, q, size, &p, answer, unit);
	answer->wait_us += p.waited_us;
}
