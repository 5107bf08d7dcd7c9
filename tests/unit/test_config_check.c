#include "config/config.h"

#include "config_text.h"
#include "domain/store.h"

_Static_assert(CONFIG_RATES_MAX == STORE_CHECKS_MAX,
    "one question holds what one request can come under");

static void
test_limits(void **state)
{
	static const struct report_row table[] = {
		{ BACKEND "[limit a]\nrate = 1/s\n[limit b]\nrate = 1/m\n",
		    "t.ini:3: [limit a] scope: a shared limit needs address "
		    "in [store]\n" },
		{ BACKEND "[limit a]\nrate = 1/s\nscope = local\n"
			  "[limit b]\nscope = shared\nrate = 1/h\n",
		    "t.ini:7: [limit b] scope: a shared limit needs address "
		    "in [store]\n" },
		{ BACKEND "[store]\naddress = tcp:1\n[limit a]\nrate = 1/s\n",
		    "t.ini:4: [store] address: neither unix:/PATH nor "
		    "redis://HOST[:PORT][/DATABASE]\n" },
		{ BACKEND STORE "[limit a]\nkey = client\n",
		    "t.ini:5: [limit a] rate: is required\n" },
		{ BACKEND STORE "[limit a]\nrate = 1/s\nkey = param:A\n",
		    "t.ini:5: [limit a] missing_key: is required (skip or "
		    "deny), since a request may have no such key\n" },
		{ BACKEND STORE
		    "[limit a]\nrate = 1/s\nkey = param:A | client\n",
		    "" },
		{ BACKEND STORE "[limit a]\nrate = 1/s\nalign = spread\n",
		    "t.ini:7: [limit a] align: belongs to algorithm = "
		    "fixed_window\n" },
		{ BACKEND STORE "[limit a]\nrate = 1/s\nalign = first\n"
				"algorithm = fixed_window\n",
		    "" },
		{ BACKEND STORE "[limit a]\nrate = 1/s burst 2\n",
		    "t.ini:6: [limit a] rate: burst belongs to algorithm = "
		    "token_bucket or leaky_bucket\n" },
		{ BACKEND STORE "[limit a]\nrate = 1/s\nbackend = php\n",
		    "t.ini:7: [limit a] backend: there is no [backend "
		    "php]\n" },
		{ BACKEND STORE "[limit a]\nrate = deny\n"
				"[limit b]\nrate = unlimited\n",
		    "" },
	};

	(void)state;
	expect_report_rows(table, COUNT(table));
}

/* N*W in milliseconds and B*P in microseconds stay below 2^53. */
static void
test_exactness(void **state)
{
	static const struct report_row table[] = {
		/* 2^53 - 1 = 6361 * 69431 * 20394401 */
		{ BACKEND STORE "[limit a]\nrate = 441650591/20394401ms\n",
		    "" },
		{ BACKEND STORE "[limit a]\nrate = 441650592/20394401ms\n",
		    "t.ini:6: [limit a] rate: count times period is too large "
		    "to be counted exactly (2^53 and above)\n" },
		{ BACKEND STORE "[limit a]\nrate = 441650592/20394401ms\n"
				"algorithm = fixed_window\n",
		    "" },
		{ BACKEND STORE "[limit a]\nrate = 1/1s burst 9007199254\n"
				"algorithm = token_bucket\n",
		    "" },
		{ BACKEND STORE "[limit a]\nrate = 1/1s burst 9007199255\n"
				"algorithm = token_bucket\n",
		    "t.ini:6: [limit a] rate: burst times period is too large "
		    "to be counted exactly (2^53 and above)\n" },
		{ BACKEND STORE "[limit a]\nrate = 10/1s burst 90071992547\n"
				"algorithm = token_bucket\n",
		    "" },
	};

	(void)state;
	expect_report_rows(table, COUNT(table));
}

