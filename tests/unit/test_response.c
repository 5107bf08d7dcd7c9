/*
 * SPEC.md section 4, the last lines of its table, and section 7: what
 * becomes of an application's response, however its bytes are cut.
 */
#include "domain/response.h"

#include "draw.h"
#include "wire.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define ID           0x0102

#define VERDICT                                                  \
	{                                                        \
		.limit = 10, .remaining = 4, .full_us = 59000001 \
	}

static const struct numbers_rate rate = {
	.limit = "a",
	.units = 10,
	.per_us = 60000000,
	.verdict = VERDICT,
};
static const struct decision ours = {
	.kind = DECISION_ALLOWED,
	.has_numbers = true,
	.verdict = VERDICT,
	.numbers = { &rate, 1, &rate, 0 },
};
static struct config_response style = {
	.reply.numbers = { NUMBERS_X_RATELIMIT, NUMBERS_RESET_DELTA },
};
/* A limit whose cost is said by a header. */
static struct config_limit costly = {
	.cost = { .kind = COST_RESPONSE, .header = { "X-Cost", 6 } },
};
static const struct config config = { .n_limits = 1, .limit = &costly };
static const struct decision nothing = { .kind = DECISION_UNLIMITED };

#define OURS                           \
	"X-RateLimit-Limit: 10\r\n"    \
	"X-RateLimit-Remaining: 4\r\n" \
	"X-RateLimit-Reset: 60\r\n"

/* Takes the STDOUT records of ID apart; no other record is there. */
static void
unwrap(struct str down, struct buf *text)
{
	while (down.len > 0) {
		const uint8_t *p = (const uint8_t *)down.p;
		size_t content;

		assert_in_range(down.len, 9, SIZE_MAX / 2);
		assert_memory_equal(p, "\1\6\1\2", 4);
		content = (size_t)p[4] << 8 | p[5];
		/* An empty one would end the stream. */
		assert_in_range(content, 1, down.len - 8);
		assert_memory_equal(p + 6, "\0\0", 2);
		buf_add(text, p + 8, content);
		down.p += 8 + content;
		down.len -= 8 + content;
	}
}

struct result {
	enum pump_verdict verdict;
	struct buf text;
	bool whole;
	int status;
};

static struct result
run(struct str bytes, const struct decision *decision, bool head, size_t first,
    size_t step)
{
	struct result result = { .verdict = PUMP_HEAD_MORE };
	struct decision own = *decision;
	struct response r;
	struct buf down;

	buf_init(&down);
	buf_init(&result.text);
	own.config = &config;
	response_init(&r, ID, head, &own, &style);
	while (bytes.len > 0 && result.verdict != PUMP_BROKEN) {
		struct str piece = { bytes.p,
			first < bytes.len ? first : bytes.len };

		result.verdict = response_take(&r, piece, &down);
		bytes.p += piece.len;
		bytes.len -= piece.len;
		first = step;
	}
	result.whole = response_is_whole(&r);
	result.status = r.head.status;
	unwrap(buf_str(&down), &result.text);
	response_release(&r);
	buf_release(&down);
	return result;
}

struct row {
	const char *in;
	const char *out; /* NULL: a bad head */
	const struct decision *decision;
	bool head;
	bool whole;
};

#define ALL   false, true
#define SHORT false, false
#define HEAD  true, true

