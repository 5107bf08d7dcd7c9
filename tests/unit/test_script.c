/*
 * SPEC.md section 7, "A CGI target is": which file a request means, and
 * that nothing outside the root is ever run.
 */
#include "domain/script.h"

#include <limits.h>
#include <sys/stat.h>

#include "config_text.h"
#include "params_text.h"
#include "wire.h"

static struct arena arena;
static char base[PATH_MAX]; /* the directory of this test */

/* "@" in a text stands for that directory. */
static const char *
expand(const char *text)
{
	struct buf out;
	const char *copy;

	buf_init(&out);
	for (; *text != '\0'; text++)
		if (*text == '@')
			buf_addf(&out, "%s", base);
		else
			buf_add_char(&out, *text);
	copy = arena_copy(&arena, buf_str(&out)).p;
	buf_release(&out);
	assert_non_null(copy);
	return copy;
}

struct row {
	const char *params;
	enum script_status status;
	const char *path;
	const char *script_name; /* NULL: as it came */
	const char *path_info;
	const char *interpreter;
};

#define OK        SCRIPT_OK
#define MISSING   SCRIPT_NOT_FOUND, NULL, NULL, NULL, NULL
#define FORBIDDEN SCRIPT_FORBIDDEN, NULL, NULL, NULL, NULL
#define FILE_IS   "SCRIPT_FILENAME="
#define AS_IT_IS  NULL, NULL, NULL

