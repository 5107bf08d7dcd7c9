#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "domain/breaker.h"
#include "domain/redis_trouble.h"

#define S INT64_C(1000000)

static struct breaker breaker;

static int
set_up(void **context)
{
	(void)context;
	breaker_init(&breaker, 5, S, 42);
	return 0;
}

static int
tear_down(void **context)
{
	(void)context;
	breaker_release(&breaker);
	return 0;
}

/* The wait that a trip at 100 s leads to. */
static int64_t
trip(enum breaker_trip kind)
{
	breaker_trip(&breaker, kind, 100 * S);
	return breaker_next_us(&breaker) - 100 * S;
}

static void
test_five_in_a_row_open_it(void **context)
{
	(void)context;
	for (int i = 0; i < 4; i++)
		assert_false(breaker_trip(&breaker, BREAKER_CHECK, S));
	breaker_answered(&breaker);
	for (int i = 0; i < 4; i++)
		assert_false(breaker_trip(
		    &breaker, i % 2 ? BREAKER_CHECK : BREAKER_ATTEMPT, S));
	assert_false(breaker_is_open(&breaker));
	assert_true(breaker_trip(&breaker, BREAKER_ATTEMPT, S));
	assert_true(breaker_is_open(&breaker));
	assert_false(breaker_trip(&breaker, BREAKER_ATTEMPT, S));
}

static void
test_only_a_probe_closes_it(void **context)
{
	(void)context;
	for (int i = 0; i < 5; i++)
		breaker_trip(&breaker, BREAKER_CHECK, S);
	breaker_answered(&breaker);
	assert_true(breaker_is_open(&breaker));
	assert_true(breaker_close(&breaker));
	assert_false(breaker_close(&breaker));
	assert_false(breaker_is_open(&breaker));
	for (int i = 0; i < 4; i++)
		assert_false(breaker_trip(&breaker, BREAKER_CHECK, S));
	/* A link that came up is no check that was answered. */
	assert_false(breaker_close(&breaker));
	assert_true(breaker_trip(&breaker, BREAKER_CHECK, S));
}

/* B82: at once after a check, then longer and longer, never all at once. */
static void
test_backs_off(void **context)
{
	int64_t cap_us = 20000;

	(void)context;
	breaker_configure(&breaker, 1000, S);
	assert_int_equal(trip(BREAKER_CHECK), 0);
	for (int i = 0; i < 12; i++) {
		assert_in_range(trip(BREAKER_ATTEMPT), cap_us / 2, cap_us);
		cap_us = cap_us * 2 < S ? cap_us * 2 : S;
	}
	breaker_close(&breaker);
	assert_in_range(trip(BREAKER_ATTEMPT), 10000, 20000);
}

static void
test_cooldown(void **context)
{
	int64_t least_us = S, most_us = 0;

	(void)context;
	for (int i = 0; i < 5; i++)
		trip(BREAKER_CHECK);
	for (int i = 0; i < 500; i++) {
		int64_t wait_us = trip(BREAKER_ATTEMPT);

		assert_in_range(wait_us, S / 2, S);
		least_us = wait_us < least_us ? wait_us : least_us;
		most_us = wait_us > most_us ? wait_us : most_us;
	}
	assert_true(least_us < S * 55 / 100 && most_us > S * 95 / 100);
}

/* A check that was still under way does not put the next try off. */
static void
test_a_late_check_moves_nothing(void **context)
{
	int64_t next_us;

	(void)context;
	for (int i = 0; i < 5; i++)
		breaker_trip(&breaker, BREAKER_CHECK, S);
	next_us = breaker_next_us(&breaker);
	assert_in_range(next_us, S + S / 2, 2 * S);
	breaker_trip(&breaker, BREAKER_CHECK, 10 * S);
	assert_int_equal(breaker_next_us(&breaker), next_us);
}

/* B83: a refused password is not tried over and over. */
static void
test_access_doubles(void **context)
{
	int64_t cap_us = S;

	(void)context;
	for (int i = 0; i < 10; i++) {
		assert_in_range(trip(BREAKER_ACCESS), cap_us / 2, cap_us);
		cap_us = cap_us * 2 < 30 * S ? cap_us * 2 : 30 * S;
	}
	assert_in_range(trip(BREAKER_ATTEMPT), S / 2, S);
	assert_in_range(trip(BREAKER_ACCESS), S / 2, S);
}

static void
test_errors_by_name(void **context)
{
	static const struct {
		const char *error;
		const char *reason;
		enum breaker_trip trip;
	} rows[] = {
		{ "OOM command not allowed when used memory > 'maxmemory'.",
		    "(OOM)", BREAKER_ATTEMPT },
		{ "@user_script: 12: -OOM command not allowed", "(OOM)",
		    BREAKER_ATTEMPT },
		{ "LOADING Redis is loading the dataset in memory", "(LOADING)",
		    BREAKER_ATTEMPT },
		{ "READONLY You can't write against a read only replica.",
		    "(READONLY)", BREAKER_ATTEMPT },
		{ "BUSY Redis is busy running a script.", "(BUSY)",
		    BREAKER_ATTEMPT },
		{ "MISCONF Redis is configured to save RDB snapshots",
		    "(MISCONF)", BREAKER_ATTEMPT },
		{ "NOAUTH Authentication required.", "(NOAUTH)",
		    BREAKER_ACCESS },
		{ "WRONGPASS invalid username-password pair", "(WRONGPASS)",
		    BREAKER_ACCESS },
		{ "NOPERM this user has no permissions", "(NOPERM)",
		    BREAKER_ACCESS },
		{ "MOVED 3999 127.0.0.1:6381", "(MOVED)", BREAKER_ATTEMPT },
		{ "ERR BOOMING", "an error", BREAKER_ATTEMPT },
		{ "", "an error", BREAKER_ATTEMPT },
	};

	(void)context;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct redis_trouble *t =
		    redis_trouble_of(str_of(rows[i].error));

		assert_non_null(strstr(t->reason, rows[i].reason));
		assert_int_equal(t->trip, rows[i].trip);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    test_five_in_a_row_open_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
		    test_only_a_probe_closes_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
		    test_backs_off, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
		    test_cooldown, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
		    test_a_late_check_moves_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
		    test_access_doubles, set_up, tear_down),
		cmocka_unit_test(test_errors_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