static const struct row table[] = {
	{ "Content-Type: text/plain\n\nhello",
	    "Status: 200 OK\r\nContent-Type: text/plain\r\n" OURS "\r\nhello",
	    &ours, ALL },
	{ "Status: 404 Not Found\r\nA: 1\r\n\r\n",
	    "Status: 404 Not Found\r\nA: 1\r\n" OURS "\r\n", &ours, ALL },
	{ "Location: /x\n\n",
	    "Status: 302 Found\r\nLocation: /x\r\n" OURS "\r\n", &ours, ALL },
	{ "A: 1\n\n", "Status: 200 OK\r\nA: 1\r\n\r\n", &nothing, ALL },
	/* Order and duplicates stay. */
	{ "Set-Cookie: a=1\nB: 2\nSet-Cookie: c=3\n\n",
	    "Status: 200 OK\r\nSet-Cookie: a=1\r\nB: 2\r\nSet-Cookie: c=3\r\n"
	    "\r\n",
	    &nothing, ALL },
	/* 1xx is never the answer. */
	{ "Status: 103\nLink: x\n\nA: 1\n\nb",
	    "Status: 200 OK\r\nA: 1\r\n\r\nb", &nothing, ALL },
	/* What it says of costs is not for the client. */
	{ "A: 1\nx-cost: 7\nX-Cost-More: 1\nX-Cost: x\n\n",
	    "Status: 200 OK\r\nA: 1\r\nX-Cost-More: 1\r\n\r\n", &nothing, ALL },
	/* What belongs to one hop. */
	{ "Connection: close\nkeep-alive: 5\nTransfer-Encoding: chunked\n"
	  "Proxy-Connection: x\nTE: trailers\nTrailer: y\nUpgrade: h2c\n"
	  "Connection-Type: stays\n\n",
	    "Status: 200 OK\r\nConnection-Type: stays\r\n\r\n", &nothing, ALL },
	/* The application's own numbers stay unless ours are stricter. */
	{ "X-RateLimit-Limit: 7\nX-RateLimit-Remaining: 3\n"
	  "X-RateLimit-Reset: 9\n\n",
	    "Status: 200 OK\r\nX-RateLimit-Limit: 7\r\n"
	    "X-RateLimit-Remaining: 3\r\nX-RateLimit-Reset: 9\r\n\r\n",
	    &ours, ALL },
	{ "X-RateLimit-Limit: 7\nX-RateLimit-Remaining: 4\n\n",
	    "Status: 200 OK\r\nX-RateLimit-Limit: 7\r\n"
	    "X-RateLimit-Remaining: 4\r\n\r\n",
	    &ours, ALL },
	{ "x-ratelimit-limit: 7\nA: 1\nX-RATELIMIT-REMAINING: 5\n"
	  "X-RateLimit-Reset: 9\n\n",
	    "Status: 200 OK\r\nA: 1\r\n" OURS "\r\n", &ours, ALL },
	{ "X-RateLimit-Limit: 7\nX-RateLimit-Remaining: 5\n\n",
	    "Status: 200 OK\r\nX-RateLimit-Limit: 7\r\n"
	    "X-RateLimit-Remaining: 5\r\n\r\n",
	    &nothing, ALL },
	/* Never mixed: what can not be compared stays alone. */
	{ "X-RateLimit-Limit: 7\n\n",
	    "Status: 200 OK\r\nX-RateLimit-Limit: 7\r\n\r\n", &ours, ALL },
	{ "X-RateLimit-Remaining: many\n\n",
	    "Status: 200 OK\r\nX-RateLimit-Remaining: many\r\n\r\n", &ours,
	    ALL },
	{ "X-RateLimit-Remaining: -1\n\n",
	    "Status: 200 OK\r\nX-RateLimit-Remaining: -1\r\n\r\n", &ours, ALL },
	/* Its own Retry-After is its own. */
	{ "Status: 503\nRetry-After: 7\n\n",
	    "Status: 503\r\nRetry-After: 7\r\n" OURS "\r\n", &ours, ALL },
	/* What all may keep says nothing of one client. */
	{ "Cache-Control: public, max-age=60\n\n",
	    "Status: 200 OK\r\nCache-Control: public, max-age=60\r\n\r\n",
	    &ours, ALL },
	{ "cache-control: max-age=60 , PUBLIC\n\n",
	    "Status: 200 OK\r\ncache-control: max-age=60 , PUBLIC\r\n\r\n",
	    &ours, ALL },
	{ "Cache-Control: no-transform\nCache-Control: s-maxage=5\n\n",
	    "Status: 200 OK\r\nCache-Control: no-transform\r\n"
	    "Cache-Control: s-maxage=5\r\n\r\n",
	    &ours, ALL },
	{ "Cache-Control: private, max-age=60\n\n",
	    "Status: 200 OK\r\nCache-Control: private, max-age=60\r\n" OURS
	    "\r\n",
	    &ours, ALL },
	{ "Cache-Control: publicly\nX-Cache-Control: public\n\n",
	    "Status: 200 OK\r\nCache-Control: publicly\r\n"
	    "X-Cache-Control: public\r\n" OURS "\r\n",
	    &ours, ALL },
	/* Content-Length is kept to: longer is cut, shorter is not whole. */
	{ "Content-Length: 5\n\nhello",
	    "Status: 200 OK\r\nContent-Length: 5\r\n\r\nhello", &nothing, ALL },
	{ "Content-Length: 5\n\nhello, world",
	    "Status: 200 OK\r\nContent-Length: 5\r\n\r\nhello", &nothing, ALL },
	{ "Content-Length: 5\n\nhell",
	    "Status: 200 OK\r\nContent-Length: 5\r\n\r\nhell", &nothing,
	    SHORT },
	{ "Content-Length: 0\n\nx",
	    "Status: 200 OK\r\nContent-Length: 0\r\n\r\n", &nothing, ALL },
	{ "Content-Length: 5\ncontent-length: 5\n\nhello",
	    "Status: 200 OK\r\nContent-Length: 5\r\n\r\nhello", &nothing, ALL },
	/* Answers that have no body, whatever their program writes. */
	{ "Content-Length: 5\n\n",
	    "Status: 200 OK\r\nContent-Length: 5\r\n\r\n", &nothing, HEAD },
	{ "Content-Length: 5\n\nhello",
	    "Status: 200 OK\r\nContent-Length: 5\r\n\r\n", &nothing, HEAD },
	{ "A: 1\n\nhello", "Status: 200 OK\r\nA: 1\r\n\r\n", &nothing, HEAD },
	{ "Status: 304\nContent-Length: 5\n\n",
	    "Status: 304\r\nContent-Length: 5\r\n\r\n", &nothing, ALL },
	{ "Status: 304\nETag: x\n\nhello", "Status: 304\r\nETag: x\r\n\r\n",
	    &nothing, ALL },
	{ "Status: 204\nA: 1\n\nhello", "Status: 204\r\nA: 1\r\n\r\n", &nothing,
	    ALL },
	{ "Status: 204 No Content\n\n", "Status: 204 No Content\r\n\r\n",
	    &nothing, ALL },
	/* What is not there yet is not whole. */
	{ "A: 1\n", "", &ours, SHORT },
	{ "", "", &ours, SHORT },
	{ "Status: 100\n\n", "", &ours, SHORT },

	{ "\n", NULL, &ours, SHORT },
	{ "Status: 200 OK\nStatus: 200 OK\n\n", NULL, &ours, SHORT },
	{ "Content-Length: 5\nContent-Length: 6\n\n", NULL, &ours, SHORT },
	{ "A: 1\rX-Injected: 2\n\n", NULL, &ours, SHORT },
	{ "no colon\n\n", NULL, &ours, SHORT },
};

