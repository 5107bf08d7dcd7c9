/*
 * What each option for itself may say and yet does nothing: a setting of
 * the other kind of store, a pattern that nothing can match, a place for
 * more workers than there are.
 */
#include "config/load.h"

#include <string.h>

#include "config/places.h"

/* A secret, max_keys and the prefix are of use to scope = local as well. */
static void
sense_of_store(struct load *l)
{
	static const char *const of_redis[] = { "username", "password",
		"password_file", "timeout", "connect_timeout", "connections",
		"breaker_failures", "breaker_cooldown", "alert_command",
		"deny_cache", "deny_cache_ttl" };
	const struct source_section *store =
	    source_find(&l->source, OPTION_store, STR(""));
	bool is_memory = l->config->store.kind == CONFIG_STORE_MEMORY;

	if (!is_memory && load_has(store, "address"))
		return;
	for (size_t i = 0; i < sizeof(of_redis) / sizeof(of_redis[0]); i++) {
		struct place place;

		if (!load_has(store, of_redis[i]))
			continue;
		place = load_place(store, of_redis[i]);
		finding_error(&l->findings, &place,
		    is_memory ? "belongs to a Redis address, not to memory:"
			      : "does nothing without address");
	}
}

/* What was wrong is 0 as well, and has been said. */
static void
sense_of_deny_cache(struct load *l)
{
	const struct source_section *store =
	    source_find(&l->source, OPTION_store, STR(""));
	const struct source_entry *size = source_entry(store, "deny_cache");
	const struct source_entry *ttl = source_entry(store, "deny_cache_ttl");

	if (l->config->store.kind == CONFIG_STORE_REDIS && size != NULL &&
	    ttl != NULL && str_eq(size->value, STR("0")))
		finding_error(&l->findings, &ttl->place,
		    "does nothing with deny_cache = 0");
}

static bool
path_can_match(struct str item)
{
	return item.p[0] == '/' || item.p[0] == '*';
}

/*
 * A host is compared without its port; what has colons then is an IPv6
 * address in brackets.
 */
static bool
host_can_match(struct str item)
{
	static const char of_ipv6[] = "0123456789abcdefABCDEF:.[]*";
	size_t len = item.len;
	const char *bracket;

	if (memchr(item.p, ':', item.len) == NULL)
		return true;
	if (item.p[0] != '[' &&
	    (item.p[0] != '*' || strspn(item.p, of_ipv6) < item.len))
		return false;
	while (len > 0 && item.p[len - 1] == '*')
		len--;
	bracket = memchr(item.p, ']', len);
	if (bracket == NULL)
		return len < item.len;
	return bracket == item.p + len - 1;
}

static bool
method_can_match(struct str item)
{
	for (size_t i = 0; i < item.len; i++)
		if (item.p[i] >= 'a' && item.p[i] <= 'z')
			return false;
	return true;
}

/* Neither a regex nor what a file lists is judged. */
static void
sense_of_items(struct load *l, const struct source_section *section,
    const char *key, bool can_match(struct str), const char *why)
{
	const struct source_entry *e = source_entry(section, key);
	struct str rest;

	if (e == NULL || e->value.p == NULL || e->value.len == 0 ||
	    e->value.p[0] == '~')
		return;
	rest = e->value;
	while (rest.p != NULL) {
		struct str item = str_trim(str_cut(&rest, ','));

		if (item.len > 0 && item.p[0] != '@' && !can_match(item))
			finding_error(&l->findings, &e->place,
			    "`%.*s` can match nothing: %s", STR_ARG(item), why);
	}
}

static void
sense_of_matches(struct load *l, const struct source_section *section)
{
	static const char path[] = "a path begins with /";
	static const char host[] = "hosts are compared without their port";
	static const char method[] = "methods are upper case";

	sense_of_items(l, section, "path", path_can_match, path);
	sense_of_items(l, section, "except_path", path_can_match, path);
	sense_of_items(l, section, "host", host_can_match, host);
	sense_of_items(l, section, "method", method_can_match, method);
	sense_of_items(l, section, "except_method", method_can_match, method);
}

static bool
same_part(const struct key_part *a, const struct key_part *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		const struct key_alternative *x = &a->alternative[i];
		const struct key_alternative *y = &b->alternative[i];

		if (x->source != y->source || strcmp(x->name, y->name) != 0 ||
		    x->ipv4_prefix != y->ipv4_prefix ||
		    x->ipv6_prefix != y->ipv6_prefix)
			return false;
	}
	return true;
}

