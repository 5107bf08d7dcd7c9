#include "pure/cost.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* In a block of exact size, so that a byte too far is caught. */
static struct str
exact(const char *text)
{
	char *copy = malloc(strlen(text) + (*text == '\0'));

	memcpy(copy, text, strlen(text));
	return (struct str){ copy, strlen(text) };
}

static void
release(struct str text)
{
	free((char *)(uintptr_t)text.p);
}

static void
test_patterns(void **state)
{
	static const struct {
		const char *item;
		const char *method;
		const char *glob;
		int64_t units;
	} table[] = {
		{ "/v1/search*=10", "", "/v1/search*", 10 },
		{ "POST /v1/export=50", "POST", "/v1/export", 50 },
		{ "GET  /a = 7", "GET", "/a", 7 },
		{ "*=1", "", "*", 1 },
		{ "*.png=0", "", "*.png", 0 },
		{ "/a=b=3", "", "/a=b", 3 },
		{ "/a=1000000000000", "", "/a", COST_MAX },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct str item = exact(table[i].item);
		struct cost_pattern p;
		struct err err;

		if (!cost_parse_pattern(item, &p, &err))
			fail_msg("%s", err.text);
		assert_true(str_eq(p.method, str_of(table[i].method)));
		assert_true(str_eq(p.glob, str_of(table[i].glob)));
		assert_int_equal(p.units, table[i].units);
		release(item);
	}
}