static void
run_row(const struct row *row, size_t first, size_t step)
{
	struct result result =
	    run(str_of(row->in), row->decision, row->head, first, step);

	if (row->out == NULL) {
		assert_int_equal(result.verdict, PUMP_BROKEN);
		expect_str(buf_str(&result.text), STR(""));
	} else {
		expect_str(buf_str(&result.text), str_of(row->out));
		assert_int_equal(result.verdict,
		    row->out[0] == '\0' ? PUMP_HEAD_MORE : PUMP_GO_ON);
	}
	if (result.whole != row->whole)
		print_message("row %zu\n", (size_t)(row - table));
	assert_int_equal(result.whole, row->whole);
	buf_release(&result.text);
}

static void
test_table_at_every_split(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		size_t len = strlen(table[i].in);

		for (size_t first = 1; first <= len + 1; first++) {
			run_row(&table[i], first, len + 1);
			run_row(&table[i], first, 1);
			run_row(&table[i], first, 4);
		}
	}
}

static void
expect_ours(const char *in, const char *fields)
{
	struct result result = run(str_of(in), &ours, false, 1000, 1000);
	char expected[1000];

	snprintf(
	    expected, sizeof(expected), "Status: 200 OK\r\n%s\r\n", fields);
	expect_str(buf_str(&result.text), str_of(expected));
	buf_release(&result.text);
}

