#include "pure/params.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct param pairs[] = {
	{ { "REQUEST_METHOD", 14 }, { "GET", 3 } },
	{ { "HTTP_X", 6 }, { "first", 5 } },
	{ { "EMPTY", 5 }, { "", 0 } },
	{ { "HTTP_X", 6 }, { "second", 6 } },
	{ { "", 0 }, { "nameless", 8 } },
	{ { "EMPTY", 5 }, { "late", 4 } },
};

static const struct params params = { pairs, sizeof(pairs) / sizeof(pairs[0]) };

static void
test_get(void **state)
{
	(void)state;
	assert_true(
	    str_eq(params_get(&params, STR("REQUEST_METHOD")), STR("GET")));
	assert_true(str_eq(params_get(&params, STR("HTTP_X")), STR("first")));
	assert_true(str_eq(params_get(&params, STR("")), STR("nameless")));
}

/* Empty is there; only what is not there has no p. */
static void
test_empty_and_missing(void **state)
{
	(void)state;
	assert_non_null(params_get(&params, STR("EMPTY")).p);
	assert_int_equal(params_get(&params, STR("EMPTY")).len, 0);
	assert_null(params_get(&params, STR("HTTP_")).p);
	assert_null(params_get(&params, STR("HTTP_XY")).p);
	assert_null(params_get(&params, STR("http_x")).p);
}

static void
test_count(void **state)
{
	(void)state;
	assert_int_equal(params_count(&params, STR("HTTP_X")), 2);
	assert_int_equal(params_count(&params, STR("EMPTY")), 2);
	assert_int_equal(params_count(&params, STR("REQUEST_METHOD")), 1);
	assert_int_equal(params_count(&params, STR("HTTP_Y")), 0);
}

static void
test_none(void **state)
{
	const struct params none = { NULL, 0 };

	(void)state;
	assert_null(params_get(&none, STR("A")).p);
	assert_int_equal(params_count(&none, STR("A")), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_get),
		cmocka_unit_test(test_empty_and_missing),
		cmocka_unit_test(test_count),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests_name("params", tests, NULL, NULL);
}
