/*
 * form: the body of an HTML form, where it is urlencoded. Pure; any thread.
 */
#ifndef SLUICE_FORM_H
#define SLUICE_FORM_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/str.h"

/*
 * Is application/x-www-form-urlencoded the type, whatever stands behind it?
 * As PHP reads it: `;`, `,` or a blank ends the type.
 */
bool form_is_urlencoded(struct str content_type);
/*
 * The value of the first field of that name in a whole body, decoded as by
 * query_get; p is NULL when there is none. Names are what PHP makes of them:
 * blanks in front do not count, a NUL ends them, and ` `, `.`, `[` and `_`
 * are one. The name is not empty. false: no memory.
 */
bool form_get(
    struct str body, struct str name, struct arena *arena, struct str *value);
/*
 * Has the field two values that differ? Applications differ in which one
 * they take: PHP the last, others the first.
 */
bool form_disagrees(struct str body, struct str name);

#endif
