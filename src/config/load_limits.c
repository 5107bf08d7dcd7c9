#include "config/load.h"

#include <string.h>

#include "config/roles.h"

/* RATE that a limit can come under, and where it was written. */
struct written {
	const struct rates *rates;
	struct place place;
};

static bool
is_bucket(const struct config_limit *limit)
{
	return limit->algorithm == ALGORITHM_TOKEN_BUCKET ||
	    limit->algorithm == ALGORITHM_LEAKY_BUCKET;
}

static bool
is_concurrency(const struct config_limit *limit)
{
	return limit->algorithm == ALGORITHM_CONCURRENCY;
}

static struct written
base_rates(const struct load *l, size_t at)
{
	return (struct written){ &l->config->limit[at].rates,
		load_place(l->limit[at], "rate") };
}

static struct written
outage_rates(const struct load *l, size_t at)
{
	return (struct written){ &l->config->limit[at].outage_rates,
		load_place(l->limit[at], "outage_rate") };
}

static struct written
tier_rates(const struct load *l, size_t at, size_t i)
{
	const struct config_limit *limit = &l->config->limit[at];
	const struct config_tier_rates *rates = &limit->tier[i];
	const struct source_section *section =
	    l->tier[rates->tier - l->config->tier];
	const struct source_entry *e = section->entry;

	while (strcmp(e->place.key, limit->name) != 0)
		e = e->next;
	return (struct written){ &rates->rates, e->place };
}

static size_t
count_written(const struct load *l, size_t at)
{
	return l->config->limit[at].n_tiers + 2;
}

/* The i-th of all that were written for the limit. */
static struct written
written_at(const struct load *l, size_t at, size_t i)
{
	if (i == 0)
		return base_rates(l, at);
	if (i == 1)
		return outage_rates(l, at);
	return tier_rates(l, at, i - 2);
}

static struct check
check_of(const struct config_limit *limit, const struct rate *rate)
{
	return (struct check){
		.algorithm = (enum algorithm)limit->algorithm,
		.count = rate->count,
		.period_us = rate->period_us,
		.burst = rate->burst,
		.delay_max_us = limit->delay_max_us,
	};
}

static const char *
too_large(const struct config_limit *limit)
{
	if (limit->algorithm == ALGORITHM_SLIDING_LOG)
		return "a sliding_log keeps each request: at most 10000";
	return is_bucket(limit)
	    ? "burst times period is too large to be counted exactly (2^53 "
	      "and above)"
	    : "count times period is too large to be counted exactly (2^53 "
	      "and above)";
}

static bool
check_calendar(struct load *l, const struct config_limit *limit,
    const struct rate *rate, const struct place *place)
{
	bool is_calendar = limit->align == ALIGN_CALENDAR;
	enum calendar_unit unit;

	if (is_calendar ? calendar_unit_of(rate, &unit)
			: rate->calendar == RATE_ANY)
		return true;
	finding_error(&l->findings, place,
	    is_calendar ? "align = calendar takes periods of 1m, 1h, 1d, 1w, "
			  "month or year"
			: "month and year need align = calendar");
	return false;
}

/* Is it of a kind that the algorithm takes? */
static bool
check_shape(struct load *l, const struct config_limit *limit,
    const struct rate *rate, const struct place *place)
{
	bool has_period = rate->period_us > 0;

	if (has_period == is_concurrency(limit)) {
		finding_error(&l->findings, place,
		    has_period ? "concurrency takes N alone, without a period"
			       : "`%lld`: no rate; it is written N/PERIOD, "
				 "such as 10/1s",
		    (long long)rate->count);
		return false;
	}
	if (rate->has_burst && !is_bucket(limit))
		finding_error(&l->findings, place,
		    "burst belongs to algorithm = token_bucket or "
		    "leaky_bucket");
	return check_calendar(l, limit, rate, place);
}

