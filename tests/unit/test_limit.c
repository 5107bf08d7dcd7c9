/*
 * SPEC.md section 3, [limit], and section 4, "Keys": which limits a request
 * comes under, and what the store is asked for them.
 */
#include "domain/limit.h"

#include "config_text.h"
#include "params_text.h"
#include "wire.h"

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

struct outcome {
	enum limit_state state;
	size_t n;
	struct store_check check[STORE_CHECKS_MAX];
};

/* What the first limit of a configuration makes of a request. */
static struct outcome
prepare(const struct config *config, const char *params_text)
{
	struct params params = params_of(params_text, &arena);
	struct outcome o = { .n = 99 };
	struct subject subject;

	assert_true(subject_read(&subject, &params, config, &arena));
	o.state = limit_prepare(&config->limit[0], &config->store, &subject,
	    &arena, o.check, STORE_CHECKS_MAX, &o.n);
	if (o.state != LIMIT_CHECKED)
		assert_int_equal(o.n, 0);
	return o;
}

/* The same for options of a [limit a]. */
static struct outcome
prepare_with(const char *options, const char *params)
{
	struct buf text;
	struct config *config;
	struct outcome o;

	buf_init(&text);
	buf_addf(&text,
	    STORE "[limit a]\n%s\n" BACKEND
		  "[backend api]\naddress = 127.0.0.1:1\npath = /api/*\n",
	    options);
	buf_add_char(&text, '\0');
	config = load_good(text.p);
	o = prepare(config, params);
	buf_release(&text);
	config_unref(config);
	return o;
}

struct row {
	const char *options;
	const char *params;
	enum limit_state state;
};

#define R   "rate = 5/1m\n"
#define YES LIMIT_CHECKED
#define NO  LIMIT_SKIPPED
#define IP  "REMOTE_ADDR=192.0.2.1\n"

