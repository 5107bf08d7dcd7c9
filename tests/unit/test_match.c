#include "pure/match.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void
test_glob(void **state)
{
	static const struct {
		const char *pattern;
		const char *text;
		bool matches;
	} table[] = {
		{ "", "", true },
		{ "", "a", false },
		{ "a", "", false },
		{ "*", "", true },
		{ "**", "", true },
		{ "*", "/any/thing", true },
		{ "/login", "/login", true },
		{ "/login", "/login/", false },
		{ "/login", "/Login", false },
		{ "/login*", "/login", true },
		{ "/login*", "/login/a/b", true },
		{ "/login*", "/logi", false },
		{ "*.php", "/a/b.php", true },
		{ "*.php", "/a/b.php5", false },
		{ "*.php", ".php.php", true },
		{ "/a/*/c", "/a/b/x/c", true },
		{ "/a/*/c", "/a//c", true },
		{ "/a/*/c", "/a/c", false },
		{ "*aab", "aaaab", true },
		{ "*a*b*c", "xaxbxcxbc", true },
		{ "*a*b*c", "xaxcxb", false },
		{ "a**b", "ab", true },
		{ "a?c", "abc", false },
		{ "a?c", "a?c", true },
		{ "[ab]", "a", false },
		{ "[ab]", "[ab]", true },
		{ "\\*", "\\x", true },
		{ "a", "*", false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++)
		if (match_glob(str_of(table[i].pattern),
			str_of(table[i].text)) != table[i].matches)
			fail_msg(
			    "`%s` on `%s`", table[i].pattern, table[i].text);
	assert_true(match_glob(STR("a\0*"), STR("a\0\0b")));
	assert_false(match_glob(STR("a\0"), STR("a")));
	assert_true(match_glob(STR("*"), STR_NONE));
}

/* The definition itself, for comparison. */
static bool
plain_glob(const char *p, const char *t)
{
	if (*p == '\0')
		return *t == '\0';
	if (*p == '*')
		return plain_glob(p + 1, t) ||
		    (*t != '\0' && plain_glob(p, t + 1));
	return *p == *t && plain_glob(p + 1, t + 1);
}

/* SEED=N runs the same draws again. */
static unsigned
draw_seed(void)
{
	const char *text = getenv("SEED");
	unsigned seed = text != NULL ? (unsigned)strtoul(text, NULL, 10)
				     : (unsigned)time(NULL);

	print_message("seed %u\n", seed);
	return seed;
}

static void
draw(char *text, size_t max, const char *alphabet, unsigned *seed)
{
	size_t len = (size_t)rand_r(seed) % (max + 1);

	for (size_t i = 0; i < len; i++)
		text[i] = alphabet[(size_t)rand_r(seed) % strlen(alphabet)];
	text[len] = '\0';
}

static void
test_glob_drawn(void **state)
{
	unsigned seed = draw_seed();
	int matched = 0;

	(void)state;
	for (int round = 0; round < 200000; round++) {
		char pattern[9];
		char text[13];
		bool expected;

		draw(pattern, 8, "*ab*", &seed);
		draw(text, 12, "ab", &seed);
		expected = plain_glob(pattern, text);
		matched += expected;
		if (match_glob(str_of(pattern), str_of(text)) != expected)
			fail_msg("`%s` on `%s`", pattern, text);
	}
	assert_in_range(matched, 20000, 180000);
}

/* Many stars and a text that almost matches: not exponential. */
static void
test_glob_is_bounded(void **state)
{
	static char text[8192];
	int64_t start_us = clock_mono_us();

	(void)state;
	memset(text, 'a', sizeof(text));
	assert_false(match_glob(STR("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*ab"),
	    (struct str){ text, sizeof(text) }));
	assert_in_range(clock_mono_us() - start_us, 0, 2000000);
}

static struct match *
match_of(const char *value, bool nocase)
{
	struct err err = { "" };
	struct match *m = match_new(str_of(value), nocase, &err);

	if (m == NULL)
		fail_msg("`%s`: %s", value, err.text);
	return m;
}

static void
test_match(void **state)
{
	static const struct {
		const char *value;
		bool nocase;
		struct str text;
		bool matches;
	} table[] = {
		{ "/a, /b*", false, { "/a", 2 }, true },
		{ "/a, /b*", false, { "/bc", 3 }, true },
		{ "/a,/b*", false, { "/c", 2 }, false },
		{ " /a ", false, { "/a", 2 }, true },
		{ "*", false, { "", 0 }, true },
		{ "*", false, { NULL, 0 }, true },
		{ "Example.COM", true, { "example.com", 11 }, true },
		{ "*.example.com", true, { "WWW.EXAMPLE.COM", 15 }, true },
		{ "*.example.com", false, { "WWW.EXAMPLE.COM", 15 }, false },
		{ "a[", true, { "A[", 2 }, true },
		{ "a[", true, { "A{", 2 }, false },
		{ "@", true, { "`", 1 }, false },
		{ "~^/a", false, { "/abc", 4 }, true },
		{ "~^/a", false, { "x/abc", 5 }, false },
		{ "~b", false, { "/abc", 4 }, true },
		{ "~ ^/a$ ", false, { "/a", 2 }, true },
		{ "~^/a{1,2}$", false, { "/aa", 3 }, true },
		{ "~^(a|b),c", false, { "b,c", 3 }, true },
		{ "~^/A", false, { "/a", 2 }, false },
		{ "~^/A", true, { "/a", 2 }, true },
		{ "~^$", false, { "", 0 }, true },
		{ "~^$", false, { NULL, 0 }, true },
		{ "~^/a$", false, { "/a\n", 3 }, false },
		{ "~^/a.*z$", false, { "/a\nz", 4 }, true },
		{ "~^/a.z$", false, { "/a\0z", 4 }, true },
		{ "~^/a.z$", false, { "/a\xffz", 4 }, true },
		{ "~^/\\d+$", false, { "/42", 3 }, true },
		{ " ~b", false, { "abc", 3 }, true },
		{ "x,~b", false, { "~b", 2 }, true },
		{ "x,~b", false, { "abc", 3 }, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct match *m = match_of(table[i].value, table[i].nocase);

		if (match_test(m, table[i].text) != table[i].matches)
			fail_msg("`%s` on `%.*s`", table[i].value,
			    STR_ARG(table[i].text));
		match_free(m);
	}
	assert_true(match_test(NULL, STR("anything")));
	match_free(NULL);
}

static void
test_match_errors(void **state)
{
	static const struct {
		const char *value;
		const char *error;
	} table[] = {
		{ "", "``: an empty item" },
		{ " ", "``: an empty item" },
		{ "/a,", "`/a,`: an empty item" },
		{ ",/a", "an empty item" },
		{ "/a, ,/b", "an empty item" },
		{ "~", "no regex behind the `~`" },
		{ "~  ", "no regex behind the `~`" },
		{ "~a(b", "the regex `a(b` is wrong at its byte 4: missing" },
		{ "~[z-a]", "is wrong at its byte" },
		{ "~(*UTF)a", "is wrong at its byte" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct err err = { "" };

		assert_null(match_new(str_of(table[i].value), false, &err));
		if (strstr(err.text, table[i].error) == NULL)
			fail_msg("`%s`, not `%s`", err.text, table[i].error);
	}
}

/* The match keeps copies: what it was made from may go. */
static void
test_match_owns_its_text(void **state)
{
	char value[] = "/first,/second";
	struct match *m = match_of(value, false);

	(void)state;
	memset(value, 'x', sizeof(value) - 1);
	assert_true(match_test(m, STR("/second")));
	assert_false(match_test(m, STR("xxxxxxx")));
	match_free(m);
}

/* A plain regex holds on a long text: no padding gets around a limit. */
static void
test_regex_on_long_text(void **state)
{
	static const char *const regexes[] = { "~^/api/.*", "~^/api/.*/x",
		"~/api/.*/x", "~^/api/(?:[a-z/]+)+", "~^/api/[^?]*$",
		"~x.*a.*a" };
	static char text[100000];

	(void)state;
	memset(text, 'a', sizeof(text));
	memcpy(text, "/api/v/x", 8);
	for (size_t i = 0; i < COUNT(regexes); i++) {
		struct match *m = match_of(regexes[i], false);

		if (!match_test(m, (struct str){ text, sizeof(text) }))
			fail_msg("`%s`", regexes[i]);
		match_free(m);
	}
}

/* The worst regex and the worst texts end soon, without a match. */
static void
test_regex_is_bounded(void **state)
{
	static const char *const regexes[] = { "~(a|aa)+$", "~^(a+)+$",
		"~(a+)+$", "~^(([a-z])+.)+[A-Z]([a-z])+$", "~(x+x+)+y",
		"~^(?:a?){30}a{30}$", "~(?R)?a+b" };
	static char text[2048]; /* runs of a, of which some just end */

	(void)state;
	for (size_t run = 8; run <= 40; run += 4) {
		memset(text, 'a', sizeof(text));
		for (size_t i = run - 1; i < sizeof(text); i += run)
			text[i] = '!';
		text[sizeof(text) - 1] = '!';
		for (size_t i = 0; i < COUNT(regexes); i++) {
			struct match *m = match_of(regexes[i], false);
			int64_t start_us = clock_mono_us();

			assert_false(
			    match_test(m, (struct str){ text, sizeof(text) }));
			if (clock_mono_us() - start_us > 10000000)
				fail_msg("`%s` took %lld us", regexes[i],
				    (long long)(clock_mono_us() - start_us));
			if (getenv("SHOW") != NULL)
				print_message("%zu %s %lld us\n", run,
				    regexes[i],
				    (long long)(clock_mono_us() - start_us));
			match_free(m);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_glob),
		cmocka_unit_test(test_glob_drawn),
		cmocka_unit_test(test_glob_is_bounded),
		cmocka_unit_test(test_match),
		cmocka_unit_test(test_match_errors),
		cmocka_unit_test(test_match_owns_its_text),
		cmocka_unit_test(test_regex_on_long_text),
		cmocka_unit_test(test_regex_is_bounded),
	};

	return cmocka_run_group_tests_name("match", tests, NULL, NULL);
}
