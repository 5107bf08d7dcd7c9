/*
 * unsettled: what settlements could not do is counted, and a cut logged, at
 * most a line a second. Any thread.
 */
#ifndef SLUICE_UNSETTLED_H
#define SLUICE_UNSETTLED_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* A charge ended at twice the limit: `units` of it were not counted. */
void unsettled_cut(struct str key, int64_t units);
/* The store did not take n settlements, or did not say that it has. */
void unsettled_lost(size_t n);

#endif
