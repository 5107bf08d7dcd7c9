/*
 * SPEC.md section 4, `align = calendar`: windows by the clock on the wall.
 */
#include "pure/calendar.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "config/file.h"
#include "draw.h"
#include "pure/civil.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define US           INT64_C(1000000)
#define HOUR         INT64_C(3600)

static struct arena arena;

/* NULL for UTC, and where there is no such zone. */
static struct zone *
zone_named(const char *name)
{
	char path[256];
	struct zone *zone = NULL;
	struct stat info;
	struct buf file;
	struct err err;

	snprintf(path, sizeof(path), "/usr/share/zoneinfo/%s", name);
	buf_init(&file);
	if (strcmp(name, "UTC") != 0 &&
	    file_read(path, 1 << 20, &file, &info, &err))
		zone = zone_parse(buf_str(&file), &arena, &err);
	buf_release(&file);
	return zone;
}

/* "2026-03-29 01:30" UTC, in seconds. */
static int64_t
at(const char *text)
{
	int year, month, day, hour, minute;

	assert_int_equal(
	    sscanf(text, "%d-%d-%d %d:%d", &year, &month, &day, &hour, &minute),
	    5);
	return civil_to_days(year, month, day) * 24 * HOUR + hour * HOUR +
	    minute * INT64_C(60);
}

static const struct {
	const char *zone;
	enum calendar_unit unit;
	const char *now; /* all UTC */
	const char *boundary[4];
} table[] = {
	{ "UTC", CALENDAR_DAY, "2026-03-29 01:30",
	    { "2026-03-28 00:00", "2026-03-29 00:00", "2026-03-30 00:00",
		"2026-03-31 00:00" } },
	{ "UTC", CALENDAR_MINUTE, "2026-03-29 01:30",
	    { "2026-03-29 01:29", "2026-03-29 01:30", "2026-03-29 01:31",
		"2026-03-29 01:32" } },
	{ "UTC", CALENDAR_HOUR, "2026-01-01 00:00",
	    { "2025-12-31 23:00", "2026-01-01 00:00", "2026-01-01 01:00",
		"2026-01-01 02:00" } },
	/* A Wednesday; weeks begin on Monday. */
	{ "UTC", CALENDAR_WEEK, "2026-07-01 12:00",
	    { "2026-06-22 00:00", "2026-06-29 00:00", "2026-07-06 00:00",
		"2026-07-13 00:00" } },
	{ "UTC", CALENDAR_WEEK, "2026-07-05 23:59",
	    { "2026-06-22 00:00", "2026-06-29 00:00", "2026-07-06 00:00",
		"2026-07-13 00:00" } },
	{ "UTC", CALENDAR_WEEK, "2026-07-06 00:00",
	    { "2026-06-29 00:00", "2026-07-06 00:00", "2026-07-13 00:00",
		"2026-07-20 00:00" } },
	{ "UTC", CALENDAR_MONTH, "2024-02-29 12:00",
	    { "2024-01-01 00:00", "2024-02-01 00:00", "2024-03-01 00:00",
		"2024-04-01 00:00" } },
	{ "UTC", CALENDAR_MONTH, "2026-12-31 23:59",
	    { "2026-11-01 00:00", "2026-12-01 00:00", "2027-01-01 00:00",
		"2027-02-01 00:00" } },
	{ "UTC", CALENDAR_YEAR, "2026-01-01 00:00",
	    { "2025-01-01 00:00", "2026-01-01 00:00", "2027-01-01 00:00",
		"2028-01-01 00:00" } },
	/* 23 hours, and 25. */
	{ "Europe/Berlin", CALENDAR_DAY, "2026-03-29 12:00",
	    { "2026-03-27 23:00", "2026-03-28 23:00", "2026-03-29 22:00",
		"2026-03-30 22:00" } },
	{ "Europe/Berlin", CALENDAR_DAY, "2026-10-25 00:30",
	    { "2026-10-23 22:00", "2026-10-24 22:00", "2026-10-25 23:00",
		"2026-10-26 23:00" } },
	{ "Europe/Berlin", CALENDAR_WEEK, "2026-03-29 12:00",
	    { "2026-03-15 23:00", "2026-03-22 23:00", "2026-03-29 22:00",
		"2026-04-05 22:00" } },
	{ "Europe/Berlin", CALENDAR_MONTH, "2026-03-31 22:30",
	    { "2026-02-28 23:00", "2026-03-31 22:00", "2026-04-30 22:00",
		"2026-05-31 22:00" } },
	{ "Europe/Berlin", CALENDAR_YEAR, "2026-12-31 23:30",
	    { "2025-12-31 23:00", "2026-12-31 23:00", "2027-12-31 23:00",
		"2028-12-31 23:00" } },
	/* An hour that comes twice is two hours. */
	{ "Europe/Berlin", CALENDAR_HOUR, "2026-10-25 00:30",
	    { "2026-10-24 23:00", "2026-10-25 00:00", "2026-10-25 01:00",
		"2026-10-25 02:00" } },
	{ "Asia/Kolkata", CALENDAR_HOUR, "2026-10-25 00:45",
	    { "2026-10-24 23:30", "2026-10-25 00:30", "2026-10-25 01:30",
		"2026-10-25 02:30" } },
	{ "Asia/Kathmandu", CALENDAR_DAY, "2026-10-25 00:45",
	    { "2026-10-23 18:15", "2026-10-24 18:15", "2026-10-25 18:15",
		"2026-10-26 18:15" } },
	/* Moved by half an hour: one hour is cut short. */
	{ "Australia/Lord_Howe", CALENDAR_HOUR, "2026-04-04 15:10",
	    { "2026-04-04 14:00", "2026-04-04 15:00", "2026-04-04 15:30",
		"2026-04-04 16:30" } },
	/* There was no midnight: the day began at one. */
	{ "America/Sao_Paulo", CALENDAR_DAY, "2017-10-15 12:00",
	    { "2017-10-14 03:00", "2017-10-15 03:00", "2017-10-16 02:00",
		"2017-10-17 02:00" } },
	/* Midnight came twice; of a year that no later law can change. */
	{ "America/Havana", CALENDAR_DAY, "2024-11-03 04:30",
	    { "2024-11-02 04:00", "2024-11-03 04:00", "2024-11-04 05:00",
		"2024-11-05 05:00" } },
	/* The day before came twice, for its last hour. */
	{ "America/Sao_Paulo", CALENDAR_DAY, "2018-02-18 02:30",
	    { "2018-02-16 02:00", "2018-02-17 02:00", "2018-02-18 03:00",
		"2018-02-19 03:00" } },
	/* A day that did not happen. */
	{ "Pacific/Apia", CALENDAR_DAY, "2011-12-30 09:00",
	    { "2011-12-28 10:00", "2011-12-29 10:00", "2011-12-30 10:00",
		"2011-12-31 10:00" } },
};

