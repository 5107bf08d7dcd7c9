/* SPEC.md section 3, [response]: what is read, and what is refused. */
#include "config_text.h"
#include "wire.h"

#define RESPONSE BACKEND "[response]\n" /* its first option: line 4 */

static struct config *
load(const char *options)
{
	struct config *config;
	struct buf text;

	buf_init(&text);
	buf_addf(&text, RESPONSE "%s%c", options, '\0');
	config = load_good(text.p);
	buf_release(&text);
	return config;
}

static void
expect_fault(const char *line, const char *expected)
{
	char text[500];
	char report[500];
	struct str key = str_of(line);

	key = str_cut(&key, ' ');
	snprintf(text, sizeof(text), RESPONSE "%s\n", line);
	snprintf(report, sizeof(report), "t.ini:4: [response] %.*s: %s\n",
	    STR_ARG(key), expected);
	expect_reports(str_of(text), report);
}

static void
test_defaults(void **state)
{
	struct config *c = load_good(BACKEND);

	(void)state;
	assert_int_equal(
	    c->response.reply.numbers.families, NUMBERS_X_RATELIMIT);
	assert_int_equal(c->response.reply.numbers.reset, NUMBERS_RESET_DELTA);
	assert_int_equal(c->response.headers_on, CONFIG_HEADERS_ON_ALL);
	assert_int_equal(c->response.reply.retry_after, REPLY_RETRY_SECONDS);
	assert_int_equal(c->response.reply.jitter_percent, 0);
	assert_true(c->response.reply.never_us == 86400000000);
	for (int i = 0; i < ACCEPT_TYPES; i++)
		assert_null(c->response.reply.body[i].p);
	assert_int_equal(c->response.reply.n_origins, 0);
	assert_int_equal(c->response.reply.lines.len, 0);
	config_unref(c);
}

