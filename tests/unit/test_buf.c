#include "base/buf.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void
expect(const struct buf *b, const char *text)
{
	assert_false(b->failed);
	assert_int_equal(b->len, strlen(text));
	if (b->len > 0)
		assert_memory_equal(b->p, text, b->len);
}

static void
test_empty(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b);
	expect(&b, "");
	assert_null(b.p);
	buf_add(&b, NULL, 0);
	buf_add_str(&b, STR_NONE);
	buf_consume(&b, 0);
	expect(&b, "");
	assert_int_equal(buf_str(&b).len, 0);
	buf_reset(&b);
	buf_release(&b);
	buf_release(&b);
}

static void
test_add(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b);
	buf_add(&b, "ab", 2);
	buf_add_char(&b, 'c');
	buf_add_str(&b, STR("de"));
	buf_addf(&b, "-%d-%s", 42, "f");
	expect(&b, "abcde-42-f");
	assert_true(str_eq(buf_str(&b), STR("abcde-42-f")));
	buf_reset(&b);
	expect(&b, "");
	assert_true(b.cap > 0);
	buf_addf(&b, "%s", "");
	expect(&b, "");
	buf_release(&b);
	assert_null(b.p);
	assert_int_equal(b.cap, 0);
}

/* Grown a byte at a time, and by each size at once. */
static void
test_grow(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b);
	for (size_t i = 0; i < 100000; i++)
		buf_add_char(&b, (char)(i % 251));
	assert_int_equal(b.len, 100000);
	for (size_t i = 0; i < b.len; i++)
		assert_int_equal((unsigned char)b.p[i], i % 251);
	buf_release(&b);
	for (size_t size = 0; size < 1100; size++) {
		assert_true(buf_reserve(&b, size));
		assert_true(b.cap - b.len >= size);
		if (size > 0)
			memset(b.p, 'x', size);
		buf_release(&b);
	}
}

/* The text that just fits and the one that just does not. */
static void
test_addf_at_the_edge(void **state)
{
	(void)state;
	for (size_t before = 240; before < 260; before++) {
		struct buf b;

		buf_init(&b);
		for (size_t i = 0; i < before; i++)
			buf_add_char(&b, '.');
		buf_addf(&b, "%08d", 1234567);
		assert_int_equal(b.len, before + 8);
		assert_memory_equal(b.p + before, "01234567", 8);
		buf_release(&b);
	}
}

/* As printf has it, at each number of digits. */
static void
test_add_i64(void **state)
{
	int64_t n = 1;

	(void)state;
	for (int digits = 1; digits <= 19;
	     digits++, n = n > INT64_MAX / 10 ? INT64_MAX : n * 10) {
		const int64_t number[] = { n - 1, n, -n,
			n == INT64_MAX ? INT64_MIN : -n - 1 };

		for (size_t i = 0; i < sizeof(number) / sizeof(number[0]);
		     i++) {
			char want[32];
			struct buf b;

			snprintf(want, sizeof(want), "%" PRId64, number[i]);
			buf_init(&b);
			buf_add_i64(&b, number[i]);
			expect(&b, want);
			buf_release(&b);
		}
	}
}

static void
test_consume(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b);
	buf_add(&b, "0123456789", 10);
	buf_consume(&b, 0);
	expect(&b, "0123456789");
	buf_consume(&b, 3);
	expect(&b, "3456789");
	buf_add_char(&b, 'x');
	expect(&b, "3456789x");
	buf_consume(&b, 8);
	expect(&b, "");
	buf_release(&b);
}

/* Too much fails, keeps what was there, and is remembered. */
static void
test_failure_is_remembered(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b);
	buf_add(&b, "kept", 4);
	assert_false(buf_reserve(&b, SIZE_MAX));
	assert_true(b.failed);
	assert_false(buf_reserve(&b, SIZE_MAX / 4));
	buf_add_char(&b, '!');
	assert_true(b.failed);
	assert_memory_equal(b.p, "kept", 4);
	buf_reset(&b);
	assert_false(b.failed);
	buf_add(&b, "new", 3);
	expect(&b, "new");
	buf_release(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_add),
		cmocka_unit_test(test_grow),
		cmocka_unit_test(test_addf_at_the_edge),
		cmocka_unit_test(test_add_i64),
		cmocka_unit_test(test_consume),
		cmocka_unit_test(test_failure_is_remembered),
	};

	return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
