/* SPEC.md section 4: our own answers, byte for byte. */
#include "pure/reply.h"

#include <stdio.h>

#include "wire.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const struct numbers_rate rates[] = {
	{
	    .limit = "login",
	    .is_one_of_many = true,
	    .period_us = 60000000,
	    .units = 100,
	    .per_us = 60000000,
	    .verdict = { .kind = VERDICT_REFUSED,
		.limit = 100,
		.remaining = 0,
		.next_us = 600000,
		.full_us = 59000001,
		.retry_us = 1000001 },
	},
	{ .limit = "site", .verdict = { .limit = 9 } },
	{ .limit = "address", .verdict = { .kind = VERDICT_REFUSED } },
};
static const struct numbers numbers = { rates, 3, rates, 0 };
static struct reply_style style = {
	.numbers = { NUMBERS_X_RATELIMIT, NUMBERS_RESET_DELTA },
	.never_us = 86400000000,
};

static int64_t
retry_seconds(int64_t retry_us, uint64_t lot)
{
	const struct reply reply = {
		.has_retry = true,
		.retry_us = retry_us,
		.lot = lot,
		.style = &style,
	};

	return reply_retry_seconds(&reply);
}

/* B38, B39, B47: never 0, never early, never longer than it has to be. */
static void
test_retry(void **state)
{
	static const int64_t around[] = { 0, 1, 1000000, 2000000, 60000000,
		3600000000, 86400000000, 604800000000 };

	(void)state;
	for (size_t i = 0; i < COUNT(around); i++)
		for (int64_t us = around[i] - 3; us <= around[i] + 3; us++) {
			int64_t seconds = retry_seconds(us, 99);

			if (us < 0)
				continue;
			assert_true(seconds >= 1);
			assert_true(seconds * 1000000 >= us);
			assert_true(
			    seconds == 1 || (seconds - 1) * 1000000 < us);
		}
	assert_int_equal(retry_seconds(ALGORITHM_NEVER, 0), 86400);
	assert_true(retry_seconds(INT64_MAX, 0) == 9223372036855);
	style.never_us = 3600000001;
	assert_int_equal(retry_seconds(ALGORITHM_NEVER, 0), 3601);
	/* It is for what never passes: a real wait is never shortened. */
	assert_int_equal(retry_seconds(7200000000, 0), 7200);
	style.never_us = 86400000000;
}

