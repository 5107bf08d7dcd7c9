#include "pure/statuses.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void
test_nothing_said_is_all(void **state)
{
	struct statuses s = { 0 };

	(void)state;
	for (int status = -1; status < 700; status++)
		assert_true(statuses_have(&s, status));
}

static void
test_some(void **state)
{
	struct statuses s = { 0 };
	struct err err;

	(void)state;
	assert_true(statuses_add(&s, STR("401"), &err));
	assert_true(statuses_add(&s, STR("403"), &err));
	assert_true(statuses_add(&s, STR("5xx"), &err));
	assert_true(statuses_add(&s, STR("100"), &err));
	for (int status = -1; status < 700; status++)
		assert_int_equal(statuses_have(&s, status),
		    status == 401 || status == 403 || status == 100 ||
			(status >= 500 && status <= 599));
}

static void
test_faults(void **state)
{
	static const char *const bad[] = { "", "99", "600", "4x", "4xx ", "6xx",
		"0xx", "x01", "40x", "401-403", "-401", "4XX", "0401" };

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct statuses s = { 0 };
		struct err err;

		assert_false(statuses_add(&s, str_of(bad[i]), &err));
		assert_non_null(strstr(err.text, "is no response status"));
		assert_false(s.some);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_said_is_all),
		cmocka_unit_test(test_some),
		cmocka_unit_test(test_faults),
	};

	return cmocka_run_group_tests_name("statuses", tests, NULL, NULL);
}
