/*
 * The name of a count: PREFIX:{TAG}:LIMIT:xW, where x is the algorithm's
 * letter and W the period in milliseconds, so that a changed window or
 * algorithm starts a new count and a changed N does not.
 */
#include "domain/limit.h"

#include <string.h>

#include "base/clock.h"
#include "domain/field_match.h"
#include "domain/key_watch.h"
#include "domain/own.h"
#include "domain/slot.h"
#include "domain/tier.h"
#include "domain/tuple.h"
#include "pure/form.h"
#include "pure/key.h"

static bool
client_is_in(const struct config_cidrs *cidrs, const struct subject *s)
{
	if (!s->has_client)
		return false;
	for (size_t i = 0; i < cidrs->n; i++)
		if (cidr_contains(&cidrs->at[i], &s->client))
			return true;
	return false;
}

/* A path is exempt only if both of its forms are. */
static bool
is_exempt(const struct config_limit *l, const struct subject *s)
{
	if (l->except_path != NULL && match_test(l->except_path, s->path) &&
	    match_test(l->except_path, s->script_path))
		return true;
	if (l->except_method != NULL && subject_has_method(s, l->except_method))
		return true;
	return client_is_in(&l->except_client, s);
}

static bool
applies(const struct config_limit *l, const struct subject *s)
{
	if (l->role != CONFIG_ROLE_ANY && l->role != s->role)
		return false;
	if (l->backend != NULL &&
	    (s->backend == NULL ||
		!str_eq(str_of(l->backend), str_of(s->backend->name))))
		return false;
	if (l->client.n > 0 && !client_is_in(&l->client, s))
		return false;
	return subject_may_match(s, &l->match) && field_match(l, s) &&
	    !is_exempt(l, s);
}

static char
algorithm_letter(enum algorithm algorithm)
{
	switch (algorithm) {
	case ALGORITHM_SLIDING_WINDOW:
		return 's';
	case ALGORITHM_FIXED_WINDOW:
		return 'f';
	case ALGORITHM_TOKEN_BUCKET:
		return 't';
	case ALGORITHM_SLIDING_LOG:
		return 'e';
	case ALGORITHM_LEAKY_BUCKET:
		return 'l';
	case ALGORITHM_CONCURRENCY:
		return 'c';
	}
	return '?';
}

/* A window of the calendar is none of as many milliseconds. */
static char
letter(const struct config_limit *l)
{
	return l->align == ALIGN_CALENDAR
	    ? 'w'
	    : algorithm_letter((enum algorithm)l->algorithm);
}

static bool
needs_offset(const struct config_limit *l)
{
	return l->algorithm == ALGORITHM_SLIDING_WINDOW ||
	    (l->algorithm == ALGORITHM_FIXED_WINDOW &&
		l->align == ALIGN_SPREAD);
}

/*
 * What was asked for says the cost, unless a pattern of some paths makes it
 * dearer by the script's path or by what is behind the script: whatever an
 * application behind /index.php routes by, an expensive request is not had
 * cheap. A pattern of all paths says nothing of those: it would be the
 * /index.php of each rewritten request.
 */
static int64_t
cost_of_request(const struct config_limit *l, const struct subject *s)
{
	const struct str other[] = { s->script_path, s->info_path };
	int64_t cost = cost_of(&l->cost, s->method, s->path);

	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		int64_t units = other[i].len > 0
		    ? cost_of_some(&l->cost, s->method, other[i])
		    : 0;

		if (units > cost)
			cost = units;
	}
	return cost;
}

/* Of one request and limit. */
struct naming {
	const char *prefix;
	const char *tag;
	const char *infix; /* "", or of counts that stand in for others */
};

/* The store chooses among them by its own clock. */
static void
set_windows(
    const struct config_limit *l, const struct rate *rate, struct check *check)
{
	enum calendar_unit unit = CALENDAR_DAY;
	struct calendar_windows w;

	calendar_unit_of(rate, &unit);
	w = calendar_around(l->calendar, unit, clock_real_us());
	memcpy(check->boundary_us, w.boundary_us, sizeof(w.boundary_us));
}

