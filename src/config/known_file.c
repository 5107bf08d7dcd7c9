#include "config/known_file.h"

#include <string.h>

#include "config/items.h"

static void
wipe(const struct items *items)
{
	for (size_t i = 0; i < items->n; i++)
		explicit_bzero(
		    (char *)(uintptr_t)items->at[i].p, items->at[i].len);
}

struct known *
known_file_read(struct str list, const char *directory,
    const struct key_hasher *hasher, struct arena *arena, struct err *err)
{
	struct known *known = NULL;
	struct items items = { 0 };
	struct arena plain;

	arena_init(&plain);
	if (items_parse(list, directory, &plain, &items, err))
		known = known_new(items.at, items.n, hasher, arena, err);
	wipe(&items);
	arena_release(&plain);
	return known;
}