/* It adds, never subtracts, at most its share; and all of that comes up. */
static void
test_jitter(void **state)
{
	static const struct {
		uint64_t percent;
		int64_t retry_us;
		int64_t least;
		int64_t most;
	} table[] = {
		{ 0, 60000000, 60, 60 },
		{ 10, 60000000, 60, 66 },
		{ 100, 60000000, 60, 120 },
		{ 50, 1, 1, 2 },
		{ 1, 1000000, 1, 2 },
		{ 10, 5000001, 6, 7 },
		{ 100, ALGORITHM_NEVER, 86400, 86400 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		int64_t least = INT64_MAX;
		int64_t most = 0;

		style.jitter_percent = table[i].percent;
		for (uint64_t lot = 0; lot < 1000; lot++) {
			int64_t seconds =
			    retry_seconds(table[i].retry_us, lot * 0x9e3779b1);

			least = seconds < least ? seconds : least;
			most = seconds > most ? seconds : most;
		}
		assert_true(least == table[i].least);
		assert_true(most == table[i].most);
	}
	style.jitter_percent = 100;
	assert_true(retry_seconds(INT64_MAX, UINT64_MAX) > 0);
	style.jitter_percent = 0;
}

static void
test_reasons(void **state)
{
	static const struct {
		int status;
		const char *reason;
	} table[] = {
		{ 400, "Bad Request" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 408, "Request Timeout" },
		{ 413, "Content Too Large" },
		{ 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" },
		{ 502, "Bad Gateway" },
		{ 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" },
		{ 418, "Error" },
		{ 0, "Error" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++)
		assert_string_equal(
		    reply_reason(table[i].status), table[i].reason);
}

static void
expect_reply(const struct reply *reply, const char *expected)
{
	struct buf out;

	buf_init(&out);
	reply_write(&out, reply);
	assert_false(out.failed);
	expect_str(buf_str(&out), str_of(expected));
	buf_release(&out);
}

#define TRIPLE                         \
	"X-RateLimit-Limit: 100\r\n"   \
	"X-RateLimit-Remaining: 0\r\n" \
	"X-RateLimit-Reset: 60\r\n"

static const struct reply refusal = {
	.status = 429,
	.is_refusal = true,
	.limit = "login",
	.numbers = &numbers,
	.tells_numbers = true,
	.has_retry = true,
	.retry_us = 1000001,
	.style = &style,
};

/* B40, B53: digits, and never to be stored. */
static void
test_refusal(void **state)
{
	struct reply reply = refusal;

	(void)state;
	expect_reply(&reply,
	    "Status: 429 Too Many Requests\r\n"
	    "Content-Type: text/plain; charset=utf-8\r\n"
	    "Content-Length: 40\r\n"
	    "Cache-Control: no-store\r\n"
	    "Vary: Accept\r\n"
	    "Retry-After: 2\r\n" TRIPLE "\r\n"
	    "429 Too Many Requests\n"
	    "Try again in 2 s.\n");
	reply.message = "Too many attempts to log in.";
	reply.retry_us = ALGORITHM_NEVER;
	reply.tells_numbers = false;
	expect_reply(&reply,
	    "Status: 429 Too Many Requests\r\n"
	    "Content-Type: text/plain; charset=utf-8\r\n"
	    "Content-Length: 73\r\n"
	    "Cache-Control: no-store\r\n"
	    "Vary: Accept\r\n"
	    "Retry-After: 86400\r\n"
	    "\r\n"
	    "429 Too Many Requests\n"
	    "Too many attempts to log in.\n"
	    "Try again in 86400 s.\n");
	/* To HEAD: every line, but no body and no length of one. */
	reply.without_body = true;
	reply.tells_numbers = true;
	expect_reply(&reply,
	    "Status: 429 Too Many Requests\r\n"
	    "Content-Type: text/plain; charset=utf-8\r\n"
	    "Cache-Control: no-store\r\n"
	    "Vary: Accept\r\n"
	    "Retry-After: 86400\r\n" TRIPLE "\r\n");
}

/* The body alone, for a type that the client accepts. */
static void
expect_body(struct reply reply, const char *accept, const char *type,
    const char *expected)
{
	char line[200];
	struct buf out;
	const char *body;

	reply.accept = str_of(accept);
	buf_init(&out);
	reply_write(&out, &reply);
	buf_add_char(&out, '\0');
	assert_false(out.failed);
	body = strstr(out.p, "\r\n\r\n") + 4;
	assert_string_equal(body, expected);
	snprintf(line, sizeof(line),
	    "\r\nContent-Type: %s\r\nContent-Length: %zu\r\n", type,
	    strlen(body));
	assert_non_null(strstr(out.p, line));
	buf_release(&out);
}

#define PROBLEM                                                         \
	"{\"type\":\"https://iana.org/assignments/http-problem-types"   \
	"#quota-exceeded\",\"title\":\"Request cannot be satisfied as " \
	"assigned quota has been exceeded\",\"status\":429,"

static void
test_json(void **state)
{
	struct reply reply = refusal;

	(void)state;
	expect_body(reply, "application/json", "application/problem+json",
	    PROBLEM "\"detail\":\"Try again in 2 s.\","
		    "\"violated-policies\":[\"login-1m\",\"address\"],"
		    "\"retry-after\":2}\n");
	reply.message = "\"Stop\"\n";
	expect_body(reply, "application/json", "application/problem+json",
	    PROBLEM "\"detail\":\"\\\"Stop\\\"\\u000a\","
		    "\"violated-policies\":[\"login-1m\",\"address\"],"
		    "\"retry-after\":2}\n");
	/* An outage has no numbers, but a limit that refused. */
	reply.numbers = NULL;
	reply.message = NULL;
	expect_body(reply, "application/json", "application/problem+json",
	    PROBLEM "\"detail\":\"Try again in 2 s.\","
		    "\"violated-policies\":[\"login\"],"
		    "\"retry-after\":2}\n");
	/* Not every answer of ours is a quota's. */
	reply = (struct reply){ .status = 404, .style = &style };
	expect_body(reply, "application/json", "application/problem+json",
	    "{\"type\":\"about:blank\",\"title\":\"Not Found\","
	    "\"status\":404}\n");
	reply =
	    (struct reply){ .status = 503, .has_retry = true, .style = &style };
	expect_body(reply, "application/json", "application/problem+json",
	    "{\"type\":\"about:blank\",\"title\":\"Service Unavailable\","
	    "\"status\":503,\"detail\":\"Try again in 1 s.\","
	    "\"retry-after\":1}\n");
}

static void
test_html(void **state)
{
	struct reply reply = refusal;

	(void)state;
	reply.message = "<script>";
	expect_body(reply, "text/html", "text/html; charset=utf-8",
	    "<!DOCTYPE html>\n"
	    "<html lang=\"en\">\n"
	    "<head>\n"
	    "<meta charset=\"utf-8\">\n"
	    "<title>429 Too Many Requests</title>\n"
	    "</head>\n"
	    "<body>\n"
	    "<h1>429 Too Many Requests</h1>\n"
	    "<p>&lt;script&gt;</p>\n"
	    "<p>Try again in 2 s.</p>\n"
	    "</body>\n"
	    "</html>\n");
}

static void
test_templates(void **state)
{
	struct reply reply = refusal;

	(void)state;
	style.body[ACCEPT_HTML] = STR("<p>{message} {limit}");
	style.body[ACCEPT_JSON] = STR("{\"wait\":{retry_after}}");
	style.body[ACCEPT_TEXT] = STR("{request_id}");
	reply.request_id = STR("id-7");
	expect_body(reply, "text/html", "text/html; charset=utf-8",
	    "<p>Too Many Requests login");
	reply.message = "a<b";
	expect_body(
	    reply, "text/html", "text/html; charset=utf-8", "<p>a&lt;b login");
	expect_body(reply, "application/problem+json", "application/json",
	    "{\"wait\":2}");
	expect_body(reply, "*/*", "text/plain; charset=utf-8", "id-7");
	reply.accept = STR_NONE;
	assert_true(reply_has_request_id(&reply));
	reply.without_body = true;
	assert_false(reply_has_request_id(&reply));
	reply.without_body = false;
	reply.accept = STR("text/html");
	assert_false(reply_has_request_id(&reply));
	/* They are for refusals alone. */
	reply.is_refusal = false;
	reply.accept = STR_NONE;
	assert_false(reply_has_request_id(&reply));
	expect_body(reply, "*/*", "text/plain; charset=utf-8",
	    "429 Too Many Requests\na<b\nTry again in 2 s.\n");
	memset(style.body, 0, sizeof(style.body));
}

/* Never early, by whatever clock that shows whole seconds. */
static void
test_date(void **state)
{
	struct reply reply = refusal;

	(void)state;
	style.retry_after = REPLY_RETRY_DATE;
	reply.tells_numbers = false;
	reply.without_body = true;
	reply.now_us = 784111774 * INT64_C(1000000) + 500000;
	expect_reply(&reply,
	    "Status: 429 Too Many Requests\r\n"
	    "Content-Type: text/plain; charset=utf-8\r\n"
	    "Cache-Control: no-store\r\n"
	    "Vary: Accept\r\n"
	    "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
	    "\r\n");
	/* A body goes on telling seconds. */
	reply.without_body = false;
	expect_body(reply, NULL, "text/plain; charset=utf-8",
	    "429 Too Many Requests\nTry again in 2 s.\n");
	style.retry_after = REPLY_RETRY_SECONDS;
}

/* B54: a script in a browser sees the refusal, and may read its numbers. */
static void
test_cors(void **state)
{
	static char any[] = "*";
	static char first[] = "https://a.example";
	static char second[] = "https://b.example:8443";
	static char *const all[] = { any };
	static char *const two[] = { first, second };
	static const struct {
		size_t n;
		char *const *origin;
		const char *asked;
		const char *lines;
	} table[] = {
		{ 0, NULL, "https://a.example", "Vary: Accept\r\n" },
		{ 1, all, "https://c.example",
		    "Vary: Accept\r\nAccess-Control-Allow-Origin: *\r\n" },
		{ 1, all, NULL,
		    "Vary: Accept\r\nAccess-Control-Allow-Origin: *\r\n" },
		{ 2, two, "https://b.example:8443",
		    "Vary: Accept, Origin\r\nAccess-Control-Allow-Origin: "
		    "https://b.example:8443\r\n" },
		{ 2, two, "https://c.example", "Vary: Accept, Origin\r\n" },
		{ 2, two, NULL, "Vary: Accept, Origin\r\n" },
		{ 2, two, "", "Vary: Accept, Origin\r\n" },
	};
	struct reply reply = {
		.status = 404, .without_body = true, .style = &style
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		char expected[600];

		style.n_origins = table[i].n;
		style.origin = table[i].origin;
		reply.origin = str_of(table[i].asked);
		snprintf(expected, sizeof(expected),
		    "Status: 404 Not Found\r\n"
		    "Content-Type: text/plain; charset=utf-8\r\n"
		    "Cache-Control: no-store\r\n%s%s\r\n",
		    table[i].lines,
		    strstr(table[i].lines, "Access") == NULL
			? ""
			: "Access-Control-Expose-Headers: Retry-After, "
			  "X-RateLimit-Limit, X-RateLimit-Remaining, "
			  "X-RateLimit-Reset\r\n");
		expect_reply(&reply, expected);
	}
	style.n_origins = 0;
}

static void
test_lines(void **state)
{
	const struct reply reply = {
		.status = 404, .without_body = true, .style = &style
	};

	(void)state;
	style.lines = STR("A: 1\r\nB: 2\r\n");
	expect_reply(&reply,
	    "Status: 404 Not Found\r\n"
	    "Content-Type: text/plain; charset=utf-8\r\n"
	    "Cache-Control: no-store\r\n"
	    "Vary: Accept\r\n"
	    "A: 1\r\n"
	    "B: 2\r\n"
	    "\r\n");
	style.lines = STR_NONE;
}

/* B43: no Retry-After where no wait helps; no numbers where none are. */
static void
test_plain(void **state)
{
	static const struct reply_style plain = { .never_us = 0 };
	const struct reply missing = { .status = 404, .style = &plain };
	const struct reply outage = {
		.status = 503, .has_retry = true, .style = &plain
	};
	const struct reply broken = { .status = 502,
		.numbers = &numbers,
		.tells_numbers = true,
		.style = &style };

	(void)state;
	expect_reply(&missing,
	    "Status: 404 Not Found\r\n"
	    "Content-Type: text/plain; charset=utf-8\r\n"
	    "Content-Length: 14\r\n"
	    "Cache-Control: no-store\r\n"
	    "Vary: Accept\r\n"
	    "\r\n"
	    "404 Not Found\n");
	expect_reply(&outage,
	    "Status: 503 Service Unavailable\r\n"
	    "Content-Type: text/plain; charset=utf-8\r\n"
	    "Content-Length: 42\r\n"
	    "Cache-Control: no-store\r\n"
	    "Vary: Accept\r\n"
	    "Retry-After: 1\r\n"
	    "\r\n"
	    "503 Service Unavailable\n"
	    "Try again in 1 s.\n");
	expect_reply(&broken,
	    "Status: 502 Bad Gateway\r\n"
	    "Content-Type: text/plain; charset=utf-8\r\n"
	    "Content-Length: 16\r\n"
	    "Cache-Control: no-store\r\n"
	    "Vary: Accept\r\n" TRIPLE "\r\n"
	    "502 Bad Gateway\n");
}

/* An authorizer's yes: Status is its first line, and it has no body. */
static void
test_no_content(void **state)
{
	static char origin[] = "https://a.example";
	static char *const one[] = { origin };
	struct reply_style plain = {
		.numbers = { NUMBERS_X_RATELIMIT, NUMBERS_RESET_DELTA },
		.lines = STR("X-From: Sluice\r\n"),
	};
	struct reply reply = { .status = 204,
		.numbers = &numbers,
		.tells_numbers = true,
		.accept = STR("text/html"),
		.style = &plain };

	(void)state;
	expect_reply(&reply,
	    "Status: 204 No Content\r\n"
	    "Cache-Control: no-store\r\n" TRIPLE "X-From: Sluice\r\n"
	    "\r\n");
	plain.n_origins = 1;
	plain.origin = one;
	plain.numbers.families = 0;
	reply.without_body = true;
	expect_reply(&reply,
	    "Status: 204 No Content\r\n"
	    "Cache-Control: no-store\r\n"
	    "Vary: Origin\r\n"
	    "X-From: Sluice\r\n"
	    "\r\n");
}

static void
test_pass(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out);
	reply_write_pass(&out, NULL, &style.numbers);
	expect_str(buf_str(&out), STR("Status: 200 OK\r\n\r\n"));
	buf_reset(&out);
	reply_write_pass(&out, &numbers, &style.numbers);
	expect_str(buf_str(&out),
	    STR("Status: 200 OK\r\n"
		"Variable-RATELIMIT_LIMIT: 100\r\n"
		"Variable-RATELIMIT_REMAINING: 0\r\n"
		"Variable-RATELIMIT_RESET: 60\r\n"
		"\r\n"));
	buf_release(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_retry),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_jitter),
		cmocka_unit_test(test_refusal),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_html),
		cmocka_unit_test(test_templates),
		cmocka_unit_test(test_date),
		cmocka_unit_test(test_cors),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_no_content),
		cmocka_unit_test(test_pass),
	};

	return cmocka_run_group_tests_name("reply", tests, NULL, NULL);
}
