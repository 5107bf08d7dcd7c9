/*
 * zone_rule: how a zone goes on for ever, as POSIX writes it in TZ:
 * "CET-1CEST,M3.5.0,M10.5.0/3". Pure; any thread.
 */
#ifndef SLUICE_ZONE_RULE_H
#define SLUICE_ZONE_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* When in a year clocks are changed, and at which second of that day. */
struct zone_change {
	enum { ZONE_JULIAN, ZONE_DAY, ZONE_WEEKDAY } kind;
	int day;   /* 1 to 365, 0 to 365, or 0 (Sunday) to 6 */
	int week;  /* WEEKDAY: 1 to 5, the last */
	int month; /* WEEKDAY */
	int64_t second;
};

struct zone_rule {
	int64_t standard; /* seconds ahead of UTC */
	bool has_summer;
	int64_t summer;
	struct zone_change begins; /* in standard time */
	struct zone_change ends;   /* in summer time */
};

bool zone_rule_parse(struct str text, struct zone_rule *rule);
/* Seconds ahead of UTC at that moment (UTC seconds). */
int64_t zone_rule_offset(const struct zone_rule *rule, int64_t at);

#endif
