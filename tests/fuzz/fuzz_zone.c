/*
 * Any bytes as a file of the tz database, and the windows that it makes.
 */
#include "pure/calendar.h"

#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct str text = { (const char *)bytes, len };
	struct calendar calendar = { .zone = NULL };
	struct arena arena;
	struct err err;

	arena_init(&arena);
	calendar.zone = zone_parse(text, &arena, &err);
	if (calendar.zone != NULL)
		for (int unit = 0; unit < CALENDAR_UNITS; unit++)
			for (int64_t at = 0; at < 4; at++)
				calendar_around(&calendar,
				    (enum calendar_unit)unit,
				    at * INT64_C(600000000000000));
	arena_release(&arena);
	return 0;
}
