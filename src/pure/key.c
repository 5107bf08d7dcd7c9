/*
 * The hasher keeps contexts that have begun, one of them with its key set,
 * which nobody changes afterwards; a tag is made in a copy, so threads share
 * the hasher without a lock. (To find an algorithm by its name each time cost
 * as much as the rest of it.)
 */
#include "pure/key.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#define PUBLIC_SECRET STR("sluice: a public secret, where none is configured")
#define DIGEST_BYTES  32 /* of SHA-256 */
#define TAG_BYTES     16 /* of them in a tag */
#define TAG_DIGITS    32
#define OFFSET_BYTES  8
#define COUNT(table)  (sizeof(table) / sizeof((table)[0]))
#define PARAM_PREFIX  "HTTP_"
#define SOURCES_TEXT                                                   \
	"client, client/24,48, header:NAME, cookie:NAME, query:NAME, " \
	"form:NAME, param:NAME, host, path, method or global"

struct key_hasher {
	EVP_MAC_CTX *keyed;
	EVP_MD_CTX *plain; /* SHA-256 that has begun */
};

static const struct {
	struct str word;
	enum key_source source;
} sources[] = {
	{ { "client", 6 }, KEY_CLIENT },
	{ { "host", 4 }, KEY_HOST },
	{ { "path", 4 }, KEY_PATH },
	{ { "method", 6 }, KEY_METHOD },
	{ { "global", 6 }, KEY_GLOBAL },
};

static const struct {
	struct str prefix;
	enum key_source source;
} named_sources[] = {
	{ { "header:", 7 }, KEY_HEADER },
	{ { "cookie:", 7 }, KEY_COOKIE },
	{ { "query:", 6 }, KEY_QUERY },
	{ { "form:", 5 }, KEY_FORM },
	{ { "param:", 6 }, KEY_PARAM },
};