/* Where it has a value whatever comes; a client may be missing. */
static bool
is_never_missing(const struct key_alternative *a)
{
	return a->source == KEY_HOST || a->source == KEY_PATH ||
	    a->source == KEY_METHOD || a->source == KEY_GLOBAL;
}

/* A client can be: a web server may send no REMOTE_ADDR. */
static bool
can_be_missing(const struct key *key)
{
	for (size_t i = 0; i < key->n; i++) {
		const struct key_part *part = &key->part[i];

		if (!is_never_missing(&part->alternative[part->n - 1]))
			return true;
	}
	return false;
}

/* Where the one is missing, is the other? A header is a param as well. */
static bool
is_missing_with(
    const struct key_alternative *a, const struct key_alternative *before)
{
	return (before->source == a->source ||
		   (before->source == KEY_HEADER && a->source == KEY_PARAM)) &&
	    strcmp(before->name, a->name) == 0;
}

/* What says why alternative `at` is never taken; NULL: it may be. */
static const char *
why_never_taken(const struct key_part *part, size_t at, size_t *before)
{
	for (*before = 0; *before < at; ++*before) {
		const struct key_alternative *b = &part->alternative[*before];

		if (is_never_missing(b))
			return "is never missing";
		if (is_missing_with(&part->alternative[at], b))
			return "is missing wherever it is";
	}
	return NULL;
}

static void
sense_of_part(
    struct load *l, const struct place *place, const struct key *key, size_t at)
{
	const struct key_part *part = &key->part[at];

	for (size_t i = 1; i < part->n; i++) {
		size_t before;
		const char *why = why_never_taken(part, i, &before);

		if (why != NULL)
			finding_error(&l->findings, place,
			    "alternative %zu of part %zu is never taken: "
			    "alternative %zu %s",
			    i + 1, at + 1, before + 1, why);
	}
}

static void
sense_of_key(struct load *l, size_t at)
{
	const struct config_limit *limit = &l->config->limit[at];
	const struct key *key = &limit->key;
	struct place place = load_place(l->limit[at], "key");

	for (size_t i = 0; i < key->n; i++)
		sense_of_part(l, &place, key, i);
	for (size_t i = 0; i < key->n; i++)
		for (size_t k = i + 1; k < key->n; k++)
			if (same_part(&key->part[i], &key->part[k]))
				finding_error(&l->findings, &place,
				    "part %zu says the same as part %zu", k + 1,
				    i + 1);
	place = load_place(l->limit[at], "missing_key");
	if (key->n > 0 && !can_be_missing(key) &&
	    limit->missing_key != CONFIG_MISSING_UNSET)
		finding_error(&l->findings, &place,
		    "does nothing: this key is never missing");
}

/* Those that may keep a worker waiting. */
static size_t
count_applications(const struct config *config)
{
	size_t n = 0;

	for (size_t i = 0; i < config->n_backends; i++)
		n += config->backend[i].type != CONFIG_BACKEND_ANSWER;
	return n;
}

static void
sense_of_places(struct load *l, size_t at)
{
	const struct config_backend *backend = &l->config->backend[at];
	struct place place = load_place(l->backend[at], "max_inflight");
	uint64_t most = places_may_block(&l->config->gateway);

	if (most > 1 && load_has(l->backend[at], "max_inflight") &&
	    backend->max_inflight >= most && count_applications(l->config) > 1)
		finding_warning(&l->findings, &place,
		    "this backend can take all the %llu workers that may wait "
		    "for backends (threads = %llu): while it hangs, the "
		    "others are not served",
		    (unsigned long long)most,
		    (unsigned long long)l->config->gateway.threads);
}

/* 0 is a wrong value, which has been said. */
static void
sense_of_threads(struct load *l)
{
	struct place place = load_place_in(l, OPTION_gateway, "threads");

	if (count_applications(l->config) == 0)
		return;
	if (l->config->gateway.threads == 1)
		finding_warning(&l->findings, &place,
		    "with fewer than 3, one backend that hangs keeps "
		    "everybody waiting");
	else if (l->config->gateway.threads == 2 &&
	    count_applications(l->config) > 1)
		finding_warning(&l->findings, &place,
		    "with fewer than 3, one backend that hangs keeps the "
		    "others from being served");
}

void
load_sense(struct load *l)
{
	sense_of_store(l);
	sense_of_deny_cache(l);
	sense_of_threads(l);
	for (size_t i = 0; i < l->config->n_limits; i++) {
		sense_of_matches(l, l->limit[i]);
		sense_of_key(l, i);
	}
	for (size_t i = 0; i < l->config->n_backends; i++) {
		sense_of_matches(l, l->backend[i]);
		sense_of_places(l, i);
	}
}
