/*
 * known: a set of secret values, kept as their hashes. Pure but for
 * libcrypto; any thread once made.
 *
 * Its list holds values, or what `sluice hash` prints of them: an item
 * `hash:` and 32 lower-case hex digits is a hash, any other a value, so a
 * value that begins with `hash:` has to be given as its hash. Whoever reads
 * the hashes can not pass one off as a value.
 */
#ifndef SLUICE_KNOWN_H
#define SLUICE_KNOWN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "pure/key.h"

/* What stands before a hash. */
#define KNOWN_HASH "hash:"

struct known; /* in the arena it was made in */

/* False: it begins as a hash and is none. */
bool known_item_is_good(struct str item);

/*
 * Of good items. NULL: no memory, or libcrypto failed; err says which. The
 * hasher outlives it.
 */
struct known *known_new(const struct str *items, size_t n,
    const struct key_hasher *hasher, struct arena *arena, struct err *err);
/* An empty value is never known. */
bool known_has(const struct known *known, struct str value);

#endif
