#include "config/config.h"

#include "config/roles.h"
#include "config_text.h"

/* One faulty option in a section that is good but for it. */
struct fault {
	const char *option;
	const char *expected;
};

/* before and after: what makes it whole around the faulty option. */
static void
expect_faults(const char *before, const char *label, const char *after,
    const struct fault *table, size_t n)
{
	char text[1024], expected[1024];
	unsigned line = 1;

	for (const char *p = before; *p != '\0'; p++)
		line += *p == '\n';
	for (size_t i = 0; i < n; i++) {
		int len = (int)(strchr(table[i].option, ' ') - table[i].option);

		snprintf(text, sizeof(text), "%s%s\n%s", before,
		    table[i].option, after);
		snprintf(expected, sizeof(expected), "t.ini:%u: %s %.*s: %s\n",
		    line, label, len, table[i].option, table[i].expected);
		expect_reports(str_of(text), expected);
	}
}

static void
test_gateway(void **state)
{
	static const char address[] =
	    " is none of unix:/PATH, ADDRESS:PORT, [IPV6]:PORT";
	static const char path[] =
	    "unix: takes an absolute path of at most 107 bytes";
	static const struct fault table[] = {
		{ "roles = filter",
		    "`filter` is none of responder, authorizer, cgi" },
		{ "roles = none",
		    "`none` is none of responder, authorizer, cgi" },
		{ "roles = Responder",
		    "`Responder` is none of responder, authorizer, cgi" },
		{ "roles = responder,",
		    "`` is none of responder, authorizer, cgi" },
		{ "roles = authorizer, authorizer",
		    "`authorizer` is named twice" },
		{ "threads = 0", "must be 1 to 1024" },
		{ "threads = 1025", "must be 1 to 1024" },
		{ "threads = -1", "`-1` is no whole number" },
		{ "threads = 1.5", "`1.5` is no whole number" },
		{ "threads = 0x10", "`0x10` is no whole number" },
		{ "threads = 4 # four", "`4 # four` is no whole number" },
		{ "threads = 18446744073709551617",
		    "`18446744073709551617` is no whole number" },
		{ "client_address = xff",
		    "`xff` is none of remote_addr, x-forwarded-for, "
		    "forwarded, header:NAME" },
		{ "client_address = header:",
		    "`header:`: the header's name is missing" },
		{ "client_address = header:X Real",
		    "`header:X Real`: a header's name has letters, digits, "
		    "`-` and `_` alone" },
		{ "trusted_proxies = 10.0.0.1/8",
		    "`10.0.0.1/8`: bits behind the prefix are set; the "
		    "network is 10.0.0.0/8" },
		{ "ipv4_prefix = 33", "must be 1 to 32" },
		{ "ipv6_prefix = 0", "must be 1 to 128" },
		{ "max_head = 1023", "must be 1k to 16m" },
		{ "max_head = 17m", "must be 1k to 16m" },
		{ "max_head = k", "`k` is no size (64k, 10m, 1g, or bytes)" },
		{ "max_head = 64K",
		    "`64K` is no size (64k, 10m, 1g, or bytes)" },
		{ "max_head = 64kb",
		    "`64kb` is no size (64k, 10m, 1g, or bytes)" },
		{ "max_body = 9999999999999t",
		    "`9999999999999t` is no size (64k, 10m, 1g, or bytes)" },
		{ "head_timeout = 9ms", "must be 10ms to 1h" },
		{ "head_timeout = 2h", "must be 10ms to 1h" },
		{ "socket_mode = 0690", "`0690` is no octal mode (0660)" },
		{ "socket_mode = rw", "`rw` is no octal mode (0660)" },
		{ "socket_mode = 01000", "must be 0000 to 0777" },
		{ "listen = 9000", "`9000`" },
		{ "listen = localhost:9000", "`localhost:9000`" },
		{ "listen = 127.0.0.1", "`127.0.0.1`" },
		{ "listen = 127.0.0.1:", "`127.0.0.1:`" },
		{ "listen = 127.0.0.1:0", "`127.0.0.1:0`" },
		{ "listen = 127.0.0.1:65536", "`127.0.0.1:65536`" },
		{ "listen = ::1:9000", "`::1:9000`" },
		{ "listen = [127.0.0.1]:9000", "`[127.0.0.1]:9000`" },
		{ "listen = :9000", "`:9000`" },
		{ "listen = unix:run", path },
		{ "listen = unix:", path },
		{ "listen = unix:/a,,unix:/b", "an item of the list is empty" },
		{ "listen = unix:/a,", "an item of the list is empty" },
		{ "user = no-such-user", "there is no user `no-such-user`" },
		{ "socket_user = no-such-user",
		    "there is no user `no-such-user`" },
		{ "group = no-such-group",
		    "there is no group `no-such-group`" },
		{ "peer_uids = 0, no-such-user",
		    "there is no user `no-such-user`" },
		{ "peer_uids = 4294967295", "there is no user `4294967295`" },
		{ "spool_directory = tmp", "must be an absolute path" },
	};
	struct fault whole[COUNT(table)];
	char texts[COUNT(table)][160];

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		bool is_address = strncmp(table[i].option, "listen", 6) == 0 &&
		    table[i].expected[0] == '`';

		snprintf(texts[i], sizeof(texts[i]), "%s%s", table[i].expected,
		    is_address ? address : "");
		whole[i] = (struct fault){ table[i].option, texts[i] };
	}
	expect_faults("[gateway]\n", "[gateway]", BACKEND, whole, COUNT(table));
}