#define DRAFT_11                                \
	"RateLimit-Policy: \"a\";q=10;w=60\r\n" \
	"RateLimit: \"a\";r=4;t=24\r\n"

/* B49: whatever families there are, those of two limiters are not mixed. */
static void
test_families(void **state)
{
	(void)state;
	style.reply.numbers.families = NUMBERS_DRAFT_11;
	expect_ours("A: 1\n\n", "A: 1\r\n" DRAFT_11);
	expect_ours("X-RateLimit-Remaining: 3\nX-RateLimit-Limit: 9\n\n",
	    "X-RateLimit-Remaining: 3\r\nX-RateLimit-Limit: 9\r\n");
	expect_ours(
	    "X-RateLimit-Remaining: 5\nX-RateLimit-Used: 4\n\n", DRAFT_11);
	expect_ours(
	    "RateLimit-Policy: \"b\";q=9\nRateLimit: \"b\";r=5\n\n", DRAFT_11);
	expect_ours("RateLimit-Policy: \"b\";q=9\nRateLimit: \"b\";r=4\n\n",
	    "RateLimit-Policy: \"b\";q=9\r\nRateLimit: \"b\";r=4\r\n");
	/* The strictest of what it says counts, and all of it stays. */
	expect_ours("X-RateLimit-Remaining: 9\nRateLimit: \"b\";r=3\n\n",
	    "X-RateLimit-Remaining: 9\r\nRateLimit: \"b\";r=3\r\n");
	expect_ours("RateLimit-Policy: \"b\";q=9\n\n",
	    "RateLimit-Policy: \"b\";q=9\r\n");
	style.reply.numbers.families = 0;
	expect_ours(
	    "X-RateLimit-Remaining: 5\n\n", "X-RateLimit-Remaining: 5\r\n");
	style.reply.numbers.families = NUMBERS_X_RATELIMIT;
}

/* headers_on = denied: what passes has none of ours. */
static void
test_denied_alone(void **state)
{
	(void)state;
	style.headers_on = CONFIG_HEADERS_ON_DENIED;
	expect_ours(
	    "X-RateLimit-Remaining: 5\n\n", "X-RateLimit-Remaining: 5\r\n");
	expect_ours("A: 1\n\n", "A: 1\r\n");
	style.headers_on = CONFIG_HEADERS_ON_ALL;
}

/* A length the message may not have (RFC 9110, 8.6). */
static void
test_no_length_of_204(void **state)
{
	struct result result =
	    run(STR("Status: 204\nContent-Length: 0\nA: 1\n\n"), &nothing,
		false, 9, 9);

	(void)state;
	expect_str(buf_str(&result.text), STR("Status: 204\r\nA: 1\r\n\r\n"));
	assert_true(result.whole);
	buf_release(&result.text);
}

/* Around the size of a record, of the body and of the head. */
static void
test_large(void **state)
{
	static const size_t sizes[] = { 65534, 65535, 65536, 65537, 131070,
		131071, 300000 };

	(void)state;
	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct buf in, out;
		struct result result;

		buf_init(&in);
		buf_init(&out);
		buf_addf(&in, "Content-Length: %zu\n\n", sizes[i]);
		wire_fill(&in, sizes[i]);
		buf_addf(&out, "Status: 200 OK\r\nContent-Length: %zu\r\n\r\n",
		    sizes[i]);
		wire_fill(&out, sizes[i]);
		buf_add(&in, "beyond", 6);
		for (size_t step = 8000; step <= 512000; step *= 8) {
			result = run(buf_str(&in), &nothing, false, step, step);
			expect_str(buf_str(&result.text), buf_str(&out));
			assert_true(result.whole);
			buf_release(&result.text);
		}
		buf_release(&in);
		buf_release(&out);
	}
}

