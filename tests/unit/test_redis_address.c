#include "pure/redis_address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void
test_good(void **state)
{
	static const struct {
		const char *text;
		struct redis_address address;
	} table[] = {
		{ "unix:/run/redis/redis-server.sock",
		    { REDIS_UNIX, "/run/redis/redis-server.sock", 0, 0 } },
		{ "redis://localhost", { REDIS_TCP, "localhost", 6379, 0 } },
		{ "redis://h/", { REDIS_TCP, "h", 6379, 0 } },
		{ "redis://redis-1.example.org:7000/15",
		    { REDIS_TCP, "redis-1.example.org", 7000, 15 } },
		{ "redis://127.0.0.1:65535",
		    { REDIS_TCP, "127.0.0.1", 65535, 0 } },
		{ "redis://[::1]", { REDIS_TCP, "::1", 6379, 0 } },
		{ "redis://[2001:db8::1]:1/2",
		    { REDIS_TCP, "2001:db8::1", 1, 2 } },
		{ "redis://my_redis/3", { REDIS_TCP, "my_redis", 6379, 3 } },
	};
	struct redis_address a;
	struct err err;

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		assert_true(
		    redis_address_parse(str_of(table[i].text), &a, &err));
		assert_int_equal(a.transport, table[i].address.transport);
		assert_string_equal(a.host, table[i].address.host);
		assert_int_equal(a.port, table[i].address.port);
		assert_int_equal(a.database, table[i].address.database);
	}
}

static void
test_bad(void **state)
{
	static const char form[] = "redis:// takes HOST[:PORT][/DATABASE]";
	static const char port[] = "the port is 1 to 65535";
	static const struct {
		const char *text;
		const char *expected;
	} table[] = {
		{ "localhost:6379",
		    "neither unix:/PATH nor redis://HOST[:PORT][/DATABASE]" },
		{ "unix:run/redis.sock", "unix: takes an absolute path" },
		{ "unix:", "unix: takes an absolute path" },
		{ "unix:/", "unix: takes an absolute path" },
		{ "redis://", form },
		{ "redis://:6379", form },
		{ "redis:///1", form },
		{ "redis://a b", form },
		{ "redis://[]", form },
		{ "redis://[::g.$]", form },
		{ "redis://h:", port },
		{ "redis://h:0", port },
		{ "redis://h:65536", port },
		{ "redis://h:1x", port },
		{ "redis://::1", form },
		{ "redis://[::1]:", port },
		{ "redis://[::1", "an IPv6 address stands in [ and ]" },
		{ "redis://[::1]7", "what follows ] is not :PORT" },
		{ "redis://h/x", "the database is a number" },
		{ "redis://h/1/2", "the database is a number" },
		{ "redis://h/1000001", "the database is a number" },
		{ "rediss://h", "rediss:// is not supported by this version" },
		{ "sentinel://m@h1:26379,h2:26379/0",
		    "sentinel:// is not supported by this version" },
		{ "cluster://h1:7000",
		    "cluster:// is not supported by this version" },
		{ "redis://user:s3cret@h",
		    "user and password do not belong here: use the options "
		    "username and password (or password_file)" },
	};
	struct redis_address a;
	struct err err;

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		assert_false(
		    redis_address_parse(str_of(table[i].text), &a, &err));
		assert_string_equal(err.text, table[i].expected);
	}
}

static void
test_lengths(void **state)
{
	struct redis_address a;
	struct err err;
	char text[400];

	(void)state;
	memset(text, 'a', sizeof(text));
	memcpy(text, "unix:/", 6);
	assert_true(
	    redis_address_parse((struct str){ text, 5 + 107 }, &a, &err));
	assert_int_equal(strlen(a.host), 107);
	assert_false(
	    redis_address_parse((struct str){ text, 5 + 108 }, &a, &err));
	assert_string_equal(
	    err.text, "the path of a socket has at most 107 bytes");
	memcpy(text, "redis://", 8);
	assert_true(
	    redis_address_parse((struct str){ text, 8 + 255 }, &a, &err));
	assert_false(
	    redis_address_parse((struct str){ text, 8 + 256 }, &a, &err));
}

/* Every beginning, from a block of exact size. */
static void
test_cut_anywhere(void **state)
{
	static const char *const texts[] = { "redis://[2001:db8::1]:7000/15",
		"redis://host:7000/15", "unix:/run/x", "sentinel://a@b" };
	struct redis_address a;
	struct err err;

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		for (size_t len = 0; len <= strlen(texts[i]); len++) {
			char *exact = malloc(len + (len == 0));

			memcpy(exact, texts[i], len);
			redis_address_parse(
			    (struct str){ exact, len }, &a, &err);
			free(exact);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_cut_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
