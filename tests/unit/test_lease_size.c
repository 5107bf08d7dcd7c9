#include "pure/lease_size.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void
test_sizes(void **state)
{
	static const struct {
		int64_t spent;
		int64_t elapsed_us;
		int64_t remaining;
		int64_t size;
	} t[] = {
		/* What is spent in 100 ms. */
		{ 16, 100000, 1000000, 16 },
		{ 16, 1000, 1000000, 1600 },
		{ 16, 400000, 1000000, 4 },
		{ 1, 100001, 1000000, 0 },
		{ 0, 50000, 1000000, 0 },
		/* Two at once are no rate. */
		{ 1, 0, 1000000, 100 },
		{ 1, -5, 1000000, 100 },
		/* A share of what remains, and at last one at a time. */
		{ 16, 1000, 160, 10 },
		{ 16, 1000, 31, 1 },
		{ 16, 1000, 15, 0 },
		{ 16, 1000, 0, 0 },
		{ INT64_MAX, 1, INT64_MAX, 100000000000 },
		/* What no store says that is right. */
		{ 16, 1000, -160, 0 },
		{ INT64_MIN, 1000, INT64_MAX, 0 },
		{ INT64_MAX, INT64_MAX, INT64_MIN, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		assert_int_equal(
		    lease_size(t[i].spent, t[i].elapsed_us, t[i].remaining),
		    t[i].size);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
