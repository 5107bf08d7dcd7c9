/*
 * field: the syntax of HTTP fields (RFC 9110, 5). Pure; any thread.
 */
#ifndef SLUICE_FIELD_H
#define SLUICE_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

/* A token: a name of a field, or half of a media type. */
bool field_is_name(struct str s);
/* No CR, LF, NUL or other control; blanks inside alone; may be empty. */
bool field_is_value(struct str s);
/*
 * As str_cut, at the first of several separators, but one inside a quoted
 * string is none. A string that does not end takes the rest.
 */
struct str field_cut(struct str *rest, const char *separators);
/* SCHEME://HOST[:PORT] as a browser writes it: lower case, no path. */
bool field_is_origin(struct str s);
/* Of seconds since 1970, as an IMF-fixdate (RFC 9110, 5.6.7). */
void field_add_date(struct buf *out, int64_t seconds);

#endif
