/*
 * Zones of the tz database, held against the C library, which reads the same
 * files: TZ can be changed here, where there is one thread.
 */
#include "pure/zone.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/buf.h"
#include "config/file.h"
#include "draw.h"
#include "pure/civil.h"
#include "pure/zone_rule.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static struct arena arena;

static bool
read_file(const char *name, struct buf *out)
{
	char path[256];
	struct stat info;
	struct err err;

	snprintf(path, sizeof(path), "/usr/share/zoneinfo/%s", name);
	buf_init(out);
	return file_read(path, 1 << 20, out, &info, &err);
}

static int64_t
libc_offset(int64_t at)
{
	time_t t = at;
	struct tm tm;

	assert_non_null(localtime_r(&t, &tm));
	return tm.tm_gmtoff;
}

static const char *const names[] = { "Europe/Berlin", "America/New_York",
	"America/Sao_Paulo", "America/Havana", "America/St_Johns",
	"Australia/Lord_Howe", "Africa/Casablanca", "Africa/Cairo",
	"Asia/Kolkata", "Asia/Kathmandu", "Asia/Tehran", "Asia/Gaza",
	"America/Nuuk", "America/Asuncion", "Pacific/Apia",
	"Pacific/Kiritimati", "Antarctica/Troll", "Etc/GMT+12", "UTC",
	"Europe/Dublin", "Africa/Monrovia" };

static void
test_as_the_c_library(void **state)
{
	unsigned seed = draw_seed();

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		struct zone *zone;
		struct buf file;
		struct err err;

		if (!read_file(names[i], &file))
			continue;
		zone = zone_parse(buf_str(&file), &arena, &err);
		if (zone == NULL)
			fail_msg("%s: %s", names[i], err.text);
		setenv("TZ", names[i], 1);
		tzset();
		for (int k = 0; k < 3000; k++) {
			/* 1890 to 2200, and half of it about now */
			int64_t at = k % 2 == 0
			    ? (int64_t)draw_below(&seed, 2000000) * 4900 -
				INT64_C(2524521600)
			    : INT64_C(1500000000) +
				(int64_t)draw_below(&seed, 900000000);

			if (zone_offset(zone, at) != libc_offset(at))
				fail_msg("%s at %lld: %lld, not %lld", names[i],
				    (long long)at,
				    (long long)zone_offset(zone, at),
				    (long long)libc_offset(at));
		}
		buf_release(&file);
	}
}

/* Each second about a change. */
static void
test_at_a_change(void **state)
{
	struct zone *zone;
	struct buf file;
	struct err err;

	(void)state;
	if (!read_file("Europe/Berlin", &file))
		skip();
	zone = zone_parse(buf_str(&file), &arena, &err);
	/* 2026-03-29 01:00 UTC, 2026-10-25; and 2090, by the rule alone. */
	assert_int_equal(zone_offset(zone, 1774745999), 3600);
	assert_int_equal(zone_offset(zone, 1774746000), 7200);
	assert_int_equal(zone_offset(zone, 1792889999), 7200);
	assert_int_equal(zone_offset(zone, 1792890000), 3600);
	assert_int_equal(
	    zone_offset(zone, civil_to_days(2090, 3, 26) * 86400 + 3599), 3600);
	assert_int_equal(
	    zone_offset(zone, civil_to_days(2090, 3, 26) * 86400 + 3600), 7200);
	assert_int_equal(zone_offset(NULL, 1774746000), 0);
	buf_release(&file);
}

/* No prefix and no flipped byte of a file is more than refused. */
static void
test_broken_files(void **state)
{
	unsigned seed = draw_seed();
	struct zone *zone;
	struct buf file;
	struct err err;

	(void)state;
	if (!read_file("Europe/Berlin", &file))
		skip();
	for (size_t len = 0; len < file.len; len++) {
		char *exact = malloc(len > 0 ? len : 1);

		memcpy(exact, file.p, len);
		assert_null(
		    zone_parse((struct str){ exact, len }, &arena, &err));
		free(exact);
	}
	for (int i = 0; i < 20000; i++) {
		size_t at = draw_below(&seed, file.len);
		char byte = file.p[at];

		file.p[at] = (char)draw_below(&seed, 256);
		zone = zone_parse(buf_str(&file), &arena, &err);
		if (zone != NULL)
			zone_offset(zone, (int64_t)draw_below(&seed, 1u << 31));
		file.p[at] = byte;
		arena_reset(&arena);
	}
	buf_release(&file);
}

static void
test_rules(void **state)
{
	static const struct {
		const char *text;
		bool good;
	} table[] = {
		{ "UTC0", true },
		{ "CET-1CEST,M3.5.0,M10.5.0/3", true },
		{ "<+0545>-5:45", true },
		{ "<-02>2<-01>,M3.5.0/-1,M10.5.0/0", true },
		{ "EET-2EEST,M4.5.5/0,M10.5.4/24", true },
		{ "IST-2IDT,M3.4.4/26,M10.5.0", true },
		{ "XXX3EDT4,0/0,J365/23", true },
		{ "AAA1BBB,J60,J300", true },
		{ "", false },
		{ "AA1", false },
		{ "AAA", false },
		{ "AAA1BBB", false },
		{ "AAA1BBB,M3.5.0", false },
		{ "AAA1BBB,M13.1.0,M10.1.0", false },
		{ "AAA1BBB,M3.6.0,M10.1.0", false },
		{ "AAA1BBB,M3.1.7,M10.1.0", false },
		{ "AAA1BBB,J0,J300", false },
		{ "AAA1BBB,J60,J300x", false },
		{ "AAA25", false },
		{ "AAA1:60", false },
		{ "<AAA1", false },
	};
	struct zone_rule rule;

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++)
		if (zone_rule_parse(str_of(table[i].text), &rule) !=
		    table[i].good)
			fail_msg("%s", table[i].text);
	/* Days by their number, the 29th of February left out or not. */
	assert_true(zone_rule_parse(STR("AAA0BBB,J60/0,59/0"), &rule));
	assert_int_equal(
	    zone_rule_offset(&rule, civil_to_days(2024, 2, 29) * 86400), 0);
	assert_int_equal(
	    zone_rule_offset(&rule, civil_to_days(2024, 3, 1) * 86400), 3600);
}

static void
test_civil(void **state)
{
	(void)state;
	assert_int_equal(civil_to_days(1970, 1, 1), 0);
	assert_int_equal(civil_to_days(2000, 2, 29), 11016);
	assert_int_equal(civil_weekday(0), 4);
	assert_int_equal(civil_weekday(-5), 6);
	for (int64_t day = -800000; day < 800000; day++) {
		struct civil c = civil_of_days(day);

		assert_int_equal(civil_to_days(c.year, c.month, c.day), day);
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
		cmocka_unit_test(test_as_the_c_library),
		cmocka_unit_test(test_at_a_change),
		cmocka_unit_test(test_broken_files),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_civil),
	};

	return cmocka_run_group_tests_name("zone", tests, setup, teardown);
}
