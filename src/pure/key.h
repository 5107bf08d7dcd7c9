/*
 * key: whose count a limit keeps. Pure but for libcrypto; any thread.
 *
 * A key is parts joined by `+`; a part is alternatives joined by `|`, the
 * first that is there and not empty standing. The identity of a request is
 * the values of its parts; what reaches the store is a tag made from them
 * that nobody can read back:
 *
 *	global                  when the key is `global` alone
 *	the address             when it is `client` alone and that parses
 *	32 hex digits           else: HMAC-SHA-256 (RFC 2104) cut to 128 bits,
 *	                        over each part's length and bytes, so that no
 *	                        two tuples collide ("a","bc" and "ab","c"), and
 *	                        what gave them (key_chosen)
 */
#ifndef SLUICE_KEY_H
#define SLUICE_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define KEY_PARTS_MAX        8
#define KEY_ALTERNATIVES_MAX 4
#define KEY_NAME_MAX         128
#define KEY_TAG_MAX          64 /* with its NUL */

enum key_source {
	KEY_CLIENT,
	KEY_HEADER, /* name: as in params, HTTP_X_API_KEY */
	KEY_COOKIE,
	KEY_QUERY, /* a field of the query */
	KEY_FORM,  /* a field of an urlencoded body */
	KEY_PARAM, /* name: as it is */
	KEY_HOST,
	KEY_PATH,
	KEY_METHOD,
	KEY_GLOBAL,
};

struct key_alternative {
	enum key_source source;
	unsigned ipv4_prefix; /* KEY_CLIENT; 0: the gateway's */
	unsigned ipv6_prefix;
	char name[KEY_NAME_MAX];
};

struct key_part {
	size_t n;
	struct key_alternative alternative[KEY_ALTERNATIVES_MAX];
};

struct key {
	size_t n;
	struct key_part part[KEY_PARTS_MAX];
};

/* A value for each part of a key, and what gave it (key_chosen). */
struct key_tuple {
	size_t n;
	struct str value[KEY_PARTS_MAX];
	uint8_t chosen[KEY_PARTS_MAX];
};

/*
 * "client", "header:X-Api-Key+path"; err names the part at fault. A header
 * is kept under its param's name: HTTP_X_API_KEY, but CONTENT_TYPE.
 */
bool key_parse(struct str text, struct key *key, struct err *err);
/*
 * True when every part always has a value (its last alternative is host,
 * path, method, global or client): such a key needs no missing_key.
 */
bool key_always_there(const struct key *key);
/* Does an alternative take its value from there? */
bool key_uses(const struct key *key, enum key_source source);
/*
 * What tells the values of one alternative from those of another: 0 for
 * the first. The same for header, cookie, query and form, so that an API
 * key is one however it is sent; different for each of the others, or a
 * client could write another's address into a header.
 */
uint8_t key_chosen(const struct key_part *part, size_t alternative);
/* The param a web server passes a header in: HTTP_X_API_KEY. */
bool key_header_param(
    struct str header, char param[KEY_NAME_MAX], struct err *err);
/* The name of a cookie, a field or a param, as it is: no blanks, not empty. */
bool key_copy_name(struct str name, char copy[KEY_NAME_MAX], struct err *err);

/*
 * Before the first hasher, in a process that ends soon: libcrypto reads no
 * settings and learns no algorithm that is not asked for, which would be half
 * of what starting takes.
 */
void key_start_lightly(void);
/* A fixed public secret is used where secret.len is 0. */
struct key_hasher; /* heap, opaque; read-only after key_hasher_new */
struct key_hasher *key_hasher_new(struct str secret, struct err *err);
void key_hasher_free(struct key_hasher *h);
/*
 * The tag of a tuple of n values. plain: the only value is written as it is
 * (an address or "global": it fits, and is never what a client wrote), not
 * hashed. Returns the length; tag gets a NUL. 0 if libcrypto failed. Any
 * number of threads may share one hasher.
 */
size_t key_tag(const struct key_hasher *h, const struct str *values, size_t n,
    bool plain, char tag[KEY_TAG_MAX]);
/*
 * The same of a tuple, never plain. Where `chosen` is 0 everywhere it is
 * key_tag of the values.
 */
size_t key_tuple_tag(const struct key_hasher *h, const struct key_tuple *t,
    char tag[KEY_TAG_MAX]);
/*
 * The offset of a key's window (`align = spread`): the first 8 bytes, big
 * endian, of SHA-256 of the key's whole name, mod period.
 */
bool key_offset(const struct key_hasher *h, struct str name, int64_t period,
    int64_t *offset);

#endif
