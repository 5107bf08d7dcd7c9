#include "domain/own_key.h"

#include <string.h>

#include "pure/address.h"
#include "pure/key.h"
#include "pure/known.h"
#include "pure/path.h"

/* A part, and the alternative of it that is meant. */
struct reading {
	const struct config_gateway *gateway;
	struct arena *arena;
	const struct key_part *part;
	const struct key_alternative *meant;
	size_t number; /* from 1 */
};

static enum own_key
wrong(const struct reading *r, const char *is, struct err *err)
{
	err_set(err, "part %zu of its key is %s", r->number, is);
	return OWN_KEY_WRONG;
}

static enum own_key
no_memory(struct err *err)
{
	err_set(err, "out of memory");
	return OWN_KEY_FAILED;
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

/* How many bits of an address of that family make the key. */
static unsigned
bits_of(const struct reading *r, const struct address *address)
{
	if (address->family == 4)
		return r->meant->ipv4_prefix > 0
		    ? r->meant->ipv4_prefix
		    : (unsigned)r->gateway->ipv4_prefix;
	return r->meant->ipv6_prefix > 0 ? r->meant->ipv6_prefix
					 : (unsigned)r->gateway->ipv6_prefix;
}

static enum own_key
read_client(const struct reading *r, struct str *value, struct err *err)
{
	char canonical[ADDRESS_TEXT_MAX];
	struct str bits_text = *value;
	struct str text = str_cut(&bits_text, '/');
	struct address address;
	unsigned bits;
	uint64_t given;

	if (str_eq(*value, STR("unix:")))
		return OWN_KEY_IS;
	if (!address_parse(text, &address))
		return wrong(
		    r, "client: an IPv4 or IPv6 address, or unix:", err);
	bits = bits_of(r, &address);
	if (bits_text.p != NULL &&
	    (!str_to_u64(bits_text, 128, &given) || given != bits)) {
		err_set(err,
		    "part %zu of its key is client, whose IPv%d addresses are "
		    "cut to /%u",
		    r->number, address.family, bits);
		return OWN_KEY_WRONG;
	}
	address_cut(&address, bits, bits);
	address_format(&address, canonical);
	*value = arena_copy(r->arena, str_of(canonical));
	return value->p != NULL ? OWN_KEY_IS : no_memory(err);
}

/* Has it no port, nor the dot that a request's loses? */
static bool
is_host(struct str host)
{
	if (host.len > 1 && host.p[host.len - 1] == '.')
		return false;
	return host.p[0] == '[' ? host.p[host.len - 1] == ']'
				: memchr(host.p, ':', host.len) == NULL;
}

static enum own_key
read_host(const struct reading *r, struct str *value, struct err *err)
{
	char *at = arena_alloc(r->arena, value->len + 1);

	if (at == NULL)
		return no_memory(err);
	if (!is_host(*value))
		return wrong(
		    r, "host: without a port, or a dot at its end", err);
	for (size_t i = 0; i < value->len; i++)
		at[i] = value->p[i] >= 'A' && value->p[i] <= 'Z'
		    ? (char)(value->p[i] + 'a' - 'A')
		    : value->p[i];
	value->p = at;
	return OWN_KEY_IS;
}

static enum own_key
read_path(const struct reading *r, struct str path, struct err *err)
{
	char *canonical = arena_alloc(r->arena, path.len + 2);
	struct str is = { canonical, 0 };

	if (canonical == NULL)
		return no_memory(err);
	is.len = path_normalise(path, canonical);
	if (!str_eq(is, path))
		return wrong(r,
		    "path: it begins with /, and has neither // nor segments "
		    "of dots",
		    err);
	return OWN_KEY_IS;
}

/* As a request would have it. */
static enum own_key
read_part(const struct reading *r, struct str *value, struct err *err)
{
	if (value->len == 0) {
		err_set(err,
		    "an empty value is a missing key, which has no counts");
		return OWN_KEY_WRONG;
	}
	switch (r->meant->source) {
	case KEY_CLIENT:
		return read_client(r, value, err);
	case KEY_HOST:
		return read_host(r, value, err);
	case KEY_PATH:
		return read_path(r, *value, err);
	case KEY_GLOBAL:
		if (!str_eq(*value, STR("global")))
			return wrong(r, "global: `global`", err);
		break;
	case KEY_HEADER:
	case KEY_COOKIE:
	case KEY_QUERY:
	case KEY_FORM:
	case KEY_PARAM:
	case KEY_METHOD:
		break;
	}
	return OWN_KEY_IS;
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

static enum own_key
read_tuple(const struct config *config, const struct config_limit *limit,
    struct str key, struct arena *arena, struct key_tuple *tuple,
    struct err *err)
{
	enum own_key state = OWN_KEY_IS;

	if (!split(&limit->key, key, tuple->value, err))
		return OWN_KEY_WRONG;
	tuple->n = limit->key.n;
	for (size_t i = 0; i < tuple->n && state == OWN_KEY_IS; i++) {
		const struct key_part *part = &limit->key.part[i];
		size_t at = meant(part, tuple->value[i]);
		struct reading r = { &config->gateway, arena, part,
			&part->alternative[at], i + 1 };

		tuple->chosen[i] = key_chosen(part, at);
		state = read_part(&r, &tuple->value[i], err);
	}
	return state;
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

/* Are its values hashed, each by itself? */
static bool
has_hashes(const struct key *key)
{
	enum key_source source = key->part[0].alternative[0].source;

	return key->n == 1 &&
	    (key->part[0].n > 1 ||
		(source != KEY_CLIENT && source != KEY_GLOBAL));
}

static enum own_key
read_hash(const struct key *key, struct str text, char *tag, struct err *err)
{
	struct str digits = { text.p + strlen(KNOWN_HASH),
		text.len - strlen(KNOWN_HASH) };

	if (!has_hashes(key))
		err_set(err,
		    "%s stands for the value of a key that has one part and "
		    "is hashed; its key is none",
		    KNOWN_HASH);
	else if (!known_item_is_good(text))
		err_set(err,
		    "behind %s stand 32 digits, as sluice hash prints them",
		    KNOWN_HASH);
	else {
		memcpy(tag, digits.p, digits.len);
		tag[digits.len] = '\0';
		return OWN_KEY_IS;
	}
	return OWN_KEY_WRONG;
}

enum own_key
own_key_tag(const struct config *config, const struct config_limit *limit,
    struct str key, struct arena *arena, char tag[KEY_TAG_MAX], struct err *err)
{
	const struct key_hasher *hasher = config->store.hasher;
	struct key_tuple tuple = { .n = 0 };
	enum own_key state;
	size_t len;

	if (str_starts(key, STR(KNOWN_HASH)))
		return read_hash(&limit->key, key, tag, err);
	state = read_tuple(config, limit, key, arena, &tuple, err);
	if (state != OWN_KEY_IS)
		return state;
	len = is_plain(&limit->key, &tuple)
	    ? key_tag(hasher, tuple.value, 1, true, tag)
	    : key_tuple_tag(hasher, &tuple, tag);
	if (len > 0)
		return OWN_KEY_IS;
	err_set(err, "libcrypto failed");
	return OWN_KEY_FAILED;
}
