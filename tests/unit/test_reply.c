/* SPEC.md section 4: our own answers, byte for byte. */
#include "pure/reply.h"

#include "wire.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const struct numbers_style style = { NUMBERS_X_RATELIMIT,
	NUMBERS_RESET_DELTA };

/* B38, B39, B47: never 0, never early, never longer than it has to be. */
static void
test_retry(void **state)
{
	static const int64_t around[] = { 0, 1, 1000000, 2000000, 60000000,
		3600000000, 86400000000, 604800000000 };

	(void)state;
	for (size_t i = 0; i < COUNT(around); i++)
		for (int64_t us = around[i] - 3; us <= around[i] + 3; us++) {
			int64_t seconds = reply_retry_seconds(us);

			if (us < 0)
				continue;
			assert_true(seconds >= 1);
			assert_true(seconds * 1000000 >= us);
			assert_true(
			    seconds == 1 || (seconds - 1) * 1000000 < us);
		}
	assert_int_equal(reply_retry_seconds(ALGORITHM_NEVER), 86400);
	assert_true(reply_retry_seconds(INT64_MAX) == 9223372036855);
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

static void
test_refusal(void **state)
{
	const struct numbers_rate rate = {
		.verdict = { .kind = VERDICT_REFUSED,
		    .limit = 100,
		    .remaining = 0,
		    .next_us = 600000,
		    .full_us = 59000001,
		    .retry_us = 1000001 },
	};
	const struct numbers numbers = { &rate, 1, &rate, 0 };
	struct reply reply = { .status = 429,
		.numbers = &numbers,
		.style = &style,
		.has_retry = true,
		.retry_us = 1000001 };

	(void)state;
	expect_reply(&reply,
	    "Status: 429 Too Many Requests\r\n"
	    "Content-Type: text/plain; charset=utf-8\r\n"
	    "Content-Length: 40\r\n"
	    "Cache-Control: no-store\r\n"
	    "Retry-After: 2\r\n"
	    "X-RateLimit-Limit: 100\r\n"
	    "X-RateLimit-Remaining: 0\r\n"
	    "X-RateLimit-Reset: 60\r\n"
	    "\r\n"
	    "429 Too Many Requests\n"
	    "Try again in 2 s.\n");
	reply.message = "Too many attempts to log in.";
	reply.retry_us = ALGORITHM_NEVER;
	expect_reply(&reply,
	    "Status: 429 Too Many Requests\r\n"
	    "Content-Type: text/plain; charset=utf-8\r\n"
	    "Content-Length: 73\r\n"
	    "Cache-Control: no-store\r\n"
	    "Retry-After: 86400\r\n"
	    "X-RateLimit-Limit: 100\r\n"
	    "X-RateLimit-Remaining: 0\r\n"
	    "X-RateLimit-Reset: 60\r\n"
	    "\r\n"
	    "429 Too Many Requests\n"
	    "Too many attempts to log in.\n"
	    "Try again in 86400 s.\n");
	/* To HEAD: every line, but no body and no length of one. */
	reply.without_body = true;
	expect_reply(&reply,
	    "Status: 429 Too Many Requests\r\n"
	    "Content-Type: text/plain; charset=utf-8\r\n"
	    "Cache-Control: no-store\r\n"
	    "Retry-After: 86400\r\n"
	    "X-RateLimit-Limit: 100\r\n"
	    "X-RateLimit-Remaining: 0\r\n"
	    "X-RateLimit-Reset: 60\r\n"
	    "\r\n");
}

/* B43: no Retry-After where no wait helps; no numbers where none are. */
static void
test_plain(void **state)
{
	const struct reply missing = { .status = 404 };
	const struct reply outage = { .status = 503, .has_retry = true };
	const struct numbers_rate rate = { .verdict = {
					       .limit = 5, .remaining = 4 } };
	const struct numbers numbers = { &rate, 1, &rate, 0 };
	const struct reply broken = {
		.status = 502, .numbers = &numbers, .style = &style
	};

	(void)state;
	expect_reply(&missing,
	    "Status: 404 Not Found\r\n"
	    "Content-Type: text/plain; charset=utf-8\r\n"
	    "Content-Length: 14\r\n"
	    "Cache-Control: no-store\r\n"
	    "\r\n"
	    "404 Not Found\n");
	expect_reply(&outage,
	    "Status: 503 Service Unavailable\r\n"
	    "Content-Type: text/plain; charset=utf-8\r\n"
	    "Content-Length: 42\r\n"
	    "Cache-Control: no-store\r\n"
	    "Retry-After: 1\r\n"
	    "\r\n"
	    "503 Service Unavailable\n"
	    "Try again in 1 s.\n");
	expect_reply(&broken,
	    "Status: 502 Bad Gateway\r\n"
	    "Content-Type: text/plain; charset=utf-8\r\n"
	    "Content-Length: 16\r\n"
	    "Cache-Control: no-store\r\n"
	    "X-RateLimit-Limit: 5\r\n"
	    "X-RateLimit-Remaining: 4\r\n"
	    "X-RateLimit-Reset: 0\r\n"
	    "\r\n"
	    "502 Bad Gateway\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_retry),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_refusal),
		cmocka_unit_test(test_plain),
	};

	return cmocka_run_group_tests_name("reply", tests, NULL, NULL);
}