static const struct row table[] = {
	{ R, IP, YES },
	{ "rate = unlimited", IP, NO },
	{ "rate = deny", IP, LIMIT_CLOSED },
	{ "rate = deny\npath = /x", IP, NO },

	{ R "host = *.example.org", IP "HTTP_HOST=A.Example.ORG:80", YES },
	{ R "host = *.EXAMPLE.org", IP "HTTP_HOST=a.example.org", YES },
	{ R "host = *.example.org", IP "HTTP_HOST=example.org", NO },
	{ R "host = example.org", IP "HTTP_HOST=example.org.", YES },

	{ R "path = /login", IP "REQUEST_URI=/login?a", YES },
	{ R "path = /login", IP "REQUEST_URI=//login", YES },
	{ R "path = /login", IP "REQUEST_URI=/%6cogin", YES },
	{ R "path = /login", IP "REQUEST_URI=/x/../login", YES },
	{ R "path = /login", IP "REQUEST_URI=/Login", NO },
	{ R "path = /login", IP "REQUEST_URI=/login/", NO },
	/* Either form is enough to come under it. */
	{ R "path = /index.php/login",
	    IP "REQUEST_URI=/login\nSCRIPT_NAME=/index.php\nPATH_INFO=/login",
	    YES },
	{ R "path = /login",
	    IP "REQUEST_URI=/login\nSCRIPT_NAME=/index.php\nPATH_INFO=/login",
	    YES },
	{ R "path = /login", IP "REQUEST_URI=/x\nSCRIPT_NAME=/login", YES },
	/* X-K beside X_K: no application is known to take this one. */
	{ R "key = header:X-K\nmissing_key = skip",
	    IP "HTTP_X_K=one\nHTTP_X_K=two", LIMIT_KEY_TWICE },
	{ R "key = header:X-K\nmissing_key = skip",
	    IP "HTTP_X_K=\nHTTP_X_K=two", LIMIT_KEY_TWICE },
	{ R "key = client+header:X-K|host", IP "HTTP_X_K=one\nHTTP_X_K=two",
	    LIMIT_KEY_TWICE },
	{ R "key = header:X-K\nmissing_key = skip",
	    IP "HTTP_X_K=one\nHTTP_X_K=one", YES },
	{ R "key = host", IP "HTTP_X_K=one\nHTTP_X_K=two", YES },
	/* What an application behind /index.php routes by. */
	{ R "path = /login",
	    IP "REQUEST_URI=/index.php/login\n"
	       "SCRIPT_NAME=/index.php\nPATH_INFO=//login",
	    YES },
	{ R "path = /login",
	    IP "REQUEST_URI=/index.php/x\n"
	       "SCRIPT_NAME=/index.php\nPATH_INFO=/x",
	    NO },
	{ R "path = /login\nexcept_path = /login",
	    IP "REQUEST_URI=/index.php/login\n"
	       "SCRIPT_NAME=/index.php\nPATH_INFO=/login",
	    YES },
	{ R "path = /a, /b*, /c", IP "REQUEST_URI=/bx/y", YES },
	{ R "path = ~^/api/v[0-9]+/", IP "REQUEST_URI=/api/v12/x", YES },
	{ R "path = ~^/api/v[0-9]+/", IP "REQUEST_URI=/x/api/v12/x", NO },

	{ R "method = POST", IP "REQUEST_METHOD=POST", YES },
	{ R "method = POST", IP "REQUEST_METHOD=GET", NO },
	{ R "method = GET", IP "REQUEST_METHOD=HEAD", YES },
	{ R "method = HEAD", IP "REQUEST_METHOD=GET", NO },
	{ R "method = POST", IP "REQUEST_METHOD=HEAD", NO },
	{ R "method = GET", IP "REQUEST_METHOD=get", NO },

	{ R "client = 192.0.2.0/24", IP, YES },
	{ R "client = 192.0.2.0/24", "REMOTE_ADDR=::ffff:192.0.2.9", YES },
	{ R "client = 198.51.100.0/24, 192.0.2.1", IP, YES },
	{ R "client = 192.0.2.2", IP, NO },
	/* The prefix of the configuration makes keys, not matches. */
	{ R "client = 2001:db8::1", "REMOTE_ADDR=2001:db8::1", YES },
	{ R "client = 2001:db8::1", "REMOTE_ADDR=2001:db8::2", NO },
	{ R "client = 0.0.0.0/0", "REMOTE_ADDR=unix:", NO },
	{ R "client = 192.0.2.0/24\npath = /x", IP "REQUEST_URI=/y", NO },

	{ R "except_client = 192.0.2.0/24", IP, NO },
	{ R "except_client = 192.0.2.2", IP, YES },
	{ R "except_client = 0.0.0.0/0", "REMOTE_ADDR=unix:", YES },
	{ R "except_method = OPTIONS, POST", IP "REQUEST_METHOD=POST", NO },
	{ R "except_method = OPTIONS", IP "REQUEST_METHOD=POST", YES },
	/* A path is exempt only if both of its forms are. */
	{ R "except_path = /static/*",
	    IP "REQUEST_URI=/static/x\nSCRIPT_NAME=/static/x", NO },
	{ R "except_path = /static/*",
	    IP "REQUEST_URI=/static/x\nSCRIPT_NAME=/index.php", YES },
	{ R "except_path = /static/*",
	    IP "REQUEST_URI=/index.php\nSCRIPT_NAME=/static/x", YES },
	{ R "except_path = /static/*",
	    IP "REQUEST_URI=/static/../login\nSCRIPT_NAME=/static/x", YES },
	{ R "path = /static/*\nexcept_path = /static/big",
	    IP "REQUEST_URI=/static/big\nSCRIPT_NAME=/static/big", NO },

	{ R "backend = api", IP "REQUEST_URI=/api/x", YES },
	{ R "backend = api", IP "REQUEST_URI=/x", NO },
	{ R "backend = default", IP "REQUEST_URI=/x", YES },

	/* Keys that are missing: B65. */
	{ R "missing_key = skip", "", NO },
	{ R "missing_key = deny", "", LIMIT_KEY_MISSING },
	{ R "missing_key = deny", "REMOTE_ADDR=", LIMIT_KEY_MISSING },
	{ R "key = header:X-Key\nmissing_key = skip", IP, NO },
	{ R "key = header:X-Key\nmissing_key = deny", IP, LIMIT_KEY_MISSING },
	{ R "key = header:X-Key\nmissing_key = deny",
	    IP "HTTP_X_KEY=", LIMIT_KEY_MISSING },
	{ R "key = header:X-Key\nmissing_key = deny", IP "HTTP_X_KEY=1", YES },
	{ R "key = header:X-Key+path\nmissing_key = deny", IP,
	    LIMIT_KEY_MISSING },
	{ R "key = path+header:X-Key\nmissing_key = skip", IP, NO },
	{ R "key = header:X-Key|client\nmissing_key = deny", IP, YES },
	{ R "key = header:X-Key|header:Y\nmissing_key = deny", IP "HTTP_Y=1",
	    YES },
	{ R "key = host+method+path+global", "", YES },
	/* Whoever it does not concern is not asked for a key. */
	{ R "key = header:X-Key\nmissing_key = deny\npath = /x",
	    "REQUEST_URI=/y", NO },
	{ "rate = deny\nkey = header:X-Key\nmissing_key = skip", IP, NO },
	{ "rate = deny\nkey = header:X-Key\nmissing_key = deny", IP,
	    LIMIT_KEY_MISSING },
	{ "rate = unlimited\nkey = header:X-Key\nmissing_key = deny", IP, NO },
};