static void
test_backends(void **state)
{
	static const struct report_row table[] = {
		{ "[backend a]\naddress = unix:/a\n", "" },
		{ "[backend a]\naddress = unix:/a\n" BACKEND,
		    "t.ini:1: [backend a] takes every request, and hides the "
		    "backends after it: give it host, path or method, or name "
		    "it default\n" },
		{ "[backend a]\naddress = unix:/a\nmethod = GET\n" BACKEND,
		    "" },
		{ "[backend a]\npath = /a\n",
		    "t.ini:1: [backend a] address: is required with type = "
		    "fastcgi\n" },
		{ "[backend a]\naddress = unix:/a\nroot = /\nenv = A\n"
		  "run_timeout = 1s\ninterpreter = .sh=/bin/sh\n",
		    "t.ini:3: [backend a] root: belongs to type = cgi\n"
		    "t.ini:4: [backend a] env: belongs to type = cgi\n"
		    "t.ini:5: [backend a] run_timeout: belongs to type = cgi\n"
		    "t.ini:6: [backend a] interpreter: belongs to type = "
		    "cgi\n" },
		{ "[backend a]\ntype = cgi\nroot = /etc\naddress = unix:/a\n"
		  "connect_timeout = 1s\nsend_timeout = 1s\n"
		  "first_byte_timeout = 1s\nidle_timeout = 1s\n",
		    "t.ini:4: [backend a] address: belongs to type = fastcgi\n"
		    "t.ini:5: [backend a] connect_timeout: belongs to type = "
		    "fastcgi\n"
		    "t.ini:6: [backend a] send_timeout: belongs to type = "
		    "fastcgi\n"
		    "t.ini:7: [backend a] first_byte_timeout: belongs to type "
		    "= fastcgi\n" },
		{ "[backend a]\ntype = cgi\n",
		    "t.ini:1: [backend a] root: is required with type = "
		    "cgi\n" },
		{ "[backend a]\ntype = cgi\nroot = /etc/passwd\n",
		    "t.ini:3: [backend a] root: /etc/passwd is not a "
		    "directory\n" },
		{ "[backend a]\ntype = cgi\nroot = /etc\ndenial = 403\n",
		    "t.ini:4: [backend a] denial: belongs to type = answer\n" },
	};

	(void)state;
	expect_report_rows(table, COUNT(table));
}

static void
test_directories(void **state)
{
	(void)state;
	expect_reports(STR("[gateway]\nspool_directory = /none\n" BACKEND),
	    "t.ini:2: [gateway] spool_directory: /none: No such file or "
	    "directory\n");
	expect_reports(
	    STR("[gateway]\nspool_directory = /etc/passwd\n" BACKEND),
	    "t.ini:2: [gateway] spool_directory: /etc/passwd is not a "
	    "directory\n");
	if (geteuid() != 0)
		expect_reports(
		    STR("[gateway]\nspool_directory = /etc\n" BACKEND),
		    "t.ini:2: [gateway] spool_directory: /etc can not be "
		    "written to\n");
}

#define INVENTED                                                           \
	"t.ini:8: [limit a] key: warning: a client can invent values for " \
	"it, each of which begins a count of its own: say in known_keys "  \
	"which count, or let a limit by client apply too\n"
#define KEYS BACKEND STORE "[limit a]\nrate = 1/s\nmissing_key = deny\n"

static void
test_known_keys(void **state)
{
	static const char *const invented[] = { "header:A", "cookie:a",
		"query:a", "form:a", "param:HTTP_A", "header:A+path",
		"global+header:A", "header:A | client", "client | cookie:a",
		"param:A | header:B" };
	static const char *const good[] = { "client", "param:A",
		"client+header:A", "client/24,48 + query:a + path",
		"param:REMOTE_USER | client + form:a" };
	static const struct report_row table[] = {
		{ KEYS "key = header:A\nknown_keys = @keys\n", "" },
		{ KEYS "key = param:A\nknown_keys = @keys , @keys\n", "" },
		{ KEYS "key = header:A\nknown_keys = @none\n",
		    "t.ini:9: [limit a] known_keys: none: can not be read: "
		    "No such file or directory\n" },
		{ KEYS "key = header:A\nknown_keys = @empty\n",
		    "t.ini:9: [limit a] known_keys: empty: has no items\n" },
		{ KEYS "key = header:A\nknown_keys = @keys, @hashes\n",
		    "t.ini:9: [limit a] known_keys: hashes:4: hash: without "
		    "the 32 lower-case hex digits that `sluice hash` "
		    "prints\n" },
		{ KEYS "key = header:A\nknown_keys = secret\n",
		    "t.ini:9: [limit a] known_keys: is written @PATH: a file "
		    "of values, or of their hashes, one a line\n" },
		{ KEYS "key = header:A\nknown_keys = @keys, secret\n",
		    "t.ini:9: [limit a] known_keys: is written @PATH: a file "
		    "of values, or of their hashes, one a line\n" },
		{ KEYS "key = client\nknown_keys = @keys\n",
		    "t.ini:9: [limit a] known_keys: the key has no header, "
		    "cookie, query, form or param whose values these could "
		    "be\n" },
		/* Others that stop a client, or not. */
		{ KEYS "key = header:A\n[limit b]\nrate = 9/s\n", "" },
		{ KEYS "key = header:A\n[limit b]\nrate = 9/s\n"
		       "key = client/24,48+method\n",
		    "" },
		{ KEYS "key = header:A\n[limit b]\nrate = 9/s\nkey = global\n",
		    "" },
		{ KEYS "key = header:A\npath = /a\n"
		       "[limit b]\nrate = 9/s\npath = /a\n",
		    "" },
		{ KEYS "key = header:A\n"
		       "[limit b]\nrate = 9/s\npath = /a\n",
		    INVENTED },
		{ KEYS "key = header:A\n"
		       "[limit b]\nrate = 9/s\nmode = observe\n",
		    INVENTED },
		{ KEYS "key = header:A\n"
		       "[limit b]\nrate = unlimited\n",
		    INVENTED },
		{ KEYS "key = header:A\n"
		       "[limit b]\nrate = 9/s\ncount = 401\n",
		    INVENTED },
		{ KEYS "key = header:A\n"
		       "[limit b]\nrate = 9/s\nkey = client+path\n",
		    INVENTED },
		/* It counts nobody. */
		{ BACKEND STORE "[limit a]\nrate = deny\nkey = header:A\n"
				"missing_key = skip\n",
		    "" },
	};

	(void)state;
	write_file("keys", STR("one\ntwo\n"));
	write_file("hashes",
	    STR("# ours\n\nhash:0123456789abcdef0123456789abcdef\n"
		"hash:0123456789abcdef\n"));
	write_file("empty", STR("# none\n"));
	expect_report_rows(table, COUNT(table));
	for (size_t i = 0; i < COUNT(invented) + COUNT(good); i++) {
		bool warned = i < COUNT(invented);
		char text[256];

		snprintf(text, sizeof(text), KEYS "key = %s\n",
		    warned ? invented[i] : good[i - COUNT(invented)]);
		expect_reports(str_of(text), warned ? INVENTED : "");
	}
}