static void
test_store(void **state)
{
	static const struct fault of_address[] = {
		{ "address = localhost",
		    "neither unix:/PATH nor redis://HOST[:PORT][/DATABASE]" },
		{ "address = memory:x",
		    "neither unix:/PATH nor redis://HOST[:PORT][/DATABASE]" },
		{ "address = rediss://h",
		    "rediss:// is not supported by this version" },
		{ "address = redis://u:s3cret@h",
		    "user and password do not belong here: use the options "
		    "username and password (or password_file)" },
	};
	static const struct fault table[] = {
		{ "timeout = 0", "must be 1ms to 10s" },
		{ "timeout = 11s", "must be 1ms to 10s" },
		{ "prefix = a{b}", "may hold neither blanks nor braces" },
		{ "prefix = a b", "may hold neither blanks nor braces" },
		{ "prefix = 12345678901234567890123456789012"
		  "345678901234567890123456789012345",
		    "has at most 64 bytes" },
		{ "connections = 65", "must be 1 to 64" },
	};

	(void)state;
	expect_faults(
	    "[store]\n", "[store]", BACKEND, of_address, COUNT(of_address));
	expect_faults("[store]\naddress = unix:/r\n", "[store]", BACKEND, table,
	    COUNT(table));
}

static void
test_limit(void **state)
{
	static const struct fault table[] = {
		{ "algorithm = gcra",
		    "`gcra` is none of sliding_window, fixed_window, "
		    "token_bucket, sliding_log, leaky_bucket, concurrency" },
		{ "scope = Shared", "`Shared` is none of shared, local" },
		{ "on_outage = close",
		    "`close` is none of allow, deny, local" },
		{ "missing_key = unset", "`unset` is none of skip, deny" },
		{ "client = 10.0.0.1/8",
		    "`10.0.0.1/8`: bits behind the prefix are set; the "
		    "network is 10.0.0.0/8" },
		{ "except_path = /a,,/b", "an item of the list is empty" },
		{ "except_path = ~", "no regex behind the `~`" },
		{ "path = @none",
		    "none: can not be read: No such file or directory" },
		{ "path = @empty", "empty: has no items" },
		{ "path = @commas", "`/a,b`: a glob can not hold a comma" },
		{ "client = @/", "/: is a directory" },
		{ "header = X-Plan",
		    "`X-Plan`: it is written NAME=GLOB or NAME=~REGEX" },
		{ "header = ~^X",
		    "`~^X`: it is written NAME=GLOB or "
		    "NAME=~REGEX" },
		{ "header = =x", "`=x`: the header's name is missing" },
		{ "header = X Plan=x",
		    "`X Plan=x`: a header's name has letters, digits, `-` "
		    "and `_` alone" },
		{ "header = A=x,, B=y", "an item of the list is empty" },
		{ "header = A=x, B=~y",
		    "`B=~y`: a regex stands alone, to the end of the line" },
		{ "header = A=~(x, y",
		    "the regex `(x, y` is wrong at its byte 6: missing "
		    "closing parenthesis" },
		{ "query = =x", "`=x`: the name is missing" },
		{ "query = a b=x", "`a b=x`: the name has blanks in it" },
		{ "query = @/none",
		    "/none: can not be read: No such file or "
		    "directory" },
		{ "query = @empty", "empty: has no items" },
		{ "key = cookies:a",
		    "`cookies:a`: unknown in a key; it is client, "
		    "client/24,48, header:NAME, cookie:NAME, query:NAME, "
		    "form:NAME, param:NAME, host, path, method or global" },
	};

	(void)state;
	write_file("empty", STR("\n# nothing\n"));
	write_file("commas", STR("/x\n/a,b\n"));
	expect_faults(STORE "[limit a]\nrate = unlimited\n", "[limit a]",
	    BACKEND, table, COUNT(table));
}

