/* WHATWG URL, 5.1; and of one name the first. */
#include "pure/query.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fields.h"
#include "wire.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static struct arena arena;

static int
setup(void **state)
{
	(void)state;
	arena_init(&arena);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

/* From a block of its very size, for a sanitizer to see what is beyond. */
static struct str
get(struct str query, const char *name)
{
	char *exact = malloc(query.len > 0 ? query.len : 1);
	struct str value;

	assert_non_null(exact);
	if (query.len > 0)
		memcpy(exact, query.p, query.len);
	assert_true(query_get(
	    (struct str){ exact, query.len }, str_of(name), &arena, &value));
	free(exact);
	return value;
}

static void
test_pairs(void **state)
{
	static const struct {
		const char *query;
		const char *value; /* of `k`; NULL: none */
	} table[] = {
		{ "", NULL },
		{ "&", NULL },
		{ "a=1", NULL },
		{ "kk=1&K=2&=k&k[]=3", NULL },
		{ "k=1", "1" },
		{ "k", "" },
		{ "k=", "" },
		{ "a=1&k=2", "2" },
		{ "a=1&&k=2&", "2" },
		{ "k=1&k=2", "1" },
		{ "k&k=2", "" },
		{ "k=&k=2", "" },
		{ "k=a=b", "a=b" },
		{ "k=a;k=b", "a;k=b" },
		{ "?k=1", NULL },
		/* Decoded once, names and values. */
		{ "%6b=1", "1" },
		{ "%6B=%41%62+c", "Ab c" },
		{ "%256b=1", NULL },
		{ "k=%2541", "%41" },
		{ "k=a%2bb%20", "a+b " },
		{ "k%3d1=2", NULL },
		{ "a%26k=1", NULL },
		{ "k=1%26k=2", "1&k=2" },
		/* What is no encoding is itself. */
		{ "k=%", "%" },
		{ "k=%4", "%4" },
		{ "k=%4&k=1", "%4" },
		{ "k=%zz%4g%g4", "%zz%4g%g4" },
		{ "k=%%41", "%A" },
		{ "k=\xc3\xa4\n", "\xc3\xa4\n" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct str value = get(str_of(table[i].query), "k");

		if (table[i].value == NULL)
			assert_null(value.p);
		else
			expect_str(value, str_of(table[i].value));
	}
	expect_str(get(STR("k=a%00b"), "k"), STR("a\0b"));
	expect_str(get(STR("=1"), ""), STR("1"));
	assert_null(get(STR("&&"), "").p);
	expect_str(get(STR("a%20b=1&a+b=2"), "a b"), STR("1"));
}

/* Cut anywhere: a pair that is whole stays what it is. */
static void
test_cut(void **state)
{
	static const char query[] = "a=%41&k=%6b%2b&k=2&%6b=3";
	static const char *const values[] = { NULL, NULL, NULL, NULL, NULL,
		NULL, NULL, "", "", "%", "%6", "k", "k%", "k%2" };

	(void)state;
	for (size_t len = 0; len <= strlen(query); len++) {
		struct str value = get((struct str){ query, len }, "k");
		const char *expected = len < COUNT(values) ? values[len] : "k+";

		if (expected == NULL)
			assert_null(value.p);
		else
			expect_str(value, str_of(expected));
	}
}

static void
test_drawn(void **state)
{
	unsigned seed = draw_seed();

	(void)state;
	for (int round = 0; round < 20000; round++) {
		struct field field[FIELDS_MAX];
		size_t n = draw_below(&seed, FIELDS_MAX + 1);
		struct str name = field_text(&seed, "ab+&=% ", 2, &arena);
		const struct field *expected;
		struct buf text;
		struct str value;

		buf_init(&text);
		for (size_t i = 0; i < n; i++) {
			field[i].name = field_text(&seed, "ab+&=% ", 2, &arena);
			field[i].value =
			    field_text(&seed, "xy&=%+4\xff", 4, &arena);
			if (i > 0)
				buf_add_char(&text, '&');
			field_encode(&seed, field[i].name, "+&=% ", &text);
			buf_add_char(&text, '=');
			field_encode(&seed, field[i].value, "+&%", &text);
		}
		expected = field_find(field, n, name);
		assert_true(query_get(buf_str(&text), name, &arena, &value));
		if (expected == NULL)
			assert_null(value.p);
		else
			expect_str(value, expected->value);
		buf_release(&text);
		arena_reset(&arena);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_pairs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(test_drawn, setup, teardown),
	};

	return cmocka_run_group_tests_name("query", tests, NULL, NULL);
}
