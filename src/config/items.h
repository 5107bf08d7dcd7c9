/*
 * items: a list as the configuration writes it.
 *
 * Comma separated; an item @PATH stands for the lines of that file, one
 * item each, without the blanks around it; empty lines and those that begin
 * with # are left out. A PATH that is not absolute is relative to
 * `directory`. Empty items, and a list without any, are errors: an empty
 * list would often mean "all".
 */
#ifndef SLUICE_ITEMS_H
#define SLUICE_ITEMS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

/* Where an item of a file stands; file NULL: in the list itself. */
struct item_place {
	const char *file;
	unsigned line;
};

struct items {
	size_t n;
	struct str *at; /* each followed by a NUL */
	struct item_place *place;
};

/* Everything is copied to the arena. */
bool items_parse(struct str text, const char *directory, struct arena *arena,
    struct items *items, struct err *err);

#endif
