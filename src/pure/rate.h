/*
 * rate: RATE, N units per period, as the configuration writes it.
 * Pure; any thread.
 *
 *	N/PERIOD[ burst B], comma separated, distinct periods
 *	N, without a period: of what runs at a time
 *	unlimited | deny
 *
 * PERIOD is a count and a unit of ms s m h d w ("10s", "1h"), or the unit
 * alone ("10/s" is "10/1s"), or one month or year of the calendar. N and B
 * are 1 to 10^12, a period 1ms to 366d; whether an algorithm takes B, no
 * period, or one of the calendar, and N times the period, is not asked here.
 * Out-parameters are touched on success alone; an error quotes the item it
 * is about.
 */
#ifndef SLUICE_RATE_H
#define SLUICE_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define RATES_MAX 8 /* rates in one limit */

/* What has no length of its own: period_us is that of the longest. */
enum rate_calendar { RATE_ANY, RATE_MONTH, RATE_YEAR };

struct rate {
	int64_t count;     /* N >= 1 */
	int64_t period_us; /* > 0, whole milliseconds; 0: none is given */
	int64_t burst;     /* B >= 1; N where none is given */
	bool has_burst;    /* written */
	enum rate_calendar calendar;
};

enum rates_kind { RATES_LIST, RATES_UNLIMITED, RATES_DENY };

struct rates {
	enum rates_kind kind;
	size_t n; /* of RATES_LIST: 1 to RATES_MAX */
	struct rate rate[RATES_MAX];
};

bool rate_parse(struct str text, struct rates *rates, struct err *err);
/*
 * "50ms", "10s", "5m", "1h", "1d", "1w" (no unit: an error but for 0); 0 to
 * 366d.
 */
bool rate_parse_duration(struct str text, int64_t *us, struct err *err);

#endif
