#include "config/load.h"

/* What may be taken ahead: units that come back in no other way. */
static void
check_kind(struct load *l, size_t at)
{
	const struct config_limit *limit = &l->config->limit[at];
	struct findings *f = &l->findings;
	struct place place = load_place(l->limit[at], "lease");

	if (limit->algorithm != ALGORITHM_FIXED_WINDOW &&
	    limit->algorithm != ALGORITHM_SLIDING_WINDOW &&
	    limit->algorithm != ALGORITHM_TOKEN_BUCKET)
		finding_error(f, &place,
		    "belongs to algorithm = fixed_window, sliding_window or "
		    "token_bucket");
	if (limit->mode == CONFIG_MODE_OBSERVE)
		finding_error(f, &place, "belongs to mode = enforce");
	if (limit->count.some)
		finding_error(f, &place,
		    "belongs to count = all: what a response gives back is "
		    "settled with the store");
	if (limit->cost.kind == COST_RESPONSE)
		finding_error(f, &place,
		    "needs a cost that is known before the response");
	if (limit->penalty_us > 0)
		finding_error(f, &place,
		    "does not go with penalty: units that another gateway "
		    "holds would begin one");
	if (limit->scope == CONFIG_SCOPE_LOCAL)
		finding_error(f, &place,
		    "belongs to scope = shared: a count in this process takes "
		    "no trip");
	else if (l->config->store.kind == CONFIG_STORE_MEMORY)
		finding_warning(
		    f, &place, "does nothing: counts in memory: take no trip");
}

/* One of `auto` grows with what is spent. */
static void
check_size(struct load *l, size_t at)
{
	const struct config_limit *limit = &l->config->limit[at];
	struct place place = load_place(l->limit[at], "lease");
	int64_t least = cost_least(&limit->cost);

	if (limit->lease <= (uint64_t)least)
		finding_error(&l->findings, &place,
		    "does nothing: a request takes %lld itself, so none are "
		    "left for the next",
		    (long long)least);
}

/* Does every request that it matches have it counted in the store? */
static bool
asks_always(const struct config_limit *limit)
{
	for (size_t i = 0; i < limit->n_tiers; i++)
		if (limit->tier[i].rates.kind == RATES_UNLIMITED)
			return false;
	return limit->scope == CONFIG_SCOPE_SHARED &&
	    limit->rates.kind == RATES_LIST &&
	    limit->missing_key != CONFIG_MISSING_SKIP;
}

/*
 * A request leases only if all its shared limits do, those that are but
 * observed too: their check takes a trip.
 */
static void
check_beside(struct load *l, size_t at)
{
	struct place place = load_place(l->limit[at], "lease");

	for (size_t i = 0; i < l->config->n_limits; i++) {
		const struct config_limit *other = &l->config->limit[i];

		if (other->lease > 0 || !asks_always(other) ||
		    !load_is_wider(l->limit[i], l->limit[at]))
			continue;
		finding_warning(&l->findings, &place,
		    "does nothing: %s applies to the same requests and has "
		    "no lease, so each of them asks the store",
		    l->limit[i]->place.section);
		return;
	}
}

void
load_leases(struct load *l)
{
	for (size_t at = 0; at < l->config->n_limits; at++) {
		if (l->config->limit[at].lease == 0)
			continue;
		check_kind(l, at);
		check_size(l, at);
		if (l->config->store.kind == CONFIG_STORE_REDIS)
			check_beside(l, at);
	}
}
