/* An urlencoded form, as PHP reads it; e2e/test_forms.py asks PHP itself. */
#include "pure/form.h"

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

static void
test_types(void **state)
{
	static const struct {
		const char *type;
		bool is_form;
	} table[] = {
		{ "application/x-www-form-urlencoded", true },
		{ "Application/X-WWW-Form-URLencoded; charset=UTF-8", true },
		{ " application/x-www-form-urlencoded ;", true },
		{ "application/x-www-form-urlencoded;", true },
		{ "application/x-www-form-urlencoded,text/plain", true },
		{ "application/x-www-form-urlencoded x", true },
		{ "application/x-www-form-urlencoded\tx", true },
		{ "application/x-www-form-urlencoded, x; y", true },
		{ "", false },
		{ ";", false },
		{ "text/plain; application/x-www-form-urlencoded", false },
		{ "text/plain, application/x-www-form-urlencoded", false },
		{ "multipart/form-data; boundary=x", false },
		{ "application/x-www-form-urlencoded2", false },
		{ "application/x-www-form-urlencoded/x", false },
		{ "application/json", false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++)
		if (form_is_urlencoded(str_of(table[i].type)) !=
		    table[i].is_form)
			fail_msg("%s", table[i].type);
	assert_false(form_is_urlencoded(STR_NONE));
}

/* From a block of its very size, for a sanitizer to see what is beyond. */
static struct str
get(struct str body, const char *name, bool *twice)
{
	char *exact = malloc(body.len > 0 ? body.len : 1);
	struct str value;

	assert_non_null(exact);
	if (body.len > 0)
		memcpy(exact, body.p, body.len);
	body.p = exact;
	assert_true(form_get(body, str_of(name), &arena, &value));
	*twice = form_disagrees(body, str_of(name));
	free(exact);
	return value;
}

static void
test_fields(void **state)
{
	static const struct {
		struct str body;
		const char *value; /* of the first `a_b`; NULL: none */
		bool twice;
	} table[] = {
		{ STR(""), NULL, false },
		{ STR("&=&"), NULL, false },
		{ STR("b=1&a=2"), NULL, false },
		{ STR("a_b=1"), "1", false },
		{ STR("x=&a_b=%31"), "1", false },
		{ STR("a_b"), "", false },
		{ STR("%61_%62=a=b"), "a=b", false },
		{ STR("A_b=1&a_B=2"), NULL, false },
		{ STR("a_bc=1&a_=2&_b=3"), NULL, false },

		/* Blanks in front, but no others. */
		{ STR(" a_b=1"), "1", false },
		{ STR("+a_b=1"), "1", false },
		{ STR("%20+ %20a_b=1"), "1", false },
		{ STR("%09a_b=1"), NULL, false },
		{ STR("%0aa_b=1"), NULL, false },
		{ STR("a_b+=1"), NULL, false },
		{ STR("+=1& =2"), NULL, false },
		/* Other ways to write the name. */
		{ STR("a.b=1"), "1", false },
		{ STR("a+b=1"), "1", false },
		{ STR("a%5bb=1"), "1", false },
		{ STR("a[b=1"), "1", false },
		{ STR("a-b=1"), NULL, false },
		{ STR("a[b]=1"), NULL, false },
		{ STR("a_b%00=1"), "1", false },
		{ STR("a_b%00c=1"), "1", false },
		{ STR("a%00_b=1"), NULL, false },

		{ STR("a_b=1&a_b=1"), "1", false },
		{ STR("a_b=1&c=2&a_b=%31&"), "1", false },
		{ STR("a_b=1&a_b=2"), "1", true },
		{ STR("a_b=1&a_b=1&a_b=2"), "1", true },
		{ STR("a_b=1&a_b=11"), "1", true },
		{ STR("a_b=11&a_b=1"), "11", true },
		{ STR("a_b=1&a_b"), "1", true },
		{ STR("a_b&a_b="), "", false },
		{ STR("a_b=&a_b=1"), "", true },
		{ STR("a_b=1&+a.b=2"), "1", true },
		{ STR("a_b=1&a_b%00x=2"), "1", true },
		{ STR("a_b=+&a_b=%20"), " ", false },
		{ STR("a_b=%&a_b=%25"), "%", false },
		{ STR("a_b=1&b=2&b=3"), "1", false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		bool twice;
		struct str value = get(table[i].body, "a_b", &twice);

		if (twice != table[i].twice ||
		    (value.p == NULL) != (table[i].value == NULL) ||
		    !str_eq(value, str_of(table[i].value)))
			fail_msg("%s", table[i].body.p);
	}
}

/* By any of its names. */
static void
test_names(void **state)
{
	static const char *const names[] = { "a_b", "a.b", "a[b" };

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++)
		for (size_t k = 0; k < COUNT(names); k++) {
			char body[16];
			bool twice;

			snprintf(body, sizeof(body), "%s=1", names[k]);
			expect_str(
			    get(str_of(body), names[i], &twice), STR("1"));
		}
}

/* Without blanks in front of it, and with no other letter than it seems. */
static struct str
meant(struct str name)
{
	while (name.len > 0 && name.p[0] == ' ')
		name = (struct str){ name.p + 1, name.len - 1 };
	return name;
}

static void
test_drawn(void **state)
{
	unsigned seed = draw_seed();

	(void)state;
	for (int round = 0; round < 20000; round++) {
		size_t n = draw_below(&seed, FIELDS_MAX + 1);
		const struct str *first = NULL;
		struct field field[FIELDS_MAX];
		bool expected = false;
		struct buf text;
		struct str value;

		buf_init(&text);
		for (size_t i = 0; i < n; i++) {
			field[i].name = field_text(&seed, "ab ", 3, &arena);
			field[i].value = field_text(&seed, "x&+", 1, &arena);
			if (i > 0)
				buf_add_char(&text, '&');
			field_encode(&seed, field[i].name, " &", &text);
			buf_add_char(&text, '=');
			field_encode(&seed, field[i].value, "+&", &text);
			if (!str_eq(meant(field[i].name), STR("a")))
				continue;
			if (first == NULL)
				first = &field[i].value;
			expected |= !str_eq(*first, field[i].value);
		}
		assert_true(form_get(buf_str(&text), STR("a"), &arena, &value));
		assert_int_equal(value.p == NULL, first == NULL);
		if (first != NULL)
			expect_str(value, *first);
		assert_int_equal(
		    form_disagrees(buf_str(&text), STR("a")), expected);
		buf_release(&text);
		arena_reset(&arena);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),
		cmocka_unit_test_setup_teardown(test_fields, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_drawn, setup, teardown),
	};

	return cmocka_run_group_tests_name("form", tests, NULL, NULL);
}
