/*
 * tuple: the values of a limit's key in a request, and the tag made of
 * them. Any thread; what it makes lives in the request's arena.
 */
#ifndef SLUICE_TUPLE_H
#define SLUICE_TUPLE_H

#include "base/arena.h"
#include "config/config.h"
#include "domain/subject.h"

enum tuple_state {
	TUPLE_THERE,   /* the tag was written */
	TUPLE_MISSING, /* a part of the key is missing or empty */
	TUPLE_UNKNOWN, /* one is there, but none of known_keys */
	TUPLE_TWICE,   /* a param or a field of it has two values */
	TUPLE_FAILED,  /* no memory */
};

/* naming holds the secret that the tag is made with. */
enum tuple_state tuple_tag(const struct config_limit *limit,
    const struct config_store *naming, const struct subject *subject,
    struct arena *arena, char tag[KEY_TAG_MAX]);

#endif
