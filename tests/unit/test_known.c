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

#define ITEM_MAX (sizeof(KNOWN_HASH) + KEY_TAG_MAX)

/* As `sluice hash` prints it. */
static void
hash(struct str value, char item[ITEM_MAX])
{
	char tag[KEY_TAG_MAX];

	assert_int_equal(key_tag(hasher, &value, 1, false, tag), 32);
	snprintf(item, ITEM_MAX, KNOWN_HASH "%s", tag);
}

/* Without `hash:`. */
static struct str
digits(const char *item)
{
	return str_of(item + strlen(KNOWN_HASH));
}

static void
test_values_and_hashes(void **state)
{
	char of_two[ITEM_MAX], of_one[ITEM_MAX];
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
	assert_false(known_has(known, digits(of_two)));
	assert_false(known_has(known, str_of(of_one)));
	assert_false(known_has(known, digits(of_one)));
}

/* 32 hex digits are a value as any other: many API keys look so. */
static void
test_hex_values(void **state)
{
	const struct str hex = STR("0123456789abcdef0123456789abcdef");
	char of_hex[ITEM_MAX];
	struct str item = hex;
	struct known *known;
	struct err err;

	(void)state;
	hash(hex, of_hex);
	known = known_new(&item, 1, hasher, &arena, &err);
	assert_true(known_has(known, hex));
	assert_false(known_has(known, digits(of_hex)));
	item = str_of(of_hex);
	known = known_new(&item, 1, hasher, &arena, &err);
	assert_true(known_has(known, hex));
	assert_false(known_has(known, digits(of_hex)));
	assert_false(known_has(known, str_of(of_hex)));
}

static void
test_good_items(void **state)
{
	static const struct {
		const char *item;
		bool good;
	} table[] = {
		{ "hash:0123456789abcdef0123456789abcdef", true },
		{ "hash:0123456789abcdef0123456789abcdeF", false },
		{ "hash:0123456789abcdef0123456789abcdeg", false },
		{ "hash:0123456789abcdef0123456789abcde", false },
		{ "hash:0123456789abcdef0123456789abcdef0", false },
		{ "hash: 0123456789abcdef0123456789abcdef", false },
		{ "hash:", false },
		{ "hash:x", false },
		{ "hash", true },
		{ "HASH:x", true },
		{ "xhash:x", true },
		{ "0123456789abcdef0123456789abcdef", true },
		{ "0123", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (known_item_is_good(str_of(table[i].item)) != table[i].good)
			fail_msg("%s", table[i].item);
}

/* Another secret, another set. */
static void
test_secret(void **state)
{
	struct err err;
	struct key_hasher *other = key_hasher_new(STR("secret"), &err);
	char of_one[ITEM_MAX];
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
		cmocka_unit_test(test_hex_values),
		cmocka_unit_test(test_good_items),
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
