/*
 * value: the text of an option, read into its field.
 *
 * What the field points to is copied to the arena, but for a struct match,
 * which is heap and the caller's. One thread.
 */
#ifndef SLUICE_VALUE_H
#define SLUICE_VALUE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "config/option.h"

struct value_room {
	struct arena *arena;
	const char *directory; /* what a relative path is relative to */
};

/*
 * base: the struct of the option's section. False: err says what is wrong
 * with the value, and the field is as it was. A secret is never quoted.
 */
bool value_set(const struct option *option, struct str text,
    const struct value_room *room, void *base, struct err *err);

#endif
