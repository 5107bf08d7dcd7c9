#include "domain/decision.h"

#include "domain/limit.h"

/* The checks for one store, and whose they are. */
struct batch {
	struct store_check check[STORE_CHECKS_MAX];
	const struct config_limit *limit[STORE_CHECKS_MAX];
	size_t n;
	struct store_answer answer;
};

static struct store_question
question(const struct batch *b)
{
	return (struct store_question){ b->check, b->n };
}

static struct verdict
closed_verdict(void)
{
	return (struct verdict){ .kind = VERDICT_REFUSED,
		.retry_us = ALGORITHM_NEVER };
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

/* false: decided without asking anybody. */
static bool
prepare(struct decision *d, const struct config *config,
    const struct config_store *naming, const struct subject *subject,
    struct arena *arena, struct batch *local, struct batch *shared)
{
	struct verdict closed = closed_verdict();

	for (size_t i = 0; i < config->n_limits; i++) {
		const struct config_limit *l = &config->limit[i];
		struct batch *b =
		    l->scope == CONFIG_SCOPE_LOCAL ? local : shared;
		size_t n;

		switch (limit_prepare(l, naming, subject, arena,
		    &b->check[b->n], STORE_CHECKS_MAX - b->n, &n)) {
		case LIMIT_SKIPPED:
			continue;
		case LIMIT_KEY_MISSING:
			stop(d, DECISION_FORBIDDEN, l);
			return false;
		case LIMIT_KEY_TWICE:
			stop(d, DECISION_AMBIGUOUS, l);
			d->reason = "a param of its key has two values";
			return false;
		case LIMIT_CLOSED:
			refuse(d, l, &closed);
			return false;
		case LIMIT_FAILED:
			stop(d, DECISION_OUTAGE, l);
			d->reason = "out of memory";
			return false;
		case LIMIT_CHECKED:
			break;
		}
		for (size_t k = 0; k < n; k++)
			b->limit[b->n + k] = l;
		b->n += n;
	}
	return true;
}

static void
unanswered(struct decision *d, const struct config_limit *limit,
    const struct store_answer *answer)
{
	d->outage = true;
	d->reason = answer->reason;
	if (limit->on_outage == CONFIG_OUTAGE_ALLOW ||
	    d->kind == DECISION_OUTAGE)
		return;
	stop(d, DECISION_OUTAGE, limit);
	d->retry_us = answer->retry_us;
}

/*
 * Is it nearer its end than what the headers show so far? The local ones are
 * weighed first, so that what stands first in the file is asked for itself.
 */
static bool
is_nearer(const struct decision *d, const struct config_limit *limit,
    const struct verdict *v)
{
	if (!d->has_numbers)
		return true;
	if (v->remaining != d->verdict.remaining)
		return v->remaining < d->verdict.remaining;
	if (v->next_us != d->verdict.next_us)
		return v->next_us > d->verdict.next_us;
	return limit < d->limit;
}

static void
allow(struct decision *d, const struct config_limit *limit,
    const struct verdict *v)
{
	if (d->kind != DECISION_UNLIMITED && d->kind != DECISION_ALLOWED)
		return;
	d->kind = DECISION_ALLOWED;
	if (!is_nearer(d, limit, v))
		return;
	d->limit = limit;
	d->has_numbers = true;
	d->verdict = *v;
}

static void
weigh(struct decision *d, const struct batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		const struct verdict *v = &b->answer.verdict[i];

		if (b->answer.status == STORE_OUT || v->kind == VERDICT_ERROR)
			unanswered(d, b->limit[i], &b->answer);
		else if (v->kind == VERDICT_REFUSED)
			refuse(d, b->limit[i], v);
		else
			allow(d, b->limit[i], v);
	}
}

static bool
passes(const struct decision *d)
{
	return d->kind == DECISION_UNLIMITED || d->kind == DECISION_ALLOWED;
}

static void
ask(struct store *store, struct batch *b)
{
	struct store_question q = question(b);

	store->ops->ask(store, &q, &b->answer);
}

static bool
was_taken(const struct batch *b)
{
	if (b->answer.status != STORE_ANSWERED)
		return false;
	for (size_t i = 0; i < b->n; i++)
		if (b->answer.verdict[i].kind == VERDICT_REFUSED)
			return false;
	return true;
}

/*
 * What was taken although the request does not pass goes back; a check that
 * got an error took nothing.
 */
static void
give_back(struct store *store, const struct batch *b)
{
	struct store_check taken[STORE_CHECKS_MAX];
	struct store_question q = { taken, 0 };

	if (!was_taken(b))
		return;
	for (size_t i = 0; i < b->n; i++)
		if (b->answer.verdict[i].kind == VERDICT_ALLOWED)
			taken[q.n++] = b->check[i];
	if (q.n > 0)
		store->ops->refund(store, &q, b->answer.taken_us);
}

void
decision_make(struct decision *d, const struct config *config,
    const struct stores *stores, const struct subject *subject,
    struct arena *arena)
{
	struct batch local = { .n = 0 };
	struct batch shared = { .n = 0 };

	*d = (struct decision){ .kind = DECISION_UNLIMITED };
	if (!prepare(
		d, config, stores->naming, subject, arena, &local, &shared))
		return;
	if (local.n > 0) {
		ask(stores->local, &local);
		weigh(d, &local);
	}
	if (passes(d) && shared.n > 0) {
		ask(stores->shared, &shared);
		d->store_wait_us = shared.answer.wait_us;
		weigh(d, &shared);
		if (!passes(d))
			give_back(stores->shared, &shared);
	}
	if (!passes(d))
		give_back(stores->local, &local);
	/* Numbers without those of the store that is out would be lies. */
	if (passes(d) && d->outage)
		d->has_numbers = false;
	if (d->kind == DECISION_UNLIMITED && d->outage)
		d->kind = DECISION_ALLOWED;
}
