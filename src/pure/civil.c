#include "pure/civil.h"

#define DAYS_OF_ERA 146097 /* 400 years */
#define DAYS_BEFORE 719468 /* 0000-03-01 to 1970-01-01 */

static int64_t
floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0 ? 1 : 0);
}

int64_t
civil_to_days(int64_t year, int month, int day)
{
	int64_t y = month <= 2 ? year - 1 : year;
	int64_t era = floor_div(y, 400);
	int64_t year_of_era = y - era * 400;
	int64_t from_march = month > 2 ? month - 3 : month + 9;
	int64_t day_of_year = (153 * from_march + 2) / 5 + day - 1;
	int64_t day_of_era = year_of_era * 365 + year_of_era / 4 -
	    year_of_era / 100 + day_of_year;

	return era * DAYS_OF_ERA + day_of_era - DAYS_BEFORE;
}

struct civil
civil_of_days(int64_t days)
{
	int64_t z = days + DAYS_BEFORE;
	int64_t era = floor_div(z, DAYS_OF_ERA);
	int64_t doe = z - era * DAYS_OF_ERA;
	int64_t yoe =
	    (doe - doe / 1460 + doe / 36524 - doe / (DAYS_OF_ERA - 1)) / 365;
	int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	int64_t from_march = (5 * doy + 2) / 153;
	int month = (int)(from_march < 10 ? from_march + 3 : from_march - 9);

	return (struct civil){
		.year = yoe + era * 400 + (month <= 2 ? 1 : 0),
		.month = month,
		.day = (int)(doy - (153 * from_march + 2) / 5 + 1),
	};
}

int
civil_weekday(int64_t days)
{
	int64_t from_sunday = (days + 4) % 7; /* 1970-01-01: a Thursday */

	return (int)(from_sunday < 0 ? from_sunday + 7 : from_sunday);
}
