/*
 * The name of a count: PREFIX:{TAG}:LIMIT:xW, where x is the algorithm's
 * letter and W the period in milliseconds, so that a changed window or
 * algorithm starts a new count and a changed N does not.
 */
#include "domain/limit.h"

#include <stdio.h>
#include <string.h>

#include "pure/key.h"

#define NAME_MAX_BYTES 512

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
	if (l->backend != NULL &&
	    (s->backend == NULL ||
		!str_eq(str_of(l->backend), str_of(s->backend->name))))
		return false;
	if (l->client.n > 0 && !client_is_in(&l->client, s))
		return false;
	return subject_may_match(s, &l->match) && !is_exempt(l, s);
}

static struct str
client_value(const struct subject *s, struct arena *arena)
{
	char text[ADDRESS_TEXT_MAX];

	if (!s->has_client)
		return s->client_text;
	address_format(&s->network, text);
	return arena_copy(arena, str_of(text));
}

/* Apache hands Authorization on under another name after a redirect. */
static struct str
header_value(const struct subject *s, struct str name)
{
	struct str value = params_get(s->params, name);

	if (value.len == 0 && str_eq(name, STR("HTTP_AUTHORIZATION")))
		value =
		    params_get(s->params, STR("REDIRECT_HTTP_AUTHORIZATION"));
	return value;
}

static struct str
source_value(const struct key_alternative *a, const struct subject *s,
    struct arena *arena)
{
	switch (a->source) {
	case KEY_CLIENT:
		return client_value(s, arena);
	case KEY_HEADER:
		return header_value(s, str_of(a->name));
	case KEY_HOST:
		return s->host;
	case KEY_PATH:
		return s->path;
	case KEY_METHOD:
		return s->method;
	case KEY_GLOBAL:
		return STR("global");
	}
	return STR_NONE;
}

/*
 * The first alternative that is there; some are never missing. *which says
 * which one, where there are several: what a client writes into a header is
 * not to pass for another's address.
 */
static bool
part_value(const struct key_part *part, const struct subject *s,
    struct arena *arena, struct str *value, struct str *which)
{
	static const char *const names[KEY_ALTERNATIVES_MAX] = { "1", "2", "3",
		"4" };

	for (size_t i = 0; i < part->n; i++) {
		const struct key_alternative *a = &part->alternative[i];

		*value = source_value(a, s, arena);
		*which = part->n > 1 ? str_of(names[i]) : STR_NONE;
		if (value->len > 0 || a->source == KEY_HOST ||
		    a->source == KEY_PATH || a->source == KEY_METHOD)
			return true;
	}
	return false;
}

static bool
is_alone(const struct key *key, enum key_source source)
{
	return key->n == 1 && key->part[0].n == 1 &&
	    key->part[0].alternative[0].source == source;
}

static bool
make_tag(const struct config_limit *l, const struct config_store *store,
    const struct subject *s, struct arena *arena, char tag[KEY_TAG_MAX],
    bool *missing)
{
	struct str values[2 * KEY_PARTS_MAX];
	struct str which;
	size_t n = 0;
	bool plain = is_alone(&l->key, KEY_GLOBAL) ||
	    (is_alone(&l->key, KEY_CLIENT) && s->has_client);

	*missing = false;
	for (size_t i = 0; i < l->key.n; i++) {
		if (!part_value(
			&l->key.part[i], s, arena, &values[n], &which)) {
			*missing = true;
			return true;
		}
		n++;
		if (which.len > 0)
			values[n++] = which;
	}
	return key_tag(store->hasher, values, n, plain, tag) > 0;
}

/*
 * X-Api-Key beside X_Api_Key are one param given twice: applications differ
 * in which one they take, so neither may choose the count.
 */
static bool
is_ambiguous(const struct key *key, const struct subject *s)
{
	for (size_t i = 0; i < key->n; i++)
		for (size_t k = 0; k < key->part[i].n; k++) {
			const struct key_alternative *a =
			    &key->part[i].alternative[k];

			if (a->source == KEY_HEADER &&
			    params_disagree(s->params, str_of(a->name)))
				return true;
		}
	return false;
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
	}
	return '?';
}

static bool
needs_offset(const struct config_limit *l)
{
	return l->algorithm == ALGORITHM_SLIDING_WINDOW ||
	    (l->algorithm == ALGORITHM_FIXED_WINDOW &&
		l->align == ALIGN_SPREAD);
}

static bool
make_check(const struct config_limit *l, const struct rate *rate,
    const char *prefix, const char *tag, struct arena *arena,
    struct store_check *out)
{
	char name[NAME_MAX_BYTES];
	int64_t period_ms = rate->period_us / 1000;
	int64_t offset = 0;
	int len = snprintf(name, sizeof(name), "%s:{%s}:%s:%c%lld", prefix, tag,
	    l->name, algorithm_letter((enum algorithm)l->algorithm),
	    (long long)period_ms);

	if (len < 0 || (size_t)len >= sizeof(name))
		return false;
	out->key = arena_copy(arena, (struct str){ name, (size_t)len });
	if (out->key.p == NULL)
		return false;
	if (needs_offset(l) && !key_offset(out->key, period_ms, &offset))
		return false;
	out->check = (struct check){
		.algorithm = (enum algorithm)l->algorithm,
		.align = (enum align)l->align,
		.count = rate->count,
		.period_us = rate->period_us,
		.burst = rate->burst,
		.cost = 1,
		.offset_us = offset * 1000,
	};
	return true;
}

static bool
has_period(const struct config_limit *l, int64_t period_us)
{
	for (size_t i = 0; i < l->rates.n; i++)
		if (l->rates.rate[i].period_us == period_us)
			return true;
	return false;
}

bool
limit_counts_anew(
    const struct config_limit *limit, const struct config_limit *next)
{
	if (limit->algorithm != next->algorithm ||
	    limit->scope != next->scope ||
	    memcmp(&limit->key, &next->key, sizeof(limit->key)) != 0)
		return true;
	for (size_t i = 0; i < next->rates.n; i++)
		if (!has_period(limit, next->rates.rate[i].period_us))
			return true;
	return false;
}

enum limit_state
limit_prepare(const struct config_limit *limit,
    const struct config_store *store, const struct subject *subject,
    struct arena *arena, struct store_check *out, size_t room, size_t *n)
{
	char tag[KEY_TAG_MAX];
	bool missing;

	*n = 0;
	if (limit->rates.kind == RATES_UNLIMITED || !applies(limit, subject))
		return LIMIT_SKIPPED;
	if (is_ambiguous(&limit->key, subject))
		return LIMIT_KEY_TWICE;
	if (!make_tag(limit, store, subject, arena, tag, &missing))
		return LIMIT_FAILED;
	if (missing)
		return limit->missing_key == CONFIG_MISSING_SKIP
		    ? LIMIT_SKIPPED
		    : LIMIT_KEY_MISSING;
	if (limit->rates.kind == RATES_DENY)
		return LIMIT_CLOSED;
	if (limit->rates.n > room)
		return LIMIT_FAILED;
	for (size_t i = 0; i < limit->rates.n; i++)
		if (!make_check(limit, &limit->rates.rate[i], store->prefix,
			tag, arena, &out[i]))
			return LIMIT_FAILED;
	*n = limit->rates.n;
	return LIMIT_CHECKED;
}
