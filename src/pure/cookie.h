/*
 * cookie: the Cookie header (RFC 6265, 4.2 and 5.4). Pure; any thread.
 *
 * Pairs are joined by `;`, blanks around names and values do not count.
 * Names are what they are. A value loses one pair of double quotes, then
 * its %XX are decoded once, for applications differ in whether they do that:
 * one cookie has to be one value, however it is written. Of pairs of one
 * name the first counts; what has no `=` is no cookie.
 */
#ifndef SLUICE_COOKIE_H
#define SLUICE_COOKIE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/str.h"

/*
 * The value, in the arena; p is NULL when there is none of that name.
 * false: no memory.
 */
bool cookie_get(
    struct str header, struct str name, struct arena *arena, struct str *value);

#endif
