#include "pure/known.h"

#include <stdlib.h>
#include <string.h>

#define HASH_DIGITS 32

struct hash {
	char digits[HASH_DIGITS];
};

struct known {
	const struct key_hasher *hasher;
	size_t n;
	struct hash *hash; /* sorted */
};

static bool
is_hash(struct str item)
{
	if (item.len != HASH_DIGITS)
		return false;
	for (size_t i = 0; i < item.len; i++)
		if (!(item.p[i] >= '0' && item.p[i] <= '9') &&
		    !(item.p[i] >= 'a' && item.p[i] <= 'f'))
			return false;
	return true;
}

static bool
hash_value(const struct key_hasher *hasher, struct str value, struct hash *hash)
{
	char tag[KEY_TAG_MAX];

	if (key_tag(hasher, &value, 1, false, tag) != HASH_DIGITS)
		return false;
	memcpy(hash->digits, tag, HASH_DIGITS);
	return true;
}

static int
compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct hash));
}

struct known *
known_new(const struct str *items, size_t n, const struct key_hasher *hasher,
    struct arena *arena, struct err *err)
{
	struct known *known = arena_alloc(arena, sizeof(*known));
	struct hash *hash = arena_alloc(arena, n * sizeof(*hash));

	if (known == NULL || hash == NULL) {
		err_set(err, "out of memory");
		return NULL;
	}
	*known = (struct known){ hasher, n, hash };
	for (size_t i = 0; i < n; i++) {
		if (is_hash(items[i])) {
			memcpy(hash[i].digits, items[i].p, HASH_DIGITS);
		} else if (!hash_value(hasher, items[i], &hash[i])) {
			err_set(err, "libcrypto failed");
			return NULL;
		}
	}
	qsort(hash, n, sizeof(*hash), compare);
	return known;
}

bool
known_has(const struct known *known, struct str value)
{
	struct hash hash;

	return value.len > 0 && hash_value(known->hasher, value, &hash) &&
	    bsearch(&hash, known->hash, known->n, sizeof(hash), compare) !=
	    NULL;
}
