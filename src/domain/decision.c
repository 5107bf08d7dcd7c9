/*
 * Three batches can be asked, one after the other: the checks of local
 * limits, those of shared ones, and what on_outage = local puts in the place
 * of shared ones that got no answer. Once one has refused, only observed
 * limits are still asked: they count as if each were alone.
 *
 * What the shared store is known to refuse (denied.h) it is not asked.
 */
#include "domain/decision.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "domain/denied.h"
#include "domain/figures.h"
#include "domain/limit.h"
#include "domain/observed.h"

/* The checks for one store, and whose they are. */
struct batch {
	struct store_check check[STORE_CHECKS_MAX];
	const struct config_limit *limit[STORE_CHECKS_MAX];
	size_t n;
	struct store_answer answer;
	bool leased; /* then unit is set */
	struct lease_unit unit[STORE_CHECKS_MAX];
};

/* What a decision is made from. */
struct asking {
	const struct config *config;
	const struct stores *stores;
	const struct subject *subject;
	struct arena *arena;
	struct batch local;
	struct batch shared;
};

static bool
is_observed(const struct config_limit *limit)
{
	return limit->mode == CONFIG_MODE_OBSERVE;
}

/* `never` is the longest of waits. */
static bool
is_longer(int64_t a, int64_t b)
{
	if (b == ALGORITHM_NEVER)
		return false;
	return a == ALGORITHM_NEVER || a > b;
}

static void
refuse(struct decision *d, const struct config_limit *limit,
    const struct verdict *v)
{
	if (d->kind == DECISION_OUTAGE ||
	    (d->kind == DECISION_REFUSED &&
		!is_longer(v->retry_us, d->retry_us)))
		return;
	d->kind = DECISION_REFUSED;
	d->limit = limit;
	d->has_numbers = true;
	d->verdict = *v;
	d->retry_us = v->retry_us;
}

static void
stop(struct decision *d, enum decision_kind kind,
    const struct config_limit *limit)
{
	d->kind = kind;
	d->limit = limit;
	d->has_numbers = false;
}

/* A limit that needs no store to refuse. */
static void
prepare_closed(const struct asking *a, struct decision *d,
    const struct config_limit *limit, enum limit_state state)
{
	static const struct verdict closed = {
		.kind = VERDICT_REFUSED,
		.retry_us = ALGORITHM_NEVER,
	};
	static const char twice[] =
	    "a param or field of its key has two values";
	bool observed = is_observed(limit);

	if (state == LIMIT_CLOSED && observed)
		observed_would_refuse(a->subject, limit, "its rate is deny");
	else if (state == LIMIT_CLOSED)
		refuse(d, limit, &closed);
	else if (state == LIMIT_KEY_MISSING && observed)
		observed_would_refuse(a->subject, limit, "its key is missing");
	else if (state == LIMIT_KEY_MISSING)
		stop(d, DECISION_FORBIDDEN, limit);
	else if (state == LIMIT_KEY_TWICE && observed)
		observed_would_refuse(a->subject, limit, twice);
	else if (state == LIMIT_KEY_TWICE) {
		stop(d, DECISION_AMBIGUOUS, limit);
		d->reason = twice;
	} else if (!observed) {
		stop(d, DECISION_OUTAGE, limit);
		d->reason = "out of memory";
	}
}

/* The first that can say so without a store ends it for those that enforce. */
static void
prepare(struct asking *a, struct decision *d)
{
	for (size_t i = 0; i < a->config->n_limits; i++) {
		const struct config_limit *l = &a->config->limit[i];
		struct batch *b =
		    l->scope == CONFIG_SCOPE_LOCAL ? &a->local : &a->shared;
		enum limit_state state;
		size_t n;

		if (!decision_passes(d) && !is_observed(l))
			continue;
		state = limit_prepare(l, a->stores->naming, a->subject,
		    a->arena, &b->check[b->n], STORE_CHECKS_MAX - b->n, &n);
		if (state == LIMIT_SKIPPED)
			continue;
		if (state != LIMIT_CHECKED) {
			prepare_closed(a, d, l, state);
			continue;
		}
		for (size_t k = 0; k < n; k++)
			b->limit[b->n + k] = l;
		b->n += n;
	}
}

static void
leave_observed(struct batch *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->n; i++) {
		if (!is_observed(b->limit[i]))
			continue;
		b->check[n] = b->check[i];
		b->limit[n++] = b->limit[i];
	}
	b->n = n;
}

static bool
is_answered(const struct batch *b, size_t i)
{
	return b->answer.status == STORE_ANSWERED &&
	    b->answer.verdict[i].kind != VERDICT_ERROR;
}

static void
unanswered(struct decision *d, const struct config_limit *limit,
    const struct store_answer *answer)
{
	d->outage = true;
	d->reason = answer->reason;
	if (limit->on_outage != CONFIG_OUTAGE_DENY ||
	    d->kind == DECISION_OUTAGE)
		return;
	stop(d, DECISION_OUTAGE, limit);
	d->retry_us = answer->retry_us;
}

