/*
 * A key's own counts: a person who writes the key means the one that
 * requests have, and what is written is a count that can be met.
 */
#include "domain/own.h"

#include "config_text.h"
#include "domain/limit.h"
#include "domain/own_key.h"
#include "params_text.h"

#define REDIS "[store]\naddress = unix:/run/redis.sock\n"

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

static void
only_warnings(void *context, const char *text, bool warning)
{
	(void)context;
	if (!warning)
		fail_msg("%s", text);
}

static struct config *
load_limit(const char *store, const char *options)
{
	struct config *config;
	struct buf text;

	buf_init(&text);
	buf_addf(&text, "%s[limit a]\n%s\n" BACKEND, store, options);
	buf_add_char(&text, '\0');
	write_file("t.ini", str_of(text.p));
	config = config_load("t.ini", only_warnings, NULL);
	assert_non_null(config);
	buf_release(&text);
	return config;
}

/* What limit_prepare has the store look for. */
static struct str
name_in_request(const struct config *config, const char *params_text)
{
	struct params params = params_of(params_text, &arena);
	struct store_check check[STORE_CHECKS_MAX];
	struct subject subject;
	size_t n;

	assert_true(subject_read(
	    &subject, CONFIG_ROLE_RESPONDER, &params, config, &arena));
	assert_int_equal(limit_prepare(&config->limit[0], &config->store,
			     &subject, &arena, check, STORE_CHECKS_MAX, &n),
	    LIMIT_CHECKED);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(check[i].own_at, i);
		assert_ptr_equal(check[i].own_key.p, check[0].own_key.p);
	}
	return check[0].own_key;
}

/* Of a key as a person writes it; p NULL: err says why. */
static struct str
name_written(const struct config *config, const char *key, struct err *err)
{
	char tag[KEY_TAG_MAX];

	if (own_key_tag(config, &config->limit[0], str_of(key), &arena, tag,
		err) != OWN_KEY_IS)
		return STR_NONE;
	return own_name(&config->store, &config->limit[0], tag, &arena);
}

static const struct {
	const char *key; /* of the limit */
	const char *params;
	const char *written; /* by a person */
} same[] = {
	{ "client", "REMOTE_ADDR=192.0.2.1\n", "192.0.2.1" },
	{ "client", "REMOTE_ADDR=192.0.2.1\n", "::ffff:192.0.2.1" },
	{ "client", "REMOTE_ADDR=2001:db8:0:1:2::3\n", "2001:db8:0:1::" },
	{ "client/24,48", "REMOTE_ADDR=192.0.2.77\n", "192.0.2.1" },
	{ "client", "REMOTE_ADDR=unix:\n", "unix:" },
	{ "global", "REMOTE_ADDR=192.0.2.1\n", "global" },
	{ "header:X-Key\nmissing_key = skip", "HTTP_X_KEY=a+b=\n", "a+b=" },
	{ "header:X-Key\nmissing_key = skip", "HTTP_X_KEY=192.0.2.1\n",
	    "192.0.2.1" },
	{ "host", "HTTP_HOST=Example.ORG:80\n", "Example.org" },
	{ "client+path", "REMOTE_ADDR=192.0.2.1\nREQUEST_URI=/a\n",
	    "192.0.2.1+/a" },
	{ "header:X-Key | client\nmissing_key = skip",
	    "HTTP_X_KEY=k\nREMOTE_ADDR=192.0.2.1\n", "k" },
	{ "header:X-Key | client\nmissing_key = skip",
	    "REMOTE_ADDR=192.0.2.1\n", "192.0.2.1" },
	{ "header:X-Key | cookie:k\nmissing_key = skip", "HTTP_COOKIE=k=v\n",
	    "v" },
	{ "global+method", "REQUEST_METHOD=GET\n", "global+GET" },
	{ "client", "REMOTE_ADDR=192.0.2.1\n", "192.0.2.1/32" },
	{ "client", "REMOTE_ADDR=2001:db8:0:1:2::3\n", "2001:db8:0:1::/64" },
	{ "client/24,48", "REMOTE_ADDR=192.0.2.77\n", "192.0.2.0/24" },
	{ "client/24,48+path", "REMOTE_ADDR=192.0.2.77\nREQUEST_URI=/a%2fb\n",
	    "192.0.2.0/24+/a/b" },
	{ "host", "HTTP_HOST=[::1]:80\n", "[::1]" },
	{ "header:X-Key | client\nmissing_key = skip",
	    "HTTP_X_KEY=192.0.2.0/24\n", "192.0.2.0/24" },
	{ "header:X-Key | path", "HTTP_X_KEY=a//b\n", "a//b" },
	{ "header:X-Key\nmissing_key = skip", "HTTP_X_KEY=k1\n",
	    "hash:477e3cde15301ac38a1b52a261a45447" },
	{ "header:X-Key | client\nmissing_key = skip", "HTTP_X_KEY=k1\n",
	    "hash:477e3cde15301ac38a1b52a261a45447" },
};

