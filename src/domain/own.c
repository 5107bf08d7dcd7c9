#include "domain/own.h"

#include <stdio.h>

#include "pure/key.h"
#include "pure/rate.h"

#define NAME_MAX_BYTES 512
#define COUNT_MAX      UINT64_C(1000000000000) /* as of a rate */

bool
own_possible(const struct config_store *store, const struct config_limit *limit,
    struct err *err)
{
	const char *why = NULL;

	if (limit->scope == CONFIG_SCOPE_LOCAL)
		why = "its scope is local: each process counts it alone";
	else if (store->kind == CONFIG_STORE_MEMORY)
		why = "the store is memory:, which no other process reaches";
	else if (store->kind != CONFIG_STORE_REDIS)
		why = "there is no [store] address";
	else if (limit->rates.kind != RATES_LIST)
		why = "its rate has no count";
	if (why != NULL && err != NULL)
		err_set(err, "no key of it can have its own counts: %s", why);
	return why == NULL;
}

struct str
own_name(const struct config_store *store, const struct config_limit *limit,
    const char *tag, struct arena *arena)
{
	const struct str part[] = { str_of(store->prefix), STR(":{"),
		str_of(tag), STR("}:"), str_of(limit->name), STR(":own") };

	return arena_join(arena, part, sizeof(part) / sizeof(part[0]));
}

/* What rate->burst becomes with another N. */
static int64_t
scaled_burst(const struct rate *rate, int64_t count)
{
	__extension__ typedef __int128 wide;
	wide burst = (wide)rate->burst * count / rate->count;

	if (burst > ALGORITHM_PRODUCT_MAX)
		return ALGORITHM_PRODUCT_MAX;
	return burst < 1 ? 1 : (int64_t)burst;
}

static bool
count_is_good(const struct config_limit *limit, const struct rate *rate,
    struct str text, struct err *err)
{
	struct check check = {
		.algorithm = (enum algorithm)limit->algorithm,
		.period_us = rate->period_us,
		.cost = 1,
	};
	uint64_t count;

	if (!str_to_u64(text, COUNT_MAX, &count) || count == 0)
		return err_set(
		    err, "%.*s: a count is 1 to 10^12", STR_ARG(text));
	check.count = (int64_t)count;
	check.burst = scaled_burst(rate, check.count);
	if (!algorithm_fits(&check))
		return err_set(err, "%.*s: more than its algorithm can count",
		    STR_ARG(text));
	if (algorithm_cost_max(&check) < cost_most(&limit->cost))
		return err_set(err,
		    "%.*s: a request of it can cost %lld, which would never "
		    "pass",
		    STR_ARG(text), (long long)cost_most(&limit->cost));
	return true;
}

bool
own_counts_good(
    const struct config_limit *limit, struct str counts, struct err *err)
{
	size_t n = 0;

	while (counts.p != NULL) {
		struct str text = str_cut(&counts, ',');

		if (n == limit->rates.n)
			return err_set(err, "it has %zu rate%s, no more",
			    limit->rates.n, limit->rates.n == 1 ? "" : "s");
		if (!count_is_good(limit, &limit->rates.rate[n++], text, err))
			return false;
	}
	if (n < limit->rates.n)
		return err_set(
		    err, "it has %zu rates: a count for each", limit->rates.n);
	return true;
}
