/*
 * form: the body of an HTML form, where it is urlencoded. Pure; any thread.
 */
#ifndef SLUICE_FORM_H
#define SLUICE_FORM_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/str.h"

/* Is application/x-www-form-urlencoded the type, whatever its parameters? */
bool form_is_urlencoded(struct str content_type);
/*
 * The value of a field of a whole body, decoded as by query_get; p is NULL
 * when there is none of that name. false: no memory.
 */
bool form_get(
    struct str body, struct str name, struct arena *arena, struct str *value);

#endif