static void
test_headers(void **state)
{
	static const struct {
		const char *value;
		uint64_t families;
	} table[] = {
		{ "none", 0 },
		{ "x-ratelimit", NUMBERS_X_RATELIMIT },
		{ "draft-03", NUMBERS_DRAFT_03 },
		{ "draft-11", NUMBERS_DRAFT_11 },
		{ "draft-11, x-ratelimit",
		    NUMBERS_X_RATELIMIT | NUMBERS_DRAFT_11 },
		{ "x-ratelimit,draft-03 , draft-11",
		    NUMBERS_X_RATELIMIT | NUMBERS_DRAFT_03 | NUMBERS_DRAFT_11 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		char options[100];
		struct config *c;

		snprintf(options, sizeof(options),
		    "headers = %s\nheaders_on = denied\nreset = epoch\n",
		    table[i].value);
		c = load(options);
		assert_int_equal(
		    c->response.reply.numbers.families, table[i].families);
		assert_int_equal(
		    c->response.reply.numbers.reset, NUMBERS_RESET_EPOCH);
		assert_int_equal(
		    c->response.headers_on, CONFIG_HEADERS_ON_DENIED);
		config_unref(c);
	}
	expect_fault("headers = none, draft-11", "none stands alone");
	expect_fault("headers = draft-11, none", "none stands alone");
	expect_fault(
	    "headers = draft-11, draft-11", "`draft-11` is named twice");
	expect_fault("headers = draft-7",
	    "`draft-7` is none of x-ratelimit, draft-03, draft-11, none");
	expect_fault("headers = draft-11,",
	    "`` is none of x-ratelimit, draft-03, draft-11, none");
	expect_fault(
	    "headers_on = refused", "`refused` is none of all, denied");
	expect_fault("reset = ms", "`ms` is none of delta, epoch");
}

static void
test_retry(void **state)
{
	struct config *c = load("retry_after = date\n"
				"retry_after_jitter = 25%\n"
				"retry_after_max = 1h\n");

	(void)state;
	assert_int_equal(c->response.reply.retry_after, REPLY_RETRY_DATE);
	assert_int_equal(c->response.reply.jitter_percent, 25);
	assert_true(c->response.reply.never_us == 3600000000);
	config_unref(c);
	expect_fault("retry_after = both", "`both` is none of seconds, date");
	expect_fault("retry_after_jitter = 25", "`25` is no share (10%)");
	expect_fault("retry_after_jitter = %", "`` is no whole number");
	expect_fault("retry_after_jitter = -1%", "`-1` is no whole number");
	expect_fault("retry_after_jitter = 101%", "must be 0% to 100%");
	expect_fault("retry_after_max = 0", "must be 1s to 366d");
}

static void
test_bodies(void **state)
{
	struct config *c;

	(void)state;
	write_file("good.html", STR("<p>{message}</p>"));
	write_file("good.json", STR("{\"wait\":{retry_after}}"));
	write_file("bad.json", STR("{\"wait\":{retry_after}"));
	write_file("odd.txt", STR("{retry-after} {wait}\n"));
	write_file("latin.txt", STR("gr\xfc\xdf\n"));
	c = load("body_html = good.html\nbody_json = ./good.json\n");
	expect_str(
	    c->response.reply.body[ACCEPT_HTML], STR("<p>{message}</p>"));
	expect_str(c->response.reply.body[ACCEPT_JSON],
	    STR("{\"wait\":{retry_after}}"));
	assert_null(c->response.reply.body[ACCEPT_TEXT].p);
	config_unref(c);
	expect_fault("body_html = none.html",
	    "none.html: can not be read: No such file or directory");
	expect_fault("body_json = bad.json",
	    "bad.json: once filled in it is no JSON, from its byte 11 on");
	expect_fault("body_text = latin.txt", "latin.txt: byte 3 is no UTF-8");
	expect_fault("body_text = odd.txt",
	    "warning: odd.txt: nothing is put in for {wait}: it is none of "
	    "{limit}, {retry_after}, {message}, {request_id}");
}

static void
test_cors(void **state)
{
	struct config *c =
	    load("cors_origin = https://a.example, http://localhost:3000\n");

	(void)state;
	assert_int_equal(c->response.reply.n_origins, 2);
	assert_string_equal(
	    c->response.reply.origin[1], "http://localhost:3000");
	config_unref(c);
	config_unref(load("cors_origin = *\n"));
	expect_fault("cors_origin = https://a.example/",
	    "`https://a.example/` is no origin (https://app.example.org), "
	    "nor *");
	expect_fault("cors_origin = https://a.example, *", "* stands alone");
}

/* B54; and no line that another one's value could end. */
static void
test_added(void **state)
{
	struct config *c;

	(void)state;
	write_file("lines",
	    STR("Content-Security-Policy: default-src 'none', x\r\n"
		"X-B:2\r\n"));
	write_file("split", STR("X-A: 1\rX-B: 2\n"));
	c = load("add_header = X-A: 1 , @lines, Set-Cookie: a=1, "
		 "Set-Cookie: b=2\n");
	expect_str(c->response.reply.lines,
	    STR("X-A: 1\r\n"
		"Content-Security-Policy: default-src 'none', x\r\n"
		"X-B: 2\r\n"
		"Set-Cookie: a=1\r\n"
		"Set-Cookie: b=2\r\n"));
	config_unref(c);
	expect_fault("add_header = @split",
	    "the value of X-A holds a control character");
	expect_fault(
	    "add_header = X-A", "`X-A` is not of the form NAME: VALUE");
	expect_fault(
	    "add_header = X A: 1", "`X A: 1` is not of the form NAME: VALUE");
	expect_fault(
	    "add_header = : 1", "`: 1` is not of the form NAME: VALUE");
	expect_fault(
	    "add_header = retry-after: 1", "retry-after is not to be added");
	expect_fault("add_header = X-RateLimit-Limit: 1",
	    "X-RateLimit-Limit is not to be added");
	expect_fault("add_header = Transfer-Encoding: chunked",
	    "Transfer-Encoding is not to be added");
	expect_fault("add_header = X-A: 1, x-a: 2", "x-a is given twice");
	expect_reports(
	    STR(RESPONSE "cors_origin = *\n"
			 "add_header = Access-Control-Allow-Origin: *\n"),
	    "t.ini:5: [response] add_header: cors_origin already says "
	    "Access-Control-Allow-Origin\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_retry),
		cmocka_unit_test(test_bodies),
		cmocka_unit_test(test_cors),
		cmocka_unit_test(test_added),
	};

	return cmocka_run_group_tests_name(
	    "config_response", tests, enter_directory, leave_directory);
}