static void
test_applies(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct outcome o =
		    prepare_with(table[i].options, table[i].params);

		if (o.state != table[i].state)
			print_message("row %zu: %s\n", i, table[i].options);
		assert_int_equal(o.state, table[i].state);
	}
}

static void
test_names(void **state)
{
	static const struct {
		const char *options;
		const char *params;
		const char *name;
	} rows[] = {
		{ "rate = 5/1m", IP, "sluice:{192.0.2.1}:a:s60000" },
		{ "rate = 5/50ms", IP, "sluice:{192.0.2.1}:a:s50" },
		{ "rate = 5/1m\nalgorithm = fixed_window", IP,
		    "sluice:{192.0.2.1}:a:f60000" },
		{ "rate = 5/1m burst 9\nalgorithm = token_bucket", IP,
		    "sluice:{192.0.2.1}:a:t60000" },
		{ "rate = 9/1m\nkey = global", IP, "sluice:{global}:a:s60000" },
		/* N is in no name: it changes and the count stays. */
		{ "rate = 9/1m", IP, "sluice:{192.0.2.1}:a:s60000" },
		/* B62: one key for all of a /64. */
		{ "rate = 5/1m", "REMOTE_ADDR=2001:db8:1:2:3:4:5:6",
		    "sluice:{2001:db8:1:2::}:a:s60000" },
		{ "rate = 5/1m", "REMOTE_ADDR=2001:db8:1:2::",
		    "sluice:{2001:db8:1:2::}:a:s60000" },
		{ "rate = 5/1m", "REMOTE_ADDR=::ffff:192.0.2.1",
		    "sluice:{192.0.2.1}:a:s60000" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct outcome o =
		    prepare_with(rows[i].options, rows[i].params);

		assert_int_equal(o.state, LIMIT_CHECKED);
		assert_int_equal(o.n, 1);
		expect_str(o.check[0].key, str_of(rows[i].name));
	}
}

static struct str
name_of(const char *options, const char *params)
{
	struct outcome o = prepare_with(options, params);

	assert_int_equal(o.state, LIMIT_CHECKED);
	assert_int_equal(o.n, 1);
	return o.check[0].key;
}

/* B67, B68: no text of a client's, and of one length: 32 hex digits. */
static void
expect_hashed(struct str name)
{
	const struct str before = STR("sluice:{");
	const struct str behind = STR("}:a:s60000");

	assert_int_equal(name.len, before.len + 32 + behind.len);
	expect_str((struct str){ name.p, before.len }, before);
	for (size_t i = 0; i < 32; i++)
		assert_non_null(
		    strchr("0123456789abcdef", name.p[before.len + i]));
	expect_str(
	    (struct str){ name.p + before.len + 32, behind.len }, behind);
}

#define KEY(key)    R "missing_key = deny\nkey = " key
#define ALWAYS(key) R "key = " key

static void
test_tags(void **state)
{
	/* Each is somebody else's. */
	static const char *const rows[][2] = {
		{ KEY("header:A"), "HTTP_A=one" },
		{ KEY("header:A"), "HTTP_A=ONE" },
		{ KEY("header:A"), "HTTP_A=192.0.2.1" },
		{ KEY("header:A"), "HTTP_A=global" },
		{ KEY("header:A"), "HTTP_A=}:a{" },
		{ KEY("client"), "REMOTE_ADDR=unix:" },
		{ KEY("header:A+header:B"), "HTTP_A=a\nHTTP_B=bc" },
		{ KEY("header:A+header:B"), "HTTP_A=ab\nHTTP_B=c" },
		{ KEY("header:B+header:A"), "HTTP_A=a\nHTTP_B=ab" },
		{ KEY("client+path"), IP "REQUEST_URI=/a" },
		{ KEY("client+path"), IP "REQUEST_URI=/b" },
		{ ALWAYS("path"), "REQUEST_URI=/c" },
		{ ALWAYS("host"), "HTTP_HOST=h" },
		{ ALWAYS("host"), "HTTP_HOST=" },
		{ ALWAYS("method"), "REQUEST_METHOD=GET" },
		{ ALWAYS("host+method"), "HTTP_HOST=h\nREQUEST_METHOD=GET" },
		{ ALWAYS("global+host"), "HTTP_HOST=h" },
	};
	struct str names[COUNT(rows)];

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		names[i] = name_of(rows[i][0], rows[i][1]);
		expect_hashed(names[i]);
		for (size_t k = 0; k < i; k++)
			assert_false(str_eq(names[i], names[k]));
	}
}