/* B20, B23: whole numbers from 0 on. */
static void
test_faults(void **state)
{
	static const struct {
		const char *item;
		const char *error;
	} table[] = {
		{ "/a",
		    "`/a` is none of PATTERN=N; a cost is a whole number, "
		    "a list such as /search*=10, *=1, or response:NAME" },
		{ "",
		    "`` is none of PATTERN=N; a cost is a whole number, a "
		    "list such as /search*=10, *=1, or response:NAME" },
		{ "/a=",
		    "`/a=`: `` is no cost; it is a whole number up to "
		    "10^12" },
		{ "/a=x",
		    "`/a=x`: `x` is no cost; it is a whole number up to "
		    "10^12" },
		{ "/a=-1",
		    "`/a=-1`: `-1` is no cost; it is a whole number up "
		    "to 10^12" },
		{ "/a=1000000000001",
		    "`/a=1000000000001`: `1000000000001` is no cost; it is a "
		    "whole number up to 10^12" },
		{ "=1", "`=1` can match nothing: a path begins with /" },
		{ "a=1", "`a=1` can match nothing: a path begins with /" },
		{ "POST a=1",
		    "`POST a=1` can match nothing: a path begins with /" },
		{ "post /a=1",
		    "`post /a=1` can match nothing: methods are upper case" },
		{ "Get *=1",
		    "`Get *=1` can match nothing: methods are upper case" },
		{ "P* /a=1",
		    "`P* /a=1` can match nothing: a method is written out, "
		    "or left out for all" },
		{ "POST =1",
		    "`POST =1` can match nothing: a path begins with /" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct str item = exact(table[i].item);
		struct cost_pattern p;
		struct err err;

		assert_false(cost_parse_pattern(item, &p, &err));
		assert_string_equal(err.text, table[i].error);
		release(item);
	}
}

static void
test_single(void **state)
{
	static const char *const bad[] = { "x", "-1", "1000000000001",
		"response:", "response:X Cost", "response:X:Y", "1.5",
		"response:Status", "response:location", "response:CONTENT-TYPE",
		"response:Content-Length", "response:Transfer-Encoding",
		"response:Set-Cookie", "response:Access-Control-Allow-Origin",
		"response:ETag", "response:WWW-Authenticate" };
	static const char *const good[] = { "response:X-Status",
		"response:Cost", "response:Content", "response:Statuses" };
	struct cost cost;
	struct err err;

	(void)state;
	assert_true(cost_parse_single(STR("17"), &cost, &err));
	assert_int_equal(cost.kind, COST_FIXED);
	assert_int_equal(cost.units, 17);
	assert_int_equal(cost_of(&cost, STR("GET"), STR("/")), 17);
	assert_int_equal(cost_of_some(&cost, STR("GET"), STR("/")), 0);
	assert_int_equal(cost_most(&cost), 17);
	assert_int_equal(cost_least(&cost), 17);
	assert_true(cost_parse_single(STR("response:X-Cost"), &cost, &err));
	assert_int_equal(cost.kind, COST_RESPONSE);
	assert_true(str_eq(cost.header, STR("X-Cost")));
	/* What is held until the response says more. */
	assert_int_equal(cost_of(&cost, STR("GET"), STR("/")), 1);
	assert_int_equal(cost_most(&cost), 1);
	assert_int_equal(cost_least(&cost), 1);
	for (size_t i = 0; i < COUNT(bad); i++) {
		cost.units = 5;
		assert_false(cost_parse_single(str_of(bad[i]), &cost, &err));
		assert_int_equal(cost.units, 5);
	}
	for (size_t i = 0; i < COUNT(good); i++)
		assert_true(cost_parse_single(str_of(good[i]), &cost, &err));
}

static void
test_first_match(void **state)
{
	static struct cost_pattern patterns[] = {
		{ { "POST", 4 }, { "/export", 7 }, 50 },
		{ { "GET", 3 }, { "/export", 7 }, 20 },
		{ { NULL, 0 }, { "/search*", 8 }, 10 },
		{ { NULL, 0 }, { "/search/free", 12 }, 0 },
		{ { NULL, 0 }, { "/health", 7 }, 0 },
	};
	static const struct {
		const char *method;
		const char *path;
		int64_t units;
	} table[] = {
		{ "POST", "/export", 50 },
		{ "GET", "/export", 20 },
		{ "HEAD", "/export", 20 },
		{ "PUT", "/export", 1 },
		{ "GET", "/search", 10 },
		{ "PUT", "/search/free", 10 },
		{ "GET", "/health", 0 },
		{ "GET", "/other", 1 },
		{ "", "", 1 },
	};
	struct cost cost = {
		.kind = COST_PATTERNS, .n = COUNT(patterns), .pattern = patterns
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++)
		assert_int_equal(cost_of(&cost, str_of(table[i].method),
				     str_of(table[i].path)),
		    table[i].units);
	assert_int_equal(cost_most(&cost), 50);
}

static void
test_least(void **state)
{
	static const struct {
		const char *items;
		int64_t least;
	} table[] = {
		{ "/a=5,*=7", 5 },
		{ "/a=7,*=5", 5 },
		{ "/a=7,/*=5", 5 },
		/* What no pattern matches costs 1. */
		{ "/a=7", 1 },
		{ "/a=7,POST *=5", 1 },
		/* What is free is not counted, so it is not the least. */
		{ "/a=0,*=7", 7 },
		{ "/a=7,*=0", 7 },
		{ "/a=0,*=0", 1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct cost_pattern pattern[4];
		struct cost cost = { COST_PATTERNS, .pattern = pattern };
		struct str rest = str_of(table[i].items);
		struct err err;

		while (rest.p != NULL)
			assert_true(cost_parse_pattern(
			    str_cut(&rest, ','), &pattern[cost.n++], &err));
		if (cost_least(&cost) != table[i].least)
			fail_msg("%s: %lld", table[i].items,
			    (long long)cost_least(&cost));
	}
}

static void
test_covers(void **state)
{
	static const struct {
		const char *before;
		const char *pattern;
		bool covers;
	} table[] = {
		{ "*=1", "/a=2", true },
		{ "*=1", "POST /a*=2", true },
		{ "*=1", "*=2", true },
		{ "/*=1", "*.php=2", true },
		{ "/*=1", "/a=2", true },
		{ "/a*=1", "/a=2", true },
		{ "/a*=1", "/ab*c=2", true },
		{ "/a*=1", "/a*=2", true },
		{ "/a*b=1", "/a*b*b=2", true },
		{ "*.php=1", "/a/*.php=2", true },
		{ "POST *=1", "POST /a=2", true },
		{ "GET *=1", "HEAD /a=2", true },
		{ "GET /a=1", "GET /a=2", true },
		{ "/a=1", "GET /a=2", true },

		{ "/a=1", "/a*=2", false },
		{ "/a*=1", "*=2", false },
		{ "/a*=1", "/*=2", false },
		{ "/a*b=1", "/a*=2", false },
		{ "*.php=1", "/*=2", false },
		{ "/ab*=1", "/a*=2", false },
		{ "POST *=1", "/a=2", false },
		{ "POST *=1", "*=2", false },
		{ "HEAD *=1", "GET /a=2", false },
		{ "GET /a=1", "POST /a=2", false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct cost_pattern before, pattern;
		struct err err;

		assert_true(
		    cost_parse_pattern(str_of(table[i].before), &before, &err));
		assert_true(cost_parse_pattern(
		    str_of(table[i].pattern), &pattern, &err));
		if (cost_covers(&before, &pattern) != table[i].covers)
			fail_msg("%s, %s", table[i].before, table[i].pattern);
	}
}

/* Which patterns say something of a path, and not the same of all. */
static void
test_some(void **state)
{
	static const struct {
		const char *pattern;
		int64_t units;
	} table[] = {
		{ "*=7", 0 },
		{ "**=7", 0 },
		{ "/*=7", 0 },
		{ "/**=7", 0 },
		{ "GET *=7", 0 },
		{ "GET /*=7", 0 },
		{ "/a*=7", 7 },
		{ "*a=7", 7 },
		{ "/*a=7", 7 },
		{ "GET /a=7", 7 },
		{ "POST /a=7", 0 },
		{ "/b=7", 0 },
		{ "/=7", 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct cost_pattern pattern;
		struct cost cost = {
			.kind = COST_PATTERNS, .n = 1, .pattern = &pattern
		};
		struct err err;

		assert_true(cost_parse_pattern(
		    str_of(table[i].pattern), &pattern, &err));
		if (cost_of_some(&cost, STR("GET"), STR("/a")) !=
		    table[i].units)
			fail_msg("%s", table[i].pattern);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_single),
		cmocka_unit_test(test_first_match),
		cmocka_unit_test(test_some),
		cmocka_unit_test(test_least),
		cmocka_unit_test(test_covers),
	};

	return cmocka_run_group_tests_name("cost", tests, NULL, NULL);
}