/* The character of a param's name, or 0 where a header can not have it. */
static char
param_char(char c)
{
	if (c >= 'a' && c <= 'z')
		return (char)(c - 'a' + 'A');
	if ((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
		return c;
	return c == '-' || c == '_' ? '_' : '\0';
}

/* CGI passes these two without the prefix (RFC 3875, 4.1.2 and 4.1.3). */
static bool
has_no_prefix(struct str header)
{
	return str_eq_nocase(header, STR("Content-Type")) ||
	    str_eq_nocase(header, STR("Content-Length"));
}

bool
key_header_param(struct str header, char param[KEY_NAME_MAX], struct err *err)
{
	size_t n = 0;

	if (header.len == 0)
		return err_set(err, "the header's name is missing");
	if (header.len >= KEY_NAME_MAX - strlen(PARAM_PREFIX))
		return err_set(err, "the header's name is too long");
	if (!has_no_prefix(header)) {
		n = strlen(PARAM_PREFIX);
		memcpy(param, PARAM_PREFIX, n);
	}
	for (size_t i = 0; i < header.len; i++, n++) {
		param[n] = param_char(header.p[i]);
		if (param[n] == '\0')
			return err_set(err,
			    "a header's name has letters, digits, `-` and `_` "
			    "alone");
	}
	param[n] = '\0';
	return true;
}

bool
key_copy_name(struct str name, char copy[KEY_NAME_MAX], struct err *err)
{
	if (name.len == 0)
		return err_set(err, "the name is missing");
	if (name.len >= KEY_NAME_MAX)
		return err_set(err, "the name is too long");
	for (size_t i = 0; i < name.len; i++)
		if (name.p[i] == ' ' || name.p[i] == '\t')
			return err_set(err, "the name has blanks in it");
	memcpy(copy, name.p, name.len);
	copy[name.len] = '\0';
	return true;
}

static bool
parse_named(
    struct str item, size_t prefix, struct key_alternative *a, struct err *err)
{
	struct str name =
	    str_trim((struct str){ item.p + prefix, item.len - prefix });
	struct err why;

	if (a->source == KEY_HEADER ? key_header_param(name, a->name, &why)
				    : key_copy_name(name, a->name, &why))
		return true;
	return err_set(err, "`%.*s`: %s", STR_ARG(item), why.text);
}

/* "client/24,48"; plain `client` leaves both 0. */
static bool
parse_prefixes(struct str item, struct key_alternative *a, struct err *err)
{
	struct str ipv6 = { item.p + strlen("client/"),
		item.len - strlen("client/") };
	struct str ipv4 = str_trim(str_cut(&ipv6, ','));
	uint64_t four, six;

	if (!str_to_u64(ipv4, 32, &four) ||
	    !str_to_u64(str_trim(ipv6), 128, &six) || four == 0 || six == 0)
		return err_set(err,
		    "`%.*s`: it is written client/24,48: bits of an IPv4 "
		    "address (1 to 32) and of an IPv6 one (1 to 128)",
		    STR_ARG(item));
	a->source = KEY_CLIENT;
	a->ipv4_prefix = (unsigned)four;
	a->ipv6_prefix = (unsigned)six;
	return true;
}

static bool
parse_alternative(struct str item, struct key_alternative *a, struct err *err)
{
	*a = (struct key_alternative){ 0 };
	if (str_starts(item, STR("client/")))
		return parse_prefixes(item, a, err);
	for (size_t i = 0; i < COUNT(named_sources); i++) {
		a->source = named_sources[i].source;
		if (str_starts(item, named_sources[i].prefix))
			return parse_named(
			    item, named_sources[i].prefix.len, a, err);
	}
	for (size_t i = 0; i < COUNT(sources); i++) {
		a->source = sources[i].source;
		if (str_eq(sources[i].word, item))
			return true;
	}
	return err_set(err, "`%.*s`: unknown in a key; it is " SOURCES_TEXT,
	    STR_ARG(item));
}

static bool
parse_part(struct str text, struct key_part *part, struct err *err)
{
	struct str rest = text;

	part->n = 0;
	do {
		struct str item = str_trim(str_cut(&rest, '|'));

		if (part->n == KEY_ALTERNATIVES_MAX)
			return err_set(err, "`%.*s`: more than %d alternatives",
			    STR_ARG(text), KEY_ALTERNATIVES_MAX);
		if (!parse_alternative(item, &part->alternative[part->n], err))
			return false;
		part->n++;
	} while (rest.p != NULL);
	return true;
}

bool
key_parse(struct str text, struct key *key, struct err *err)
{
	struct str rest = text;
	struct key parsed = { 0 };

	do {
		struct str part = str_trim(str_cut(&rest, '+'));

		if (parsed.n == KEY_PARTS_MAX)
			return err_set(err, "`%.*s`: more than %d parts",
			    STR_ARG(text), KEY_PARTS_MAX);
		if (!parse_part(part, &parsed.part[parsed.n], err))
			return false;
		parsed.n++;
	} while (rest.p != NULL);
	*key = parsed;
	return true;
}

/* Is it there in every request? A client is taken to be. */
static bool
is_always_there(enum key_source source)
{
	switch (source) {
	case KEY_CLIENT:
	case KEY_HOST:
	case KEY_PATH:
	case KEY_METHOD:
	case KEY_GLOBAL:
		return true;
	case KEY_HEADER:
	case KEY_COOKIE:
	case KEY_QUERY:
	case KEY_FORM:
	case KEY_PARAM:
		break;
	}
	return false;
}

bool
key_always_there(const struct key *key)
{
	for (size_t i = 0; i < key->n; i++) {
		const struct key_part *part = &key->part[i];

		if (!is_always_there(part->alternative[part->n - 1].source))
			return false;
	}
	return true;
}

bool
key_uses(const struct key *key, enum key_source source)
{
	for (size_t i = 0; i < key->n; i++)
		for (size_t k = 0; k < key->part[i].n; k++)
			if (key->part[i].alternative[k].source == source)
				return true;
	return false;
}

static bool
is_written_by_clients(enum key_source source)
{
	return source == KEY_HEADER || source == KEY_COOKIE ||
	    source == KEY_QUERY || source == KEY_FORM;
}

uint8_t
key_chosen(const struct key_part *part, size_t at)
{
	enum key_source first = part->alternative[0].source;
	enum key_source source = part->alternative[at].source;

	if (source == first ||
	    (is_written_by_clients(source) && is_written_by_clients(first)))
		return 0;
	return is_written_by_clients(source) ? UINT8_MAX
					     : (uint8_t)(1 + source);
}

static bool
set_secret(EVP_MAC_CTX *ctx, struct str secret)
{
	char digest[] = "SHA256";
	OSSL_PARAM params[] = { OSSL_PARAM_construct_utf8_string(
				    OSSL_MAC_PARAM_DIGEST, digest, 0),
		OSSL_PARAM_construct_end() };

	return EVP_MAC_init(ctx, (const unsigned char *)secret.p, secret.len,
		   params) == 1;
}

static EVP_MAC_CTX *
new_keyed(struct str secret)
{
	EVP_MAC *mac = EVP_MAC_fetch(NULL, OSSL_MAC_NAME_HMAC, NULL);
	EVP_MAC_CTX *ctx = mac == NULL ? NULL : EVP_MAC_CTX_new(mac);

	EVP_MAC_free(mac); /* the context keeps it */
	if (ctx != NULL && !set_secret(ctx, secret)) {
		EVP_MAC_CTX_free(ctx);
		return NULL;
	}
	return ctx;
}

static EVP_MD_CTX *
new_plain(void)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	if (ctx != NULL && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1) {
		EVP_MD_CTX_free(ctx);
		return NULL;
	}
	return ctx;
}

void
key_start_lightly(void)
{
	OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG |
		OPENSSL_INIT_NO_ADD_ALL_CIPHERS |
		OPENSSL_INIT_NO_ADD_ALL_DIGESTS | OPENSSL_INIT_NO_ATEXIT,
	    NULL);
}