/* p NULL: no memory. */
static struct str
count_name(const struct config_limit *l, const struct rate *rate,
    const struct naming *naming, struct arena *arena)
{
	uint64_t period_ms = (uint64_t)rate->period_us / 1000;
	char digits[STR_DIGITS_MAX];
	char kind = letter(l);
	const struct str part[] = { str_of(naming->prefix), STR(":{"),
		str_of(naming->tag), STR("}:"), str_of(l->name), STR(":"),
		str_of(naming->infix), { &kind, 1 },
		str_of_u64(period_ms, digits) };

	return arena_join(arena, part, sizeof(part) / sizeof(part[0]));
}

static bool
make_check(const struct config_limit *l, const struct rate *rate,
    const struct naming *naming, const struct key_hasher *hasher, int64_t cost,
    struct arena *arena, struct store_check *out)
{
	int64_t period_ms = rate->period_us / 1000;
	int64_t offset = 0;

	out->key = count_name(l, rate, naming, arena);
	if (out->key.p == NULL)
		return false;
	if (needs_offset(l) &&
	    !key_offset(hasher, out->key, period_ms, &offset))
		return false;
	out->check = (struct check){
		.algorithm = (enum algorithm)l->algorithm,
		.align = (enum align)l->align,
		.count = rate->count,
		.period_us = rate->period_us,
		.burst = rate->burst,
		.cost = cost,
		.offset_us = offset * 1000,
		.observe = l->mode == CONFIG_MODE_OBSERVE,
		.delay_max_us = l->delay_max_us,
		.penalty_us = l->penalty_us,
	};
	if (l->align == ALIGN_CALENDAR)
		set_windows(l, rate, &out->check);
	out->slot =
	    l->algorithm == ALGORITHM_CONCURRENCY ? slot_new(arena) : STR_NONE;
	return l->algorithm != ALGORITHM_CONCURRENCY || out->slot.p != NULL;
}

/* Which of the limit's own rates has that period; their number: none. */
static size_t
find_period(const struct config_limit *l, int64_t period_us)
{
	size_t i = 0;

	while (i < l->rates.n && l->rates.rate[i].period_us != period_us)
		i++;
	return i;
}

/* A browser's own question before the request that was meant. */
static bool
is_preflight(const struct subject *s)
{
	return str_eq(s->method, STR("OPTIONS")) &&
	    params_get(s->params, STR("HTTP_ORIGIN")).len > 0 &&
	    params_get(s->params, STR("HTTP_ACCESS_CONTROL_REQUEST_METHOD"))
		.len > 0;
}

static bool
is_free(const struct config_limit *l, const struct subject *s)
{
	return l->preflight == CONFIG_PREFLIGHT_FREE && is_preflight(s);
}

/* By which rates; NULL: none, or it does not apply. */
static const struct rates *
rates_for(const struct config_limit *l, const struct subject *s)
{
	const struct rates *rates;

	if (!applies(l, s) || is_free(l, s))
		return NULL;
	rates = tier_rates(l, s);
	return rates->kind == RATES_UNLIMITED ? NULL : rates;
}

bool
limit_awaits_body(
    const struct config_limit *limit, const struct subject *subject)
{
	return key_uses(&limit->key, KEY_FORM) &&
	    form_is_urlencoded(
		params_get(subject->params, STR("CONTENT_TYPE"))) &&
	    rates_for(limit, subject) != NULL;
}

bool
limit_counts_anew(
    const struct config_limit *limit, const struct config_limit *next)
{
	if (letter(limit) != letter(next) || limit->scope != next->scope ||
	    memcmp(&limit->key, &next->key, sizeof(limit->key)) != 0)
		return true;
	for (size_t i = 0; i < next->rates.n; i++)
		if (find_period(limit, next->rates.rate[i].period_us) ==
		    limit->rates.n)
			return true;
	return false;
}

/*
 * Own counts were given for the limit's rates, so a tier's take that of the
 * same period. Counts that stand in for others have none.
 */
static bool
name_own(const struct config_limit *l, const struct config_store *store,
    const struct naming *naming, struct arena *arena, struct store_check *out,
    size_t n)
{
	struct str name = STR_NONE;

	if (naming->infix[0] == '\0' && own_possible(store, l, NULL)) {
		name = own_name(store, l, naming->tag, arena);
		if (name.p == NULL)
			return false;
	}
	for (size_t i = 0; i < n; i++) {
		size_t at = find_period(l, out[i].check.period_us);

		out[i].own_key = at < l->rates.n ? name : STR_NONE;
		out[i].own_at = (unsigned)at;
	}
	return true;
}

