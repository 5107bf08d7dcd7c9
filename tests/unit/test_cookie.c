/* RFC 6265, 4.2 and 5.4; and of one name the first. */
#include "pure/cookie.h"

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
get(struct str header, const char *name)
{
	char *exact = malloc(header.len > 0 ? header.len : 1);
	struct str value;

	assert_non_null(exact);
	if (header.len > 0)
		memcpy(exact, header.p, header.len);
	assert_true(cookie_get(
	    (struct str){ exact, header.len }, str_of(name), &arena, &value));
	free(exact);
	return value;
}

static void
test_pairs(void **state)
{
	static const struct {
		const char *header;
		const char *value; /* of `k`; NULL: none */
	} table[] = {
		{ "", NULL },
		{ ";", NULL },
		{ "k", NULL },
		{ "k; k=1", "1" },
		{ "K=1; kk=2; a=k; =k", NULL },
		{ "k=1", "1" },
		{ "k=", "" },
		{ "k=;k=1", "" },
		{ "a=1; k=2", "2" },
		{ "a=1;k=2", "2" },
		{ "a=1 ; \t k =\t2 ;b=3", "2" },
		{ "k=1; k=2", "1" },
		{ "k=a=b==", "a=b==" },
		/* As PHP takes it: a comma joins nothing. */
		{ "a=1, k=2", NULL },
		{ "k=1, k=2", "1, k=2" },
		/* However it is written: one value. */
		{ "k=\"a b\"", "a b" },
		{ "k=\"\"", "" },
		{ "k=\"", "\"" },
		{ "k=\"a", "\"a" },
		{ "k=\"\"a\"\"", "\"a\"" },
		{ "k=%61%2B+", "a++" },
		{ "k=%2561", "%61" },
		{ "k=%6", "%6" },
		{ "k=%22a%22", "\"a\"" },
		{ "k=a%3Bk%3D2", "a;k=2" },
		/* Names are what they are. */
		{ "%6b=1", NULL },
		{ "%6b=1; k=2", "2" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct str value = get(str_of(table[i].header), "k");

		if (table[i].value == NULL)
			assert_null(value.p);
		else
			expect_str(value, str_of(table[i].value));
	}
}

static void
test_cut(void **state)
{
	static const char header[] = "a=1; k=\"x\"; k=2; a=k";
	static const char *const values[] = { NULL, NULL, NULL, NULL, NULL,
		NULL, NULL, "", "\"", "\"x" };

	(void)state;
	for (size_t len = 0; len <= strlen(header); len++) {
		struct str value = get((struct str){ header, len }, "k");
		const char *expected = len < COUNT(values) ? values[len] : "x";

		if (expected == NULL)
			assert_null(value.p);
		else
			expect_str(value, str_of(expected));
	}
}

static void
test_drawn(void **state)
{
	static const char *const gaps[] = { ";", "; ", " ;\t", ";;" };
	unsigned seed = draw_seed();

	(void)state;
	for (int round = 0; round < 20000; round++) {
		struct field field[FIELDS_MAX];
		size_t n = draw_below(&seed, FIELDS_MAX + 1);
		struct str name = field_text(&seed, "ab%", 2, &arena);
		const struct field *expected;
		struct buf text;
		struct str value;

		buf_init(&text);
		for (size_t i = 0; i < n; i++) {
			bool quoted = draw_below(&seed, 2) == 0;

			field[i].name = field_text(&seed, "ab%", 2, &arena);
			field[i].value =
			    field_text(&seed, "xy;=%+\" 4\xff", 4, &arena);
			if (i > 0)
				buf_add_str(&text,
				    str_of(
					gaps[draw_below(&seed, COUNT(gaps))]));
			buf_add_str(&text, field[i].name);
			buf_add_char(&text, '=');
			if (quoted)
				buf_add_char(&text, '"');
			field_encode(&seed, field[i].value, ";%\" ", &text);
			if (quoted)
				buf_add_char(&text, '"');
		}
		expected = field_find(field, n, name);
		assert_true(cookie_get(buf_str(&text), name, &arena, &value));
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

	return cmocka_run_group_tests_name("cookie", tests, NULL, NULL);
}