static void
test_backend(void **state)
{
	static const struct fault table[] = {
		{ "address = host:9000",
		    "`host:9000` is none of unix:/PATH, ADDRESS:PORT, "
		    "[IPV6]:PORT" },
	};

	(void)state;
	expect_faults("[backend default]\n", "[backend default]", "", table,
	    COUNT(table));
	expect_reports(
	    STR("[backend default]\ntype = proxy\naddress = unix:/a\n"),
	    "t.ini:2: [backend default] type: `proxy` is none of fastcgi, "
	    "cgi, answer\n");
	expect_reports(STR("[backend default]\n"
			   "type = cgi\n"
			   "root = /none\n"
			   "env = LANG, 1A\n"
			   "interpreter = .py=python3\n"),
	    "t.ini:3: [backend default] root: /none: No such file or "
	    "directory\n"
	    "t.ini:4: [backend default] env: `1A` is no name of a variable\n"
	    "t.ini:5: [backend default] interpreter: `.py=python3` is not of "
	    "the form .END=/PROGRAM\n");
	expect_reports(STR("[backend default]\n"
			   "type = cgi\n"
			   "root = var\n"
			   "env = A=B\n"
			   "interpreter = .py=/none/python\n"),
	    "t.ini:3: [backend default] root: must be an absolute path\n"
	    "t.ini:4: [backend default] env: `A=B` is no name of a "
	    "variable\n"
	    "t.ini:5: [backend default] interpreter: /none/python can not be "
	    "executed\n");
}

static void
test_log(void **state)
{
	static const struct fault table[] = {
		{ "level = notice",
		    "`notice` is none of error, warn, info, debug" },
		{ "format = text", "`text` is none of logfmt, json" },
		{ "access = on", "`on` is none of off, denied, all" },
		{ "target = file:log",
		    "`file:log` is none of stderr, syslog, file:/PATH" },
		{ "target = /var/log/sluice.log",
		    "`/var/log/sluice.log` is none of stderr, syslog, "
		    "file:/PATH" },
	};

	(void)state;
	expect_faults("[log]\n", "[log]", BACKEND, table, COUNT(table));
}

