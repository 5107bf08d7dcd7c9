#include "pure/known.h"

#include <assert.h>
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

/* What stands behind `hash:`; p NULL: it is a value. */
static struct str
digits_of(struct str item)
{
	const struct str before = STR(KNOWN_HASH);

	if (!str_starts(item, before))
		return STR_NONE;
	return (struct str){ item.p + before.len, item.len - before.len };
}

static bool
are_hex(struct str digits)
{
	for (size_t i = 0; i < digits.len; i++)
		if (!(digits.p[i] >= '0' && digits.p[i] <= '9') &&
		    !(digits.p[i] >= 'a' && digits.p[i] <= 'f'))
			return false;
	return true;
}

bool
known_item_is_good(struct str item)
{
	struct str digits = digits_of(item);

	return digits.p == NULL ||
	    (digits.len == HASH_DIGITS && are_hex(digits));
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

static bool
read_item(const struct key_hasher *hasher, struct str item, struct hash *hash)
{
	struct str digits = digits_of(item);

	if (digits.p == NULL)
		return hash_value(hasher, item, hash);
	assert(digits.len == HASH_DIGITS);
	memcpy(hash->digits, digits.p, HASH_DIGITS);
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
	for (size_t i = 0; i < n; i++)
		if (!read_item(hasher, items[i], &hash[i])) {
			err_set(err, "libcrypto failed");
			return NULL;
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
