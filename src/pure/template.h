/*
 * template: a body that a file gives, with places for what only a request
 * knows: {limit}, {retry_after}, {message} and {request_id}. All else in
 * it, other braces too, goes out as it stands. Pure; any thread.
 */
#ifndef SLUICE_TEMPLATE_H
#define SLUICE_TEMPLATE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "pure/accept.h"

#define TEMPLATE_BYTES_MAX 65536

struct template_values {
	struct str limit;       /* name of the limit that refused */
	struct str retry_after; /* seconds, as digits */
	struct str message;
	struct str request_id;
};

/* Each value is escaped for the type: for JSON, the inside of a string. */
void template_fill(struct buf *out, struct str text, enum accept_type type,
    const struct template_values *values);
/* Does it hold a place for that? */
bool template_has_request_id(struct str text);
/* Is it UTF-8, and once filled in, of its type? err says why not. */
bool template_check(struct str text, enum accept_type type, struct err *err);
/* The first {word} that is no place, with its braces; p NULL: none is. */
struct str template_unknown(struct str text);

/* For HTML, text and attribute values. */
void template_add_html(struct buf *out, struct str text);

#endif
