/* What an option may say and yet does nothing, and what is not taken for it. */
#include "config_text.h"

#define OF_REDIS(line, key)        \
	"t.ini:" line ": [store] " \
	"" key ": belongs to a Redis address, not to memory:\n"

#define OF_NONE(line, key) \
	"t.ini:" line ": [store] " key ": does nothing without address\n"

static void
test_store(void **state)
{
	static const struct report_row table[] = {
		{ BACKEND STORE "username = a\npassword = b\n"
				"timeout = 1s\nconnect_timeout = 1s\n"
				"connections = 2\nbreaker_failures = 1\n"
				"breaker_cooldown = 1s\nalert_command = a\n",
		    OF_REDIS("5", "username") OF_REDIS("6", "password")
			OF_REDIS("7", "timeout") OF_REDIS(
			    "8", "connect_timeout") OF_REDIS("9", "connections")
			    OF_REDIS("10", "breaker_failures")
				OF_REDIS("11", "breaker_cooldown")
				    OF_REDIS("12", "alert_command") },
		{ BACKEND "[store]\ntimeout = 1s\nprefix = p\nmax_keys = 9\n"
			  "key_secret = a\ndeny_cache = 0\n"
			  "[limit a]\nrate = 1/s\nscope = local\n",
		    OF_NONE("4", "timeout") OF_NONE("8", "deny_cache") },
		/* A wrong one is said by itself. */
		{ BACKEND "[store]\ntimeout = 1s\naddress = tcp:1\n",
		    "t.ini:5: [store] address: neither unix:/PATH nor "
		    "redis://HOST[:PORT][/DATABASE]\n" },
		{ BACKEND STORE "password_file = secret\n",
		    OF_REDIS("5", "password_file") },
		{ BACKEND STORE "deny_cache = 9\ndeny_cache_ttl = 1s\n",
		    OF_REDIS("5", "deny_cache")
			OF_REDIS("6", "deny_cache_ttl") },
		{ BACKEND STORE "prefix = p\nmax_keys = 9\nkey_secret = a\n",
		    "" },
		{ BACKEND STORE "key_secret_file = secret\n", "" },
		{ BACKEND "[store]\naddress = unix:/r\nusername = a\n"
			  "password_file = secret\ntimeout = 1s\n"
			  "connect_timeout = 1s\nconnections = 2\n"
			  "breaker_failures = 1\nbreaker_cooldown = 1s\n"
			  "alert_command = a\nmax_keys = 9\n"
			  "deny_cache = 1\ndeny_cache_ttl = 1ms\n",
		    "" },
		{ BACKEND "[store]\naddress = unix:/r\ndeny_cache = 0\n", "" },
		{ BACKEND "[store]\naddress = unix:/r\ndeny_cache = 0\n"
			  "deny_cache_ttl = 1ms\n",
		    "t.ini:6: [store] deny_cache_ttl: does nothing with "
		    "deny_cache = 0\n" },
		/* 0 is what a wrong one leaves. */
		{ BACKEND "[store]\naddress = unix:/r\ndeny_cache = x\n"
			  "deny_cache_ttl = 1ms\n",
		    "t.ini:5: [store] deny_cache: `x` is no whole number\n" },
	};

	(void)state;
	write_file("secret", STR("a"));
	chmod("secret", 0600);
	expect_report_rows(table, COUNT(table));
}

/* An option of a limit, on line 6, and what is said of it. */
static void
expect_of_limit(const char *option, const char *item, const char *why)
{
	struct buf text, expected;

	buf_init(&text);
	buf_init(&expected);
	buf_addf(&text, STORE "[limit a]\nrate = 1/s\n\n%s\n" BACKEND, option);
	if (item != NULL)
		buf_addf(&expected,
		    "t.ini:6: [limit a] %.*s: `%s` can match nothing: %s\n",
		    (int)strcspn(option, " "), option, item, why);
	buf_add_char(&expected, '\0');
	expect_reports(buf_str(&text), expected.p);
	buf_release(&text);
	buf_release(&expected);
}