static void
test_proxies(void **state)
{
	static const char *const forms[] = { "x-forwarded-for", "forwarded",
		"header:X-Real-IP" };

	(void)state;
	for (size_t i = 0; i < COUNT(forms); i++) {
		char text[256];

		snprintf(text, sizeof(text),
		    "[gateway]\nclient_address = %s\n" BACKEND, forms[i]);
		expect_reports(str_of(text),
		    "t.ini:2: [gateway] client_address: needs "
		    "trusted_proxies: without them every client could say "
		    "who it is\n");
		snprintf(text, sizeof(text),
		    "[gateway]\nclient_address = %s\n"
		    "trusted_proxies = ::1, 10.0.0.0/8\n" BACKEND,
		    forms[i]);
		expect_reports(str_of(text), "");
	}
	expect_reports(
	    STR("[gateway]\nclient_address = remote_addr\n" BACKEND), "");
	expect_reports(
	    STR("[gateway]\ntrusted_proxies = ::1, 0.0.0.0/0\n" BACKEND),
	    "t.ini:2: [gateway] trusted_proxies: warning: trusts every "
	    "address: a client that is connected directly can say who it "
	    "is\n");
}

static void
test_default_comes_last(void **state)
{
	struct config *c =
	    load_good(BACKEND "[backend a]\naddress = unix:/a\npath = /a\n"
			      "[backend b]\naddress = unix:/b\npath = /b\n");

	(void)state;
	assert_int_equal(c->n_backends, 3);
	assert_string_equal(c->backend[0].name, "a");
	assert_string_equal(c->backend[1].name, "b");
	assert_string_equal(c->backend[2].name, "default");
	config_unref(c);
}

static void
test_max_inflight(void **state)
{
	static const struct {
		unsigned threads;
		unsigned max_inflight;
	} table[] = { { 1, 1 }, { 2, 1 }, { 3, 1 }, { 4, 2 }, { 5, 3 },
		{ 7, 5 }, { 8, 6 }, { 64, 48 }, { 1024, 768 } };
	char text[256];
	struct buf reports;
	struct config *c;

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		snprintf(text, sizeof(text), "[gateway]\nthreads = %u\n%s",
		    table[i].threads, BACKEND);
		write_file("t.ini", str_of(text));
		c = load_file(&reports);
		assert_non_null(c);
		assert_int_equal(
		    c->backend[0].max_inflight, table[i].max_inflight);
		config_unref(c);
		buf_release(&reports);
	}
	c = load_good(BACKEND "max_inflight = 9\n");
	assert_int_equal(c->backend[0].max_inflight, 9);
	config_unref(c);
}