static enum limit_state
without_key(const struct config_limit *limit)
{
	return limit->missing_key == CONFIG_MISSING_SKIP ? LIMIT_SKIPPED
							 : LIMIT_KEY_MISSING;
}

static enum limit_state
prepare(const struct config_limit *limit, const struct rates *rates,
    const char *infix, const struct config_store *store,
    const struct subject *subject, struct arena *arena, struct store_check *out,
    size_t room, size_t *n)
{
	char tag[KEY_TAG_MAX];
	struct naming naming = { store->prefix, tag, infix };
	int64_t cost;

	switch (tuple_tag(limit, store, subject, arena, tag)) {
	case TUPLE_TWICE:
		return LIMIT_KEY_TWICE;
	case TUPLE_FAILED:
		return LIMIT_FAILED;
	case TUPLE_MISSING:
		key_watch_missing(limit);
		return without_key(limit);
	case TUPLE_UNKNOWN:
		key_watch_there(limit);
		return without_key(limit);
	case TUPLE_THERE:
		key_watch_there(limit);
		break;
	}
	if (rates->kind == RATES_DENY)
		return LIMIT_CLOSED;
	if (rates->n > room)
		return LIMIT_FAILED;
	cost = cost_of_request(limit, subject);
	for (size_t i = 0; i < rates->n; i++)
		if (!make_check(limit, &rates->rate[i], &naming, store->hasher,
			cost, arena, &out[i]))
			return LIMIT_FAILED;
	if (!name_own(limit, store, &naming, arena, out, rates->n))
		return LIMIT_FAILED;
	*n = rates->n;
	return LIMIT_CHECKED;
}

enum limit_state
limit_prepare(const struct config_limit *limit,
    const struct config_store *store, const struct subject *subject,
    struct arena *arena, struct store_check *out, size_t room, size_t *n)
{
	const struct rates *rates = rates_for(limit, subject);

	*n = 0;
	if (rates == NULL)
		return LIMIT_SKIPPED;
	return prepare(limit, rates, "", store, subject, arena, out, room, n);
}

enum limit_state
limit_prepare_instead(const struct config_limit *limit,
    const struct config_store *store, const struct subject *subject,
    struct arena *arena, struct store_check *out, size_t room, size_t *n)
{
	*n = 0;
	if (limit->outage_rates.kind == RATES_UNLIMITED)
		return LIMIT_SKIPPED;
	return prepare(limit, &limit->outage_rates, "out:", store, subject,
	    arena, out, room, n);
}

static bool
add_names(const struct config_limit *l, const struct rates *rates,
    const struct naming *naming, struct arena *arena, struct limit_names *names)
{
	for (size_t i = 0; i < rates->n; i++) {
		struct str name = count_name(l, &rates->rate[i], naming, arena);
		size_t k = 0;

		if (name.p == NULL)
			return false;
		while (k < names->n && !str_eq(names->at[k], name))
			k++;
		if (k == names->n)
			names->at[names->n++] = name;
	}
	return true;
}

bool
limit_names(const struct config_limit *limit, const struct config_store *store,
    const char *tag, bool instead, struct arena *arena,
    struct limit_names *names)
{
	const struct rates *rates =
	    instead ? &limit->outage_rates : &limit->rates;
	struct naming naming = { store->prefix, tag, instead ? "out:" : "" };
	size_t n_tiers = instead ? 0 : limit->n_tiers;
	size_t most = rates->n;

	for (size_t i = 0; i < n_tiers; i++)
		most += limit->tier[i].rates.n;
	names->n = 0;
	names->at = arena_alloc(arena, (most + 1) * sizeof(*names->at));
	if (names->at == NULL ||
	    !add_names(limit, rates, &naming, arena, names))
		return false;
	for (size_t i = 0; i < n_tiers; i++)
		if (!add_names(
			limit, &limit->tier[i].rates, &naming, arena, names))
			return false;
	return true;
}
