#include "pure/rate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define S            INT64_C(1000000)

/* Parses from a block of exact size, so that a byte too far is caught. */
static bool
parse(struct str text, struct rates *rates, struct err *err)
{
	char *exact = malloc(text.len > 0 ? text.len : 1);
	bool parsed;

	memcpy(exact, text.p, text.len);
	parsed = rate_parse((struct str){ exact, text.len }, rates, err);
	free(exact);
	return parsed;
}

static void
test_one_rate(void **state)
{
	static const struct {
		const char *text;
		struct rate rate;
	} table[] = {
		{ "10/1s", { 10, S, 10, false, RATE_ANY } },
		{ "10/s", { 10, S, 10, false, RATE_ANY } },
		{ "5/10s", { 5, 10 * S, 5, false, RATE_ANY } },
		{ "1/1ms", { 1, 1000, 1, false, RATE_ANY } },
		{ "1/ms", { 1, 1000, 1, false, RATE_ANY } },
		{ "7/1500ms", { 7, 1500000, 7, false, RATE_ANY } },
		{ "100/m", { 100, 60 * S, 100, false, RATE_ANY } },
		{ "100/1h", { 100, 3600 * S, 100, false, RATE_ANY } },
		{ "100/2d", { 100, 172800 * S, 100, false, RATE_ANY } },
		{ "100/1w", { 100, 604800 * S, 100, false, RATE_ANY } },
		{ "1000000000000/366d",
		    { 1000000000000, 366 * 86400 * S, 1000000000000, false,
			RATE_ANY } },
		{ " 10/1s\t", { 10, S, 10, false, RATE_ANY } },
		{ "10/1s burst 20", { 10, S, 20, true, RATE_ANY } },
		{ "10/1s  burst   20 ", { 10, S, 20, true, RATE_ANY } },
		{ "10/1s burst 1", { 10, S, 1, true, RATE_ANY } },
		{ "10/1s burst 1000000000000",
		    { 10, S, 1000000000000, true, RATE_ANY } },
		{ "010/01s", { 10, S, 10, false, RATE_ANY } },
		{ "7", { 7, 0, 7, false, RATE_ANY } },
		{ "7/month", { 7, 31 * 86400 * S, 7, false, RATE_MONTH } },
		{ "7/1month", { 7, 31 * 86400 * S, 7, false, RATE_MONTH } },
		{ "7/1year", { 7, 366 * 86400 * S, 7, false, RATE_YEAR } },
		{ "7/31d", { 7, 31 * 86400 * S, 7, false, RATE_ANY } },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct rates rates;
		struct err err;

		if (!parse(str_of(table[i].text), &rates, &err))
			fail_msg("%s", err.text);
		assert_int_equal(rates.kind, RATES_LIST);
		assert_int_equal(rates.n, 1);
		assert_int_equal(rates.rate[0].count, table[i].rate.count);
		assert_int_equal(
		    rates.rate[0].period_us, table[i].rate.period_us);
		assert_int_equal(rates.rate[0].burst, table[i].rate.burst);
		assert_int_equal(
		    rates.rate[0].has_burst, table[i].rate.has_burst);
		assert_int_equal(
		    rates.rate[0].calendar, table[i].rate.calendar);
	}
}

static void
test_lists(void **state)
{
	struct rates rates;
	struct err err;

	(void)state;
	assert_true(parse(STR("10/1s burst 20, 1000/1h"), &rates, &err));
	assert_int_equal(rates.n, 2);
	assert_int_equal(rates.rate[0].burst, 20);
	assert_int_equal(rates.rate[1].count, 1000);
	assert_int_equal(rates.rate[1].period_us, 3600 * S);
	assert_false(rates.rate[1].has_burst);
	assert_true(parse(
	    STR("1/1s,1/2s,1/3s,1/4s,1/5s,1/6s,1/7s,1/8s"), &rates, &err));
	assert_int_equal(rates.n, RATES_MAX);
	assert_int_equal(rates.rate[7].period_us, 8 * S);
	assert_true(parse(STR(" unlimited "), &rates, &err));
	assert_int_equal(rates.kind, RATES_UNLIMITED);
	assert_int_equal(rates.n, 0);
	assert_true(parse(STR("deny"), &rates, &err));
	assert_int_equal(rates.kind, RATES_DENY);
}

