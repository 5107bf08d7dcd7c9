/* SPEC.md section 3, trusted_proxies: an unknown proxy is told of once. */
#include "domain/proxy_watch.h"

#include <pthread.h>

#include "base/log.h"
#include "config_text.h"
#include "params_text.h"

static struct arena arena;

static void
see(const char *peer, const char *header, unsigned value)
{
	char text[256];
	struct params params;

	snprintf(text, sizeof(text), "REMOTE_ADDR=%s\n%s=198.51.100.%u\n", peer,
	    header, value);
	params = params_of(text, &arena);
	proxy_watch(&params);
	arena_reset(&arena);
}

static size_t
lines(void)
{
	char line[LOG_LINE_MAX];
	FILE *in = fopen("log", "r");
	size_t n = 0;

	assert_non_null(in);
	while (fgets(line, sizeof(line), in) != NULL) {
		n++;
		assert_non_null(strstr(line, "event=proxy_not_trusted"));
		assert_non_null(strstr(line, "remote_addr=192.0.2.5"));
	}
	fclose(in);
	return n;
}

static void *
see_many(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 1000; i++) {
		char value[16];
		struct param pairs[] = {
			{ STR("REMOTE_ADDR"), STR("192.0.2.6") },
			{ STR("HTTP_FORWARDED"), { value, 0 } },
		};
		struct params params = { pairs, COUNT(pairs) };

		pairs[1].value.len =
		    (size_t)snprintf(value, sizeof(value), "for=%u", i);
		proxy_watch(&params);
	}
	return NULL;
}

static void
test_once(void **state)
{
	char target[512] = "file:";
	pthread_t threads[4];
	struct err err;

	(void)state;
	assert_non_null(getcwd(target + 5, sizeof(target) - 16));
	strcat(target, "/log");
	assert_true(log_open(target, LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT, &err));
	arena_init(&arena);
	/* Many of each of few, and few of each of many. */
	for (unsigned i = 0; i < 1000; i++) {
		char peer[32];

		see("192.0.2.1", "HTTP_X_FORWARDED_FOR", i % 19);
		snprintf(peer, sizeof(peer), "10.0.0.%u", i % 100);
		see(peer, "HTTP_FORWARDED", i % 7);
		see(peer, "HTTP_X_REAL_IP", i);
	}
	assert_int_equal(lines(), 0);
	for (unsigned i = 0; i < 19; i++)
		see("192.0.2.5", "HTTP_X_FORWARDED_FOR", i);
	assert_int_equal(lines(), 0);
	see("192.0.2.5", "HTTP_X_FORWARDED_FOR", 20);
	assert_int_equal(lines(), 1);
	for (size_t i = 0; i < COUNT(threads); i++)
		assert_int_equal(
		    pthread_create(&threads[i], NULL, see_many, NULL), 0);
	for (size_t i = 0; i < COUNT(threads); i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(lines(), 1);
	arena_release(&arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_once),
	};

	return cmocka_run_group_tests_name(
	    "proxy_watch", tests, enter_directory, leave_directory);
}
