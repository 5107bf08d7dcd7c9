/*
 * statuses: a set of HTTP response statuses, `401,403,5xx`.
 * Pure; any thread.
 */
#ifndef SLUICE_STATUSES_H
#define SLUICE_STATUSES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct statuses {
	bool some; /* false: all, whatever the bits */
	uint64_t bit[10];
};

/* Adds `401` (100 to 599) or a class, `5xx`. */
bool statuses_add(struct statuses *s, struct str item, struct err *err);
bool statuses_have(const struct statuses *s, int status);

#endif
