/*
 * params: the name/value pairs of a request, in the order they came.
 * Pure; the pairs point into what the request owns. Any thread.
 */
#ifndef SLUICE_PARAMS_H
#define SLUICE_PARAMS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"

struct param {
	struct str name;
	struct str value; /* a NUL follows it */
};

struct params {
	struct param *at;
	size_t n;
};

/*
 * Of "NAME=value" texts, up to a NULL, which they then point into; without
 * FCGI_ROLE, which no web server sends: libfcgi puts it there. false: no
 * memory.
 */
bool params_read(struct params *params, char *const *envp, struct arena *arena);
/* The first of that name; p is NULL when there is none. */
struct str params_get(const struct params *params, struct str name);
/* How many there are of that name. */
size_t params_count(const struct params *params, struct str name);
/* Are there two of that name with different values? */
bool params_disagree(const struct params *params, struct str name);

#endif
