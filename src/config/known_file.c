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

/* The list is of files, so each item has a line. */
static bool
check(const struct items *items, struct err *err)
{
	for (size_t i = 0; i < items->n; i++)
		if (!known_item_is_good(items->at[i]))
			return err_set(err,
			    "%s:%u: " KNOWN_HASH
			    " without the 32 lower-case hex digits that "
			    "`sluice hash` prints",
			    items->place[i].file, items->place[i].line);
	return true;
}

struct known *
known_file_read(struct str list, const char *directory,
    const struct key_hasher *hasher, struct arena *arena, struct err *err)
{
	struct known *known = NULL;
	struct items items = { 0 };
	struct arena plain;

	arena_init(&plain);
	if (items_parse(list, directory, &plain, &items, err) &&
	    check(&items, err))
		known = known_new(items.at, items.n, hasher, arena, err);
	wipe(&items);
	arena_release(&plain);
	return known;
}