static void
test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct calendar c = { .zone = zone_named(table[i].zone) };
		int64_t now_us = at(table[i].now) * US + 7;
		struct calendar_windows w;

		if (c.zone == NULL && strcmp(table[i].zone, "UTC") != 0)
			continue;
		w = calendar_around(&c, table[i].unit, now_us);
		for (size_t k = 0; k < 4; k++)
			if (w.boundary_us[k] != at(table[i].boundary[k]) * US)
				fail_msg("row %zu: boundary %zu is %lld", i, k,
				    (long long)(w.boundary_us[k] / US));
	}
}

static const char *const names[] = { "UTC", "Europe/Berlin", "America/New_York",
	"America/Sao_Paulo", "America/Havana", "America/St_Johns",
	"Australia/Lord_Howe", "Africa/Casablanca", "Asia/Gaza", "America/Nuuk",
	"Pacific/Apia", "Asia/Kolkata" };

/* now is in the current window, and the next is the current one later. */
static void
test_windows_join(void **state)
{
	unsigned seed = draw_seed();

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		struct calendar c = { .zone = zone_named(names[i]) };

		for (int k = 0; k < 3000; k++) {
			enum calendar_unit unit =
			    (enum calendar_unit)draw_below(
				&seed, CALENDAR_UNITS);
			int64_t now_us =
			    (int64_t)draw_below(&seed, 2000000000) * 2 * US;
			struct calendar_windows w =
			    calendar_around(&c, unit, now_us);
			struct calendar_windows next =
			    calendar_around(&c, unit, w.boundary_us[2]);

			assert_true(w.boundary_us[0] < w.boundary_us[1]);
			assert_true(w.boundary_us[1] <= now_us);
			assert_true(now_us < w.boundary_us[2]);
			for (int b = 0; b < 3; b++)
				if (next.boundary_us[b] != w.boundary_us[b + 1])
					fail_msg("%s, unit %d, %lld", names[i],
					    unit, (long long)(now_us / US));
		}
	}
}

/* The same whoever asks, and whatever was asked before. */
static void *
ask(void *context)
{
	struct calendar *c = context;
	unsigned seed = 7;

	for (int i = 0; i < 20000; i++) {
		int64_t now_us =
		    (int64_t)draw_below(&seed, 3) * 24 * HOUR * US + 5;
		struct calendar_windows w =
		    calendar_around(c, CALENDAR_DAY, now_us);

		if (w.boundary_us[1] != now_us - 5 ||
		    w.boundary_us[3] - w.boundary_us[0] != 72 * HOUR * US)
			return c;
	}
	return NULL;
}

static void
test_threads(void **state)
{
	struct calendar c = { .zone = NULL };
	pthread_t thread[4];
	void *wrong;

	(void)state;
	for (size_t i = 0; i < COUNT(thread); i++)
		assert_int_equal(pthread_create(&thread[i], NULL, ask, &c), 0);
	for (size_t i = 0; i < COUNT(thread); i++) {
		assert_int_equal(pthread_join(thread[i], &wrong), 0);
		assert_null(wrong);
	}
}

static void
test_units(void **state)
{
	static const struct {
		const char *rate;
		int unit; /* -1: none */
	} rows[] = {
		{ "1/1m", CALENDAR_MINUTE },
		{ "1/60s", CALENDAR_MINUTE },
		{ "1/1h", CALENDAR_HOUR },
		{ "1/1d", CALENDAR_DAY },
		{ "1/7d", CALENDAR_WEEK },
		{ "1/1w", CALENDAR_WEEK },
		{ "1/month", CALENDAR_MONTH },
		{ "1/year", CALENDAR_YEAR },
		{ "1/31d", -1 },
		{ "1/1s", -1 },
		{ "1/2h", -1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		enum calendar_unit unit;
		struct rates rates;
		struct err err;

		assert_true(rate_parse(str_of(rows[i].rate), &rates, &err));
		assert_int_equal(
		    calendar_unit_of(&rates.rate[0], &unit), rows[i].unit >= 0);
		if (rows[i].unit >= 0)
			assert_int_equal(unit, rows[i].unit);
	}
}

static int
setup(void **state)
{
	(void)state;
	arena_init(&arena);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_windows_join),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_units),
	};

	return cmocka_run_group_tests_name("calendar", tests, setup, teardown);
}
