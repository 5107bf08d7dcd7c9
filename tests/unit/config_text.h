/*
 * config_text: loads a configuration given as text, in a directory of its
 * own, and holds what is reported against what should be.
 */
#ifndef SLUICE_TESTS_CONFIG_TEXT_H
#define SLUICE_TESTS_CONFIG_TEXT_H

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "config/config.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
/* What makes a configuration whole; on one line to keep numbers plain. */
#define BACKEND "[backend default]\naddress = 127.0.0.1:9000\n"
#define STORE   "[store]\naddress = memory:\n"

/* Goes into a new directory; all file names are relative to it. */
static int
enter_directory(void **state)
{
	char *path = strdup("/tmp/sluice-config-XXXXXX");

	*state = path;
	return path == NULL || mkdtemp(path) == NULL || chdir(path) != 0;
}

static int
leave_directory(void **state)
{
	char command[128];
	int result;

	snprintf(command, sizeof(command), "rm -r %s", (char *)*state);
	result = chdir("/") != 0 || system(command) != 0;
	free(*state);
	return result;
}

static inline void
write_file(const char *path, struct str text)
{
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	if (text.len > 0)
		assert_int_equal(fwrite(text.p, 1, text.len, out), text.len);
	assert_int_equal(fclose(out), 0);
}

static void
collect(void *context, const char *text, bool warning)
{
	struct buf *lines = context;

	/* A warning says so itself. */
	assert_int_equal(warning, strstr(text, "warning: ") != NULL);
	buf_addf(lines, "%s\n", text);
}

/* Loads t.ini; reports holds a line a finding. */
static inline struct config *
load_file(struct buf *reports)
{
	struct config *config;

	buf_init(reports);
	config = config_load("t.ini", collect, reports);
	buf_add_char(reports, '\0');
	return config;
}

/* The text is to give exactly these lines, and only warnings no error. */
static inline void
expect_reports(struct str text, const char *expected)
{
	struct buf reports;
	struct config *config;
	const char *rest = expected;
	bool has_error = false;

	write_file("t.ini", text);
	config = load_file(&reports);
	if (strcmp(reports.p, expected) != 0)
		print_message("for:\n%.*s\n", STR_ARG(text));
	assert_string_equal(reports.p, expected);
	for (; *rest != '\0'; rest = strchr(rest, '\n') + 1) {
		const char *warning = strstr(rest, "warning: ");

		if (warning == NULL || warning > strchr(rest, '\n'))
			has_error = true;
	}
	assert_int_equal(config == NULL, has_error);
	config_unref(config);
	buf_release(&reports);
}

/* Configurations, and what is said of each. */
struct report_row {
	const char *text;
	const char *expected;
};

static inline void
expect_report_rows(const struct report_row *table, size_t n)
{
	for (size_t i = 0; i < n; i++)
		expect_reports(str_of(table[i].text), table[i].expected);
}

/* A configuration that is good, whatever it is warned of. */
static inline struct config *
load_warned(const char *text)
{
	struct buf reports;
	struct config *config;

	write_file("t.ini", str_of(text));
	config = load_file(&reports);
	if (config == NULL)
		fail_msg("%s", reports.p);
	buf_release(&reports);
	return config;
}

/* A configuration that is to be free of findings. */
static inline struct config *
load_good(const char *text)
{
	struct buf reports;
	struct config *config;

	write_file("t.ini", str_of(text));
	config = load_file(&reports);
	assert_string_equal(reports.p, "");
	assert_non_null(config);
	buf_release(&reports);
	return config;
}

#endif