/* Each kind once, read into its field. */
static void
test_values(void **state)
{
	struct config *c;

	(void)state;
	write_file("paths", STR("/d\n /e* \n"));
	write_file("keys", STR("one\n"));
	c = load_good("[gateway]\n"
		      "listen = unix:/run/s.sock, 127.0.0.1:9000,[::1]:9001\n"
		      "socket_mode = 0600\nuser = root\npeer_uids = 33, root\n"
		      "roles = authorizer , responder\n"
		      "max_head = 9000\nmax_body = 2t\nspool_total = 0\n"
		      "shutdown_timeout = 0\nhead_timeout = 1500ms\n"
		      "[store]\naddress = redis://h:1/2\nprefix = p\n"
		      "[limit a]\nrate = 10/1s burst 20, 100/1h\n"
		      "algorithm = token_bucket\nhost = *.Example.org\n"
		      "path = /a, @paths, /f\nmethod = ~^(GET|PO,ST)$\n"
		      "client = 10.0.0.0/8, ::1\nmissing_key = skip\n"
		      "key = header:X-A+path\nscope = local\n"
		      "known_keys = @keys\n"
		      "message = Wait, please.\nbackend = default\n"
		      "role = responder\n"
		      "[limit b]\nrate = 1/1h\non_outage = deny\n"
		      "[backend default]\ntype = cgi\n"
		      "root = /usr/../etc\nenv = LANG,TZ\n"
		      "interpreter = .sh=/bin/sh\nqueue = 0\n"
		      "[log]\nlevel = debug\nformat = json\naccess = off\n"
		      "target = file:/tmp/l\n");
	assert_int_equal(c->gateway.listen.n, 3);
	assert_int_equal(c->gateway.listen.at[0].kind, CONFIG_UNIX);
	assert_string_equal(c->gateway.listen.at[0].host, "/run/s.sock");
	assert_string_equal(c->gateway.listen.at[0].text, "unix:/run/s.sock");
	assert_int_equal(c->gateway.listen.at[1].kind, CONFIG_TCP);
	assert_string_equal(c->gateway.listen.at[1].host, "127.0.0.1");
	assert_int_equal(c->gateway.listen.at[1].port, 9000);
	assert_string_equal(c->gateway.listen.at[2].host, "::1");
	assert_string_equal(c->gateway.listen.at[2].text, "[::1]:9001");
	assert_int_equal(c->gateway.socket_mode, 0600);
	assert_string_equal(c->gateway.user, "root");
	assert_int_equal(c->gateway.peer_uids.n, 2);
	assert_string_equal(c->gateway.peer_uids.at[1], "root");
	assert_true(roles_has(&c->gateway, CONFIG_ROLE_RESPONDER));
	assert_true(roles_has(&c->gateway, CONFIG_ROLE_AUTHORIZER));
	assert_int_equal(c->gateway.max_head_bytes, 9000);
	assert_int_equal(c->gateway.max_body_bytes, INT64_C(2) << 40);
	assert_int_equal(c->gateway.spool_total_bytes, 0);
	assert_int_equal(c->gateway.shutdown_timeout_us, 0);
	assert_int_equal(c->gateway.head_timeout_us, 1500000);
	assert_int_equal(c->store.kind, CONFIG_STORE_REDIS);
	assert_string_equal(c->store.address, "redis://h:1/2");
	assert_int_equal(c->n_limits, 2);
	assert_int_equal(c->limit[0].rates.n, 2);
	assert_int_equal(c->limit[0].rates.rate[0].burst, 20);
	assert_int_equal(c->limit[0].algorithm, ALGORITHM_TOKEN_BUCKET);
	assert_true(match_test(c->limit[0].match.host, STR("a.EXAMPLE.org")));
	assert_true(match_test(c->limit[0].match.path, STR("/a")));
	assert_true(match_test(c->limit[0].match.path, STR("/d")));
	assert_true(match_test(c->limit[0].match.path, STR("/e/f")));
	assert_true(match_test(c->limit[0].match.path, STR("/f")));
	assert_false(match_test(c->limit[0].match.path, STR("/g")));
	assert_true(match_test(c->limit[0].match.method, STR("PO,ST")));
	assert_int_equal(c->limit[0].client.n, 2);
	assert_int_equal(c->limit[0].missing_key, CONFIG_MISSING_SKIP);
	assert_int_equal(c->limit[0].key.n, 2);
	assert_int_equal(c->limit[0].scope, CONFIG_SCOPE_LOCAL);
	assert_int_equal(c->limit[1].on_outage, CONFIG_OUTAGE_DENY);
	assert_string_equal(c->limit[0].message, "Wait, please.");
	assert_string_equal(c->limit[0].backend, "default");
	assert_int_equal(c->limit[0].role, CONFIG_ROLE_RESPONDER);
	assert_string_equal(c->limit[0].file, "t.ini");
	assert_int_equal(c->limit[0].line, 15);
	assert_int_equal(c->backend[0].type, CONFIG_BACKEND_CGI);
	assert_string_equal(c->backend[0].root, "/etc");
	assert_int_equal(c->backend[0].env.n, 2);
	assert_string_equal(c->backend[0].interpreter.at[0], ".sh=/bin/sh");
	assert_int_equal(c->backend[0].queue, 0);
	assert_int_equal(c->log.level, LOG_LEVEL_DEBUG);
	assert_int_equal(c->log.format, LOG_FORMAT_JSON);
	assert_int_equal(c->log.access, CONFIG_ACCESS_OFF);
	assert_string_equal(c->log.target, "file:/tmp/l");
	config_unref(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gateway),
		cmocka_unit_test(test_store),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_backend),
		cmocka_unit_test(test_log),
		cmocka_unit_test(test_values),
	};

	return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