static const struct row table[] = {
	{ FILE_IS "@/cgi/x.cgi", OK, "@/cgi/x.cgi", AS_IT_IS },
	{ FILE_IS "@/cgi/sub/y.cgi", OK, "@/cgi/sub/y.cgi", AS_IT_IS },
	{ FILE_IS "@/cgi/./sub//../x.cgi", OK, "@/cgi/x.cgi", AS_IT_IS },
	/* Apache leaves the proxy's name in front (PR 59618 and others). */
	{ FILE_IS "proxy:fcgi://localhost:9000@/cgi/x.cgi", OK, "@/cgi/x.cgi",
	    AS_IT_IS },
	{ FILE_IS "proxy:fcgi://[::1]:9000@/cgi/x.cgi", OK, "@/cgi/x.cgi",
	    AS_IT_IS },
	{ FILE_IS "proxy:fcgi://h@/cgi/x.cgi/i\nSCRIPT_NAME=/x.cgi/i", OK,
	    "@/cgi/x.cgi", "/x.cgi", "/i", NULL },
	{ FILE_IS "proxy:unix:/run/s.sock|fcgi://localhost@/cgi/x.cgi", OK,
	    "@/cgi/x.cgi", AS_IT_IS },
	{ FILE_IS "proxy:fcgi://localhost:9000", MISSING },
	{ FILE_IS "proxy:", MISSING },
	{ FILE_IS "proxy:fcgi:@/cgi/x.cgi", MISSING },

	/* PATH_INFO is what is behind the file. */
	{ FILE_IS "@/cgi/x.cgi/a/b\nSCRIPT_NAME=/x.cgi/a/b", OK, "@/cgi/x.cgi",
	    "/x.cgi", "/a/b", NULL },
	{ FILE_IS "@/cgi/x.cgi/a/b\nSCRIPT_NAME=/x.cgi\nPATH_INFO=/a/b", OK,
	    "@/cgi/x.cgi", "/x.cgi", "/a/b", NULL },
	{ FILE_IS "@/cgi/x.cgi/\nSCRIPT_NAME=/x.cgi/", OK, "@/cgi/x.cgi",
	    "/x.cgi", "/", NULL },
	{ FILE_IS "@/cgi/x.cgi//a\nSCRIPT_NAME=/x.cgi//a", OK, "@/cgi/x.cgi",
	    "/x.cgi", "//a", NULL },
	{ FILE_IS "@/cgi/x.cgi/../../etc\nSCRIPT_NAME=/x.cgi/../../etc", OK,
	    "@/cgi/x.cgi", "/x.cgi", "/../../etc", NULL },
	/* The web server has split it itself. */
	{ FILE_IS "@/cgi/x.cgi\nSCRIPT_NAME=/x.cgi\nPATH_INFO=/a", OK,
	    "@/cgi/x.cgi", AS_IT_IS },

	{ FILE_IS "@/cgi/x.cgi/a\nPATH_INFO=/a", OK, "@/cgi/x.cgi", "", "/a",
	    NULL },
	/* A script of another name than the URL has (an Alias). */
	{ FILE_IS "@/cgi/x.cgi/a\nSCRIPT_NAME=/alias", OK, "@/cgi/x.cgi",
	    "/alias", "/a", NULL },
	/* It is what counts, allowed or not. */
	{ FILE_IS "@/cgi/x.cgi\nDOCUMENT_ROOT=@/cgi\n"
		  "SCRIPT_NAME=/sub/y.cgi",
	    OK, "@/cgi/x.cgi", AS_IT_IS },
	{ FILE_IS "@/outside/z.cgi\nDOCUMENT_ROOT=@/cgi\n"
		  "SCRIPT_NAME=/x.cgi",
	    FORBIDDEN },

	/* Where it names no file, DOCUMENT_ROOT and the URL do. */
	{ "DOCUMENT_ROOT=@/cgi\nSCRIPT_NAME=/sub/y.cgi", OK, "@/cgi/sub/y.cgi",
	    "/sub/y.cgi", "", NULL },
	{ "DOCUMENT_ROOT=@/cgi\nSCRIPT_NAME=/sub/y.cgi/a\nPATH_INFO=/b", OK,
	    "@/cgi/sub/y.cgi", "/sub/y.cgi", "/a/b", NULL },
	{ "DOCUMENT_ROOT=@/cgi\nPATH_INFO=/x.cgi/b", OK, "@/cgi/x.cgi",
	    "/x.cgi", "/b", NULL },
	{ FILE_IS "@/cgi/none\nDOCUMENT_ROOT=@/cgi\nSCRIPT_NAME=/x.cgi", OK,
	    "@/cgi/x.cgi", "/x.cgi", "", NULL },
	{ FILE_IS "x.cgi\nDOCUMENT_ROOT=@/cgi\nSCRIPT_NAME=/x.cgi", OK,
	    "@/cgi/x.cgi", "/x.cgi", "", NULL },
	{ FILE_IS "@/cgi/sub\nDOCUMENT_ROOT=@/cgi\nSCRIPT_NAME=/sub\n"
		  "PATH_INFO=/y.cgi",
	    OK, "@/cgi/sub/y.cgi", "/sub/y.cgi", "", NULL },

	/* 404 */
	{ "", MISSING },
	{ FILE_IS "", MISSING },
	{ FILE_IS "@/cgi/none.cgi", MISSING },
	{ FILE_IS "@/cgi/sub/none.cgi/x.cgi", MISSING },
	{ FILE_IS "x.cgi", MISSING },
	{ FILE_IS "../cgi/x.cgi", MISSING },
	{ FILE_IS "/", FORBIDDEN },
	{ FILE_IS "@/cgi/dangling", MISSING },
	{ FILE_IS "@/cgi/loop", MISSING },
	{ "DOCUMENT_ROOT=cgi\nSCRIPT_NAME=/x.cgi", MISSING },
	{ "DOCUMENT_ROOT=@/cgi", MISSING },
	{ FILE_IS "@/cgi/sub\nDOCUMENT_ROOT=@/cgi\nSCRIPT_NAME=/sub\n"
		  "PATH_INFO=/none.cgi",
	    MISSING },
	/* 403 */
	{ FILE_IS "@/cgi/sub", FORBIDDEN },
	{ FILE_IS "@/cgi/sub/", FORBIDDEN },
	{ FILE_IS "@/cgi", FORBIDDEN },
	{ FILE_IS "@/cgi/plain.txt", FORBIDDEN },
	{ FILE_IS "@/cgi/fifo", FORBIDDEN },
	{ FILE_IS "/dev/null", FORBIDDEN },

	/* What lies outside, by whatever way. */
	{ FILE_IS "@/outside/z.cgi", FORBIDDEN },
	{ FILE_IS "@/cgi/../outside/z.cgi", FORBIDDEN },
	{ FILE_IS "@/cgi-evil/z.cgi", FORBIDDEN },
	{ FILE_IS "@/cgi/link-out.cgi", FORBIDDEN },
	{ FILE_IS "@/cgi/dir-out/z.cgi", FORBIDDEN },
	{ FILE_IS "@/cgi/dir-out/z.cgi/info", FORBIDDEN },
	{ "DOCUMENT_ROOT=@/outside\nSCRIPT_NAME=/z.cgi", FORBIDDEN },
	{ "DOCUMENT_ROOT=@/cgi\nSCRIPT_NAME=/../outside/z.cgi", FORBIDDEN },
	{ FILE_IS "/bin/sh", FORBIDDEN },
	/* A link that stays inside, or leads in, is as what it names. */
	{ FILE_IS "@/cgi/link-in.cgi", OK, "@/cgi/sub/y.cgi", AS_IT_IS },
	{ FILE_IS "@/way-in/x.cgi", OK, "@/cgi/x.cgi", AS_IT_IS },

	/* An interpreter reads, and need not be able to execute. */
	{ FILE_IS "@/cgi/s.py", OK, "@/cgi/s.py", NULL, NULL,
	    "/usr/bin/python3" },
	{ FILE_IS "@/cgi/s.py/a\nSCRIPT_NAME=/s.py/a", OK, "@/cgi/s.py",
	    "/s.py", "/a", "/usr/bin/python3" },
	{ FILE_IS "@/cgi/link.txt", OK, "@/cgi/s.py", NULL, NULL,
	    "/usr/bin/python3" },
	{ FILE_IS "@/cgi/s.pyc", FORBIDDEN },
	{ FILE_IS "@/cgi/d.py/plain", FORBIDDEN },
	{ FILE_IS "@/outside/o.py", FORBIDDEN },
};