static void
test_matches(void **state)
{
	static const char path[] = "a path begins with /";
	static const char host[] = "hosts are compared without their port";
	static const char method[] = "methods are upper case";
	static const struct {
		const char *option;
		const char *item;
		const char *why;
	} table[] = {
		{ "path = login", "login", path },
		{ "path = /a, b , /c", "b", path },
		{ "path = /a, ~^/b", "~^/b", path },
		{ "path = @paths, x/*", "x/*", path },
		{ "except_path = static/*", "static/*", path },
		{ "path = /", NULL, NULL },
		{ "path = /x*, *", NULL, NULL },
		{ "path = *.php", NULL, NULL },
		{ "path = ~login", NULL, NULL },
		{ "path = @paths", NULL, NULL },
		{ "path = /a, @paths", NULL, NULL },
		{ "except_path = *.png", NULL, NULL },

		{ "host = example.org:8080", "example.org:8080", host },
		{ "host = a, *:80", "*:80", host },
		{ "host = example.org:*", "example.org:*", host },
		{ "host = *.example.org:*", "*.example.org:*", host },
		{ "host = [::1]:80", "[::1]:80", host },
		{ "host = [::1]:*", "[::1]:*", host },
		{ "host = ::1", "::1", host },
		{ "host = *", NULL, NULL },
		{ "host = *.Example.org, localhost", NULL, NULL },
		{ "host = [::1], 127.0.0.1", NULL, NULL },
		{ "host = [2001:db8:*", NULL, NULL },
		{ "host = [2001:db8:*]", NULL, NULL },
		{ "host = *::1]", NULL, NULL },
		{ "host = *:*", NULL, NULL },
		{ "host = [::1]*", NULL, NULL },
		{ "host = ~:80$", NULL, NULL },
		{ "host = @hosts", NULL, NULL },

		{ "method = post", "post", method },
		{ "method = GET, Post", "Post", method },
		{ "except_method = options", "options", method },
		{ "method = GET, POST, *", NULL, NULL },
		{ "method = M-SEARCH, P*", NULL, NULL },
		{ "method = ~(?i)get", NULL, NULL },
		{ "method = @methods", NULL, NULL },
	};

	(void)state;
	write_file("paths", STR("x\n"));
	write_file("hosts", STR("h:1\n"));
	write_file("methods", STR("get\n"));
	for (size_t i = 0; i < COUNT(table); i++)
		expect_of_limit(table[i].option, table[i].item, table[i].why);
}

static void
test_matches_of_backends(void **state)
{
	static const struct report_row table[] = {
		{ BACKEND "[backend a]\naddress = unix:/a\nhost = a:1\n"
			  "path = a\nmethod = get\n",
		    "t.ini:5: [backend a] host: `a:1` can match nothing: "
		    "hosts are compared without their port\n"
		    "t.ini:6: [backend a] path: `a` can match nothing: "
		    "a path begins with /\n"
		    "t.ini:7: [backend a] method: `get` can match nothing: "
		    "methods are upper case\n" },
		{ BACKEND "[backend a]\naddress = unix:/a\nhost = a\n"
			  "path = /a\nmethod = GET\n",
		    "" },
	};

	(void)state;
	expect_report_rows(table, COUNT(table));
}

#define LIMIT(options) BACKEND STORE "[limit a]\nrate = 1/s\n" options "\n"
#define NEVER                                                              \
	"t.ini:8: [limit a] missing_key: does nothing: this key is never " \
	"missing\n"

#define NOT "is never missing"
#define TOO "is missing wherever it is"
#define TAKEN(alternative, part, before, why)                               \
	"t.ini:7: [limit a] key: alternative " alternative " of part " part \
	" is never taken: alternative " before " " why "\n"
#define INVENTED                                                           \
	"t.ini:7: [limit a] key: warning: a client can invent values for " \
	"it, each of which begins a count of its own: say in known_keys "  \
	"which count, or let a limit by client apply too\n"