struct key_hasher *
key_hasher_new(struct str secret, struct err *err)
{
	struct key_hasher *h = calloc(1, sizeof(*h));

	if (h != NULL) {
		h->keyed = new_keyed(secret.len > 0 ? secret : PUBLIC_SECRET);
		h->plain = new_plain();
	}
	if (h == NULL || h->keyed == NULL || h->plain == NULL) {
		key_hasher_free(h);
		err_set(err, "libcrypto can not start SHA-256");
		return NULL;
	}
	return h;
}

void
key_hasher_free(struct key_hasher *h)
{
	if (h == NULL)
		return;
	EVP_MAC_CTX_free(h->keyed);
	EVP_MD_CTX_free(h->plain);
	free(h);
}

static bool
add_value(EVP_MAC_CTX *ctx, struct str value)
{
	uint64_t len = value.len;
	uint8_t prefix[sizeof(len)];

	for (size_t i = 0; i < sizeof(prefix); i++)
		prefix[i] = (uint8_t)(len >> 8 * (sizeof(prefix) - 1 - i));
	return EVP_MAC_update(ctx, prefix, sizeof(prefix)) == 1 &&
	    (value.len == 0 ||
		EVP_MAC_update(
		    ctx, (const unsigned char *)value.p, value.len) == 1);
}

/*
 * What was chosen, behind the values; nothing where it is 0 everywhere. Fewer
 * than 8 bytes, or 8 of which one is not zero: never the length of a further
 * value.
 */
static bool
add_chosen(EVP_MAC_CTX *ctx, const uint8_t *chosen, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (chosen[i] > 0)
			return EVP_MAC_update(ctx, chosen, n) == 1;
	return true;
}

static bool
hash_tuple(const struct key_hasher *h, const struct key_tuple *t,
    uint8_t digest[DIGEST_BYTES])
{
	EVP_MAC_CTX *ctx = EVP_MAC_CTX_dup(h->keyed);
	size_t len = 0;
	bool hashed = ctx != NULL;

	for (size_t i = 0; hashed && i < t->n; i++)
		hashed = add_value(ctx, t->value[i]);
	hashed = hashed && add_chosen(ctx, t->chosen, t->n) &&
	    EVP_MAC_final(ctx, digest, &len, DIGEST_BYTES) == 1;
	EVP_MAC_CTX_free(ctx);
	return hashed && len == DIGEST_BYTES;
}

size_t
key_tag(const struct key_hasher *h, const struct str *values, size_t n,
    bool plain, char tag[KEY_TAG_MAX])
{
	struct key_tuple t = { .n = n };

	if (plain) {
		assert(n == 1 && values[0].len > 0);
		assert(values[0].len < KEY_TAG_MAX);
		memcpy(tag, values[0].p, values[0].len);
		tag[values[0].len] = '\0';
		return values[0].len;
	}
	assert(n <= KEY_PARTS_MAX);
	for (size_t i = 0; i < n; i++)
		t.value[i] = values[i];
	return key_tuple_tag(h, &t, tag);
}

size_t
key_tuple_tag(const struct key_hasher *h, const struct key_tuple *t,
    char tag[KEY_TAG_MAX])
{
	static const char hex[] = "0123456789abcdef";
	uint8_t digest[DIGEST_BYTES];

	tag[0] = '\0';
	if (!hash_tuple(h, t, digest))
		return 0;
	for (size_t i = 0; i < TAG_BYTES; i++) {
		tag[2 * i] = hex[digest[i] >> 4];
		tag[2 * i + 1] = hex[digest[i] & 15];
	}
	tag[TAG_DIGITS] = '\0';
	return TAG_DIGITS;
}

static bool
hash_name(
    const struct key_hasher *h, struct str name, uint8_t digest[DIGEST_BYTES])
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool hashed = ctx != NULL && EVP_MD_CTX_copy_ex(ctx, h->plain) == 1 &&
	    EVP_DigestUpdate(ctx, name.len > 0 ? name.p : "", name.len) == 1 &&
	    EVP_DigestFinal_ex(ctx, digest, NULL) == 1;

	EVP_MD_CTX_free(ctx);
	return hashed;
}

bool
key_offset(const struct key_hasher *h, struct str name, int64_t period,
    int64_t *offset)
{
	uint8_t digest[DIGEST_BYTES];
	uint64_t first = 0;

	assert(period > 0);
	if (!hash_name(h, name, digest))
		return false;
	for (size_t i = 0; i < OFFSET_BYTES; i++)
		first = first << 8 | digest[i];
	*offset = (int64_t)(first % (uint64_t)period);
	return true;
}