/* The longest head there may be grows when written anew, by much. */
static void
test_largest_head(void **state)
{
	struct buf in, out;
	struct result result;

	(void)state;
	buf_init(&in);
	buf_init(&out);
	buf_add_str(&out, STR("Status: 200 OK\r\n"));
	for (int i = 0; i < 256; i++) {
		size_t value =
		    i < 255 ? 252 : CGI_HEAD_BYTES_MAX - 1 - 3 - in.len;

		buf_add_str(&in, STR("N:"));
		buf_add_str(&out, STR("N: "));
		wire_fill(&in, value);
		wire_fill(&out, value);
		buf_add_char(&in, '\n');
		buf_add_str(&out, STR("\r\n"));
	}
	buf_add_char(&in, '\n');
	buf_add_str(&out, STR(OURS "\r\n"));
	assert_int_equal(in.len, CGI_HEAD_BYTES_MAX);
	assert_true(out.len > 65535);
	result = run(buf_str(&in), &ours, false, 60000, 10);
	expect_str(buf_str(&result.text), buf_str(&out));
	buf_release(&result.text);
	buf_reset(&in);
	for (int i = 0; i < 257; i++)
		buf_add_str(&in, STR("N: 1\n"));
	buf_add_char(&in, '\n');
	result = run(buf_str(&in), &ours, false, 100, 100);
	assert_int_equal(result.verdict, PUMP_BROKEN);
	buf_release(&result.text);
	buf_release(&in);
	buf_release(&out);
}

/* CVE-2014-3583's like: a head without end. */
static void
test_endless_head(void **state)
{
	struct result result;
	struct buf in;

	(void)state;
	buf_init(&in);
	buf_add_str(&in, STR("A: "));
	wire_fill(&in, CGI_HEAD_BYTES_MAX - 3);
	result = run(buf_str(&in), &ours, false, in.len - 1, 1);
	assert_int_equal(result.verdict, PUMP_BROKEN);
	expect_str(buf_str(&result.text), STR(""));
	buf_release(&result.text);
	buf_release(&in);
}

static void
test_end(void **state)
{
	struct decision decision = ours;
	struct response r;
	struct buf down;

	(void)state;
	buf_init(&down);
	response_init(&r, ID, false, &decision, &style);
	response_end(&r, &down);
	expect_str(buf_str(&down),
	    STR("\1\6\1\2\0\0\0\0\1\3\1\2\0\10\0\0\0\0\0\0\0\0\0\0"));
	response_release(&r);
	buf_release(&down);
}

/* Drawn heads and bodies come out the same at any cut. */
static void
test_drawn(void **state)
{
	unsigned seed = draw_seed();

	(void)state;
	for (int round = 0; round < 200; round++) {
		struct buf in;
		struct result whole, cut;
		size_t fields = draw_size(&seed, 60);

		buf_init(&in);
		for (size_t i = 0; i < fields; i++) {
			buf_addf(&in, "N%zu: ", i);
			wire_fill(&in, draw_size(&seed, 300));
			buf_add_str(&in,
			    draw_below(&seed, 2) ? STR("\r\n") : STR("\n"));
		}
		buf_addf(
		    &in, "Content-Length: %zu\n\n", draw_size(&seed, 3000));
		wire_fill(&in, draw_size(&seed, 3000));
		whole = run(buf_str(&in), &ours, false, in.len, 1);
		cut = run(buf_str(&in), &ours, false,
		    1 + draw_size(&seed, in.len), 1 + draw_size(&seed, 500));
		assert_int_equal(whole.verdict, PUMP_GO_ON);
		expect_str(buf_str(&cut.text), buf_str(&whole.text));
		assert_int_equal(cut.whole, whole.whole);
		buf_release(&whole.text);
		buf_release(&cut.text);
		buf_release(&in);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table_at_every_split),
		cmocka_unit_test(test_families),
		cmocka_unit_test(test_denied_alone),
		cmocka_unit_test(test_no_length_of_204),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_largest_head),
		cmocka_unit_test(test_endless_head),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_drawn),
	};

	return cmocka_run_group_tests_name("response", tests, NULL, NULL);
}
