/*
 * SPEC.md section 1: what limits and backends may be together with the roles
 * that are served.
 */
#include "config_text.h"

#define SERVES(roles) "[gateway]\nroles = " roles "\n"
#define BOTH          SERVES("responder, authorizer")
#define A             "[limit a]\nrate = 10/1m\n" /* ends on line 8 */
#define NONE          ", and an authorizer has none: that takes role = responder\n"

/* What needs a backend, the response or the body, on line 9. */
static const struct {
	const char *option;
	const char *key;
	const char *what;
} needs[] = {
	{ "algorithm = leaky_bucket\ndelay_max = 1h\n", "algorithm",
	    "leaky_bucket holds requests back from a backend" },
	{ "count = 401\n", "count", "goes by the response" },
	{ "cost = response:X-Cost\n", "cost", "goes by the response" },
	{ "backend = default\n", "backend", "requests are passed on to it" },
	{ "key = client + form:user | path\n", "key",
	    "form: is a part of the body" },
	{ "key = client + path + query:a | form:a | path\n", "key",
	    "form: is a part of the body" },
};

static void
expect_need(const char *roles, const char *role, size_t i, bool is_wrong)
{
	struct buf text, expected;

	buf_init(&text);
	buf_init(&expected);
	buf_addf(&text, "[gateway]\nroles = %s\n" STORE BACKEND A "%s%s", roles,
	    needs[i].option, role);
	if (is_wrong)
		buf_addf(&expected, "t.ini:9: [limit a] %s: %s" NONE,
		    needs[i].key, needs[i].what);
	buf_add_char(&expected, '\0');
	expect_reports(buf_str(&text), expected.p);
	buf_release(&text);
	buf_release(&expected);
}

static void
test_needs(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(needs); i++) {
		expect_need("responder", "", i, false);
		expect_need("responder", "role = responder\n", i, false);
		expect_need("responder, authorizer", "", i, true);
		expect_need("authorizer, responder", "", i, true);
		expect_need(
		    "responder, authorizer", "role = responder\n", i, false);
		expect_need(
		    "responder, authorizer", "role = authorizer\n", i, true);
	}
}

/* All of them are said, and what counts as plainly needs none of it. */
static void
test_several(void **state)
{
	static const struct report_row table[] = {
		{ BOTH STORE BACKEND
		    "[limit a]\nrate = 5\nalgorithm = concurrency\n",
		    "t.ini:9: [limit a] algorithm: concurrency goes by the end "
		    "of a response" NONE },
		{ BOTH STORE BACKEND
		    "[limit a]\nrate = 5\nalgorithm = concurrency\n"
		    "role = responder\n",
		    "" },
		{ BOTH STORE BACKEND A "count = 5xx\nbackend = default\n"
				       "[limit b]\nrate = 1/1s\n"
				       "cost = response:X\n",
		    "t.ini:9: [limit a] count: goes by the response" NONE
		    "t.ini:10: [limit a] backend: requests are passed on to "
		    "it" NONE
		    "t.ini:13: [limit b] cost: goes by the response" NONE },
		{ BOTH STORE BACKEND A
		    "cost = /x=2, *=1\ncount = all\npenalty = 1m\n"
		    "algorithm = fixed_window\nkey = client + query:a | path\n",
		    "" },
		/* It says so whatever is served. */
		{ STORE BACKEND A "count = 401\nrole = authorizer\n",
		    "t.ini:7: [limit a] count: goes by the response" NONE
		    "t.ini:8: [limit a] role: warning: the limit never "
		    "applies: roles in [gateway] has no authorizer\n" },
		{ STORE BACKEND A "role = filter\n",
		    "t.ini:7: [limit a] role: `filter` is none of responder, "
		    "authorizer, cgi\n" },
	};

	(void)state;
	expect_report_rows(table, COUNT(table));
}

