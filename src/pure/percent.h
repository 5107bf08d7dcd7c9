/*
 * percent: percent-encoded bytes (RFC 3986, 2.1). Pure; any thread.
 */
#ifndef SLUICE_PERCENT_H
#define SLUICE_PERCENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"

/*
 * The byte that s has at `at`, %XX decoded; a `%` without two hex digits
 * stands for itself. Returns how many bytes of s it took: 1 or 3.
 */
size_t percent_byte(struct str s, size_t at, char *byte);
/* The same of a form, where `+` is a blank. */
size_t percent_form_byte(struct str s, size_t at, char *byte);
/*
 * All of s, decoded once, in the arena; `byte` is one of the two above.
 * False: no memory.
 */
bool percent_decode(struct str s, size_t byte(struct str, size_t, char *),
    struct arena *arena, struct str *decoded);

#endif
