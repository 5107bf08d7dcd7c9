/* RFC 9110: names, values, lists and dates of fields. */
#include "pure/field.h"

#include <time.h>

#include "draw.h"
#include "wire.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void
test_names(void **state)
{
	static const char *const good[] = { "A", "X-Frame-Options", "a_b",
		"!#$%&'*+-.^_`|~09azAZ" };
	static const char *const bad[] = { "", " A", "A ", "A B", "A:", "(A)",
		"A\t", "A\r", "\x7f", "\xc3\xa4", "A/B", "\"A\"", "A,B" };

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++)
		assert_true(field_is_name(str_of(good[i])));
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(field_is_name(str_of(bad[i])));
	assert_false(field_is_name(STR("A\0")));
}

static void
test_values(void **state)
{
	static const char *const good[] = { "", "a", "a b", "a\tb", "\xc3\xa4",
		"default-src 'self'; img-src *" };
	static const char *const bad[] = { " a", "a ", "a\t", "a\rb", "a\nb",
		"a\r\nSet-Cookie: b", "\x7f", "\x01", "a\n" };

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++)
		assert_true(field_is_value(str_of(good[i])));
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(field_is_value(str_of(bad[i])));
	assert_false(field_is_value(STR("a\0b")));
}

static void
test_cut(void **state)
{
	static const struct {
		const char *text;
		const char *pieces; /* each in brackets */
	} table[] = {
		{ "", "[]" },
		{ "a", "[a]" },
		{ "a,b;c", "[a][b][c]" },
		{ ",", "[][]" },
		{ "\"a,b\",c", "[\"a,b\"][c]" },
		{ "\"a\\\",b\",c", "[\"a\\\",b\"][c]" },
		{ "x=\"a;b\";c", "[x=\"a;b\"][c]" },
		{ "\"a,b", "[\"a,b]" },
		{ "\"a,b\\", "[\"a,b\\]" },
		{ "\"", "[\"]" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct str rest = str_of(table[i].text);
		struct buf got;

		buf_init(&got);
		while (rest.p != NULL) {
			struct str piece = field_cut(&rest, ",;");

			buf_addf(&got, "[%.*s]", STR_ARG(piece));
		}
		expect_str(buf_str(&got), str_of(table[i].pieces));
		buf_release(&got);
	}
}

static void
test_origins(void **state)
{
	static const char *const good[] = { "https://example.org",
		"http://localhost:8080", "https://[::1]:8443",
		"capacitor://localhost", "http://192.0.2.1", "http://a" };
	static const char *const bad[] = { "", "*", "null", "example.org",
		"https://", "https:/a", "https://example.org/",
		"https://example.org/a", "HTTPS://example.org",
		"https://Example.org", "https://a b", "https://a,b",
		"https://a:", "://a", "1http://a", "https://a\r\nb",
		"https://user@a" };

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++)
		assert_true(field_is_origin(str_of(good[i])));
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(field_is_origin(str_of(bad[i])));
}

static void
expect_date(int64_t seconds, const char *expected)
{
	struct buf out;

	buf_init(&out);
	field_add_date(&out, seconds);
	expect_str(buf_str(&out), str_of(expected));
	buf_release(&out);
}

static void
test_dates(void **state)
{
	unsigned seed = draw_seed();

	(void)state;
	expect_date(784111777, "Sun, 06 Nov 1994 08:49:37 GMT");
	expect_date(0, "Thu, 01 Jan 1970 00:00:00 GMT");
	expect_date(951782400, "Tue, 29 Feb 2000 00:00:00 GMT");
	expect_date(951868800, "Wed, 01 Mar 2000 00:00:00 GMT");
	expect_date(4107542399, "Sun, 28 Feb 2100 23:59:59 GMT");
	expect_date(4107542400, "Mon, 01 Mar 2100 00:00:00 GMT");
	expect_date(1704067199, "Sun, 31 Dec 2023 23:59:59 GMT");
	/* Four digits of a year are all there are. */
	expect_date(INT64_MAX, "Fri, 31 Dec 9999 23:59:59 GMT");
	expect_date(-1, "Thu, 01 Jan 1970 00:00:00 GMT");
	for (int round = 0; round < 20000; round++) {
		time_t seconds = (time_t)rand_r(&seed) * 60 + rand_r(&seed);
		char expected[64];
		struct tm tm;

		assert_non_null(gmtime_r(&seconds, &tm));
		strftime(expected, sizeof(expected),
		    "%a, %d %b %Y %H:%M:%S GMT", &tm);
		expect_date(seconds, expected);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_origins),
		cmocka_unit_test(test_dates),
	};

	return cmocka_run_group_tests_name("field", tests, NULL, NULL);
}