static void
test_secrets(void **state)
{
	struct config *c;

	(void)state;
	umask(077);
	mkdir("inc", 0700);
	write_file("word", STR("p w\r\n"));
	write_file("inc/word", STR("other\n\n"));
	write_file("empty", STR("\n"));
	write_file("nul", STR("a\0b"));
	write_file("public", STR("s3cret"));
	chmod("public", 0644);
	c = load_good(
	    "[store]\naddress = unix:/r\npassword_file = word\n" BACKEND);
	assert_string_equal(c->store.password, "p w");
	assert_string_equal(c->store.password_file, "word");
	config_unref(c);
	write_file("inc/a.ini", STR("[store]\nkey_secret_file = word\n"));
	c = load_good("[gateway]\ninclude = inc/a.ini\n" BACKEND);
	assert_string_equal(c->store.key_secret, "other\n");
	config_unref(c);
	expect_reports(STR("[store]\npassword = a\npassword_file = word\n"
			   "key_secret_file = none\nkey_secret = s3cret\n"
			   "address = unix:/r\n" BACKEND),
	    "t.ini:3: [store] password_file: password is given too: one of "
	    "the two\n"
	    "t.ini:4: [store] key_secret_file: key_secret is given too: one "
	    "of the two\n");
	expect_reports(STR("[store]\npassword_file = empty\n"
			   "key_secret_file = nul\n"
			   "address = unix:/r\n" BACKEND),
	    "t.ini:2: [store] password_file: empty: is empty\n"
	    "t.ini:3: [store] key_secret_file: nul: holds a NUL byte\n");
	expect_reports(STR("[store]\npassword_file = none\n"
			   "key_secret_file = inc\n"
			   "address = unix:/r\n" BACKEND),
	    "t.ini:2: [store] password_file: none: can not be read: No such "
	    "file or directory\n"
	    "t.ini:3: [store] key_secret_file: inc: is a directory\n");
	expect_reports(STR("[store]\npassword_file = public\n"
			   "address = unix:/r\n" BACKEND),
	    "t.ini:2: [store] password_file: warning: public can be read by "
	    "everyone\n");
}

/* Where the secret is, is where the tags come from. */
static void
test_hasher(void **state)
{
	struct config *plain = load_good(BACKEND);
	struct config *keyed = load_good("[store]\nkey_secret = a\n" BACKEND);
	char tag_plain[KEY_TAG_MAX], tag_keyed[KEY_TAG_MAX];
	struct str value = STR("x");

	(void)state;
	assert_int_equal(
	    key_tag(plain->store.hasher, &value, 1, false, tag_plain), 32);
	assert_int_equal(
	    key_tag(keyed->store.hasher, &value, 1, false, tag_keyed), 32);
	assert_string_not_equal(tag_plain, tag_keyed);
	config_unref(plain);
	config_unref(keyed);
}

/* `n` limits of 8 rates, of the backend named, if any. */
static void
add_limits(struct buf *text, const char *name, size_t n, const char *backend)
{
	for (size_t i = 0; i < n; i++)
		buf_addf(text,
		    "[limit %s%zu]\nrate = 1/1s,2/2s,3/3s,4/4s,5/5s,6/6s,7/7s,"
		    "8/8s\nkey = host+%s\n%s%s\n",
		    name, i, i % 2 == 0 ? "path" : "method",
		    backend != NULL ? "backend = " : "",
		    backend != NULL ? backend : "");
}

static void
test_sum_of_rates(void **state)
{
	static const char backends[] =
	    BACKEND "[backend a]\naddress = unix:/a\npath = /a\n";
	struct buf text;

	(void)state;
	buf_init(&text);
	buf_addf(&text, "%s%s", backends, STORE);
	add_limits(&text, "any", 2, NULL);
	add_limits(&text, "a", 2, "a");
	add_limits(&text, "d", 2, "default");
	expect_reports(buf_str(&text), "");
	buf_addf(&text,
	    "[limit more]\nrate = 1/m\nbackend = a\n"
	    "[limit most]\nrate = 1/m\nbackend = a\n");
	expect_reports(buf_str(&text),
	    "t.ini:33: [limit more] rate: with this the limits for [backend "
	    "a] have 33 rates together; at most 32 can be (name the backend "
	    "of limits that are for one alone)\n");
	buf_release(&text);
}