static void
check_rate(struct load *l, const struct config_limit *limit,
    const struct rate *rate, const struct place *place)
{
	struct check check = check_of(limit, rate);

	if (!check_shape(l, limit, rate, place))
		return;
	if (!algorithm_fits(&check))
		finding_error(&l->findings, place, "%s", too_large(limit));
	else if (limit->algorithm == ALGORITHM_LEAKY_BUCKET &&
	    algorithm_limit(&check) < rate->burst)
		finding_warning(&l->findings, place,
		    "within delay_max no more than %lld of the burst of %lld "
		    "pass at once",
		    (long long)algorithm_limit(&check), (long long)rate->burst);
}

/* What a request may take at most, at once; -1: whatever it likes. */
static int64_t
least_room(const struct config_limit *limit, const struct rates *rates)
{
	int64_t least = -1;

	for (size_t i = 0; i < rates->n; i++) {
		struct check check = check_of(limit, &rates->rate[i]);
		int64_t room = algorithm_cost_max(&check);

		if (least < 0 || room < least)
			least = room;
	}
	return least;
}

static void
check_cost(struct load *l, size_t at)
{
	const struct config_limit *limit = &l->config->limit[at];
	struct place place = load_place(l->limit[at], "cost");
	int64_t most = cost_most(&limit->cost);

	if (limit->cost.kind != COST_RESPONSE && most == 0)
		finding_error(&l->findings, &place,
		    "does nothing: no request takes anything");
	for (size_t i = 0; i < count_written(l, at); i++) {
		struct written w = written_at(l, at, i);
		int64_t room = least_room(limit, w.rates);

		if (room < 0 || most <= room)
			continue;
		finding_error(&l->findings, &place,
		    "%lld is above the %lld of %s %s: such a request could "
		    "never pass",
		    (long long)most, (long long)room, w.place.section,
		    w.place.key);
	}
}

/* Options that are of one algorithm, or of all but one. */
static void
check_algorithm(struct load *l, size_t at)
{
	static const char *const of_units[] = { "cost", "count" };
	const struct source_section *section = l->limit[at];
	const struct config_limit *limit = &l->config->limit[at];
	struct place place = load_place(section, "delay_max");

	if (load_has(section, "delay_max") &&
	    limit->algorithm != ALGORITHM_LEAKY_BUCKET)
		finding_error(&l->findings, &place,
		    "belongs to algorithm = leaky_bucket");
	place = load_place(section, "status");
	if (limit->status != CONFIG_STATUS_429 && !is_concurrency(limit))
		finding_error(&l->findings, &place,
		    "503 belongs to algorithm = concurrency");
	for (size_t i = 0; is_concurrency(limit) &&
	     i < sizeof(of_units) / sizeof(of_units[0]);
	     i++) {
		if (!load_has(section, of_units[i]))
			continue;
		place = load_place(section, of_units[i]);
		finding_error(&l->findings, &place,
		    "does not belong to algorithm = concurrency: a request "
		    "holds one slot while it runs");
	}
}

/* Without a store there is no outage of it. */
static void
check_no_outage(struct load *l, const struct source_section *section)
{
	static const char *const of_outages[] = { "on_outage", "outage_rate" };

	for (size_t i = 0; i < sizeof(of_outages) / sizeof(of_outages[0]);
	     i++) {
		struct place place = load_place(section, of_outages[i]);

		if (load_has(section, of_outages[i]))
			finding_error(&l->findings, &place,
			    "does nothing: scope = local does not ask the "
			    "store");
	}
}

static void
check_outage(struct load *l, size_t at)
{
	const struct source_section *section = l->limit[at];
	const struct config_limit *limit = &l->config->limit[at];
	struct place place = load_place(section, "outage_rate");
	bool is_local = limit->on_outage == CONFIG_OUTAGE_LOCAL;

	if (limit->scope == CONFIG_SCOPE_LOCAL) {
		check_no_outage(l, section);
		return;
	}
	if (is_local && !load_has(section, "outage_rate"))
		finding_error(
		    &l->findings, &place, "is required with on_outage = local");
	if (!is_local && load_has(section, "outage_rate"))
		finding_error(
		    &l->findings, &place, "belongs to on_outage = local");
}

