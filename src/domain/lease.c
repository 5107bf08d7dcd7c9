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
#include "domain/lease_own.h"
#include "domain/lease_told.h"
#include "domain/lease_wait.h"

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

bool
lease_put_back(struct leases *l, const struct store_check *check, uint64_t id)
{
	return lease_own_put_back(l, check, id, NULL);
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
		    lease_own_put_back(
			l, &q->check[i], unit[i].id, &answer->verdict[i]))
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
		lease_own_tell_asked(
		    l, &q->check[i], &news, &answer->verdict[i]);
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
			lease_own_conclude(
			    l, m->lease[i], &news, v, &unit[m->at[i]]);
		else
			lease_own_tell_asked(l, &q->check[m->at[i]], &news, v);
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
		if (lease_own_spend(l, &q->check[i], size[i],
			is_taking ? NULL : p, &answer->verdict[i], &unit[i],
			&m.lease[m.n])) {
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

/* Of a question that was refused: did another take meanwhile what it lacks? */
static bool
is_there_now(struct leases *l, const struct store_question *q,
    const struct store_answer *answer, struct lease_patience *p)
{
	for (size_t i = 0; i < q->n; i++)
		if (answer->verdict[i].kind == VERDICT_REFUSED &&
		    !lease_own_is_there(l, &q->check[i], p))
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
