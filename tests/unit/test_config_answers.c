/* Backends of type = answer, and what limits may be with them. */
#include "config_text.h"

#define ANSWER "[backend a]\ntype = answer\n"
#define OF_NONE(line, key) \
	"t.ini:" line ": [backend a] " key ": needs an application\n"

static void
test_backends(void **state)
{
	static const struct report_row table[] = {
		{ ANSWER, "" },
		{ ANSWER "denial = 403\nmethod = GET\nhost = a\n" BACKEND, "" },
		{ ANSWER "denial = 404\n",
		    "t.ini:3: [backend a] denial: `404` is none of 429, "
		    "403\n" },
		{ ANSWER "root = /\naddress = unix:/a\nidle_timeout = 1s\n"
			 "max_inflight = 2\nqueue = 1\nqueue_timeout = 1s\n"
			 "keep_alive = 1\nconnect_timeout = 1s\n"
			 "send_timeout = 1s\nfirst_byte_timeout = 1s\n"
			 "run_timeout = 1s\nenv = A\n"
			 "interpreter = .sh=/bin/sh\n",
		    "t.ini:3: [backend a] root: belongs to type = cgi\n"
		    "t.ini:4: [backend a] address: belongs to type = "
		    "fastcgi\n" OF_NONE("5", "idle_timeout") OF_NONE(
			"6", "max_inflight") OF_NONE("7", "queue") OF_NONE("8",
			"queue_timeout") "t.ini:9: [backend a] keep_alive: "
					 "belongs to type = "
					 "fastcgi\n"
					 "t.ini:10: [backend a] "
					 "connect_timeout: belongs to type = "
					 "fastcgi\n"
					 "t.ini:11: [backend a] send_timeout: "
					 "belongs to type = "
					 "fastcgi\n"
					 "t.ini:12: [backend a] "
					 "first_byte_timeout: belongs to type "
					 "= fastcgi\n"
					 "t.ini:13: [backend a] run_timeout: "
					 "belongs to type = cgi\n"
					 "t.ini:14: [backend a] env: belongs "
					 "to type = cgi\n"
					 "t.ini:15: [backend a] interpreter: "
					 "belongs to type = "
					 "cgi\n" },
	};

	(void)state;
	expect_report_rows(table, COUNT(table));
}

#define HAS_NONE ", and [backend a] (type = answer) has none\n"
#define L        STORE "[limit l]\nrate = 10/1m\n"
#define SLOTS    STORE "[limit l]\nrate = 5\nalgorithm = concurrency\n"

/* What goes by a response or a body, where there never is one. */
static void
test_limits(void **state)
{
	static const struct report_row table[] = {
		{ ANSWER SLOTS,
		    "t.ini:7: [limit l] algorithm: concurrency goes by the end "
		    "of a response" HAS_NONE },
		{ ANSWER L "count = 401\n",
		    "t.ini:7: [limit l] count: goes by the response of an "
		    "application" HAS_NONE },
		{ ANSWER L "cost = response:X-Cost\n",
		    "t.ini:7: [limit l] cost: goes by the response of an "
		    "application" HAS_NONE },
		{ ANSWER L "key = client + form:user | path\n",
		    "t.ini:7: [limit l] key: form: is a part of the "
		    "body" HAS_NONE },
		{ ANSWER L "count = all\npenalty = 1m\ncost = /x=2, *=1\n"
			   "key = client + path\n",
		    "" },
		{ ANSWER L "algorithm = leaky_bucket\ndelay_max = 1h\n", "" },
		/* There may be one. */
		{ ANSWER "path = /a\n" BACKEND L "count = 401\n", "" },
		{ ANSWER "path = /a\n" BACKEND SLOTS "backend = default\n",
		    "" },
		{ ANSWER "path = /a\n" BACKEND L "count = 401\nbackend = a\n",
		    "t.ini:10: [limit l] count: goes by the response of an "
		    "application" HAS_NONE },
		{ ANSWER "path = /a\n[backend default]\ntype = answer\n" L
			 "count = 401\nbackend = default\n",
		    "t.ini:10: [limit l] count: goes by the response of an "
		    "application, and [backend default] (type = answer) has "
		    "none\n" },
	};

	(void)state;
	expect_report_rows(table, COUNT(table));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_backends),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests_name(
	    "config_answers", tests, enter_directory, leave_directory);
}
