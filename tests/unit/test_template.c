/* Bodies from files: what is put in, escaped, and what is refused (B56). */
#include "pure/template.h"

#include "pure/json.h"
#include "wire.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const struct template_values values = {
	.limit = { "login", 5 },
	.retry_after = { "17", 2 },
	.message = { "<b>\"Stop\" & 'wait'\\</b>", 23 },
	.request_id = { "id-1", 4 },
};

static void
expect_filled(const char *text, enum accept_type type, const char *expected)
{
	struct buf out;

	buf_init(&out);
	template_fill(&out, str_of(text), type, &values);
	assert_false(out.failed);
	expect_str(buf_str(&out), str_of(expected));
	buf_release(&out);
}

static void
test_fill(void **state)
{
	(void)state;
	expect_filled("", ACCEPT_TEXT, "");
	expect_filled(
	    "{limit}{retry_after}{request_id}", ACCEPT_TEXT, "login17id-1");
	expect_filled(
	    "a {message} b", ACCEPT_TEXT, "a <b>\"Stop\" & 'wait'\\</b> b");
	expect_filled("a {message} b", ACCEPT_HTML,
	    "a &lt;b&gt;&quot;Stop&quot; &amp; &#39;wait&#39;\\&lt;/b&gt; b");
	expect_filled("{\"m\": \"{message}\", \"s\": {retry_after}}",
	    ACCEPT_JSON,
	    "{\"m\": \"<b>\\\"Stop\\\" & 'wait'\\\\</b>\", \"s\": 17}");
	/* Braces of its own stay. */
	expect_filled("p { color: red } {} { {limit} {Limit} {limit",
	    ACCEPT_HTML, "p { color: red } {} { login {Limit} {limit");
	expect_filled("{{limit}}", ACCEPT_TEXT, "{login}");
	/* What was put in is not looked at again. */
	expect_filled("{", ACCEPT_TEXT, "{");
}

static void
test_request_id(void **state)
{
	(void)state;
	assert_true(template_has_request_id(STR("a {request_id} b")));
	assert_false(template_has_request_id(STR("a {request_id b")));
	assert_false(template_has_request_id(STR_NONE));
}

static void
test_check(void **state)
{
	static const struct {
		const char *text;
		enum accept_type type;
		const char *expected; /* NULL: good */
	} table[] = {
		{ "any { text", ACCEPT_TEXT, NULL },
		{ "<p>\xc3\xa4 {message}</p>", ACCEPT_HTML, NULL },
		{ "{\"a\":\"{message} {limit}\",\"b\":{retry_after}}\n",
		    ACCEPT_JSON, NULL },
		{ "ab\xff", ACCEPT_TEXT, "byte 3 is no UTF-8" },
		{ "\xc0\x80", ACCEPT_HTML, "byte 1 is no UTF-8" },
		{ "", ACCEPT_JSON,
		    "once filled in it is no JSON, from its byte 1 on" },
		{ "{\"a\":{limit}}", ACCEPT_JSON,
		    "once filled in it is no JSON, from its byte 6 on" },
		{ "{\"a\":1,}", ACCEPT_JSON,
		    "once filled in it is no JSON, from its byte 8 on" },
		{ "{\"a\":1} x", ACCEPT_JSON,
		    "once filled in it is no JSON, from its byte 9 on" },
	};
	struct err err;

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		bool good =
		    template_check(str_of(table[i].text), table[i].type, &err);

		assert_int_equal(good, table[i].expected == NULL);
		if (!good)
			assert_string_equal(err.text, table[i].expected);
	}
	assert_false(template_check(STR("a\0b"), ACCEPT_TEXT, &err));
	assert_string_equal(err.text, "byte 2 is a NUL");
}

static void
test_unknown(void **state)
{
	static const struct {
		const char *text;
		const char *unknown;
	} table[] = {
		{ "{limit} {retry_after} {message} {request_id}", "" },
		{ "{limit} {retryafter} {other}", "{retryafter}" },
		{ "p{color:red} {} {Limit} {a b} {1}", "" },
		{ "{{limits}}", "{limits}" },
		{ "{limit", "" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++)
		expect_str(template_unknown(str_of(table[i].text)),
		    str_of(table[i].unknown));
}

static void
test_json(void **state)
{
	static const char *const good[] = { "1", "-0.5e+3", "0", "\"\"", "null",
		"true", " [ ] ", "[1,[2],{}]",
		"{\"a\":{\"b\":[1, \"\\u00e4\"]}}",
		"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\xc3\xa4\"",
		"[[[[[[[[[[1]]]]]]]]]]", "1E5",
		"{ \"a\" : 1 , \"b\" : false }" };
	static const char *const bad[] = { "", " ", "01", "1.", ".5", "-", "+1",
		"1e", "\"", "\"\\\"", "\"\\x\"", "\"\\u12g4\"", "\"\t\"",
		"\"\xff\"", "nul", "[1,]", "[,1]", "[1 2]", "{\"a\"}",
		"{\"a\":}", "{a:1}", "{\"a\":1 \"b\":2}", "[1}", "{\"a\":1]",
		"1 2", "]", "[", "{", "{\"a\":1", "[1", "{,}", "\"a\" \"b\"" };
	char deep[140];
	size_t at;

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		if (!json_is_valid(str_of(good[i]), &at))
			print_message("%s: %zu\n", good[i], at);
		assert_true(json_is_valid(str_of(good[i]), &at));
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		if (json_is_valid(str_of(bad[i]), &at))
			print_message("%s\n", bad[i]);
		assert_false(json_is_valid(str_of(bad[i]), &at));
	}
	memset(deep, '[', 70);
	memset(deep + 70, ']', 70);
	assert_false(json_is_valid((struct str){ deep, 140 }, &at));
	assert_true(json_is_valid((struct str){ deep + 10, 120 }, &at));
}

static void
test_json_escape(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out);
	json_add_escaped(&out,
	    STR("a\"\\/\n\0\x7f\xc3\xa4\xf0\x9f\x98\x80|\xff|\xc3|\xed"
		"\xa0\x80|\xf4\x90\x80\x80"));
	expect_str(buf_str(&out),
	    STR("a\\\"\\\\/\\u000a\\u0000\\u007f\xc3\xa4\xf0\x9f\x98\x80|"
		"\\ufffd|\\ufffd|\\ufffd\\ufffd\\ufffd|"
		"\\ufffd\\ufffd\\ufffd\\ufffd"));
	buf_release(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fill),
		cmocka_unit_test(test_request_id),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_json_escape),
	};

	return cmocka_run_group_tests_name("template", tests, NULL, NULL);
}