static void
test_not_served(void **state)
{
	static const struct report_row table[] = {
		{ STORE BACKEND A "role = authorizer\n",
		    "t.ini:7: [limit a] role: warning: the limit never "
		    "applies: roles in [gateway] has no authorizer\n" },
		{ SERVES("authorizer") STORE A
		    "role = responder\ncount = 401\n",
		    "t.ini:7: [limit a] role: warning: the limit never "
		    "applies: roles in [gateway] has no responder\n" },
		{ SERVES("authorizer") STORE A "role = authorizer\n", "" },
		/* An authorizer needs no backend, a responder does. */
		{ SERVES("authorizer") STORE A, "" },
		{ SERVES("authorizer") "threads = 1\n" STORE A, "" },
		{ BOTH STORE A,
		    "t.ini: there is no [backend NAME] to pass requests to\n" },
		{ SERVES("authorizer") BACKEND "[backend b]\n"
					       "address = unix:/b\npath = /b\n",
		    "t.ini:3: [backend default] warning: gets no request: "
		    "roles in [gateway] has no responder\n"
		    "t.ini:5: [backend b] warning: gets no request: roles in "
		    "[gateway] has no responder\n" },
		/* A wrong value says nothing of the others. */
		{ SERVES("filter") STORE BACKEND A "role = responder\n",
		    "t.ini:2: [gateway] roles: `filter` is none of responder, "
		    "authorizer, cgi\n" },
	};

	(void)state;
	expect_report_rows(table, COUNT(table));
}

#define REDIS   "[store]\naddress = unix:/redis\n"
#define SCRIPTS "[backend default]\ntype = cgi\nroot = /\n"
#define RATE    "[limit a]\nrate = 10/1m\n" /* ends on line 9 */
#define UNSEEN  ", and the cgi role sees none: that takes role = responder\n"

/* A process for each request: no response, no body, no counts of its own. */
static void
test_cgi(void **state)
{
	static const struct report_row table[] = {
		{ SERVES("cgi") REDIS SCRIPTS RATE "role = cgi\n", "" },
		{ SERVES("cgi") SCRIPTS "[limit a]\nrate = deny\n" REDIS, "" },
		{ SERVES("cgi") REDIS SCRIPTS RATE "count = 401\n",
		    "t.ini:10: [limit a] count: goes by the response" UNSEEN },
		{ SERVES("responder, cgi") REDIS SCRIPTS RATE
		    "cost = response:X\nbackend = default\n",
		    "t.ini:10: [limit a] cost: goes by the response" UNSEEN
		    "t.ini:11: [limit a] backend: requests are passed on to "
		    "it" UNSEEN },
		{ SERVES("responder, cgi") REDIS SCRIPTS RATE
		    "lease = 5\nrole = cgi\n",
		    "t.ini:10: [limit a] lease: is for requests that are "
		    "passed on to a backend" UNSEEN },
		{ SERVES("cgi") REDIS SCRIPTS
		    "[limit a]\nrate = 5\nalgorithm = concurrency\n",
		    "t.ini:10: [limit a] algorithm: concurrency goes by the "
		    "end of a response" UNSEEN },
		{ SERVES("cgi") REDIS SCRIPTS RATE
		    "algorithm = leaky_bucket\ndelay_max = 1h\n",
		    "t.ini:10: [limit a] algorithm: leaky_bucket holds "
		    "requests back from a backend" UNSEEN },
		{ SERVES("cgi") REDIS SCRIPTS RATE
		    "key = client + form:user | path\n",
		    "t.ini:10: [limit a] key: form: is a part of the "
		    "body" UNSEEN },
		{ SERVES("responder, cgi") REDIS SCRIPTS RATE
		    "count = 401\nrole = responder\nscope = local\n",
		    "" },
		{ SERVES("cgi") REDIS SCRIPTS RATE "scope = local\n",
		    "t.ini:10: [limit a] scope: local counts would end with "
		    "each request of the cgi role: that takes role = responder "
		    "or authorizer\n" },
		{ SERVES("cgi") REDIS SCRIPTS RATE
		    "on_outage = local\noutage_rate = 5/1m\n",
		    "t.ini:10: [limit a] on_outage: warning: in the cgi role "
		    "local counts end with each request: there it is as "
		    "allow\n" },
		/* What it can not do without, or with. */
		{ SERVES("cgi") STORE SCRIPTS RATE,
		    "t.ini:4: [store] address: memory: counts would end with "
		    "each request of the cgi role, which is in roles in "
		    "[gateway]\n" },
		{ SERVES("responder, cgi") STORE SCRIPTS,
		    "t.ini:4: [store] address: memory: counts would end with "
		    "each request of the cgi role, which is in roles in "
		    "[gateway]\n" },
		{ SERVES("cgi, responder") REDIS BACKEND RATE,
		    "t.ini:2: [gateway] roles: cgi: there is no [backend NAME] "
		    "of type = cgi, whose scripts it could become\n" },
		{ SERVES("cgi") REDIS SCRIPTS
		    "[backend b]\naddress = unix:/b\npath = /b\n",
		    "t.ini:8: [backend b] warning: gets no request: roles in "
		    "[gateway] has no responder\n" },
		{ SERVES("authorizer") REDIS SCRIPTS,
		    "t.ini:5: [backend default] warning: gets no request: "
		    "roles in [gateway] has no responder and no cgi\n" },
		{ REDIS SCRIPTS "[limit a]\nrate = 1/1m\nrole = cgi\n",
		    "t.ini:8: [limit a] role: warning: the limit never "
		    "applies: roles in [gateway] has no cgi\n" },
	};

	(void)state;
	expect_report_rows(table, COUNT(table));
}