static void
test_same_tags(void **state)
{
	/* Each is the same as the one beside it. */
	static const char *const rows[][4] = {
		{ ALWAYS("path"), "REQUEST_URI=/a?x", ALWAYS("path"),
		    "REQUEST_URI=//a#y" },
		{ ALWAYS("host"), "HTTP_HOST=H.org:1", ALWAYS("host"),
		    "HTTP_HOST=h.ORG" },
		{ KEY("client+host"), "REMOTE_ADDR=2001:db8::1", //
		    KEY("client+host"), "REMOTE_ADDR=2001:db8::ffff" },
		{ KEY("client+host"), "REMOTE_ADDR=192.0.2.1",
		    KEY("client+host"), "REMOTE_ADDR=::ffff:c000:201" },
		/* The first that is there, whatever stands behind. */
		{ KEY("header:A|header:B"), "HTTP_A=x\nHTTP_B=y",
		    KEY("header:A|header:B"), "HTTP_A=x" },
		{ KEY("header:A|header:B"), "HTTP_A=\nHTTP_B=y",
		    KEY("header:A|header:B"), "HTTP_B=y" },
		/* B72: Apache's name for it after a redirect. */
		{ KEY("header:Authorization"), "HTTP_AUTHORIZATION=x",
		    KEY("header:Authorization"),
		    "REDIRECT_HTTP_AUTHORIZATION=x" },
		{ KEY("header:Authorization"),
		    "REDIRECT_HTTP_AUTHORIZATION=y\nHTTP_AUTHORIZATION=x",
		    KEY("header:Authorization"), "HTTP_AUTHORIZATION=x" },
		{ KEY("header:Content-Type"), "CONTENT_TYPE=x",
		    KEY("header:content-type"), "CONTENT_TYPE=x" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct str a = name_of(rows[i][0], rows[i][1]);

		expect_str(a, name_of(rows[i][2], rows[i][3]));
	}
}

/* What a client writes into one alternative is not another's value. */
static void
test_alternatives_are_apart(void **state)
{
	static const char key[] = KEY("header:A|header:B|client");
	static const char *const said[] = {
		"HTTP_A=192.0.2.9\nREMOTE_ADDR=192.0.2.1",
		"HTTP_B=192.0.2.9\nREMOTE_ADDR=192.0.2.1",
		"REMOTE_ADDR=192.0.2.9",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(said); i++)
		for (size_t k = i + 1; k < COUNT(said); k++) {
			char first[512];
			struct str a = name_of(key, said[i]);

			assert_true(a.len < sizeof(first));
			memcpy(first, a.p, a.len);
			assert_false(str_eq((struct str){ first, a.len },
			    name_of(key, said[k])));
		}
}

/* The configuration's prefix, name, secret and address prefixes. */
static void
test_configured(void **state)
{
	static const char *const secrets[] = { "", "key_secret = s3cret\n",
		"key_secret = s3creu\n" };
	struct str names[COUNT(secrets)];
	struct config *config = load_good(
	    "[gateway]\nipv4_prefix = 24\nipv6_prefix = 48\n" STORE
	    "prefix = app-1\n[limit my_limit-2]\nrate = 5/1m\n" BACKEND);

	(void)state;
	expect_str(prepare(config, IP).check[0].key,
	    STR("app-1:{192.0.2.0}:my_limit-2:s60000"));
	expect_str(prepare(config, "REMOTE_ADDR=2001:db8:1:2::3").check[0].key,
	    STR("app-1:{2001:db8:1::}:my_limit-2:s60000"));
	config_unref(config);
	for (size_t i = 0; i < COUNT(secrets); i++) {
		struct buf text;

		buf_init(&text);
		buf_addf(&text, STORE "%s[limit a]\nrate = 5/1m\nkey = host\n",
		    secrets[i]);
		buf_addf(&text, BACKEND "%c", '\0');
		config = load_good(text.p);
		names[i] = prepare(config, "HTTP_HOST=h").check[0].key;
		expect_hashed(names[i]);
		for (size_t k = 0; k < i; k++)
			assert_false(str_eq(names[i], names[k]));
		config_unref(config);
		buf_release(&text);
	}
}

/* The longest name a configuration can make fits. */
static void
test_longest_name(void **state)
{
	struct config *config = load_good(
	    STORE "prefix = pppppppppppppppppppppppppppppppppppppppppppppppppp"
		  "pppppppppppppp\n"
		  "[limit nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn]\n"
		  "key = host\nrate = 5/366d\n" BACKEND);
	struct outcome o = prepare(config, "HTTP_HOST=h");

	(void)state;
	assert_int_equal(o.state, LIMIT_CHECKED);
	assert_int_equal(o.check[0].key.len, 64 + 2 + 32 + 2 + 32 + 2 + 11);
	config_unref(config);
}

static void
test_checks(void **state)
{
	struct outcome o = prepare_with(
	    "rate = 5/1s burst 7, 100/1h\nalgorithm = token_bucket", IP);
	const struct check *c = &o.check[0].check;

	(void)state;
	assert_int_equal(o.n, 2);
	assert_int_equal(c->algorithm, ALGORITHM_TOKEN_BUCKET);
	assert_int_equal(c->count, 5);
	assert_int_equal(c->period_us, 1000000);
	assert_int_equal(c->burst, 7);
	assert_int_equal(c->cost, 1);
	assert_int_equal(c->offset_us, 0);
	assert_false(c->observe);
	c = &o.check[1].check;
	assert_int_equal(c->count, 100);
	assert_int_equal(c->period_us, 3600000000);
	assert_int_equal(c->burst, 100);
	expect_str(o.check[0].key, STR("sluice:{192.0.2.1}:a:t1000"));
	expect_str(o.check[1].key, STR("sluice:{192.0.2.1}:a:t3600000"));
}

/* Each key's windows have an offset of their own, but where told not to. */
static void
test_offsets(void **state)
{
	static const char *const spread[] = { R,
		R "algorithm = fixed_window\n" };
	static const char *const none[] = {
		R "algorithm = fixed_window\nalign = epoch\n",
		R "algorithm = fixed_window\nalign = first\n",
		R "algorithm = token_bucket\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(spread); i++) {
		int64_t a =
		    prepare_with(spread[i], IP).check[0].check.offset_us;
		int64_t b = prepare_with(spread[i], "REMOTE_ADDR=192.0.2.2")
				.check[0]
				.check.offset_us;

		assert_in_range(a, 0, 59999999);
		assert_in_range(b, 0, 59999999);
		assert_int_not_equal(a, b);
		assert_int_equal(a % 1000, 0);
		assert_int_equal(
		    a, prepare_with(spread[i], IP).check[0].check.offset_us);
	}
	for (size_t i = 0; i < COUNT(none); i++) {
		struct check c = prepare_with(none[i], IP).check[0].check;

		assert_int_equal(c.offset_us, 0);
		assert_int_equal(c.align,
		    i == 0       ? ALIGN_EPOCH
			: i == 1 ? ALIGN_FIRST
				 : ALIGN_SPREAD);
	}
}

/* No room for all of its rates: none is written. */
static void
test_room(void **state)
{
	struct config *config =
	    load_good(STORE "[limit a]\nrate = 5/1s, 9/1m, 99/1h\n" BACKEND);
	struct params params = params_of(IP, &arena);
	struct store_check check[3];
	struct subject s;
	size_t n;

	(void)state;
	assert_true(subject_read(&s, &params, config, &arena));
	for (size_t room = 0; room <= 3; room++) {
		memset(check, 0x5a, sizeof(check));
		assert_int_equal(
		    limit_prepare(&config->limit[0], &config->store, &s, &arena,
			check, room, &n),
		    room < 3 ? LIMIT_FAILED : LIMIT_CHECKED);
		assert_int_equal(n, room < 3 ? 0 : 3);
		if (room < 3)
			assert_int_equal(check[0].key.len, 0x5a5a5a5a5a5a5a5a);
	}
	config_unref(config);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_applies),
		TEST(test_names),
		TEST(test_tags),
		TEST(test_same_tags),
		TEST(test_alternatives_are_apart),
		TEST(test_configured),
		TEST(test_longest_name),
		TEST(test_checks),
		TEST(test_offsets),
		TEST(test_room),
	};

	return cmocka_run_group_tests_name(
	    "limit", tests, enter_directory, leave_directory);
}