static void
test_the_key_of_requests(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(same); i++) {
		char options[256];
		struct config *config;
		struct str name, want;
		struct err err;

		snprintf(options, sizeof(options),
		    "key = %s\nrate = 5/1m, 9/1h", same[i].key);
		config = load_limit(REDIS, options);
		want = name_in_request(config, same[i].params);
		name = name_written(config, same[i].written, &err);
		if (!str_eq(name, want))
			print_message("%s: %s\n", same[i].key, same[i].written);
		assert_true(str_eq(name, want));
		config_unref(config);
	}
}

/* Whatever rates a request comes under, its counts are among them. */
static void
test_names_of_counts(void **state)
{
	static const char *const kinds[] = { "sliding_window", "fixed_window",
		"fixed_window\nalign = calendar", "token_bucket", "sliding_log",
		"leaky_bucket" };
	static const struct {
		bool instead;
		const char *plan;
		size_t n;
	} t[] = {
		{ false, "", 2 },
		{ false, "PLAN=gold\n", 2 },
		{ true, "", 1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(kinds) * COUNT(t); i++) {
		size_t row = i % COUNT(t), n;
		char options[300], text[100];
		struct store_check check[STORE_CHECKS_MAX];
		struct limit_names names;
		struct config *config;
		struct params params;
		struct subject subject;

		snprintf(options, sizeof(options),
		    "rate = 5/1m, 9/1h\nalgorithm = %s\non_outage = local\n"
		    "outage_rate = 2/1m\n"
		    "[tier g]\nwhen = param:PLAN=gold\na = 7/1h, 9/1d",
		    kinds[i / COUNT(t)]);
		config = load_limit(REDIS, options);
		snprintf(text, sizeof(text), "REMOTE_ADDR=192.0.2.1\n%s",
		    t[row].plan);
		params = params_of(text, &arena);
		assert_true(subject_read(
		    &subject, CONFIG_ROLE_RESPONDER, &params, config, &arena));
		assert_int_equal(
		    (t[row].instead ? limit_prepare_instead : limit_prepare)(
			&config->limit[0], &config->store, &subject, &arena,
			check, STORE_CHECKS_MAX, &n),
		    LIMIT_CHECKED);
		assert_int_equal(n, t[row].n);
		assert_true(limit_names(&config->limit[0], &config->store,
		    "192.0.2.1", t[row].instead, &arena, &names));
		assert_int_equal(names.n, t[row].instead ? 1 : 3);
		for (size_t k = 0; k < n; k++) {
			size_t m = 0;

			while (
			    m < names.n && !str_eq(names.at[m], check[k].key))
				m++;
			assert_in_range(m, 0, names.n - 1);
		}
		config_unref(config);
	}
}

static void
test_where_it_stands(void **state)
{
	struct config *config = load_limit(REDIS, "rate = 5/1m");
	struct str name;
	struct err err;

	(void)state;
	name = name_written(config, "192.0.2.1", &err);
	assert_true(str_eq(name, STR("sluice:{192.0.2.1}:a:own")));
	config_unref(config);
}

#define DIGITS "477e3cde15301ac38a1b52a261a45447"

static const struct {
	const char *key;
	const char *written;
	const char *want;
} bad_keys[] = {
	{ "client", "", "empty" },
	{ "client+path", "192.0.2.1+", "empty" },
	{ "client+path", "192.0.2.1", "2 parts" },
	{ "client+path", "192.0.2.1+/a+b", "2 parts" },
	{ "global", "all", "part 1 of its key is global: `global`" },
	{ "global+method", "all+GET", "`global`" },
	{ "global", "hash:" DIGITS, "its key is none" },
	{ "client", "k", "part 1 of its key is client: an IPv4 or IPv6" },
	{ "client", "192.0.2", "client" },
	{ "client", "192.0.2.1:80", "client" },
	{ "client", "unix:/run/s", "client" },
	{ "client", "192.0.2.0/24", "IPv4 addresses are cut to /32" },
	{ "client", "192.0.2.0/", "IPv4 addresses are cut to /32" },
	{ "client", "2001:db8::/48", "IPv6 addresses are cut to /64" },
	{ "client/24,48", "192.0.2.1/32", "IPv4 addresses are cut to /24" },
	{ "client/24,48", "2001:db8::/64", "IPv6 addresses are cut to /48" },
	{ "client", "hash:" DIGITS, "its key is none" },
	{ "method+client", "GET+localhost", "part 2 of its key is client" },
	{ "method+client", "hash:" DIGITS, "its key is none" },
	{ "path", "a", "path" },
	{ "path", "/a//b", "path" },
	{ "path", "/a/../b", "path" },
	{ "host", "example.org:80", "host" },
	{ "host", "example.org.", "host" },
	{ "host", "[::1]:80", "host" },
	{ "method", "hash:" DIGITS "0", "32 digits" },
	{ "method", "hash:", "32 digits" },
	{ "method", "hash:477E3CDE15301AC38A1B52A261A45447", "32 digits" },
};

static void
test_no_such_key(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(bad_keys); i++) {
		char options[256];
		struct config *config;
		char tag[KEY_TAG_MAX];
		struct err err = { "" };

		snprintf(options, sizeof(options), "key = %s\nrate = 5/1m",
		    bad_keys[i].key);
		config = load_limit(REDIS, options);
		if (own_key_tag(config, &config->limit[0],
			str_of(bad_keys[i].written), &arena, tag,
			&err) != OWN_KEY_WRONG ||
		    strstr(err.text, bad_keys[i].want) == NULL)
			fail_msg("%s: %s", bad_keys[i].written, err.text);
		config_unref(config);
	}
}

