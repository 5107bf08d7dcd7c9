#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "log_parse.h"

static char directory[] = "/tmp/sluice-log-XXXXXX";
static char path[64];
static char target[80];

static int
open_directory(void **state)
{
	(void)state;
	if (mkdtemp(directory) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/log", directory);
	snprintf(target, sizeof(target), "file:%s", path);
	return 0;
}

static int
remove_directory(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(directory);
}

static void
open_log(enum log_level level, enum log_format format)
{
	struct err err = { "" };

	unlink(path);
	if (!log_open(target, level, format, &err))
		fail_msg("%s", err.text);
}

static size_t
read_file(const char *name, char *bytes, size_t size)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t got;

	assert_true(fd >= 0);
	while ((got = read(fd, bytes + n, size - n)) > 0)
		n += (size_t)got;
	close(fd);
	assert_true(got == 0 && n < size);
	bytes[n] = '\0';
	return n;
}

/* The log holds one line, which becomes `line`. */
static void
read_line(enum log_format format)
{
	static char bytes[2 * LOG_LINE_MAX];
	size_t n = read_file(path, bytes, sizeof(bytes));

	assert_in_range(n, 1, LOG_LINE_MAX);
	assert_ptr_equal(parse(bytes, format), bytes + n);
}

static void
expect_field(size_t i, const char *key, const char *value)
{
	assert_true(i < line.n);
	assert_string_equal(line.key[i], key);
	assert_string_equal(line.value[i], value);
}

static void
test_a_line(void **state)
{
	static const enum log_format formats[] = { LOG_FORMAT_LOGFMT,
		LOG_FORMAT_JSON };
	struct log_line l;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		open_log(LOG_LEVEL_INFO, formats[i]);
		log_begin(&l, LOG_LEVEL_WARN, "refused");
		log_text(&l, "limit", "login");
		log_number(&l, "n", -42);
		log_number(&l, "low", INT64_MIN);
		log_str(&l, "none", STR_NONE);
		log_text(&l, "path", "/a b");
		log_end(&l);
		read_line(formats[i]);
		assert_int_equal(line.n, 8);
		assert_string_equal(line.key[0], "time");
		assert_int_equal(strlen(line.value[0]), 24);
		assert_int_equal(line.value[0][23], 'Z');
		expect_field(1, "level", "warn");
		expect_field(2, "event", "refused");
		expect_field(3, "limit", "login");
		assert_int_equal(line.quoted[3], i == 1);
		expect_field(4, "n", "-42");
		assert_false(line.quoted[4]);
		expect_field(5, "low", "-9223372036854775808");
		expect_field(6, "none", "");
		expect_field(7, "path", "/a b");
	}
}

static void
test_event(void **state)
{
	(void)state;
	open_log(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT);
	log_event(LOG_LEVEL_ERROR, "start", "%d \"ports\"\n", 3);
	read_line(LOG_FORMAT_LOGFMT);
	assert_int_equal(line.n, 4);
	expect_field(1, "level", "error");
	expect_field(2, "event", "start");
	expect_field(3, "msg", "3 \"ports\"\n");
}

static void
log_one(struct str value)
{
	struct log_line l;

	log_begin(&l, LOG_LEVEL_INFO, "e");
	log_str(&l, "v", value);
	log_end(&l);
}

/* Characters stay; what a terminal might obey, or no parser take, goes. */
static void
test_utf8(void **state)
{
	static const struct {
		const char *value;
		const char *written;
	} row[] = {
		{ "gr\xc3\xbc\xc3\x9f", "v=\"gr\xc3\xbc\xc3\x9f\"" },
		{ "\xe2\x82\xac", "v=\"\xe2\x82\xac\"" },
		{ "\xf0\x9f\x98\x80", "v=\"\xf0\x9f\x98\x80\"" },
		{ "\xc2\x9b"
		  "1m",
		    "v=\"\\u009b1m\"" },
		{ "\x9b"
		  "1m",
		    "v=\"\\u009b1m\"" },
		{ "\xc3", "v=\"\\u00c3\"" },
		{ "\xc0\xaf", "v=\"\\u00c0\\u00af\"" },
		{ "\xed\xa0\x80", "v=\"\\u00ed\\u00a0\\u0080\"" },
		{ "\xf4\x90\x80\x80", "\\u00f4\\u0090\\u0080\\u0080" },
		{ "\xff"
		  "a",
		    "v=\"\\u00ffa\"" },
	};
	char bytes[LOG_LINE_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		open_log(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT);
		log_one(str_of(row[i].value));
		read_file(path, bytes, sizeof(bytes));
		if (strstr(bytes, row[i].written) == NULL)
			fail_msg("row %zu: %s", i, bytes);
	}
}

