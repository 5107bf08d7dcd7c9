#include "domain/own.h"

#include <stdio.h>

#include "pure/address.h"
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
	char name[NAME_MAX_BYTES];
	int len = snprintf(name, sizeof(name), "%s:{%s}:%s:own", store->prefix,
	    tag, limit->name);

	if (len < 0 || (size_t)len >= sizeof(name))
		return STR_NONE;
	return arena_copy(arena, (struct str){ name, (size_t)len });
}

/*
 * The alternative that a person means: `client` by an address, else the
 * first that is anything else.
 */
static size_t
meant(const struct key_part *part, struct str text)
{
	struct address address;
	bool is_address = address_parse(text, &address);
	size_t i = 0;

	while (i < part->n &&
	    (part->alternative[i].source == KEY_CLIENT) != is_address)
		i++;
	return i < part->n ? i : 0;
}

static struct str
lower(struct str s, struct arena *arena)
{
	char *at = arena_alloc(arena, s.len + 1);

	for (size_t i = 0; at != NULL && i < s.len; i++)
		at[i] = s.p[i] >= 'A' && s.p[i] <= 'Z'
		    ? (char)(s.p[i] + 'a' - 'A')
		    : s.p[i];
	return (struct str){ at, s.len };
}

static struct str
client_value(const struct config_gateway *gateway,
    const struct key_alternative *a, struct str text, struct arena *arena)
{
	struct address address;
	char canonical[ADDRESS_TEXT_MAX];

	if (!address_parse(text, &address))
		return text;
	if (a->ipv4_prefix > 0)
		address_cut(&address, a->ipv4_prefix, a->ipv6_prefix);
	else
		address_cut(&address, (unsigned)gateway->ipv4_prefix,
		    (unsigned)gateway->ipv6_prefix);
	address_format(&address, canonical);
	return arena_copy(arena, str_of(canonical));
}

/* As a request would have it; p NULL: no memory. */
static struct str
part_value(const struct config_gateway *gateway, const struct key_part *part,
    struct str text, struct arena *arena, uint8_t *chosen)
{
	size_t i = meant(part, text);

	*chosen = key_chosen(part, i);
	if (part->alternative[i].source == KEY_CLIENT)
		return client_value(
		    gateway, &part->alternative[i], text, arena);
	if (part->alternative[i].source == KEY_HOST)
		return lower(text, arena);
	return text;
}

/* Values may hold a `+` only where there is no other part. */
static bool
split(
    const struct key *key, struct str text, struct str *values, struct err *err)
{
	size_t n = 1;

	for (size_t i = 0; i < text.len; i++)
		n += text.p[i] == '+';
	values[0] = text;
	if (key->n == 1)
		return true;
	if (n != key->n)
		return err_set(err,
		    "its key has %zu parts, joined by `+`; that one has %zu",
		    key->n, n);
	for (size_t i = 0; i < n; i++)
		values[i] = str_cut(&text, '+');
	return true;
}

static bool
is_global(const struct key_part *part)
{
	return part->n == 1 && part->alternative[0].source == KEY_GLOBAL;
}

static bool
read_tuple(const struct config *config, const struct config_limit *limit,
    struct str key, struct arena *arena, struct key_tuple *tuple,
    struct err *err)
{
	struct str values[KEY_PARTS_MAX] = { STR_NONE };

	if (!split(&limit->key, key, values, err))
		return false;
	tuple->n = limit->key.n;
	for (size_t i = 0; i < tuple->n; i++) {
		if (values[i].len == 0)
			return err_set(err,
			    "an empty value is a missing key, which has no "
			    "counts");
		if (is_global(&limit->key.part[i]) &&
		    !str_eq(values[i], STR("global")))
			return err_set(err, "its only key is `global`");
		tuple->value[i] = part_value(&config->gateway,
		    &limit->key.part[i], values[i], arena, &tuple->chosen[i]);
		if (tuple->value[i].p == NULL)
			return err_set(err, "out of memory");
	}
	return true;
}

/* `global`, or an address that is all of the key. */
static bool
is_plain(const struct key *key, const struct key_tuple *tuple)
{
	struct address address;
	enum key_source source = key->part[0].alternative[0].source;

	if (key->n > 1 || key->part[0].n > 1)
		return false;
	return source == KEY_GLOBAL ||
	    (source == KEY_CLIENT && address_parse(tuple->value[0], &address));
}

bool
own_tag_of(const struct config *config, const struct config_limit *limit,
    struct str key, struct arena *arena, char *tag, struct err *err)
{
	const struct key_hasher *hasher = config->store.hasher;
	struct key_tuple tuple = { .n = 0 };
	size_t len;

	if (!read_tuple(config, limit, key, arena, &tuple, err))
		return false;
	len = is_plain(&limit->key, &tuple)
	    ? key_tag(hasher, tuple.value, 1, true, tag)
	    : key_tuple_tag(hasher, &tuple, tag);
	return len > 0 || err_set(err, "libcrypto failed");
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