static const struct {
	const char *options;
	const char *counts;
	const char *want; /* NULL: good */
} counts[] = {
	{ "rate = 5/1m", "1", NULL },
	{ "rate = 5/1m", "1000000", NULL },
	{ "rate = 5/1m", "0", "1 to 10^12" },
	{ "rate = 5/1m", "1000000000001", "1 to 10^12" },
	{ "rate = 5/1m", "", "1 to 10^12" },
	{ "rate = 5/1m", "x", "1 to 10^12" },
	{ "rate = 5/1m", "-1", "1 to 10^12" },
	{ "rate = 5/1m", "6,", "1 rate" },
	{ "rate = 5/1m, 50/1h", "6,60", NULL },
	{ "rate = 5/1m, 50/1h", "6", "2 rates" },
	{ "rate = 5/1m, 50/1h", "6,60,600", "2 rates" },
	{ "rate = 5/1m, 50/1h", "6, 60", "1 to 10^12" },
	{ "rate = 5/366d", "1000000000000", "can count" },
	{ "rate = 5/366d\nalgorithm = fixed_window", "1000000000000", NULL },
	{ "rate = 5/1m burst 50\nalgorithm = token_bucket", "10", NULL },
	{ "rate = 9/1m\ncost = 4", "4", NULL },
	{ "rate = 9/1m\ncost = 4", "3", "can cost 4" },
	{ "rate = 9/1m\ncost = /a*=4, *=1", "3", "can cost 4" },
	{ "rate = 9/1m burst 18\nalgorithm = token_bucket\ncost = 4", "2",
	    NULL },
	{ "rate = 9/1m burst 18\nalgorithm = token_bucket\ncost = 4", "1",
	    "can cost 4" },
	{ "rate = 9/1m\nalgorithm = sliding_log", "10000", NULL },
	{ "rate = 9/1m\nalgorithm = sliding_log", "10001", "can count" },
	{ "rate = 9\nalgorithm = concurrency", "12", NULL },
	{ "rate = 7/1m burst 700\nalgorithm = token_bucket", "10000000001",
	    "can count" },
};

