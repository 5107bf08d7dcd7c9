/*
 * calendar: windows that begin when a calendar and a clock on the wall say
 * so: days of 23 to 25 hours, weeks from Monday on, months, years. Pure; any
 * thread, also together: what was last computed is kept and shared without
 * a lock.
 */
#ifndef SLUICE_CALENDAR_H
#define SLUICE_CALENDAR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "pure/rate.h"
#include "pure/zone.h"

enum calendar_unit {
	CALENDAR_MINUTE,
	CALENDAR_HOUR,
	CALENDAR_DAY,
	CALENDAR_WEEK,
	CALENDAR_MONTH,
	CALENDAR_YEAR,
	CALENDAR_UNITS
};

/* The start of the previous window, the current, the next, and its end. */
struct calendar_windows {
	int64_t boundary_us[4];
};

/* The last that were computed of a unit. */
struct calendar_kept {
	_Atomic unsigned version; /* odd while it is written */
	_Atomic int64_t boundary_us[4];
};

struct calendar {
	const struct zone *zone; /* NULL: UTC; outlives it */
	struct calendar_kept kept[CALENDAR_UNITS];
};

/* False: no calendar has windows of that length. */
bool calendar_unit_of(const struct rate *rate, enum calendar_unit *unit);
/* now_us: UTC, since 1970. */
struct calendar_windows calendar_around(
    struct calendar *c, enum calendar_unit unit, int64_t now_us);

#endif
