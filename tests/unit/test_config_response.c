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
	assert_int_equal(c->response.numbers.families, NUMBERS_X_RATELIMIT);
	assert_int_equal(c->response.numbers.reset, NUMBERS_RESET_DELTA);
	assert_int_equal(c->response.headers_on, CONFIG_HEADERS_ON_ALL);
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
		    c->response.numbers.families, table[i].families);
		assert_int_equal(
		    c->response.numbers.reset, NUMBERS_RESET_EPOCH);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_headers),
	};

	return cmocka_run_group_tests_name(
	    "config_response", tests, enter_directory, leave_directory);
}