static void
test_counts(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(counts); i++) {
		struct config *config = load_limit(REDIS, counts[i].options);
		struct err err = { "" };
		bool good = own_counts_good(
		    &config->limit[0], str_of(counts[i].counts), &err);

		if (good != (counts[i].want == NULL) ||
		    (!good && strstr(err.text, counts[i].want) == NULL))
			fail_msg("%s: %s: %s", counts[i].options,
			    counts[i].counts, err.text);
		config_unref(config);
	}
}

static void
test_where_none_can_be(void **state)
{
	const struct {
		const char *store;
		const char *options;
		const char *want;
	} t[] = {
		{ STORE, "rate = 5/1m", "memory:" },
		{ REDIS, "rate = 5/1m\nscope = local", "local" },
		{ "", "rate = 5/1m\nscope = local", "local" },
		{ REDIS, "rate = unlimited", "no count" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(t); i++) {
		struct config *config = load_limit(t[i].store, t[i].options);
		struct err err = { "" };

		assert_false(
		    own_possible(&config->store, &config->limit[0], &err));
		assert_non_null(strstr(err.text, t[i].want));
		if (config->limit[0].rates.kind == RATES_LIST)
			assert_null(
			    name_in_request(config, "REMOTE_ADDR=192.0.2.1\n")
				.p);
		config_unref(config);
	}
}

/* A tier's rate has the own count that was given for the same period. */
static void
test_under_a_tier(void **state)
{
	struct config *config =
	    load_limit(REDIS "[tier t]\nwhen = client=192.0.2.1\n"
			     "a = 7/1d, 8/1m, 9/1h\n",
		"rate = 5/1m, 50/1d");
	struct params params = params_of("REMOTE_ADDR=192.0.2.1\n", &arena);
	struct store_check check[STORE_CHECKS_MAX];
	struct subject subject;
	size_t n;

	(void)state;
	assert_true(subject_read(
	    &subject, CONFIG_ROLE_RESPONDER, &params, config, &arena));
	assert_int_equal(limit_prepare(&config->limit[0], &config->store,
			     &subject, &arena, check, STORE_CHECKS_MAX, &n),
	    LIMIT_CHECKED);
	assert_int_equal(n, 3);
	assert_int_equal(check[0].own_at, 1);
	assert_int_equal(check[1].own_at, 0);
	for (size_t i = 0; i < 2; i++)
		assert_true(
		    str_eq(check[i].own_key, STR("sluice:{192.0.2.1}:a:own")));
	assert_null(check[2].own_key.p);
	config_unref(config);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    test_the_key_of_requests, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    test_where_it_stands, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    test_no_such_key, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    test_names_of_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    test_where_none_can_be, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    test_under_a_tier, setup, teardown),
	};

	return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