static void
weigh(struct decision *d, const struct batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		const struct verdict *v = &b->answer.verdict[i];

		if (is_observed(b->limit[i]))
			continue;
		if (!is_answered(b, i))
			unanswered(d, b->limit[i], &b->answer);
		else if (v->kind == VERDICT_REFUSED)
			refuse(d, b->limit[i], v);
		else if (d->kind == DECISION_UNLIMITED)
			d->kind = DECISION_ALLOWED;
	}
}

/* Does its cost depend on the response? */
static bool
is_open(const struct config_limit *limit)
{
	return limit->count.some || limit->cost.kind == COST_RESPONSE;
}

/* Its units may have been taken before, and its figures be that old. */
static void
keep_unit(struct decision_part *part, const struct lease_unit *unit)
{
	if (unit->id == 0)
		return;
	part->lease = unit->id;
	part->taken_us = unit->taken_us;
	part->age_us = unit->age_us;
	part->check.check.full_us = unit->full_us;
}

/* A check that got an error took nothing. */
static void
keep(struct decision *d, const struct store *store, const struct batch *b,
    enum decision_asked asked)
{
	const struct store_question q = { .check = b->check, .n = b->n };
	bool committed = !store_refuses(&q, &b->answer);

	for (size_t i = 0; i < b->n; i++) {
		struct decision_part *part = &d->part[d->n_parts++];

		*part = (struct decision_part){
			.limit = b->limit[i],
			.check = b->check[i],
			.verdict = b->answer.verdict[i],
			.asked = asked,
			.taken_us = b->answer.taken_us,
			.is_steady = store->is_steady,
			.said = -1,
		};
		if (!is_answered(b, i))
			part->verdict =
			    (struct verdict){ .kind = VERDICT_ERROR };
		/* What a refund has to know of a bucket. */
		part->check.check.full_us = part->verdict.full_us;
		if (b->leased)
			keep_unit(part, &b->unit[i]);
		part->taken = part->verdict.kind == VERDICT_ALLOWED &&
		    (committed || is_observed(part->limit));
		d->to_settle |= part->taken && is_open(part->limit);
		d->to_release |= part->taken && part->check.slot.p != NULL;
	}
}

/*
 * A request leases only if all its shared limits do; of a store that no trip
 * leads to it never does. size: how many units each may take.
 */
static bool
lease_sizes(const struct stores *stores, const struct batch *b, int64_t *size)
{
	if (stores->leases == NULL || !stores->shared->may_block)
		return false;
	for (size_t i = 0; i < b->n; i++) {
		uint64_t lease = b->limit[i]->lease;

		if (lease == 0)
			return false;
		size[i] =
		    lease == CONFIG_LEASE_AUTO ? LEASE_AUTO : (int64_t)lease;
	}
	return true;
}

static void
ask(struct decision *d, struct store *store, struct batch *b,
    enum decision_asked asked)
{
	struct store_question q = { .check = b->check, .n = b->n };

	b->leased = false;
	store->ops->ask(store, &q, &b->answer);
	keep(d, store, b, asked);
}

/* File order is that of the limits in their array. */
static void
sort_parts(struct decision *d)
{
	for (size_t i = 1; i < d->n_parts; i++) {
		struct decision_part part = d->part[i];
		size_t k = i;

		for (; k > 0 && d->part[k - 1].limit > part.limit; k--)
			d->part[k] = d->part[k - 1];
		d->part[k] = part;
	}
}

/* Without room for what is taken nothing may be: it could not go back. */
static bool
make_room(struct asking *a, struct decision *d)
{
	const struct batch *shared = &a->shared;
	size_t n = a->local.n + shared->n;

	for (size_t i = 0; i < shared->n; i++)
		if (shared->limit[i]->on_outage == CONFIG_OUTAGE_LOCAL &&
		    (i == 0 || shared->limit[i] != shared->limit[i - 1]))
			n += shared->limit[i]->outage_rates.n;
	if (n == 0)
		return false;
	d->part = arena_alloc(a->arena, n * sizeof(*d->part));
	if (d->part != NULL)
		return true;
	stop(d, DECISION_OUTAGE, NULL);
	d->reason = "out of memory";
	return false;
}

/* The checks by outage_rate for those without an answer. */
static void
prepare_instead(struct asking *a, struct decision *d, struct batch *b)
{
	const struct config_limit *last = NULL;

	for (size_t i = 0; i < a->shared.n; i++) {
		const struct config_limit *l = a->shared.limit[i];
		enum limit_state state;
		size_t n;

		if (is_answered(&a->shared, i) || l == last ||
		    l->on_outage != CONFIG_OUTAGE_LOCAL ||
		    (!decision_passes(d) && !is_observed(l)))
			continue;
		last = l;
		state = limit_prepare_instead(l, a->stores->naming, a->subject,
		    a->arena, &b->check[b->n], STORE_CHECKS_MAX - b->n, &n);
		if (state == LIMIT_CLOSED)
			prepare_closed(a, d, l, state);
		for (size_t k = 0; k < n; k++)
			b->limit[b->n + k] = l;
		b->n += n;
	}
}

