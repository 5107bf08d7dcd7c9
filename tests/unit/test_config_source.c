#include "config/config.h"

#include <stdlib.h>

#include "config/source_line.h"
#include "config_text.h"

static void
test_faults_of_lines(void **state)
{
	static const struct {
		struct str text;
		const char *expected;
	} table[] = {
		{ STR(BACKEND), "" },
		{ STR(""),
		    "t.ini: there is no [backend NAME] to pass requests to\n" },
		{ STR("\n\n; a\n# b\n \t \n" BACKEND), "" },
		{ STR("\xef\xbb\xbf" BACKEND), "" },
		{ STR("[backend default]\r\naddress = 127.0.0.1:9000\r\n"),
		    "" },
		{ STR("[backend default]\r\naddress = 127.0.0.1:9000\r"), "" },
		{ STR("[backend default]\naddress = 127.0.0.1:9000"), "" },
		{ STR("[backend default]  \t\n"
		      "address\t=   127.0.0.1:9000  \n"),
		    "" },
		{ STR("[backend default]\raddress = 127.0.0.1:9000\r"),
		    "t.ini:1: the lines end in CR alone; they have to end in "
		    "LF or CRLF\n" },
		{ STR("[store]\nprefix = a\rb\n" BACKEND),
		    "t.ini:2: [store] a carriage return inside the line\n" },
		{ STR("[store]\nprefix = a\0b\n" BACKEND),
		    "t.ini:2: [store] a NUL byte in the line\n" },
		{ STR("[store]\nprefix = a\033b\n" BACKEND),
		    "t.ini:2: [store] a control character in the line\n" },
		{ STR("[store]\nprefix = a\177b\n" BACKEND),
		    "t.ini:2: [store] a control character in the line\n" },
		{ STR("[store]\nprefix = a\xff\n" BACKEND),
		    "t.ini:2: [store] the line is not valid UTF-8\n" },
		{ STR("[store]\n prefix = a\n" BACKEND),
		    "t.ini:2: [store] the line is indented\n" },
		{ STR("[store]\nprefix = a\n\tb\n" BACKEND),
		    "t.ini:3: [store] the line is indented\n" },
		{ STR("[store]\n  ; prefix\n" BACKEND),
		    "t.ini:2: [store] the line is indented\n" },
		{ STR(" [store]\nprefix = a\n" BACKEND),
		    "t.ini:1: the line is indented\n" },
		{ STR("[store]\nprefix: a\n" BACKEND),
		    "t.ini:2: [store] a : before any =; write NAME = VALUE\n" },
		{ STR("[store]\nredis:6379 = a\n" BACKEND),
		    "t.ini:2: [store] a : before any =; write NAME = VALUE\n" },
		{ STR("[store]\nprefix\n" BACKEND),
		    "t.ini:2: [store] a line without =; write NAME = VALUE\n" },
		{ STR("[store]\n= a\n" BACKEND),
		    "t.ini:2: [store] no name before the =\n" },
		{ STR("[store]\nprefix =\n" BACKEND),
		    "t.ini:2: [store] prefix: has no value\n" },
		{ STR("prefix = a\n" BACKEND),
		    "t.ini:1: an option before the first section\n" },
		{ STR("[store\nprefix = a\n" BACKEND),
		    "t.ini:1: the section's name has no ] at its end\n" },
		{ STR("[store] ; here\nprefix = a\n" BACKEND),
		    "t.ini:1: text after the ] of a section\n" },
		{ STR("[]\nprefix = a\n" BACKEND),
		    "t.ini:1: the section has no name\n" },
		{ STR("[ ]\nprefix = a\n" BACKEND),
		    "t.ini:1: the section has no name\n" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++)
		expect_reports(table[i].text, table[i].expected);
}

static void
test_faults_of_names(void **state)
{
	static const struct {
		const char *text;
		const char *expected;
	} table[] = {
		{ "[sotre]\nprefix = a\n",
		    "t.ini:1: unknown section [sotre]; did you mean "
		    "[store]?\n" },
		{ "[ store]\nprefix = a\n",
		    "t.ini:1: unknown section [ store]; did you mean "
		    "[store]?\n" },
		{ "[teir gold]\nprefix = a\n",
		    "t.ini:1: unknown section [teir gold]; did you mean "
		    "[tier]?\n" },
		{ "[Store]\n",
		    "t.ini:1: unknown section [Store]; did you mean "
		    "[store]?\n" },
		{ "[store x]\n", "t.ini:1: [store] has no name of its own\n" },
		{ "[limit]\n",
		    "t.ini:1: [limit] needs a name: [limit NAME]\n" },
		{ "[limit A]\n",
		    "t.ini:1: a name has 1 to 32 of a-z 0-9 _ -: "
		    "[limit NAME]\n" },
		{ "[limit a b]\n",
		    "t.ini:1: a name has 1 to 32 of a-z 0-9 _ -: "
		    "[limit NAME]\n" },
		{ "[backend aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]\n",
		    "t.ini:1: a name has 1 to 32 of a-z 0-9 _ -: "
		    "[backend NAME]\n" },
		{ "[store]\nprefix = a\n[store]\nmax_keys = 9\n",
		    "t.ini:3: duplicate section [store], first at t.ini:1\n" },
		/* B71: two of one name would be one count. */
		{ "[limit a]\nrate = 1/s\nscope = local\n[limit a]\n",
		    "t.ini:4: duplicate section [limit a], first at "
		    "t.ini:1\n" },
		{ "[store]\nprefix = a\nprefix = b\n",
		    "t.ini:3: [store] prefix: duplicate option, first at "
		    "t.ini:2\n" },
		{ "[gateway]\nthread = 3\n",
		    "t.ini:2: [gateway] thread: unknown option; did you mean "
		    "threads?\n" },
		{ "[gateway]\nlsiten = 3\n",
		    "t.ini:2: [gateway] lsiten: unknown option; did you mean "
		    "listen?\n" },
		{ "[gateway]\nrate = 3/s\n",
		    "t.ini:2: [gateway] rate: unknown option; it belongs to "
		    "[limit]\n" },
		{ "[gateway]\nuntrusted_hosts = ::1\n",
		    "t.ini:2: [gateway] untrusted_hosts: unknown option\n" },
		{ "[gateway]\nThreads = 3\n",
		    "t.ini:2: [gateway] Threads: unknown option; did you mean "
		    "threads?\n" },
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		snprintf(text, sizeof(text), "%s%s", table[i].text, BACKEND);
		expect_reports(str_of(text), table[i].expected);
	}
}

/* In the order of the lines, though found at different times. */
static void
test_all_errors_at_once(void **state)
{
	(void)state;
	expect_reports(STR("nowhere = 1\n"
			   "[gateway]\n"
			   "threads = 0\n"
			   "  indented = 1\n"
			   "what = 1\n"
			   "[limit a]\n"
			   "align = first\n"
			   "[limit b\n"
			   "rate = no\n"
			   "[limit c]\n"
			   "rate = 1/s\n"
			   "rate = 2/s\n"
			   "[store]\n"
			   "timeout = 50\n"),
	    "t.ini: there is no [backend NAME] to pass requests to\n"
	    "t.ini:1: an option before the first section\n"
	    "t.ini:3: [gateway] threads: must be 1 to 1024\n"
	    "t.ini:4: [gateway] the line is indented\n"
	    "t.ini:5: [gateway] what: unknown option\n"
	    "t.ini:6: [limit a] scope: a shared limit needs address in "
	    "[store]\n"
	    "t.ini:6: [limit a] rate: is required\n"
	    "t.ini:7: [limit a] align: belongs to algorithm = fixed_window\n"
	    "t.ini:8: the section's name has no ] at its end\n"
	    "t.ini:12: [limit c] rate: duplicate option, first at t.ini:11\n"
	    "t.ini:14: [store] timeout: `50`: the unit is missing; "
	    "units are ms s m h d w\n"
	    "t.ini:14: [store] timeout: does nothing without address\n");
}

/* A line of `n` bytes in all. */
static struct str
long_line(struct buf *text, size_t n)
{
	buf_init(text);
	buf_addf(text, BACKEND "[store]\naddress = unix:/r\nusername = ");
	for (size_t i = strlen("username = "); i < n; i++)
		buf_add_char(text, i % 2 == 0 ? '=' : 'x');
	buf_addf(text, "\nprefix = after\n");
	return buf_str(text);
}

static void
test_long_lines(void **state)
{
	static const size_t fits[] = { 196, 197, 198, 199, 200, 201, 512, 4096,
		8191, 8192 };
	struct config *config;
	struct buf text, reports;

	(void)state;
	for (size_t i = 0; i < COUNT(fits); i++) {
		write_file("t.ini", long_line(&text, fits[i]));
		config = load_file(&reports);
		assert_string_equal(reports.p, "");
		assert_int_equal(strlen(config->store.username),
		    fits[i] - strlen("username = "));
		assert_string_equal(config->store.prefix, "after");
		config_unref(config);
		buf_release(&reports);
		buf_release(&text);
	}
	expect_reports(long_line(&text, 8193),
	    "t.ini:5: [store] the line is longer than 8192 bytes\n");
	buf_release(&text);
}

/* Wherever a file ends, it is read to there and nothing else happens. */
static void
test_cut_anywhere(void **state)
{
	static const char text[] =
	    "\xef\xbb\xbf# \xc3\xa9\r\n[gateway]\nthreads = 3\n"
	    "[store]\r\naddress = unix:/a\npassword = ${HOME}$${\n" BACKEND
	    "[limit a]\nrate = 1/s, 2/m\nkey = header:A+path\n"
	    "missing_key = deny\npath = ~^/a(b|c)\n";
	struct buf reports;

	(void)state;
	for (size_t len = 0; len <= sizeof(text) - 1; len++) {
		write_file("t.ini", (struct str){ text, len });
		config_unref(load_file(&reports));
		buf_release(&reports);
	}
}

/* Editors put it there, and nobody sees it: no first key may be unknown. */
static void
test_byte_order_marks(void **state)
{
#define MARK "\xef\xbb\xbf"
	struct config *c;

	(void)state;
	write_file("keys", STR(MARK "one\n" MARK "two\n"));
	write_file("marked", STR(MARK "# none\none\n"));
	write_file("body", STR(MARK "<p>{limit}</p>"));
	write_file("short", STR("ab"));
	write_file("secret", STR(MARK "a\n"));
	chmod("secret", 0600);
	c = load_good(MARK BACKEND
	    "[store]\naddress = unix:/r\npassword_file = secret\n"
	    "[limit a]\nrate = 1/s\nkey = header:A\nmissing_key = deny\n"
	    "known_keys = @keys\n"
	    "[limit b]\nrate = 1/s\nkey = header:A\nmissing_key = deny\n"
	    "known_keys = @marked\n"
	    "[response]\nbody_html = body\nbody_text = short\n");
	assert_true(known_has(c->limit[0].known, STR("one")));
	assert_false(known_has(c->limit[0].known, STR(MARK "one")));
	assert_false(known_has(c->limit[0].known, STR("two")));
	assert_true(known_has(c->limit[0].known, STR(MARK "two")));
	assert_true(known_has(c->limit[1].known, STR("one")));
	assert_false(known_has(c->limit[1].known, STR("# none")));
	assert_string_equal(c->store.password, "a");
	assert_true(
	    str_eq(c->response.reply.body[ACCEPT_HTML], STR("<p>{limit}</p>")));
	assert_true(str_eq(c->response.reply.body[ACCEPT_TEXT], STR("ab")));
	config_unref(c);
}

static void
test_values_are_taken_whole(void **state)
{
	struct config *config =
	    load_good(BACKEND "[store]\n"
			      "address = unix:/r\n"
			      "username = \"a ; b\" # c\n"
			      "password =  p;w #=:[x] \xe2\x82\xac  \n");

	(void)state;
	assert_string_equal(config->store.username, "\"a ; b\" # c");
	assert_string_equal(config->store.password, "p;w #=:[x] \xe2\x82\xac");
	config_unref(config);
}

static void
test_environment(void **state)
{
	struct config *config;

	(void)state;
	setenv("SLUICE_TEST_WORD", "s3cret $${ ${X}", 1);
	setenv("SLUICE_TEST_LINES", "a\nb", 1);
	setenv("SLUICE_TEST_EMPTY", "", 1);
	config = load_good(
	    BACKEND "[store]\naddress = unix:/r\nusername = "
		    "<${SLUICE_TEST_WORD}>$${x}\n"
		    "password = ${SLUICE_TEST_WORD}${SLUICE_TEST_WORD}\n"
		    "alert_command = echo $X $$ {}\n");
	assert_string_equal(config->store.username, "<s3cret $${ ${X}>${x}");
	assert_string_equal(
	    config->store.password, "s3cret $${ ${X}s3cret $${ ${X}");
	assert_string_equal(config->store.alert_command, "echo $X $$ {}");
	config_unref(config);
	expect_reports(STR("[store]\n"
			   "username = ${SLUICE_TEST_NONE}\n"
			   "password = ${SLUICE_TEST_LINES}\n"
			   "prefix = a${b\n"
			   "address = ${}\n"
			   "alert_command = ${SLUICE_TEST_EMPTY}\n"
			   "timeout = ${SLUICE_TEST_EMPTY}9ms\n" BACKEND),
	    "t.ini:2: [store] username: ${SLUICE_TEST_NONE}: there is no such "
	    "variable\n"
	    "t.ini:3: [store] password: ${SLUICE_TEST_LINES}: the variable "
	    "holds a control character or is not valid UTF-8\n"
	    "t.ini:4: [store] prefix: ${ without a } ($${ is a plain ${)\n"
	    "t.ini:5: [store] address: no variable's name in ${}\n"
	    "t.ini:6: [store] alert_command: has no value\n");
}

static void
test_include(void **state)
{
	struct config *config;

	(void)state;
	mkdir("conf.d", 0755);
	write_file("conf.d/b.ini",
	    STR("[limit b]\nrate = unlimited\nclient = @net.txt\n"
		"[gateway]\nmax_head = 9k\n"));
	write_file("conf.d/net.txt", STR("# ours\r\n10.0.0.0/8\r\n\n ::1 \n"));
	write_file("conf.d/a.ini", STR("[limit a]\nrate = unlimited\n"));
	write_file("conf.d/no", STR("[nothing]\n"));
	write_file("last.ini", STR("[limit last]\nrate = unlimited\n"));
	config = load_good(
	    "[gateway]\ninclude = conf.d/*.ini, last.ini\n"
	    "threads = 5\n" STORE "[limit first]\nrate = unlimited\n" BACKEND);
	assert_int_equal(config->gateway.threads, 5);
	assert_int_equal(config->gateway.max_head_bytes, 9 * 1024);
	assert_int_equal(config->n_limits, 4);
	assert_string_equal(config->limit[0].name, "first");
	assert_string_equal(config->limit[1].name, "a");
	assert_string_equal(config->limit[1].file, "conf.d/a.ini");
	assert_int_equal(config->limit[1].line, 1);
	assert_string_equal(config->limit[2].name, "b");
	assert_int_equal(config->limit[2].client.n, 2);
	assert_string_equal(config->limit[3].name, "last");
	config_unref(config);
}

static void
test_include_faults(void **state)
{
	(void)state;
	mkdir("bad.d", 0755);
	write_file("bad.d/a.ini",
	    STR("[store]\nprefix = x\n[limit a]\nrate = 1/s\nwhat = 1\n"));
	write_file("bad.d/b.ini", STR("[gateway]\ninclude = ../t.ini\n"));
	mkdir("bad.d/dir.ini", 0755);
	expect_reports(STR("[gateway]\n"
			   "include = bad.d/*.ini,none.ini, nodir/*.ini\n"
			   "[store]\naddress = memory:\nprefix = y\n"
			   "[limit a]\nrate = 1/s\n" BACKEND),
	    "t.ini:2: [gateway] include: nodir/*.ini: its directory can not "
	    "be read\n"
	    "t.ini:2: [gateway] include: bad.d/dir.ini: is a directory\n"
	    "t.ini:2: [gateway] include: none.ini: can not be read: No such "
	    "file or directory\n"
	    "bad.d/a.ini:2: [store] prefix: duplicate option, first at "
	    "t.ini:5\n"
	    "bad.d/a.ini:3: duplicate section [limit a], first at t.ini:6\n"
	    "bad.d/a.ini:4: [limit a] rate: duplicate option, first at "
	    "t.ini:7\n"
	    "bad.d/a.ini:5: [limit a] what: unknown option\n"
	    "bad.d/b.ini:2: [gateway] include: bad.d/../t.ini: was read "
	    "before\n");
	/* A pattern that matches nothing is none. */
	expect_reports(STR("[gateway]\ninclude = bad.d/*.x\n" BACKEND), "");
	expect_reports(STR("[gateway]\ninclude = a,,b\n" BACKEND),
	    "t.ini:2: [gateway] include: an item of the list is empty\n");
}

static void
test_files_that_are_none(void **state)
{
	struct buf reports;

	(void)state;
	unlink("t.ini");
	assert_null(load_file(&reports));
	assert_string_equal(
	    reports.p, "t.ini: can not be read: No such file or directory\n");
	buf_release(&reports);

	mkdir("t.ini", 0755);
	assert_null(load_file(&reports));
	assert_string_equal(reports.p, "t.ini: is a directory\n");
	buf_release(&reports);
	rmdir("t.ini");

	assert_int_equal(mkfifo("t.ini", 0600), 0);
	assert_null(load_file(&reports));
	assert_string_equal(reports.p, "t.ini: is not a regular file\n");
	buf_release(&reports);
	unlink("t.ini");

	if (geteuid() == 0)
		return;
	write_file("t.ini", STR(BACKEND));
	chmod("t.ini", 0);
	assert_null(load_file(&reports));
	assert_string_equal(
	    reports.p, "t.ini: can not be read: Permission denied\n");
	buf_release(&reports);
}

static void
test_utf8(void **state)
{
	static const struct {
		const char *text;
		bool valid;
	} table[] = {
		{ "\x7e", true },
		{ "\xc2\x80", true },
		{ "\xdf\xbf", true },
		{ "\xe0\xa0\x80", true },
		{ "\xed\x9f\xbf", true },
		{ "\xef\xbf\xbf", true },
		{ "\xf0\x90\x80\x80", true },
		{ "\xf4\x8f\xbf\xbf", true },
		{ "\x80", false },
		{ "\xc1\xbf", false },
		{ "\xc2", false },
		{ "\xc2\x7f", false },
		{ "\xe0\x9f\xbf", false },
		{ "\xe2\x82", false },
		{ "\xe2\x82\x41", false },
		{ "\xed\xa0\x80", false },
		{ "\xf0\x8f\xbf\xbf", false },
		{ "\xf0\x90\x80", false },
		{ "\xf4\x90\x80\x80", false },
		{ "\xf5\x80\x80\x80", false },
	};
	struct str name, value;
	struct err err;
	char line[16];

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		snprintf(line, sizeof(line), "a=%s", table[i].text);
		assert_int_equal(source_line_read(str_of(line), &name, &value,
				     &err) == SOURCE_OPTION,
		    table[i].valid);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_faults_of_lines),
		cmocka_unit_test(test_faults_of_names),
		cmocka_unit_test(test_all_errors_at_once),
		cmocka_unit_test(test_long_lines),
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_byte_order_marks),
		cmocka_unit_test(test_values_are_taken_whole),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_include),
		cmocka_unit_test(test_include_faults),
		cmocka_unit_test(test_files_that_are_none),
		cmocka_unit_test(test_utf8),
	};

	return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