/* Each byte alone and among others; NUL ends the text compared. */
static void
test_every_byte(void **state)
{
	(void)state;
	for (int format = 0; format < 2; format++) {
		for (int c = 0; c < 256; c++) {
			char text[] = { 'a', (char)c, 'b', 0 };

			open_log(LOG_LEVEL_INFO, (enum log_format)format);
			log_one((struct str){ text + 1, 1 });
			read_line((enum log_format)format);
			assert_int_equal(line.n, 4);
			assert_int_equal(line.value[3][0], (char)c);
			assert_int_equal(line.value[3][1], 0);
			open_log(LOG_LEVEL_INFO, (enum log_format)format);
			log_one((struct str){ text, 3 });
			read_line((enum log_format)format);
			assert_int_equal(line.n, 4);
			assert_memory_equal(line.value[3], text, 4);
		}
	}
}

/*
 * A value of any length, of bytes that take one, two and six in the log,
 * leaves a line that is whole; what stands behind it is left out or whole.
 */
static void
cut_one(enum log_format format, char fill, size_t len)
{
	static char value[LOG_LINE_MAX + 100];
	size_t kept;
	struct log_line l;

	memset(value, fill, sizeof(value));
	open_log(LOG_LEVEL_INFO, format);
	log_begin(&l, LOG_LEVEL_INFO, "e");
	log_text(&l, "first", "x");
	log_str(&l, "v", (struct str){ value, len });
	log_text(&l, "last", "behind it");
	log_number(&l, "n", 123456);
	log_end(&l);
	read_line(format);
	expect_field(3, "first", "x");
	assert_string_equal(line.key[4], "v");
	kept = strlen(line.value[4]);
	assert_true(kept <= len);
	assert_memory_equal(line.value[4], value, kept);
	if (len * 6 < LOG_LINE_MAX / 2)
		assert_int_equal(kept, len);
	for (size_t i = 5; i < line.n; i++) {
		if (strcmp(line.key[i], "n") == 0)
			assert_string_equal(line.value[i], "123456");
		else
			assert_string_equal(line.key[i], "last");
	}
}

static void
test_cut_at_the_limit(void **state)
{
	static const struct {
		char fill;
		size_t bytes;
	} table[] = { { 'a', 1 }, { ' ', 1 }, { '"', 2 }, { '\1', 6 } };

	(void)state;
	for (int format = 0; format < 2; format++) {
		for (size_t i = 0; i < 4; i++) {
			size_t full = LOG_LINE_MAX / table[i].bytes;

			for (size_t len = full - 180; len < full + 20; len++)
				cut_one((enum log_format)format, table[i].fill,
				    len);
			cut_one((enum log_format)format, table[i].fill, 10);
			cut_one((enum log_format)format, table[i].fill,
			    LOG_LINE_MAX + 100);
		}
	}
}

/* Fields without end: those that fit, whole and in order. */
static void
test_many_fields(void **state)
{
	(void)state;
	for (int format = 0; format < 2; format++) {
		for (size_t len = 0; len < 40; len++) {
			char text[40];
			struct log_line l;

			memset(text, 'b', sizeof(text));
			open_log(LOG_LEVEL_INFO, (enum log_format)format);
			log_begin(&l, LOG_LEVEL_INFO, "e");
			for (int i = 0; i < 1000; i++) {
				log_str(
				    &l, "some_key", (struct str){ text, len });
				log_number(&l, "number", i);
			}
			log_end(&l);
			read_line((enum log_format)format);
			assert_in_range(line.n, 60, FIELDS_MAX - 1);
			expect_field(4, "number", "0");
			expect_field(6, "number", "1");
		}
	}
}

static void
test_levels(void **state)
{
	char bytes[LOG_LINE_MAX];

	(void)state;
	for (int wanted = LOG_LEVEL_ERROR; wanted <= LOG_LEVEL_DEBUG;
	     wanted++) {
		size_t lines = 0;
		size_t n;

		open_log((enum log_level)wanted, LOG_FORMAT_LOGFMT);
		for (int level = 0; level <= LOG_LEVEL_DEBUG; level++) {
			struct log_line l;

			assert_int_equal(
			    log_wants((enum log_level)level), level <= wanted);
			log_event((enum log_level)level, "e", "x");
			log_begin(&l, (enum log_level)level, "e");
			log_number(&l, "n", 1);
			log_end(&l);
		}
		n = read_file(path, bytes, sizeof(bytes));
		for (size_t i = 0; i < n; i++)
			lines += bytes[i] == '\n';
		assert_int_equal(lines, 2 * (wanted + 1));
	}
}