/*
 * It has no numbers to show: they are not those of the limit. What gets no
 * answer here either passes.
 */
static void
ask_instead(struct asking *a, struct decision *d)
{
	bool passed = decision_passes(d);
	UNINITIALIZED struct batch b;

	b.n = 0;
	prepare_instead(a, d, &b);
	if (!decision_passes(d))
		leave_observed(&b);
	if (b.n > 0)
		ask(d, a->stores->local, &b, DECISION_ASKED_INSTEAD);
	for (size_t i = 0; i < b.n; i++)
		if (!is_observed(b.limit[i]) && is_answered(&b, i) &&
		    b.answer.verdict[i].kind == VERDICT_REFUSED)
			refuse(d, b.limit[i], &b.answer.verdict[i]);
	if (passed && !decision_passes(d))
		d->has_numbers = false;
}

static bool
lacks_answers(const struct batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (!is_answered(b, i))
			return true;
	return false;
}

static bool
has_observed(const struct batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (is_observed(b->limit[i]))
			return true;
	return false;
}

/* By its leases, or so that these learn of it. asked_us: not after. */
static void
ask_leases(const struct stores *stores, struct batch *b, int64_t asked_us)
{
	struct store *store = stores->shared;
	struct store_question q = { .check = b->check, .n = b->n };
	UNINITIALIZED int64_t size[STORE_CHECKS_MAX];

	b->leased = lease_sizes(stores, b, size);
	if (b->leased) {
		lease_ask(stores->leases, store, &q, size, &b->answer, b->unit);
		return;
	}
	store->ops->ask(store, &q, &b->answer);
	if (stores->leases != NULL)
		lease_learn(stores->leases, &q, asked_us, &b->answer);
}

static void
ask_shared(struct asking *a, struct decision *d)
{
	struct batch *b = &a->shared;
	struct denied_request r = {
		.cache = a->stores->denied,
		.serial = a->config->serial,
		.check = b->check,
		.limit = b->limit,
		.n = b->n,
		.observes = has_observed(b) || has_observed(&a->local),
	};
	int64_t now_us = clock_mono_us();

	d->cached = denied_recall(&r, now_us, &b->answer);
	if (d->cached) {
		b->n = r.n;
		b->leased = false;
	} else {
		ask_leases(a->stores, b, now_us);
		d->store_wait_us = b->answer.wait_us;
		denied_learn(&r, &b->answer, now_us);
	}
	keep(d, a->stores->shared, b, DECISION_ASKED_SHARED);
}

static void
ask_all(struct asking *a, struct decision *d)
{
	if (!decision_passes(d)) {
		leave_observed(&a->local);
		leave_observed(&a->shared);
	}
	if (!make_room(a, d))
		return;
	if (a->local.n > 0) {
		ask(d, a->stores->local, &a->local, DECISION_ASKED_LOCAL);
		weigh(d, &a->local);
	}
	if (!decision_passes(d))
		leave_observed(&a->shared);
	if (a->shared.n > 0) {
		ask_shared(a, d);
		weigh(d, &a->shared);
		if (lacks_answers(&a->shared))
			ask_instead(a, d);
	}
}

static int64_t
longest_delay(const struct decision *d)
{
	int64_t longest_us = 0;

	for (size_t i = 0; i < d->n_parts; i++)
		if (!is_observed(d->part[i].limit) &&
		    d->part[i].verdict.delay_us > longest_us)
			longest_us = d->part[i].verdict.delay_us;
	return longest_us;
}

void
decision_make(struct decision *d, const struct config *config,
    const struct stores *stores, const struct subject *subject,
    struct arena *arena)
{
	UNINITIALIZED struct asking a;

	a.config = config;
	a.stores = stores;
	a.subject = subject;
	a.arena = arena;
	a.local.n = a.shared.n = 0;
	*d = (struct decision){
		.kind = DECISION_UNLIMITED,
		.config = config,
		.arena = arena,
	};
	prepare(&a, d);
	ask_all(&a, d);
	if (!decision_passes(d))
		decision_give_back(d, stores);
	if (d->kind == DECISION_UNLIMITED && d->outage)
		d->kind = DECISION_ALLOWED;
	sort_parts(d);
	/* Numbers without those of the store that is out would be lies. */
	if (d->kind == DECISION_ALLOWED && !d->outage)
		figures_choose(d);
	figures_tell(d, arena);
	d->delay_us = decision_passes(d) ? longest_delay(d) : 0;
	observed_tell(d, subject);
}
