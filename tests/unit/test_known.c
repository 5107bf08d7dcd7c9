#include "pure/known.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct arena arena;
static struct key_hasher *hasher;

static void
hash(struct str value, char tag[KEY_TAG_MAX])
{
	assert_int_equal(key_tag(hasher, &value, 1, false, tag), 32);
}

static void
test_values_and_hashes(void **state)
{
	char of_two[KEY_TAG_MAX], of_one[KEY_TAG_MAX];
	struct str items[3] = { STR("one"), STR_NONE, STR("a b\xff") };
	struct known *known;
	struct err err;

	(void)state;
	hash(STR("two"), of_two);
	hash(STR("one"), of_one);
	items[1] = str_of(of_two);
	known = known_new(items, 3, hasher, &arena, &err);
	assert_non_null(known);
	assert_true(known_has(known, STR("one")));
	assert_true(known_has(known, STR("two")));
	assert_true(known_has(known, STR("a b\xff")));
	assert_false(known_has(known, STR("three")));
	assert_false(known_has(known, STR("On")));
	assert_false(known_has(known, STR("")));
	assert_false(known_has(known, STR_NONE));
	/* Who has read a hash has no value. */
	assert_false(known_has(known, str_of(of_two)));
	assert_false(known_has(known, str_of(of_one)));
}

/* Another secret, another set. */
static void
test_secret(void **state)
{
	struct err err;
	struct key_hasher *other = key_hasher_new(STR("secret"), &err);
	char of_one[KEY_TAG_MAX];
	struct str item;
	struct known *known;

	(void)state;
	hash(STR("one"), of_one);
	item = str_of(of_one);
	known = known_new(&item, 1, other, &arena, &err);
	assert_false(known_has(known, STR("one")));
	key_hasher_free(other);
}

static void
test_many(void **state)
{
	enum { N = 2000 };
	static char text[N][16];
	static struct str items[N];
	struct known *known;
	struct err err;

	(void)state;
	for (int i = 0; i < N; i++) {
		snprintf(text[i], sizeof(text[i]), "key-%d", i);
		items[i] = str_of(text[i]);
	}
	known = known_new(items, N, hasher, &arena, &err);
	for (int i = 0; i < N; i++)
		assert_true(known_has(known, items[i]));
	assert_false(known_has(known, STR("key-2000")));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_and_hashes),
		cmocka_unit_test(test_secret),
		cmocka_unit_test(test_many),
	};
	struct err err;
	int failed;

	arena_init(&arena);
	hasher = key_hasher_new(STR_NONE, &err);
	failed = cmocka_run_group_tests_name("known", tests, NULL, NULL);
	key_hasher_free(hasher);
	arena_release(&arena);
	return failed;
}
