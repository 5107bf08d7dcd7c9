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

void
load_leases(struct load *l)
{
	for (size_t at = 0; at < l->config->n_limits; at++) {
		if (l->config->limit[at].lease == 0)
			continue;
		check_kind(l, at);
		check_size(l, at);
	}
}
