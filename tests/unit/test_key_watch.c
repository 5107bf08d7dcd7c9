/* SPEC.md section 3, and B72: a key that never comes is told of once. */
#include "domain/key_watch.h"

#include <pthread.h>

#include "base/log.h"
#include "config_text.h"

static size_t
lines(const char *with)
{
	char line[LOG_LINE_MAX];
	FILE *in = fopen("log", "r");
	size_t n = 0;

	assert_non_null(in);
	while (fgets(line, sizeof(line), in) != NULL) {
		assert_non_null(strstr(line, "event=key_always_missing"));
		n += strstr(line, with) != NULL;
	}
	fclose(in);
	return n;
}

static struct config *
load(void)
{
	return load_warned(STORE
	    "[limit bearer]\nrate = 5/1m\nkey = client+header:Authorization\n"
	    "missing_key = skip\n"
	    "[limit session]\nrate = 5/1m\nkey = cookie:sid\n"
	    "missing_key = deny\n"
	    "[limit client]\nrate = 5/1m\n" BACKEND);
}

static int
setup(void **state)
{
	char target[512] = "file:";
	struct err err;

	(void)state;
	if (getcwd(target + 5, sizeof(target) - 16) == NULL)
		return 1;
	strcat(target, "/log");
	unlink("log");
	return !log_open(target, LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT, &err);
}

static void
test_told_once(void **state)
{
	static const char *const says[] = {
		("limit=bearer name=HTTP_AUTHORIZATION requests=100 msg=\"none "
		 "of its first requests had a key: Apache passes Authorization "
		 "on with `CGIPassAuth On` alone\""),
		("limit=session name=sid requests=100 msg=\"none of its first "
		 "requests had a key: does the web server pass it on?\""),
		"limit=client name=REMOTE_ADDR requests=100 ",
	};
	struct config *config = load();

	(void)state;
	for (size_t i = 0; i < COUNT(says); i++) {
		for (int n = 1; n < KEY_WATCH_REQUESTS; n++)
			key_watch_missing(&config->limit[i]);
		assert_int_equal(lines(""), i);
		for (int n = 0; n < 3 * KEY_WATCH_REQUESTS; n++)
			key_watch_missing(&config->limit[i]);
		key_watch_there(&config->limit[i]);
		for (int n = 0; n < 3 * KEY_WATCH_REQUESTS; n++)
			key_watch_missing(&config->limit[i]);
		assert_int_equal(lines(""), i + 1);
		assert_int_equal(lines(says[i]), 1);
	}
	config_unref(config);
}

/* One that has come is not always missing, whenever it did. */
static void
test_there(void **state)
{
	struct config *config = load();

	(void)state;
	for (int before = 0; before < KEY_WATCH_REQUESTS; before += 33) {
		config_unref(config);
		config = load();
		for (int n = 0; n < before; n++)
			key_watch_missing(&config->limit[0]);
		key_watch_there(&config->limit[0]);
		for (int n = 0; n < 3 * KEY_WATCH_REQUESTS; n++)
			key_watch_missing(&config->limit[0]);
	}
	assert_int_equal(lines(""), 0);
	config_unref(config);
}

static void *
miss_many(void *limit)
{
	for (int n = 0; n < 1000; n++)
		key_watch_missing(limit);
	return NULL;
}

static void
test_many_threads(void **state)
{
	struct config *config = load();
	pthread_t threads[4];

	(void)state;
	for (size_t i = 0; i < COUNT(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, miss_many,
				     &config->limit[1]),
		    0);
	for (size_t i = 0; i < COUNT(threads); i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(lines("limit=session"), 1);
	assert_int_equal(lines(""), 1);
	config_unref(config);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_told_once, setup),
		cmocka_unit_test_setup(test_there, setup),
		cmocka_unit_test_setup(test_many_threads, setup),
	};

	return cmocka_run_group_tests_name(
	    "key_watch", tests, enter_directory, leave_directory);
}
