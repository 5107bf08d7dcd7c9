/*
 * zone: what clocks on the wall say, from a file of the tz database.
 *
 * The C library knows one zone a process, and only through a variable of the
 * environment that no thread may change. So this reads TZif files itself
 * (RFC 9636: versions 2 and later, without leap seconds): the transitions
 * they list, and behind the last one the rule in their footer (POSIX TZ).
 * Pure; any thread once made.
 */
#ifndef SLUICE_ZONE_H
#define SLUICE_ZONE_H

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct zone; /* in the arena it was made in; NULL is UTC */

/* From the bytes of a file; nothing of them is kept. NULL: err says why. */
struct zone *zone_parse(struct str tzif, struct arena *arena, struct err *err);
/* Seconds that the zone is ahead of UTC at that moment (UTC seconds). */
int64_t zone_offset(const struct zone *zone, int64_t at);

#endif
