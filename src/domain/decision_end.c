/*
 * What a decision took is given back, or settled, store by store: all of it
 * that a store is asked about goes in one call.
 */
#include "domain/decision.h"

#include "base/compiler.h"
#include "base/log.h"
#include "domain/denied.h"
#include "domain/figures.h"

struct store *
decision_store(const struct stores *stores, enum decision_asked asked)
{
	return asked == DECISION_ASKED_SHARED ? stores->shared : stores->local;
}

static bool
is_observed(const struct decision_part *part)
{
	return part->limit->mode == CONFIG_MODE_OBSERVE;
}

static void
refund(const struct stores *stores, enum decision_asked asked,
    struct store_question *q, int64_t taken_us)
{
	struct store *store = decision_store(stores, asked);

	store->ops->refund(store, q, taken_us);
	if (asked == DECISION_ASKED_SHARED)
		denied_forget(stores->denied, q->check, q->n);
	q->n = 0;
}

static void
give_back(struct decision *d, const struct stores *stores,
    enum decision_asked asked, bool observed_too)
{
	UNINITIALIZED struct store_check taken[STORE_CHECKS_MAX];
	struct store_question q = { .check = taken, .n = 0 };
	int64_t taken_us = 0;

	for (size_t i = 0; i < d->n_parts; i++) {
		struct decision_part *part = &d->part[i];

		if (part->asked != asked || !part->taken ||
		    (is_observed(part) && !observed_too))
			continue;
		part->taken = false;
		if (part->lease != 0 &&
		    lease_put_back(stores->leases, &part->check, part->lease))
			continue;
		if (q.n > 0 && part->taken_us != taken_us)
			refund(stores, asked, &q, taken_us);
		taken_us = part->taken_us;
		taken[q.n++] = part->check;
	}
	if (q.n > 0)
		refund(stores, asked, &q, taken_us);
}

static void
give_all_back(
    struct decision *d, const struct stores *stores, bool observed_too)
{
	give_back(d, stores, DECISION_ASKED_LOCAL, observed_too);
	give_back(d, stores, DECISION_ASKED_SHARED, observed_too);
	give_back(d, stores, DECISION_ASKED_INSTEAD, observed_too);
}

/* Observed ones count as if each were alone. */
void
decision_give_back(struct decision *d, const struct stores *stores)
{
	give_all_back(d, stores, false);
}

static bool
is_said_by(const struct cost *cost, struct str name)
{
	return cost->kind == COST_RESPONSE && str_eq_nocase(cost->header, name);
}

/* Of any limit, also one that does not apply here. */
static bool
is_cost(const struct decision *d, struct str name)
{
	for (size_t i = 0; i < d->config->n_limits; i++)
		if (is_said_by(&d->config->limit[i].cost, name))
			return true;
	return false;
}

static void
log_bad_cost(
    const struct config_limit *limit, struct str name, struct str value)
{
	struct log_line line;

	log_begin(&line, LOG_LEVEL_WARN, "bad_cost");
	log_text(&line, "limit", limit->name);
	log_str(&line, "header", name);
	log_str(&line, "value", value);
	log_text(&line, "msg",
	    "a response is to say a whole number up to 1000000, once");
	log_end(&line);
}

/* What has all its units waits for none. */
static void
print_less(struct verdict *v, int64_t units)
{
	v->remaining -= units;
	if (v->remaining < 0)
		v->remaining = 0;
	if (v->remaining < v->limit)
		return;
	v->remaining = v->limit;
	v->next_us = 0;
	v->full_us = 0;
}

bool
decision_take_cost(struct decision *d, struct str name, struct str value)
{
	const struct config_limit *complained = NULL;
	uint64_t units = 0;
	bool is_good = str_to_u64(value, COST_RESPONSE_MAX, &units);
	bool changed = false;

	if (!is_cost(d, name))
		return false;
	for (size_t i = 0; i < d->n_parts; i++) {
		struct decision_part *part = &d->part[i];

		if (!is_said_by(&part->limit->cost, name) || !part->taken)
			continue;
		if (!is_good || part->said >= 0) {
			if (part->limit != complained)
				log_bad_cost(part->limit, name, value);
			complained = part->limit;
			continue;
		}
		part->said = (int64_t)units;
		print_less(&part->verdict, part->said - part->check.check.cost);
		changed = true;
	}
	if (changed && d->has_numbers) {
		figures_choose(d);
		figures_tell(d, d->arena);
	}
	return true;
}

/* What a part is to be charged more, or less, now that all is known. */
static int64_t
settlement_of(const struct decision_part *part, int status)
{
	int64_t held = part->check.check.cost;

	if (status > 0 && !statuses_have(&part->limit->count, status))
		return -held;
	return part->said < 0 ? 0 : part->said - held;
}

/* What is known of refusals was so before this. */
static void
forget_settled(
    const struct stores *stores, const struct store_settlement *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		denied_forget(stores->denied, &s[i].check, 1);
}

static void
settle_in(struct decision *d, const struct stores *stores,
    enum decision_asked asked, int status)
{
	UNINITIALIZED struct store_settlement settled[STORE_CHECKS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < d->n_parts; i++) {
		const struct decision_part *part = &d->part[i];
		int64_t delta = settlement_of(part, status);

		if (part->asked != asked || !part->taken || delta == 0)
			continue;
		settled[n++] = (struct store_settlement){ part->check,
			part->taken_us, delta };
	}
	if (n > 0) {
		struct store *store = decision_store(stores, asked);

		store->ops->settle(store, settled, n);
		if (asked == DECISION_ASKED_SHARED)
			forget_settled(stores, settled, n);
	}
}

void
decision_settle(struct decision *d, const struct stores *stores, int status)
{
	if (!d->to_settle)
		return;
	d->to_settle = false;
	settle_in(d, stores, DECISION_ASKED_LOCAL, status);
	settle_in(d, stores, DECISION_ASKED_SHARED, status);
	settle_in(d, stores, DECISION_ASKED_INSTEAD, status);
}

static void
release_in(
    struct decision *d, const struct stores *stores, enum decision_asked asked)
{
	UNINITIALIZED struct store_check held[STORE_CHECKS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < d->n_parts; i++) {
		struct decision_part *part = &d->part[i];

		if (part->asked != asked || !part->taken ||
		    part->check.slot.p == NULL)
			continue;
		part->taken = false;
		held[n++] = part->check;
	}
	if (n > 0) {
		struct store *store = decision_store(stores, asked);

		store->ops->release(store, held, n);
	}
}

void
decision_release(struct decision *d, const struct stores *stores)
{
	if (!d->to_release)
		return;
	d->to_release = false;
	release_in(d, stores, DECISION_ASKED_LOCAL);
	release_in(d, stores, DECISION_ASKED_SHARED);
	release_in(d, stores, DECISION_ASKED_INSTEAD);
}

void
decision_withdraw(struct decision *d, const struct stores *stores)
{
	give_all_back(d, stores, true);
	d->to_settle = false;
	d->to_release = false;
	d->has_numbers = false;
}

void
decision_forfeit(struct decision *d)
{
	for (size_t i = 0; i < d->n_parts; i++)
		d->part[i].taken = false;
	d->to_settle = false;
	d->to_release = false;
}
