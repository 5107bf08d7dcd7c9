/*
 * value_pairs: the text of a limit's `header` and `query`, read into their
 * fields. See value.h.
 */
#ifndef SLUICE_VALUE_PAIRS_H
#define SLUICE_VALUE_PAIRS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "config/value.h"

/*
 * A list of NAME=GLOB, or one NAME=~REGEX; NAME= is where it is missing or
 * empty. headers: a NAME is a header's, and kept as its param's. What the
 * pairs match is heap: value_pairs_release frees it.
 */
bool value_pairs_set(bool headers, struct str text,
    const struct value_room *room, struct config_pairs *field, struct err *err);
void value_pairs_release(struct config_pairs *pairs);

#endif
