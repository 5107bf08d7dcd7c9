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
 * what was taken at that moment, and looks once more. Nobody who is taking a
 * lease waits for another's.
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

#include "base/clock.h"
#include "base/compiler.h"
#include "base/counter.h"
#include "domain/denied.h"
#include "domain/lease_table.h"
#include "pure/lease_size.h"

#define SPAN_US   200000
#define MARGIN_US 1000
#define IDLE_US   100000
/* How often the maintenance thread looks; and when there is nothing. */
#define PASS_US  50000
#define SLEEP_US 1000000

struct leases {
	struct lease_table table;
	struct deny_cache *denied;
	int64_t wait_us;
	_Atomic uint64_t last_id;
	atomic_bool awake; /* the maintenance thread will look in time */
	int64_t pass_us;   /* that thread's: when to look next */
	void (*wake)(void *context);
	void *wake_context;
};

/* How long a request waits for other threads at the most, and did. */
struct patience {
	int64_t until_us; /* by clock_mono_us */
	int64_t waited_us;
};

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
	l->wait_us = wait_us;
	return l;
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

/* With the lock. */
static bool
suffices(const struct lease *lease, int64_t cost, int64_t now_us)
{
	return lease != NULL && lease->id != 0 && lease->units >= cost &&
	    now_us < lease->spend_until_us;
}

/* With the lock. Of units that are being taken: may there be so many more? */
static bool
promises(const struct lease *lease, int64_t cost)
{
	const struct check *c = &lease->check.check;

	return lease->id == 0 && cost > 0 &&
	    c->most - c->cost - lease->promised >= cost;
}

static bool
is_being_taken(const struct lease *lease, uint64_t serial)
{
	return lease != NULL && lease->id == 0 && lease->serial == serial;
}

/*
 * With the lock, which is let go meanwhile: the newest, after the taking that
 * promises the cost, if there is one, and if that is in time.
 */
static struct lease *
await(struct lease_shard *s, uint64_t hash, const struct store_check *check,
    struct patience *p)
{
	struct lease *lease = lease_table_find(s, hash, check);
	int64_t cost = check->check.cost, from_us, now_us;
	bool in_time = true;
	uint64_t serial;

	if (lease == NULL || !promises(lease, cost))
		return lease;
	serial = lease->serial;
	lease->promised += cost;
	from_us = now_us = clock_mono_us();
	while (
	    is_being_taken(lease, serial) && in_time && now_us < p->until_us) {
		in_time = lease_table_wait(s, p->until_us - now_us);
		lease = lease_table_find(s, hash, check);
		now_us = clock_mono_us();
	}
	if (is_being_taken(lease, serial))
		lease->promised -= cost;
	p->waited_us += now_us - from_us;
	return lease;
}

/*
 * False: nothing was spent; *taking: the lease that is to be asked for. p:
 * NULL: it does not wait.
 */
static bool
spend(struct leases *l, const struct store_check *check, int64_t size,
    struct patience *p, struct verdict *v, struct lease_unit *unit,
    struct lease **taking)
{
	uint64_t hash = lease_table_hash(&l->table, check->key);
	struct lease_shard *s = lease_table_lock(&l->table, hash);
	struct lease *lease = p != NULL ? await(s, hash, check, p)
					: lease_table_find(s, hash, check);
	int64_t cost = check->check.cost, now_us = clock_mono_us();
	bool spent = suffices(lease, cost, now_us);

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
	lease->taken = v->taken > 0 ? v->taken : lease->check.check.cost;
	lease->units = lease->taken - lease->check.check.cost;
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

/* Without any units beyond the cost there is no lease, but for its pace. */
static void
conclude(struct leases *l, struct lease *lease, const struct lease_news *news,
    struct verdict *v, struct lease_unit *unit)
{
	struct lease_shard *s = lease_table_lock(&l->table, lease->hash);