static void
test_keys(void **state)
{
	static const struct report_row table[] = {
		{ LIMIT("key = client+client"),
		    "t.ini:7: [limit a] key: part 2 says the same as part "
		    "1\n" },
		{ LIMIT("key = client+header:A-B + path+header:a_b\n"
			"missing_key = deny"),
		    "t.ini:7: [limit a] key: part 4 says the same as part "
		    "2\n" },
		{ LIMIT("key = param:A|client + param:A|client"),
		    "t.ini:7: [limit a] key: part 2 says the same as part "
		    "1\n" },
		{ LIMIT("key = param:A|client + param:A|host"), "" },
		{ LIMIT("key = client+param:A|client"), "" },
		{ LIMIT("key = param:A+param:B\nmissing_key = skip"), "" },

		{ LIMIT("key = global\nmissing_key = deny"), NEVER },
		{ LIMIT("key = host+path+method\nmissing_key = skip"), NEVER },
		{ LIMIT("key = param:A|host\nmissing_key = skip"), NEVER },
		/* An empty REMOTE_ADDR is a missing client. */
		{ LIMIT("key = client\nmissing_key = deny"), "" },
		{ LIMIT("key = param:A|client\nmissing_key = deny"), "" },
		{ LIMIT("key = client|param:A\nmissing_key = deny"), "" },
		{ LIMIT("key = host+param:A\nmissing_key = deny"), "" },
		{ LIMIT("missing_key = skip"), "" },

		{ LIMIT("key = path|client"), TAKEN("2", "1", "1", NOT) },
		{ LIMIT("key = global|client"), TAKEN("2", "1", "1", NOT) },
		{ LIMIT("key = host|param:A\nmissing_key = skip"),
		    TAKEN("2", "1", "1", NOT) },
		{ LIMIT("key = client + param:A|method|param:B|path"),
		    TAKEN("3", "2", "2", NOT) TAKEN("4", "2", "2", NOT) },
		{ LIMIT("key = header:A|header:a|client"),
		    INVENTED TAKEN("2", "1", "1", TOO) },
		{ LIMIT("key = param:A|param:B|param:A|client"),
		    TAKEN("3", "1", "1", TOO) },
		{ LIMIT("key = header:A|param:HTTP_A|client"),
		    INVENTED TAKEN("2", "1", "1", TOO) },
		{ LIMIT("key = client|client/24,48"),
		    TAKEN("2", "1", "1", TOO) },
		{ LIMIT("key = param:A|param:a|client"), "" },
		/* Apache's other name for it, which the header looks at too. */
		{ LIMIT("key = param:HTTP_AUTHORIZATION|header:Authorization|"
			"client"),
		    INVENTED },
		{ LIMIT("key = client|global"), "" },
	};

	(void)state;
	expect_report_rows(table, COUNT(table));
}

#define THREADS(n) "[gateway]\nthreads = " n "\n"
#define TWO                                           \
	"[backend a]\naddress = unix:/a\npath = /a\n" \
	"[backend default]\naddress = unix:/b\n"
#define ALL(line, most, threads)                                            \
	"t.ini:" line ": [backend default] max_inflight: warning: this "    \
	"backend can take all the " most " workers that may wait for "      \
	"backends (threads = " threads "): while it hangs, the others are " \
	"not served\n"

static void
test_places(void **state)
{
	static const struct report_row table[] = {
		{ THREADS("8") TWO "max_inflight = 7\n", ALL("8", "7", "8") },
		{ THREADS("8") TWO "max_inflight = 6\n", "" },
		{ THREADS("8") TWO, "" },
		{ TWO "max_inflight = 56\n", ALL("6", "56", "64") },
		{ TWO "max_inflight = 55\n", "" },
		{ THREADS("3") TWO "max_inflight = 1024\n",
		    ALL("8", "2", "3") },
		{ THREADS("3") TWO, "" },
		/* There is no other one. */
		{ THREADS("8") BACKEND "max_inflight = 1024\n", "" },
		{ THREADS("8") BACKEND "max_inflight = 1024\n"
				       "[backend b]\ntype = answer\n"
				       "path = /b\n",
		    "" },
	};

	(void)state;
	expect_report_rows(table, COUNT(table));
}

#define FEW                                                            \
	"t.ini:2: [gateway] threads: warning: with fewer than 3, one " \
	"backend that hangs keeps "

static void
test_threads(void **state)
{
	static const struct report_row table[] = {
		{ THREADS("1") BACKEND, FEW "everybody waiting\n" },
		{ THREADS("1") TWO, FEW "everybody waiting\n" },
		{ THREADS("2") TWO, FEW "the others from being served\n" },
		{ THREADS("2") TWO "max_inflight = 1\n",
		    FEW "the others from being served\n" },
		{ THREADS("2") BACKEND, "" },
		{ THREADS("3") TWO, "" },
		/* Who only answers waits for nobody. */
		{ THREADS("1") "[backend a]\ntype = answer\n", "" },
		{ THREADS("2") BACKEND "[backend b]\ntype = answer\n"
				       "path = /b\n",
		    "" },
	};

	(void)state;
	expect_report_rows(table, COUNT(table));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_store),
		cmocka_unit_test(test_matches),
		cmocka_unit_test(test_matches_of_backends),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
