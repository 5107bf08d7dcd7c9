/*
 * civil: days of the Gregorian calendar, without time zones. Pure; any
 * thread. After Howard Hinnant, "chrono-Compatible Low-Level Date
 * Algorithms": years begin in March there, so the leap day comes last.
 */
#ifndef SLUICE_CIVIL_H
#define SLUICE_CIVIL_H

#include <stdint.h>

struct civil {
	int64_t year;
	int month; /* 1 to 12 */
	int day;   /* 1 to 31 */
};

/* Days since 1970-01-01; negative before. */
int64_t civil_to_days(int64_t year, int month, int day);
struct civil civil_of_days(int64_t days);
/* 0 is Sunday. */
int civil_weekday(int64_t days);

#endif
