/* SPEC.md section 4, the table of headers: every family, byte for byte. */
#include "pure/numbers.h"

#include <stdio.h>

#include "draw.h"
#include "wire.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define SECOND       INT64_C(1000000)
#define HOUR         (3600 * SECOND)
#define DAY          (24 * HOUR)

/* sec(x) = (x + 999999) / 1000000. */
static void
test_seconds(void **state)
{
	static const struct {
		int64_t us;
		int64_t seconds;
	} table[] = {
		{ 0, 0 },
		{ 1, 1 },
		{ 999999, 1 },
		{ 1000000, 1 },
		{ 1000001, 2 },
		{ 1999999, 2 },
		{ 2000000, 2 },
		{ 86400000000, 86400 },
		{ 86400000001, 86401 },
		{ INT64_MAX, 9223372036855 },
		{ -1, 0 },
		{ INT64_MIN, 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++)
		assert_true(numbers_seconds(table[i].us) == table[i].seconds);
}

static struct numbers_rate
window(const char *name, int64_t limit, int64_t period_us, int64_t remaining)
{
	const struct check check = { .algorithm = ALGORITHM_SLIDING_WINDOW,
		.count = limit,
		.period_us = period_us };
	const struct verdict verdict = { .limit = limit,
		.remaining = remaining,
		.next_us = 5,
		.full_us = 59000001 };

	return numbers_rate(name, false, &check, &verdict);
}

static void
expect(const struct numbers_rate *rate, size_t n, const struct numbers *at,
    uint64_t families, const char *expected)
{
	const struct numbers_style style = { families, at->n };
	const struct numbers numbers = { rate, n, &rate[n - 1], at->at_us };
	struct buf out;

	buf_init(&out);
	numbers_write(&out, &numbers, &style);
	assert_false(out.failed);
	expect_str(buf_str(&out), str_of(expected));
	buf_release(&out);
}

static void
expect_one(struct numbers_rate rate, uint64_t families, const char *expected)
{
	const struct numbers at = { .n = NUMBERS_RESET_DELTA };

	expect(&rate, 1, &at, families, expected);
}

/* B49: each family by itself, none half. */
static void
test_families(void **state)
{
	struct numbers_rate rate = window("a", 100, 60 * SECOND, 4);

	(void)state;
	expect_one(rate, 0, "");
	expect_one(rate, NUMBERS_X_RATELIMIT,
	    "X-RateLimit-Limit: 100\r\n"
	    "X-RateLimit-Remaining: 4\r\n"
	    "X-RateLimit-Reset: 60\r\n");
	expect_one(rate, NUMBERS_DRAFT_03,
	    "RateLimit-Limit: 100, 100;w=60\r\n"
	    "RateLimit-Remaining: 4\r\n"
	    "RateLimit-Reset: 60\r\n");
	expect_one(rate, NUMBERS_DRAFT_11,
	    "RateLimit-Policy: \"a\";q=100;w=60\r\n"
	    "RateLimit: \"a\";r=4;t=3\r\n");
	expect_one(rate,
	    NUMBERS_X_RATELIMIT | NUMBERS_DRAFT_03 | NUMBERS_DRAFT_11,
	    "X-RateLimit-Limit: 100\r\n"
	    "X-RateLimit-Remaining: 4\r\n"
	    "X-RateLimit-Reset: 60\r\n"
	    "RateLimit-Limit: 100, 100;w=60\r\n"
	    "RateLimit-Remaining: 4\r\n"
	    "RateLimit-Reset: 60\r\n"
	    "RateLimit-Policy: \"a\";q=100;w=60\r\n"
	    "RateLimit: \"a\";r=4;t=3\r\n");
}

/* For the application the figures of X-RateLimit-*, whatever clients see. */
static void
test_variables(void **state)
{
	struct numbers_rate rate = window("a", 100, 60 * SECOND, 4);
	const struct numbers numbers = { &rate, 1, &rate, 1700000000 * SECOND };
	static const struct {
		struct numbers_style style;
		const char *reset;
	} table[] = {
		{ { NUMBERS_X_RATELIMIT, NUMBERS_RESET_DELTA }, "60" },
		{ { 0, NUMBERS_RESET_DELTA }, "60" },
		{ { NUMBERS_DRAFT_11, NUMBERS_RESET_EPOCH }, "1700000060" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		char expected[200];
		struct buf out;

		buf_init(&out);
		snprintf(expected, sizeof(expected),
		    "Variable-RATELIMIT_LIMIT: 100\r\n"
		    "Variable-RATELIMIT_REMAINING: 4\r\n"
		    "Variable-RATELIMIT_RESET: %s\r\n",
		    table[i].reset);
		numbers_write_variables(&out, &numbers, &table[i].style);
		expect_str(buf_str(&out), str_of(expected));
		buf_release(&out);
	}
}

/* B48: seconds since 1970, rounded up, and never milliseconds. */
static void
test_epoch(void **state)
{
	static const struct {
		int64_t at_us;
		const char *reset;
	} table[] = {
		{ 1700000000 * SECOND, "1700000060" },
		{ 1700000000 * SECOND - 1, "1700000059" },
		{ 1700000000 * SECOND + 999999, "1700000060" },
		{ 1700000001 * SECOND, "1700000061" },
	};
	struct numbers_rate rate = window("a", 100, 60 * SECOND, 4);

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		const struct numbers at = { .n = NUMBERS_RESET_EPOCH,
			.at_us = table[i].at_us };
		char expected[400];

		snprintf(expected, sizeof(expected),
		    "X-RateLimit-Limit: 100\r\n"
		    "X-RateLimit-Remaining: 4\r\n"
		    "X-RateLimit-Reset: %s\r\n"
		    "RateLimit-Limit: 100, 100;w=60\r\n"
		    "RateLimit-Remaining: 4\r\n"
		    "RateLimit-Reset: 60\r\n",
		    table[i].reset);
		expect(&rate, 1, &at, NUMBERS_X_RATELIMIT | NUMBERS_DRAFT_03,
		    expected);
	}
}

static struct numbers_rate
many(int64_t limit, int64_t period_us)
{
	struct numbers_rate rate = window("login", limit, period_us, 2);

	rate.is_one_of_many = true;
	return rate;
}

/* File order; a limit of several rates tells which is which. */
static void
test_policies(void **state)
{
	const struct numbers at = { .n = NUMBERS_RESET_DELTA };
	const struct numbers_rate rates[] = {
		window("site", 1000, DAY, 10),
		many(5, SECOND),
		many(50, 90 * SECOND),
		many(500, HOUR),
		many(501, DAY),
		many(502, 7 * DAY),
		many(503, 250000),
		many(504, 60 * SECOND),
	};

	(void)state;
	expect(rates, COUNT(rates), &at, NUMBERS_DRAFT_11,
	    "RateLimit-Policy: \"site\";q=1000;w=86400, "
	    "\"login-1s\";q=5;w=1, \"login-90s\";q=50;w=90, "
	    "\"login-1h\";q=500;w=3600, \"login-1d\";q=501;w=86400, "
	    "\"login-1w\";q=502;w=604800, \"login-250ms\";q=503;w=1, "
	    "\"login-1m\";q=504;w=60\r\n"
	    "RateLimit: \"login-1m\";r=2;t=1\r\n");
}

/* W of a bucket is the time in which an empty one fills: B*P/R. */
static void
test_bucket(void **state)
{
	static const struct {
		struct check check;
		struct verdict verdict;
		const char *expected;
	} table[] = {
		{ { .count = 10, .period_us = SECOND },
		    { .limit = 20, .remaining = 19, .next_us = 100000 },
		    "RateLimit-Policy: \"b\";q=20;w=2\r\n"
		    "RateLimit: \"b\";r=19;t=2\r\n" },
		/* Exactly 3 s for 9 of 10, not a little more. */
		{ { .count = 3, .period_us = SECOND },
		    { .limit = 10, .remaining = 9, .next_us = 333334 },
		    "RateLimit-Policy: \"b\";q=10;w=4\r\n"
		    "RateLimit: \"b\";r=9;t=3\r\n" },
		/* Of a key with counts of its own: 5/1s burst 10 here. */
		{ { .count = 10, .period_us = SECOND, .burst = 20 },
		    { .limit = 10,
			.remaining = 9,
			.next_us = 200000,
			.own_count = 5 },
		    "RateLimit-Policy: \"b\";q=10;w=2\r\n"
		    "RateLimit: \"b\";r=9;t=2\r\n" },
		/* 6/1h, whose burst of 1.5 is as good as that of 4/1h. */
		{ { .count = 4, .period_us = HOUR, .burst = 1 },
		    { .limit = 1, .remaining = 1, .own_count = 6 },
		    "RateLimit-Policy: \"b\";q=1;w=600\r\n"
		    "RateLimit: \"b\";r=1;t=600\r\n" },
		/* 3/1h, of whose burst of 3.75 are 3. */
		{ { .count = 4, .period_us = HOUR, .burst = 5 },
		    { .limit = 3, .remaining = 2, .own_count = 3 },
		    "RateLimit-Policy: \"b\";q=3;w=3600\r\n"
		    "RateLimit: \"b\";r=2;t=2400\r\n" },
		/* The wait for the next is the longer. */
		{ { .count = 1, .period_us = HOUR },
		    { .limit = 5, .remaining = 0, .next_us = HOUR - 1 },
		    "RateLimit-Policy: \"b\";q=5;w=18000\r\n"
		    "RateLimit: \"b\";r=0;t=3600\r\n" },
		{ { .count = 1, .period_us = 366 * DAY },
		    { .limit = 284, .remaining = 284 },
		    "RateLimit-Policy: \"b\";q=284;w=8980761600\r\n"
		    "RateLimit: \"b\";r=284;t=8980761600\r\n" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct check check = table[i].check;

		if (check.burst == 0)
			check.burst = table[i].verdict.limit;
		check.algorithm = ALGORITHM_TOKEN_BUCKET;
		expect_one(numbers_rate("b", false, &check, &table[i].verdict),
		    NUMBERS_DRAFT_11, table[i].expected);
		check.algorithm = ALGORITHM_LEAKY_BUCKET;
		expect_one(numbers_rate("b", false, &check, &table[i].verdict),
		    NUMBERS_DRAFT_11, table[i].expected);
	}
}

/* Windows of the calendar: w is the length of this one. */
static void
test_calendar(void **state)
{
	static const struct {
		int64_t period_us;
		int64_t length_us;
		const char *expected;
	} table[] = {
		{ DAY, 23 * HOUR,
		    "RateLimit-Policy: \"a-1d\";q=10;w=82800\r\n"
		    "RateLimit: \"a-1d\";r=5;t=41400\r\n" },
		{ 31 * DAY, 28 * DAY,
		    "RateLimit-Policy: \"a-1month\";q=10;w=2419200\r\n"
		    "RateLimit: \"a-1month\";r=5;t=1209600\r\n" },
		{ 366 * DAY, 365 * DAY,
		    "RateLimit-Policy: \"a-1year\";q=10;w=31536000\r\n"
		    "RateLimit: \"a-1year\";r=5;t=15768000\r\n" },
	};
	const struct verdict verdict = { .limit = 10, .remaining = 5 };

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		const struct check check = {
			.algorithm = ALGORITHM_FIXED_WINDOW,
			.align = ALIGN_CALENDAR,
			.count = 10,
			.period_us = table[i].period_us,
			.boundary_us = { 0, DAY, DAY + table[i].length_us,
			    500 * DAY },
		};

		expect_one(numbers_rate("a", true, &check, &verdict),
		    NUMBERS_DRAFT_11, table[i].expected);
	}
}

/* Requests at a time: no window, and no moment at which it is reset. */
static void
test_in_flight(void **state)
{
	struct numbers_rate rate = window("downloads", 10, 0, 3);

	(void)state;
	rate.is_in_flight = true;
	expect_one(rate,
	    NUMBERS_X_RATELIMIT | NUMBERS_DRAFT_03 | NUMBERS_DRAFT_11,
	    "X-RateLimit-Limit: 10\r\n"
	    "X-RateLimit-Remaining: 3\r\n"
	    "RateLimit-Limit: 10\r\n"
	    "RateLimit-Remaining: 3\r\n"
	    "RateLimit-Policy: \"downloads\";q=10;"
	    "qu=\"concurrent-requests\"\r\n"
	    "RateLimit: \"downloads\";r=3\r\n");
}

/* rate = deny: nothing ever passes, so there is no window. */
static void
test_closed(void **state)
{
	(void)state;
	expect_one(window("closed", 0, 0, 0),
	    NUMBERS_DRAFT_03 | NUMBERS_DRAFT_11,
	    "RateLimit-Limit: 0\r\n"
	    "RateLimit-Remaining: 0\r\n"
	    "RateLimit-Reset: 60\r\n"
	    "RateLimit-Policy: \"closed\";q=0\r\n"
	    "RateLimit: \"closed\";r=0\r\n");
}

static void
test_large(void **state)
{
	struct numbers_rate rate =
	    window("a", 1000000000000, 31622400 * SECOND, 999999999999);

	(void)state;
	rate.verdict.full_us = 31622400000001;
	expect_one(rate, NUMBERS_X_RATELIMIT | NUMBERS_DRAFT_11,
	    "X-RateLimit-Limit: 1000000000000\r\n"
	    "X-RateLimit-Remaining: 999999999999\r\n"
	    "X-RateLimit-Reset: 31622401\r\n"
	    "RateLimit-Policy: \"a\";q=1000000000000;w=31622400\r\n"
	    "RateLimit: \"a\";r=999999999999;t=31622400\r\n");
}

/* The figure behind `;X=` of what was written. */
static int64_t
figure(struct str text, char name)
{
	for (size_t i = 0; i + 3 < text.len; i++)
		if (text.p[i] == ';' && text.p[i + 1] == name &&
		    text.p[i + 2] == '=')
			return strtoll(text.p + i + 3, NULL, 10);
	fail();
	return -1;
}

/*
 * B50. Laws: r <= q, t in whole seconds long enough for r at the rate's pace
 * and for one more, and never a second longer; t <= w of a full one.
 */
static void
test_drawn(void **state)
{
	unsigned seed = draw_seed();
	const struct numbers_style style = { .families = NUMBERS_DRAFT_11 };

	(void)state;
	for (int round = 0; round < 20000; round++) {
		bool bucket = draw_below(&seed, 2) == 1;
		int64_t count = 1 + (int64_t)draw_size(&seed, 1000000);
		int64_t burst = 1 + (int64_t)draw_size(&seed, 1000000);
		struct check check = {
			.algorithm = bucket ? ALGORITHM_TOKEN_BUCKET
					    : ALGORITHM_FIXED_WINDOW,
			.count = count,
			.burst = burst,
			.period_us =
			    1000 * (1 + (int64_t)draw_size(&seed, 100000000)),
		};
		struct verdict verdict = { .limit = bucket ? burst : count };
		struct numbers_rate rate;
		struct numbers numbers;
		struct buf out;
		int64_t r, t, w;
		long double exact;

		verdict.remaining =
		    (int64_t)draw_below(&seed, (size_t)verdict.limit + 1);
		verdict.next_us = (int64_t)draw_size(&seed, 100000000);
		rate = numbers_rate("a", false, &check, &verdict);
		numbers = (struct numbers){ &rate, 1, &rate, 0 };
		buf_init(&out);
		numbers_write(&out, &numbers, &style);
		buf_add_char(&out, '\0');
		w = figure(buf_str(&out), 'w');
		r = figure(buf_str(&out), 'r');
		t = figure(buf_str(&out), 't');
		exact = (long double)r * check.period_us / count / 1000000;
		assert_true(r == verdict.remaining && r <= verdict.limit);
		assert_true(t >= exact - 1e-9L);
		assert_true(t * 1000000 >= verdict.next_us);
		assert_true(
		    t < exact + 1 || (t - 1) * 1000000 < verdict.next_us);
		assert_true(t <= w || t * 1000000 < verdict.next_us + 1000000);
		buf_release(&out);
	}
}

static void
test_names(void **state)
{
	static const char *const ours[] = { "X-RateLimit-Limit",
		"x-ratelimit-reset", "X-RateLimit-Used", "RateLimit",
		"ratelimit", "RateLimit-Policy", "RateLimit-Limit",
		"X-Rate-Limit-Remaining", "X-RateLimit-Limit-Minute" };
	static const char *const others[] = { "X-RateLimit", "RateLimited",
		"Retry-After", "X-Ratelimi", "", "My-X-RateLimit-Limit" };
	struct buf out;

	(void)state;
	for (size_t i = 0; i < COUNT(ours); i++)
		assert_true(numbers_is_field(str_of(ours[i])));
	for (size_t i = 0; i < COUNT(others); i++)
		assert_false(numbers_is_field(str_of(others[i])));
	buf_init(&out);
	numbers_add_field_names(&out, 0);
	expect_str(buf_str(&out), STR("Retry-After"));
	buf_reset(&out);
	numbers_add_field_names(
	    &out, NUMBERS_X_RATELIMIT | NUMBERS_DRAFT_03 | NUMBERS_DRAFT_11);
	expect_str(buf_str(&out),
	    STR("Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, "
		"X-RateLimit-Reset, RateLimit-Limit, RateLimit-Remaining, "
		"RateLimit-Reset, RateLimit-Policy, RateLimit"));
	buf_release(&out);
}

/* What is left by somebody else's count; -1: it does not say. */
static void
test_remaining(void **state)
{
	static const struct {
		const char *name;
		const char *value;
		int64_t remaining;
	} table[] = {
		{ "X-RateLimit-Remaining", "5", 5 },
		{ "x-ratelimit-remaining", " 0 ", 0 },
		{ "X-Rate-Limit-Remaining", "7", 7 },
		{ "RateLimit-Remaining", "9", 9 },
		{ "X-RateLimit-Remaining", "-1", -1 },
		{ "X-RateLimit-Remaining", "", -1 },
		{ "X-RateLimit-Remaining", "many", -1 },
		{ "X-RateLimit-Limit", "5", -1 },
		{ "RateLimit-Policy", "\"a\";r=5", -1 },
		{ "RateLimit", "\"a\";r=5;t=3", 5 },
		{ "RateLimit", "\"a\";t=3;r=5", 5 },
		{ "RateLimit", "\"a\";r=5;t=3, \"b\"; r=2 ;t=9", 2 },
		{ "RateLimit", "\"b\";r=2, \"a\";r=5", 2 },
		{ "RateLimit", "\"x;r=1\\\";r=2\";r=8", 8 },
		{ "RateLimit", "limit=10, remaining=6, reset=3", 6 },
		{ "RateLimit", "\"a\";t=3", -1 },
		{ "RateLimit", "\"a\";r=x", -1 },
		{ "RateLimit", "\"a", -1 },
		{ "RateLimit", "\"a\\", -1 },
		{ "RateLimit", "", -1 },
		{ "RateLimit", ";;,,;", -1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		int64_t remaining = -1;
		bool said = numbers_remaining(
		    str_of(table[i].name), str_of(table[i].value), &remaining);

		if (remaining != table[i].remaining)
			print_message("row %zu\n", i);
		assert_true(remaining == table[i].remaining);
		assert_int_equal(said, remaining >= 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seconds),
		cmocka_unit_test(test_families),
		cmocka_unit_test(test_variables),
		cmocka_unit_test(test_epoch),
		cmocka_unit_test(test_policies),
		cmocka_unit_test(test_bucket),
		cmocka_unit_test(test_calendar),
		cmocka_unit_test(test_in_flight),
		cmocka_unit_test(test_closed),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_drawn),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_remaining),
	};

	return cmocka_run_group_tests_name("numbers", tests, NULL, NULL);
}