static void
test_errors(void **state)
{
	static const struct {
		const char *text;
		const char *error;
	} table[] = {
		{ "5/10x",
		    "`5/10x`: unknown unit `x`; units are ms s m h d w" },
		{ "5/1sec", "unknown unit `sec`" },
		{ "5/1.5s", "unknown unit `.5s`" },
		{ "5/-1s", "unknown unit `-1s`" },
		{ "5/1s,", "``: no rate" },
		{ "", "``: no rate; it is written N/PERIOD" },
		{ ",5/1s", "``: no rate" },
		{ "5 x", "`5 x`: no rate" },
		/* B34: 0 is no rate; there is a word for it. */
		{ "0", "`0`: `0` is no count" },
		{ "0/1s", "`0` is no count" },
		{ "00/1h", "`00` is no count" },
		{ "5/1s, 0/1h", "`0` is no count" },
		{ "5/1s burst 0", "`0` is no burst" },
		{ "5, 6", "`6`: a second rate of the same period" },
		{ "5/2month", "`5/2month`: unknown unit `month`" },
		{ "5/2year", "`5/2year`: unknown unit `year`" },
		{ "5/months", "`5/months`: unknown unit `months`" },
		{ "5 per second", "`5 per second`: no rate" },
		{ "Unlimited", "`Unlimited`: no rate" },
		{ "5/1s, deny", "`deny`: no rate" },
		{ "5/", "`5/`: the period's unit is missing; units are ms" },
		{ "5/10", "`5/10`: the period's unit is missing" },
		{ "5/ 10s", "`5/ 10s`: the period's unit is missing" },
		{ "5/0s", "`5/0s`: a period is at least 1ms" },
		{ "5/367d", "`5/367d`: the longest time is 366d" },
		{ "5/99999999999999999999s", "the longest time is 366d" },
		{ "5/31622400001ms", "the longest time is 366d" },
		{ "/1s", "`` is no count; it is a whole number from 1 to" },
		{ "-5/1s", "`-5` is no count" },
		{ "+5/1s", "`+5` is no count" },
		{ "5 /1s", "`5 ` is no count" },
		{ "5.5/1s", "`5.5` is no count" },
		{ "5e3/1s", "`5e3` is no count" },
		{ "1000000000001/1s", "`1000000000001` is no count" },
		{ "18446744073709551617/1s", "is no count" },
		{ "5/1s burst", "`` is no burst" },
		{ "5/1s burst x", "`x` is no burst" },
		{ "5/1s burst 5 5", "`5 5` is no burst" },
		{ "5/1s burst 1000000000001", "is no burst" },
		{ "5/1s brust 5", "`brust` behind the period; only `burst N`" },
		{ "5/1s 5", "`5` behind the period" },
		{ "5/1s/1s", "unknown unit `s/1s`" },
		{ "10/1s, 100/1s", "`100/1s`: a second rate of the same per" },
		{ "10/60s, 100/1m", "`100/1m`: a second rate of the same per" },
		{ "10/1s, 5/1h, 100/1000ms", "`100/1000ms`: a second rate" },
		{ "1/1s,1/2s,1/3s,1/4s,1/5s,1/6s,1/7s,1/8s,1/9s",
		    "`1/9s`: one rate too many; a limit takes 8" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct rates rates = { .n = 777 };
		struct err err = { "" };

		if (parse(str_of(table[i].text), &rates, &err))
			fail_msg("`%s` accepted", table[i].text);
		if (strstr(err.text, table[i].error) == NULL)
			fail_msg("`%s`, not `%s`", err.text, table[i].error);
		assert_int_equal(rates.n, 777);
	}
}

/* No prefix of a rate is read as something else than what it says. */
static void
test_every_prefix(void **state)
{
	static const char text[] = "1000/15ms burst 20, 7/1h";
	/* Digits alone are what runs at a time. */
	static const size_t whole[] = { 1, 2, 3, 4, 8, 9, 10, 17, 18, 21, 24 };

	(void)state;
	for (size_t len = 0; len < sizeof(text); len++) {
		struct rates rates;
		struct err err;
		bool expected = false;

		for (size_t i = 0; i < COUNT(whole); i++)
			expected = expected || whole[i] == len;
		if (parse((struct str){ text, len }, &rates, &err) != expected)
			fail_msg("`%.*s`", (int)len, text);
	}
}

static void
test_durations(void **state)
{
	static const struct {
		const char *text;
		int64_t us;
		const char *error;
	} table[] = {
		{ "0", 0, NULL },
		{ "0s", 0, NULL },
		{ "50ms", 50000, NULL },
		{ "10s", 10 * S, NULL },
		{ "5m", 300 * S, NULL },
		{ "1h", 3600 * S, NULL },
		{ "1d", 86400 * S, NULL },
		{ "1w", 604800 * S, NULL },
		{ "366d", 366 * 86400 * S, NULL },
		{ "", -1, "``: a time is a whole number and a unit" },
		{ "s", -1, "`s`: a time is a whole number and a unit" },
		{ "-5s", -1, "`-5s`: a time is a whole number" },
		{ " 5s", -1, "` 5s`: a time is a whole number" },
		{ "10", -1, "`10`: the unit is missing; units are ms s m h" },
		{ "00", -1, "the unit is missing" },
		{ "10 s", -1, "unknown unit ` s`" },
		{ "1.5h", -1, "unknown unit `.5h`" },
		{ "10us", -1, "unknown unit `us`; units are ms s m h d w" },
		{ "53w", -1, "`53w`: the longest time is 366d" },
		{ "99999999999999999999ms", -1, "the longest time is 366d" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct err err = { "" };
		int64_t us = -1;
		bool parsed =
		    rate_parse_duration(str_of(table[i].text), &us, &err);

		assert_int_equal(parsed, table[i].error == NULL);
		assert_int_equal(us, table[i].us);
		if (!parsed && strstr(err.text, table[i].error) == NULL)
			fail_msg("`%s`, not `%s`", err.text, table[i].error);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_rate),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_every_prefix),
		cmocka_unit_test(test_durations),
	};

	return cmocka_run_group_tests_name("rate", tests, NULL, NULL);
}
