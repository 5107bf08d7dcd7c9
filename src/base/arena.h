/*
 * arena: memory that is given back all at once.
 *
 * A request's small things live here and are never freed one by one:
 * arena_reset ends them all and keeps the first block for the next request.
 * One thread at a time uses an arena.  Allocations are aligned for any type
 * and zeroed; NULL means that memory ran out.
 */
#ifndef SLUICE_ARENA_H
#define SLUICE_ARENA_H

#include <stddef.h>

#include "base/str.h"

struct arena_block;

struct arena {
	struct arena_block *first;
	struct arena_block *current;
};

void arena_init(struct arena *a);
void arena_release(struct arena *a);
void arena_reset(struct arena *a);
void *arena_alloc(struct arena *a, size_t size);
/* A copy of s, followed by a NUL that is not counted. p NULL: no memory. */
struct str arena_copy(struct arena *a, struct str s);
/* The n parts as one, likewise. */
struct str arena_join(struct arena *a, const struct str *part, size_t n);

#endif