static void
check_align(struct load *l, size_t at)
{
	const struct source_section *section = l->limit[at];
	struct config_limit *limit = &l->config->limit[at];
	struct place place = load_place(section, "timezone");
	struct arena *arena = &l->config->arena;

	if (limit->align != ALIGN_CALENDAR) {
		if (load_has(section, "timezone"))
			finding_error(&l->findings, &place,
			    "belongs to align = calendar");
		return;
	}
	limit->calendar = arena_alloc(arena, sizeof(*limit->calendar));
	if (limit->calendar == NULL)
		l->findings.failed = true;
	else
		limit->calendar->zone = limit->zone;
}

/* The most rates of the limit that one question can hold. */
static size_t
most_rates(const struct load *l, size_t at)
{
	size_t most = 0;

	for (size_t i = 0; i < count_written(l, at); i++) {
		struct written w = written_at(l, at, i);

		if (w.rates->n > most)
			most = w.rates->n;
	}
	return most;
}

/* backend: NULL for a role whose limits name none. */
static bool
can_apply(const struct config_limit *limit, enum config_role role,
    const char *backend)
{
	if (limit->role != CONFIG_ROLE_ANY && limit->role != role)
		return false;
	return limit->backend == NULL ||
	    (backend != NULL && strcmp(limit->backend, backend) == 0);
}

/*
 * One question to the store holds at most CONFIG_RATES_MAX checks. Which
 * limits can meet on one request is not decided here: those of no backend
 * and those of the same one are taken to.
 */
static void
check_sum_of_rates(struct load *l, enum config_role role, const char *backend)
{
	size_t sum = 0;

	for (size_t i = 0; i < l->config->n_limits; i++) {
		const struct config_limit *limit = &l->config->limit[i];
		struct place place = load_place(l->limit[i], "rate");

		if (!can_apply(limit, role, backend))
			continue;
		sum += most_rates(l, i);
		if (sum <= CONFIG_RATES_MAX)
			continue;
		if (backend == NULL)
			finding_error(&l->findings, &place,
			    "with this the limits for %s have %zu rates "
			    "together; at most %d can be",
			    role == CONFIG_ROLE_CGI ? "the cgi role"
						    : "an authorizer",
			    sum, CONFIG_RATES_MAX);
		else
			finding_error(&l->findings, &place,
			    "with this the limits for [backend %s] have %zu "
			    "rates together; at most %d can be (name the "
			    "backend of limits that are for one alone)",
			    backend, sum, CONFIG_RATES_MAX);
		return;
	}
}

static void
check_sums_of_rates(struct load *l)
{
	const struct config *c = l->config;

	if (roles_has(&c->gateway, CONFIG_ROLE_AUTHORIZER))
		check_sum_of_rates(l, CONFIG_ROLE_AUTHORIZER, NULL);
	if (roles_has(&c->gateway, CONFIG_ROLE_CGI))
		check_sum_of_rates(l, CONFIG_ROLE_CGI, NULL);
	if (!roles_has(&c->gateway, CONFIG_ROLE_RESPONDER))
		return;
	for (size_t i = 0; i < c->n_backends; i++)
		check_sum_of_rates(
		    l, CONFIG_ROLE_RESPONDER, c->backend[i].name);
}

void
load_limits(struct load *l)
{
	for (size_t at = 0; at < l->config->n_limits; at++) {
		const struct config_limit *limit = &l->config->limit[at];

		for (size_t i = 0; i < count_written(l, at); i++) {
			struct written w = written_at(l, at, i);

			for (size_t k = 0; k < w.rates->n; k++)
				check_rate(
				    l, limit, &w.rates->rate[k], &w.place);
		}
		check_cost(l, at);
		check_algorithm(l, at);
		check_align(l, at);
		check_outage(l, at);
	}
	check_sums_of_rates(l);
}
