#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BLOCK_BYTES 4096
#define ARENA_ALIGN       16

struct arena_block {
	struct arena_block *next;
	size_t used;
	size_t size;
	_Alignas(ARENA_ALIGN) char bytes[];
};

void
arena_init(struct arena *a)
{
	*a = (struct arena){ NULL, NULL };
}

static void
free_blocks(struct arena_block *block)
{
	while (block != NULL) {
		struct arena_block *next = block->next;

		free(block);
		block = next;
	}
}

void
arena_release(struct arena *a)
{
	free_blocks(a->first);
	arena_init(a);
}

void
arena_reset(struct arena *a)
{
	if (a->first == NULL)
		return;
	free_blocks(a->first->next);
	a->first->next = NULL;
	a->first->used = 0;
	a->current = a->first;
}

static struct arena_block *
add_block(struct arena *a, size_t at_least)
{
	size_t size =
	    at_least > ARENA_BLOCK_BYTES ? at_least : ARENA_BLOCK_BYTES;
	struct arena_block *block = malloc(sizeof(*block) + size);

	if (block == NULL)
		return NULL;
	block->next = NULL;
	block->used = 0;
	block->size = size;
	if (a->current == NULL)
		a->first = block;
	else
		a->current->next = block;
	a->current = block;
	return block;
}

void *
arena_alloc(struct arena *a, size_t size)
{
	struct arena_block *block = a->current;
	void *at;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
	if (block == NULL || block->size - block->used < size)
		block = add_block(a, size);
	if (block == NULL)
		return NULL;
	at = block->bytes + block->used;
	block->used += size;
	return memset(at, 0, size);
}

struct str
arena_copy(struct arena *a, struct str s)
{
	char *copy = arena_alloc(a, s.len + 1);

	if (copy == NULL)
		return STR_NONE;
	if (s.len > 0)
		memcpy(copy, s.p, s.len);
	return (struct str){ copy, s.len };
}

struct str
arena_join(struct arena *a, const struct str *part, size_t n)
{
	size_t len = 0;
	size_t at = 0;
	char *joined;

	for (size_t i = 0; i < n; i++)
		len += part[i].len;
	joined = arena_alloc(a, len + 1);
	if (joined == NULL)
		return STR_NONE;
	for (size_t i = 0; i < n; i++) {
		if (part[i].len > 0)
			memcpy(joined + at, part[i].p, part[i].len);
		at += part[i].len;
	}
	return (struct str){ joined, len };
}
