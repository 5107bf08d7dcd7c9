/*
 * query: name=value pairs joined by `&`, as URLs and forms hold them
 * (application/x-www-form-urlencoded; WHATWG URL, 5.1). Pure; any thread.
 *
 * Names and values are decoded once: `+` is a blank, %XX its byte, and a
 * `%` without two hex digits stands for itself. Of pairs of one name the
 * first counts; a name without `=` has an empty value.
 */
#ifndef SLUICE_QUERY_H
#define SLUICE_QUERY_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/str.h"

/*
 * The decoded value, in the arena; p is NULL when there is none of that
 * name. false: no memory.
 */
bool query_get(
    struct str query, struct str name, struct arena *arena, struct str *value);

#endif
