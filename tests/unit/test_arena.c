#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PIECES 400

static void
test_release_of_nothing(void **state)
{
	struct arena a;

	(void)state;
	arena_init(&a);
	arena_reset(&a);
	arena_release(&a);
	arena_release(&a);
}

/* Pieces of every size: aligned, zeroed, and none over another. */
static void
test_pieces(void **state)
{
	unsigned char *pieces[PIECES];
	struct arena a;

	(void)state;
	arena_init(&a);
	for (size_t i = 0; i < PIECES; i++) {
		pieces[i] = arena_alloc(&a, i);
		assert_non_null(pieces[i]);
		assert_int_equal(
		    (uintptr_t)pieces[i] % _Alignof(max_align_t), 0);
		for (size_t j = 0; j < i; j++)
			assert_int_equal(pieces[i][j], 0);
		if (i > 0)
			memset(pieces[i], (int)(i % 255 + 1), i);
	}
	for (size_t i = 0; i < PIECES; i++)
		for (size_t j = 0; j < i; j++)
			assert_int_equal(pieces[i][j], i % 255 + 1);
	arena_release(&a);
}

static void
test_large(void **state)
{
	struct arena a;
	char *small;
	char *large;
	char *after;

	(void)state;
	arena_init(&a);
	small = arena_alloc(&a, 10);
	large = arena_alloc(&a, 1000000);
	after = arena_alloc(&a, 10);
	assert_non_null(small);
	assert_non_null(large);
	assert_non_null(after);
	memset(large, 'x', 1000000);
	assert_int_equal(small[9], 0);
	assert_int_equal(after[0], 0);
	assert_null(arena_alloc(&a, SIZE_MAX));
	assert_null(arena_alloc(&a, SIZE_MAX - 15));
	arena_release(&a);
}

/* After a reset the same first block serves again, zeroed again. */
static void
test_reset(void **state)
{
	struct arena a;
	char *first;

	(void)state;
	arena_init(&a);
	first = arena_alloc(&a, 100);
	assert_non_null(first);
	memset(first, 'x', 100);
	for (int i = 0; i < 50; i++)
		assert_non_null(arena_alloc(&a, 1000));
	for (int round = 0; round < 3; round++) {
		char *again;

		arena_reset(&a);
		again = arena_alloc(&a, 100);
		assert_ptr_equal(again, first);
		for (size_t i = 0; i < 100; i++)
			assert_int_equal(again[i], 0);
		memset(again, 'y', 100);
		assert_non_null(arena_alloc(&a, 8000));
	}
	arena_release(&a);
}

static void
test_copy(void **state)
{
	char text[] = "a\0b";
	struct arena a;
	struct str copy;

	(void)state;
	arena_init(&a);
	copy = arena_copy(&a, (struct str){ text, 3 });
	text[0] = 'x';
	assert_int_equal(copy.len, 3);
	assert_memory_equal(copy.p, "a\0b", 4);
	copy = arena_copy(&a, STR_NONE);
	assert_int_equal(copy.len, 0);
	assert_non_null(copy.p);
	assert_int_equal(copy.p[0], 0);
	arena_release(&a);
}

static void
test_join(void **state)
{
	const struct str part[] = { STR("a"), STR_NONE, { "b\0c", 3 }, STR(""),
		STR("d") };
	struct arena a;
	struct str joined;

	(void)state;
	arena_init(&a);
	joined = arena_join(&a, part, 5);
	assert_int_equal(joined.len, 5);
	assert_memory_equal(joined.p, "ab\0cd", 6);
	joined = arena_join(&a, part, 0);
	assert_int_equal(joined.len, 0);
	assert_non_null(joined.p);
	assert_int_equal(joined.p[0], 0);
	arena_release(&a);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_release_of_nothing),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_join),
	};

	return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
