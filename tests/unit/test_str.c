#include "base/str.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void
test_of(void **state)
{
	(void)state;
	assert_int_equal(str_of("").len, 0);
	assert_int_equal(str_of("abc").len, 3);
	assert_int_equal(str_of(NULL).len, 0);
	assert_null(str_of(NULL).p);
	assert_int_equal(STR("a\0b").len, 3);
}

static void
test_eq(void **state)
{
	static const struct {
		struct str a;
		struct str b;
		bool same;
		bool same_nocase;
	} table[] = {
		{ { "", 0 }, { NULL, 0 }, true, true },
		{ { NULL, 0 }, { NULL, 0 }, true, true },
		{ { "a", 1 }, { "", 0 }, false, false },
		{ { "abc", 3 }, { "abc", 3 }, true, true },
		{ { "abc", 3 }, { "aBc", 3 }, false, true },
		{ { "abc", 3 }, { "abd", 3 }, false, false },
		{ { "abc", 3 }, { "ab", 2 }, false, false },
		{ { "a\0b", 3 }, { "a\0b", 3 }, true, true },
		{ { "a\0b", 3 }, { "a\0c", 3 }, false, false },
		{ { "[", 1 }, { "{", 1 }, false, false },
		{ { "-", 1 }, { "_", 1 }, false, false },
		{ { "\xc4", 1 }, { "\xe4", 1 }, false, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		assert_int_equal(str_eq(table[i].a, table[i].b), table[i].same);
		assert_int_equal(str_eq(table[i].b, table[i].a), table[i].same);
		if (str_eq_nocase(table[i].a, table[i].b) !=
		    table[i].same_nocase)
			fail_msg("row %zu", i);
	}
}

static void
test_starts(void **state)
{
	(void)state;
	assert_true(str_starts(STR("abc"), STR("")));
	assert_true(str_starts(STR("abc"), STR("ab")));
	assert_true(str_starts(STR("abc"), STR("abc")));
	assert_false(str_starts(STR("abc"), STR("abcd")));
	assert_false(str_starts(STR("abc"), STR("b")));
	assert_false(str_starts(STR_NONE, STR("a")));
	assert_true(str_starts(STR_NONE, STR_NONE));
}

static void
test_trim(void **state)
{
	static const char *const table[][2] = {
		{ "", "" },
		{ " ", "" },
		{ " \t ", "" },
		{ "a", "a" },
		{ " a", "a" },
		{ "a\t", "a" },
		{ " \ta b\t ", "a b" },
		{ "\na\r", "\na\r" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++)
		assert_true(
		    str_eq(str_trim(str_of(table[i][0])), str_of(table[i][1])));
	assert_int_equal(str_trim(STR_NONE).len, 0);
}

static void
test_cut(void **state)
{
	static const struct {
		const char *text;
		const char *pieces[4];
	} table[] = {
		{ "", { "" } },
		{ "a", { "a" } },
		{ ",", { "", "" } },
		{ "a,", { "a", "" } },
		{ ",a", { "", "a" } },
		{ "a,b,c", { "a", "b", "c" } },
		{ "a,,c", { "a", "", "c" } },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct str rest = str_of(table[i].text);
		size_t n = 0;

		while (rest.p != NULL) {
			assert_non_null(table[i].pieces[n]);
			assert_true(str_eq(
			    str_cut(&rest, ','), str_of(table[i].pieces[n])));
			n++;
		}
		assert_null(table[i].pieces[n]);
	}
}

static void
test_to_u64(void **state)
{
	static const struct {
		struct str text;
		uint64_t max;
		bool good;
		uint64_t value;
	} table[] = {
		{ { "0", 1 }, 0, true, 0 },
		{ { "1", 1 }, 0, false, 0 },
		{ { "9", 1 }, 8, false, 0 },
		{ { "10", 2 }, 10, true, 10 },
		{ { "11", 2 }, 10, false, 0 },
		{ { "007", 3 }, 7, true, 7 },
		{ { "255", 3 }, 255, true, 255 },
		{ { "256", 3 }, 255, false, 0 },
		{ { "260", 3 }, 255, false, 0 },
		{ { "18446744073709551615", 20 }, UINT64_MAX, true,
		    UINT64_MAX },
		{ { "18446744073709551616", 20 }, UINT64_MAX, false, 0 },
		{ { "99999999999999999999", 20 }, UINT64_MAX, false, 0 },
		{ { "184467440737095516150", 21 }, UINT64_MAX, false, 0 },
		{ { "", 0 }, 10, false, 0 },
		{ { NULL, 0 }, 10, false, 0 },
		{ { "-1", 2 }, 10, false, 0 },
		{ { "+1", 2 }, 10, false, 0 },
		{ { " 1", 2 }, 10, false, 0 },
		{ { "1 ", 2 }, 10, false, 0 },
		{ { "1\0", 2 }, 10, false, 0 },
		{ { "1a", 2 }, 99, false, 0 },
		{ { "0x1", 3 }, 99, false, 0 },
		{ { "1:", 2 }, 99, false, 0 },
		{ { "1/", 2 }, 99, false, 0 },
		{ { "\xb2", 1 }, 99, false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		uint64_t value = 777;

		if (str_to_u64(table[i].text, table[i].max, &value) !=
		    table[i].good)
			fail_msg("row %zu", i);
		assert_true(value == (table[i].good ? table[i].value : 777));
	}
}

/* All of 0 to 1200 under all of those limits. */
static void
test_to_u64_at_each_limit(void **state)
{
	static const uint64_t limits[] = { 0, 1, 9, 10, 99, 100, 101, 999,
		1000 };

	(void)state;
	for (uint64_t n = 0; n <= 1200; n++) {
		char text[8];
		size_t len = 0;
		char digits[8];
		uint64_t left = n;

		do
			digits[len++] = (char)('0' + left % 10);
		while ((left /= 10) > 0);
		for (size_t i = 0; i < len; i++)
			text[i] = digits[len - 1 - i];
		for (size_t i = 0; i < COUNT(limits); i++) {
			uint64_t value = 0;

			assert_int_equal(str_to_u64((struct str){ text, len },
					     limits[i], &value),
			    n <= limits[i]);
			assert_true(value == (n <= limits[i] ? n : 0));
		}
	}
}

/* As printf says it. */
static void
test_of_u64(void **state)
{
	uint64_t number = 0;

	(void)state;
	for (size_t i = 0; i < 200; i++) {
		char digits[STR_DIGITS_MAX];
		char expected[32];
		struct str text = str_of_u64(number, digits);
		int len =
		    snprintf(expected, sizeof(expected), "%" PRIu64, number);

		assert_int_equal(text.len, len);
		assert_memory_equal(text.p, expected, text.len);
		number = number < 100         ? number + 1
		    : number > UINT64_MAX / 3 ? UINT64_MAX
					      : number * 3;
	}
	assert_true(number == UINT64_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of),
		cmocka_unit_test(test_eq),
		cmocka_unit_test(test_starts),
		cmocka_unit_test(test_trim),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_to_u64),
		cmocka_unit_test(test_to_u64_at_each_limit),
		cmocka_unit_test(test_of_u64),
	};

	return cmocka_run_group_tests_name("str", tests, NULL, NULL);
}