static void
expect_row(const struct row *row, const struct config_backend *backend)
{
	struct params params = params_of(expand(row->params), &arena);
	struct script script;
	struct err err = { "" };
	enum script_status status =
	    script_find(backend, &params, &arena, &script, &err);
	char *slash;

	if (status != row->status)
		print_message("%s: %s\n", row->params, err.text);
	assert_int_equal(status, row->status);
	if (status != SCRIPT_OK) {
		assert_true(err.text[0] != '\0');
		return;
	}
	assert_string_equal(script.path, expand(row->path));
	slash = strrchr(script.path, '/');
	assert_int_equal(strlen(script.directory), slash - script.path);
	assert_memory_equal(
	    script.directory, script.path, (size_t)(slash - script.path));
	assert_int_equal(script.split, row->script_name != NULL);
	if (script.split) {
		expect_str(script.script_name, str_of(row->script_name));
		expect_str(script.path_info, str_of(row->path_info));
	}
	if (row->interpreter == NULL)
		assert_null(script.interpreter);
	else
		assert_string_equal(script.interpreter, row->interpreter);
}

/* A backend whose scripts lie in `root` ("@" as above). */
static struct config *
load_root(const char *root)
{
	struct config *config;
	struct buf text;

	buf_init(&text);
	buf_addf(&text,
	    "[backend default]\ntype = cgi\nroot = %s\n"
	    "interpreter = .x=/bin/sh, .py=/usr/bin/python3\n%c",
	    expand(root), '\0');
	config = load_good(text.p);
	buf_release(&text);
	return config;
}

static void
test_table(void **state)
{
	struct config *config = load_root("@/cgi");

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++)
		expect_row(&table[i], &config->backend[0]);
	config_unref(config);
}

/* A root that is a link is what it names; all files lie in "/". */
static void
test_roots(void **state)
{
	static const struct {
		const char *root;
		struct row row;
	} rows[] = {
		{ "@/way-in",
		    { FILE_IS "@/cgi/x.cgi", OK, "@/cgi/x.cgi", AS_IT_IS } },
		{ "@/cgi/",
		    { FILE_IS "@/way-in/x.cgi", OK, "@/cgi/x.cgi", AS_IT_IS } },
		{ "@/cgi/sub", { FILE_IS "@/cgi/x.cgi", FORBIDDEN } },
		{ "/",
		    { FILE_IS "@/outside/z.cgi", OK, "@/outside/z.cgi",
			AS_IT_IS } },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct config *config = load_root(rows[i].root);

		expect_row(&rows[i].row, &config->backend[0]);
		config_unref(config);
	}
}

/* Names as long as a head allows cost no more than they have to. */
static void
test_long_names(void **state)
{
	struct config *config = load_root("@/cgi");

	(void)state;
	for (int slashes = 0; slashes < 2; slashes++) {
		struct params params;
		struct script script;
		struct err err;
		struct buf text;

		buf_init(&text);
		buf_addf(&text, "SCRIPT_FILENAME=%s/cgi/x.cgi/", base);
		while (text.len < 65000)
			buf_add_char(&text, slashes ? '/' : 'a');
		buf_addf(&text, "\nSCRIPT_NAME=/%c", '\0');
		params = params_of(text.p, &arena);
		assert_in_range(script_find(&config->backend[0], &params,
				    &arena, &script, &err),
		    SCRIPT_OK, SCRIPT_FORBIDDEN);
		buf_release(&text);
	}
	config_unref(config);
}

static void
make_file(const char *path, mode_t mode)
{
	write_file(path, STR("#!/bin/sh\n"));
	assert_int_equal(chmod(path, mode), 0);
}

static int
setup(void **state)
{
	int failed = enter_directory(state);

	arena_init(&arena);
	if (failed || realpath(".", base) == NULL)
		return 1;
	failed = mkdir("cgi", 0755) | mkdir("cgi/sub", 0755) |
	    mkdir("cgi/d.py", 0755) | mkdir("outside", 0755) |
	    mkdir("cgi-evil", 0755) | mkfifo("cgi/fifo", 0755);
	make_file("cgi/x.cgi", 0755);
	make_file("cgi/sub/y.cgi", 0755);
	make_file("cgi/plain.txt", 0644);
	make_file("cgi/s.py", 0644);
	make_file("cgi/s.pyc", 0644);
	make_file("cgi/d.py/plain", 0644);
	make_file("outside/z.cgi", 0755);
	make_file("outside/o.py", 0755);
	make_file("cgi-evil/z.cgi", 0755);
	return failed | symlink("../outside/z.cgi", "cgi/link-out.cgi") |
	    symlink("../outside", "cgi/dir-out") |
	    symlink("sub/y.cgi", "cgi/link-in.cgi") |
	    symlink("s.py", "cgi/link.txt") |
	    symlink("nowhere", "cgi/dangling") | symlink("loop", "cgi/loop") |
	    symlink("cgi", "way-in");
}

static int
teardown(void **state)
{
	arena_release(&arena);
	return leave_directory(state);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_roots),
		cmocka_unit_test(test_long_names),
	};

	return cmocka_run_group_tests_name("script", tests, setup, teardown);
}
