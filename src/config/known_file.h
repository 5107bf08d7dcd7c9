/*
 * known_file: the values, or their hashes, that count: a list of @PATH, an
 * item a line (items.h).
 */
#ifndef SLUICE_KNOWN_FILE_H
#define SLUICE_KNOWN_FILE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "pure/known.h"

/*
 * In the arena; what the files hold is not kept. NULL: err says why, and
 * quotes no value.
 */
struct known *known_file_read(struct str list, const char *directory,
    const struct key_hasher *hasher, struct arena *arena, struct err *err);

#endif