static int
line_of(struct str text, struct str what)
{
	const char *at = memmem(text.p, text.len, what.p, what.len);
	int line = 1;

	assert_non_null(at);
	for (const char *p = text.p; p < at; p++)
		line += *p == '\n';
	return line;
}

/* Who can never meet on one request is not counted together. */
static void
test_sum_of_rates(void **state)
{
#define FOR_RESPONDERS  "role = responder\n"
#define FOR_AUTHORIZERS "role = authorizer\n"
	static const struct {
		const char *roles;
		const char *role[5]; /* of limits with 8 rates each */
		const char *expected;
	} rows[] = {
		{ "authorizer", { "", "", "", "", "" },
		    "with this the limits for an authorizer have 40 rates "
		    "together; at most 32 can be\n" },
		{ "responder, authorizer",
		    { FOR_RESPONDERS, FOR_AUTHORIZERS, FOR_RESPONDERS,
			FOR_AUTHORIZERS, "" },
		    NULL },
		{ "responder, authorizer",
		    { FOR_AUTHORIZERS, "", FOR_AUTHORIZERS, "",
			FOR_AUTHORIZERS },
		    "with this the limits for an authorizer have 40 rates "
		    "together; at most 32 can be\n" },
		{ "cgi", { "", "", "role = cgi\n", "", "" },
		    "with this the limits for the cgi role have 40 rates "
		    "together; at most 32 can be\n" },
		{ "responder, cgi",
		    { FOR_RESPONDERS, "role = cgi\n", FOR_RESPONDERS,
			"role = cgi\n", "" },
		    NULL },
		{ "responder, authorizer", { FOR_RESPONDERS, "", "", "", "" },
		    "with this the limits for [backend default] have 40 rates "
		    "together; at most 32 can be (name the backend of limits "
		    "that are for one alone)\n" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct buf text, expected;

		buf_init(&text);
		buf_init(&expected);
		buf_addf(&text, "[gateway]\nroles = %s\n" REDIS, rows[i].roles);
		if (strcmp(rows[i].roles, "authorizer") != 0)
			buf_addf(&text,
			    strstr(rows[i].roles, "cgi") ? SCRIPTS : BACKEND);
		for (size_t k = 0; k < 5; k++)
			buf_addf(&text,
			    "[limit %c]\nrate = 1/1ms, 2/1s, 3/2s, 4/4s, 5/8s, "
			    "6/16s, 7/32s, 8/1m\n%s",
			    (char)('a' + k), rows[i].role[k]);
		if (rows[i].expected != NULL)
			buf_addf(&expected, "t.ini:%d: [limit e] rate: %s",
			    line_of(buf_str(&text), STR("[limit e]")) + 1,
			    rows[i].expected);
		buf_add_char(&expected, '\0');
		expect_reports(buf_str(&text), expected.p);
		buf_release(&text);
		buf_release(&expected);
	}
}

/* A limit is idle only beside one that all of its requests come under. */
static void
test_overlap(void **state)
{
#define TWO(a, b) BOTH STORE BACKEND A a "[limit b]\nrate = 100/1m\n" b
	static const char never[] = "rate: warning: 100/1m can never refuse: "
				    "10/1m of [limit a] always does first\n";
	char expected[200];

	(void)state;
	expect_reports(STR(TWO("role = responder\n", "")), "");
	expect_reports(
	    STR(TWO("role = responder\n", "role = authorizer\n")), "");
	snprintf(expected, sizeof(expected), "t.ini:10: [limit b] %s", never);
	expect_reports(STR(TWO("", "role = authorizer\n")), expected);
	snprintf(expected, sizeof(expected), "t.ini:11: [limit b] %s", never);
	expect_reports(
	    STR(TWO("role = responder\n", "role = responder\n")), expected);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_needs),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_not_served),
		cmocka_unit_test(test_cgi),
		cmocka_unit_test(test_sum_of_rates),
		cmocka_unit_test(test_overlap),
	};

	return cmocka_run_group_tests_name(
	    "config_roles", tests, enter_directory, leave_directory);
}
