/*
 * json: text as JSON has it (RFC 8259). Pure; any thread.
 */
#ifndef SLUICE_JSON_H
#define SLUICE_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

/* The inside of a string: escaped; what is no UTF-8 becomes U+FFFD. */
void json_add_escaped(struct buf *out, struct str text);
/*
 * Is it one JSON value and nothing else? *at: where it is not. Nesting is
 * followed 64 deep.
 */
bool json_is_valid(struct str text, size_t *at);
/* How many bytes the UTF-8 character at s has; 0: it is none. */
size_t json_utf8_length(struct str s);

#endif