static void
test_file_is_private(void **state)
{
	mode_t mask = umask(0);
	struct stat status;

	(void)state;
	open_log(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT);
	umask(mask);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0640);
}

/* As logrotate does it: moved away, told, and a new file is begun. */
static void
test_reopen(void **state)
{
	char moved[80];
	char bytes[LOG_LINE_MAX];
	struct err err;

	(void)state;
	snprintf(moved, sizeof(moved), "%s.1", path);
	open_log(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT);
	log_one(STR("one"));
	assert_int_equal(rename(path, moved), 0);
	log_one(STR("two"));
	assert_true(log_reopen(&err));
	log_one(STR("three"));
	read_line(LOG_FORMAT_LOGFMT);
	expect_field(3, "v", "three");
	read_file(moved, bytes, sizeof(bytes));
	assert_non_null(strstr(bytes, "v=one\n"));
	assert_non_null(strstr(bytes, "v=two\n"));
	unlink(moved);
	assert_true(log_open(target, LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT, &err));
	log_one(STR("four"));
	read_file(path, bytes, sizeof(bytes));
	assert_non_null(strstr(bytes, "v=three\n"));
	assert_non_null(strstr(bytes, "v=four\n"));
}

static void
test_failure_keeps_the_target(void **state)
{
	struct err err = { "" };
	char bad[96];

	(void)state;
	open_log(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT);
	snprintf(bad, sizeof(bad), "file:%s/no/log", directory);
	assert_false(log_open(bad, LOG_LEVEL_DEBUG, LOG_FORMAT_JSON, &err));
	assert_non_null(strstr(err.text, bad + strlen("file:")));
	assert_non_null(strstr(err.text, strerror(ENOENT)));
	assert_false(log_wants(LOG_LEVEL_DEBUG));
	log_one(STR("still"));
	read_line(LOG_FORMAT_LOGFMT);
	expect_field(3, "v", "still");
}

static void
test_standard_error(void **state)
{
	int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	int fd;
	struct err err;

	(void)state;
	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && saved >= 0);
	assert_true(log_open("stderr", LOG_LEVEL_INFO, LOG_FORMAT_JSON, &err));
	assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	log_one(STR("there"));
	assert_true(log_reopen(&err));
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(fd);
	read_line(LOG_FORMAT_JSON);
	expect_field(3, "v", "there");
}

#define THREADS 4
#define LINES   500

static void *
write_lines(void *fill)
{
	char text[600];

	memset(text, *(const char *)fill, sizeof(text));
	for (int i = 0; i < LINES; i++)
		log_one((struct str){ text, sizeof(text) });
	return NULL;
}

static void
test_threads_do_not_mix(void **state)
{
	static char bytes[THREADS * LINES * 800];
	static const char fills[] = "abcd";
	size_t counts[THREADS] = { 0 };
	pthread_t threads[THREADS];
	const char *p = bytes;
	size_t n;

	(void)state;
	open_log(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_lines,
				     (void *)&fills[i]),
		    0);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	n = read_file(path, bytes, sizeof(bytes));
	while (p < bytes + n) {
		char c;

		p = parse(p, LOG_FORMAT_LOGFMT);
		c = line.value[3][0];
		assert_int_equal(strlen(line.value[3]), 600);
		for (size_t i = 0; i < 600; i++)
			assert_int_equal(line.value[3][i], c);
		counts[c - 'a']++;
	}
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(counts[i], LINES);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_line),
		cmocka_unit_test(test_event),
		cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_every_byte),
		cmocka_unit_test(test_cut_at_the_limit),
		cmocka_unit_test(test_many_fields),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_file_is_private),
		cmocka_unit_test(test_reopen),
		cmocka_unit_test(test_failure_keeps_the_target),
		cmocka_unit_test(test_standard_error),
		cmocka_unit_test(test_threads_do_not_mix),
	};

	return cmocka_run_group_tests_name(
	    "log", tests, open_directory, remove_directory);
}