/* B102: what can never refuse. */
static void
test_overlap(void **state)
{
#define TWO(a, b) \
	BACKEND STORE "[limit a]\nrate = " a "\n[limit b]\nrate = " b "\n"
#define B_NEVER(a, b)                                                  \
	"t.ini:8: [limit b] rate: warning: " b " can never refuse: " a \
	" of [limit a] always does first\n"
#define BUCKET "\nalgorithm = token_bucket"
	static const struct report_row table[] = {
		/* N2 >= N1 * (ceil(W2/W1) + 1) */
		{ TWO("10/s", "610/m"), B_NEVER("10/s", "610/m") },
		{ TWO("10/s", "609/m"), "" },
		{ TWO("10/s", "20/s"), B_NEVER("10/s", "20/s") },
		{ TWO("10/s", "30/1001ms"), B_NEVER("10/s", "30/1001ms") },
		{ TWO("10/s", "29/1001ms"), "" },
		{ TWO("10/s", "10/s"), "" },
		{ TWO("10/m", "20/s"), B_NEVER("10/m", "20/s") },
		{ TWO("10/s" BUCKET, "70/m"), "" },
		/* a bucket: N2 >= B1 + N1 * ceil(W2/W1) */
		{ BACKEND STORE "[limit a]\nrate = 10/s burst 5\n"
				"algorithm = token_bucket\n"
				"[limit b]\nrate = 605/m\n",
		    "t.ini:9: [limit b] rate: warning: 605/m can never refuse: "
		    "10/s burst 5 of [limit a] always does first\n" },
		{ BACKEND STORE "[limit a]\nrate = 10/s burst 5\n"
				"algorithm = token_bucket\n"
				"[limit b]\nrate = 604/m\n",
		    "" },
		/* a bucket that is never emptied */
		{ TWO("10/s", "10/s burst 20" BUCKET),
		    B_NEVER("10/s", "10/s burst 20") },
		{ TWO("10/s", "10/s burst 19" BUCKET), "" },
		{ TWO("10/s", "9/s burst 100" BUCKET), "" },
		/* two alike: neither is idle */
		{ TWO("10/s" BUCKET, "10/s" BUCKET), "" },
		/* within one limit */
		{ BACKEND STORE "[limit a]\nrate = 10/1s, 100000/1h\n",
		    "t.ini:6: [limit a] rate: warning: 100000/1h can never "
		    "refuse: 10/1s of [limit a] always does first\n" },
		{ BACKEND STORE "[limit a]\nrate = 10/1s, 1000/1h\n", "" },
		/* an hour that lets through less than a minute */
		{ BACKEND STORE "[limit a]\nrate = 500/1m, 100/1h\n",
		    "t.ini:6: [limit a] rate: warning: 500/1m can never "
		    "refuse: 100/1h of [limit a] always does first\n" },
		{ TWO("100/1h", "500/1m"), B_NEVER("100/1h", "500/1m") },
		{ TWO("100/1h", "50/1m"), "" },
		/* only over the same key, requests, scope */
		{ TWO("10/s\nkey = host", "99/s"), "" },
		{ TWO("10/s\nscope = local", "99/s"), "" },
		{ TWO("10/s\npath = /a", "99/s"), "" },
		{ TWO("10/s\npath = /a", "99/s\npath = /b"), "" },
		{ TWO("10/s\nexcept_path = /a", "99/s"), "" },
		{ BACKEND STORE "[limit a]\nrate = 10/s\n"
				"[limit b]\nrate = 99/s\npath = /a\n",
		    "t.ini:8: [limit b] rate: warning: 99/s can never refuse: "
		    "10/s of [limit a] always does first\n" },
		{ BACKEND STORE "[limit a]\nrate = 10/s\npath = /a\n"
				"[limit b]\nrate = 99/s\npath = /a\n",
		    "t.ini:9: [limit b] rate: warning: 99/s can never refuse: "
		    "10/s of [limit a] always does first\n" },
		/* the later one may be the one that refuses */
		{ BACKEND STORE "[limit b]\nrate = 99/s\n"
				"[limit a]\nrate = 10/s\n",
		    "t.ini:6: [limit b] rate: warning: 99/s can never refuse: "
		    "10/s of [limit a] always does first\n" },
		{ TWO("unlimited", "99/s"), "" },
	};

	(void)state;
	expect_report_rows(table, COUNT(table));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_keys),
		cmocka_unit_test(test_proxies),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_exactness),
		cmocka_unit_test(test_backends),
		cmocka_unit_test(test_directories),
		cmocka_unit_test(test_default_comes_last),
		cmocka_unit_test(test_max_inflight),
		cmocka_unit_test(test_secrets),
		cmocka_unit_test(test_hasher),
		cmocka_unit_test(test_sum_of_rates),
		cmocka_unit_test(test_overlap),
	};

	return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