	if (v->kind == VERDICT_ALLOWED)
		fill(l, lease, news->asked_us, news->store_us, v);
	learn(s, lease->hash, &lease->check, *news, v);
	if (lease->units > 0) {
		count_lease(lease);
		tell(lease, lease->begun_us, v, unit);
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
lease_tell(struct leases *l, const struct store_check *check,
    const struct lease_news *news, struct verdict *v)
{
	uint64_t hash = lease_table_hash(&l->table, check->key);
	struct lease_shard *s;

	if (lease_table_count(&l->table) == 0)
		return;
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

static void
settle(struct leases *l, struct store *store, const struct store_settlement *s,
    size_t n)
{
	if (n > 0)
		store->ops->settle(store, s, n);
	for (size_t i = 0; i < n; i++)
		denied_forget(l->denied, &s[i].check, 1);
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
	settle(l, store, back, n);
}

static bool
is_refused(const struct store_answer *answer, size_t n)
{
	if (answer->status != STORE_ANSWERED)
		return false;
	for (size_t i = 0; i < n; i++)
		if (answer->verdict[i].kind == VERDICT_REFUSED)
			return true;
	return false;
}

/* The answer is of all the question then: each has its own verdict. */
static void
share(struct leases *l, const struct store_question *q, const struct missing *m,
    const struct store_answer *of, int64_t asked_us,
    struct store_answer *answer, struct lease_unit *unit)
{
	static const struct verdict none = { .kind = VERDICT_ERROR };
	const struct lease_news news = {
		.store_us = of->taken_us,
		.asked_us = asked_us,
		.is_taken = !is_refused(of, m->n),
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
			lease_tell(l, &q->check[m->at[i]], &news, v);
		v->taken = 0;
	}
}

static void
ask_for(struct leases *l, struct store *store, const struct store_question *q,
    const struct missing *m, struct store_answer *answer,
    struct lease_unit *unit)
{
	UNINITIALIZED struct store_check check[STORE_CHECKS_MAX];
	struct store_question rest = { check, m->n };
	int64_t asked_us = clock_mono_us();
	UNINITIALIZED struct store_answer of;

	for (size_t i = 0; i < m->n; i++) {
		check[i] = q->check[m->at[i]];
		if (m->lease[i] != NULL)
			check[i].check.most = m->lease[i]->check.check.most;
	}
	store->ops->ask(store, &rest, &of);
	share(l, q, m, &of, asked_us, answer, unit);
	if (is_refused(&of, m->n))
		unspend(l, store, q, answer, unit);
}

/* Spends what there is, and asks for the rest. */
static void
spend_or_ask(struct leases *l, struct store *store,
    const struct store_question *q, const int64_t *size, struct patience *p,
    struct store_answer *answer, struct lease_unit *unit)
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
		ask_for(l, store, q, &m, answer, unit);
		return;
	}
	answer->status = STORE_ANSWERED;
	answer->taken_us = unit[0].taken_us;
	answer->wait_us = 0;
	answer->retry_us = 0;
	answer->reason = NULL;
}

static bool
is_there(struct leases *l, const struct store_check *check, struct patience *p)
{
	uint64_t hash = lease_table_hash(&l->table, check->key);
	struct lease_shard *s = lease_table_lock(&l->table, hash);
	struct lease *lease = await(s, hash, check, p);
	bool is = suffices(lease, check->check.cost, clock_mono_us());

	lease_table_unlock(s);
	return is;
}

/* Of a question that was refused: did another take meanwhile what it lacks? */
static bool
is_there_now(struct leases *l, const struct store_question *q,
    const struct store_answer *answer, struct patience *p)
{
	for (size_t i = 0; i < q->n; i++)
		if (answer->verdict[i].kind == VERDICT_REFUSED &&
		    !is_there(l, &q->check[i], p))
			return false;
	return true;
}

void
lease_ask(struct leases *l, struct store *store, const struct store_question *q,
    const int64_t *size, struct store_answer *answer, struct lease_unit *unit)
{
	struct patience p = { .until_us = clock_mono_us() + l->wait_us };

	spend_or_ask(l, store, q, size, &p, answer, unit);
	if (is_refused(answer, q->n) && is_there_now(l, q, answer, &p)) {
		p.waited_us += answer->wait_us;
		spend_or_ask(l, store, q, size, &p, answer, unit);
	}
	answer->wait_us += p.waited_us;
}

/* ---- giving back ------------------------------------------------- */

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

static void
give_back(struct leases *l, struct store *store,
    bool is_wanted(const struct lease *lease, int64_t now_us))
{
	int64_t now_us = clock_mono_us();
	struct lease *left = lease_table_take_out(&l->table, is_wanted, now_us);

	while (left != NULL) {
		UNINITIALIZED struct store_settlement back[STORE_CHECKS_MAX];
		struct lease *sent = left;
		size_t n = 0;

		for (; left != NULL && n < STORE_CHECKS_MAX; left = left->next)
			n += settlement_of(left, now_us, &back[n]);
		settle(l, store, back, n);
		while (sent != left) {
			struct lease *next = sent->next;

			free(sent);
			sent = next;
		}
	}
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
	give_back(l, store, is_due);
	l->pass_us = now_us + PASS_US;
	if (lease_table_count(&l->table) == 0)
		return now_us + SLEEP_US;
	atomic_store(&l->awake, true);
	return l->pass_us;
}

void
leases_return(struct leases *l, struct store *store)
{
	give_back(l, store, is_any);
}

void
leases_drop(struct leases *l, struct str key)
{
	uint64_t hash = lease_table_hash(&l->table, key);
	struct lease_shard *s = lease_table_lock(&l->table, hash);
	struct lease *lease;

	while ((lease = lease_table_find_key(s, hash, key)) != NULL) {
		counter_add(
		    COUNTER_lease_units_expired, (uint64_t)lease->units);
		lease_table_remove(&l->table, lease);
	}
	lease_table_unlock(s);
}
