#include "pure/cgi_head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct row {
	struct str bytes;
	enum cgi_head_state state;
	int status;
	const char *fields; /* "Name=value|..." in order, or the error's word */
	const char *reason;
	int64_t length;
	const char *body;
};

#define ROW(bytes)                         \
	{                                  \
		(bytes), sizeof(bytes) - 1 \
	}
#define GOOD      CGI_HEAD_DONE
#define BAD(word) CGI_HEAD_BAD, 0, word, "", -1, ""

static const struct row table[] = {
	{ ROW("Content-Type: text/plain\r\n\r\nhello"), GOOD, 200,
	    "Content-Type=text/plain|", "", -1, "hello" },
	{ ROW("Content-Type: text/plain\n\nhello"), GOOD, 200,
	    "Content-Type=text/plain|", "", -1, "hello" },
	{ ROW("A: 1\r\nB: 2\n\r\n\r\nbody"), GOOD, 200, "A=1|B=2|", "", -1,
	    "\r\nbody" },
	{ ROW("A: 1\r\nB:2\r\n\nx"), GOOD, 200, "A=1|B=2|", "", -1, "x" },
	{ ROW("Status: 404 Not Found\nA: 1\n\n"), GOOD, 404, "A=1|",
	    "Not Found", -1, "" },
	{ ROW("A: 1\nstatus:503\nB: 2\n\n"), GOOD, 503, "A=1|B=2|", "", -1,
	    "" },
	{ ROW("Status: 999\t x y \n\n"), GOOD, 999, "", "x y", -1, "" },
	{ ROW("Status: 204\n\n"), GOOD, 204, "", "", -1, "" },
	{ ROW("Location: /there\n\n"), GOOD, 302, "Location=/there|", "", -1,
	    "" },
	{ ROW("location: /a\nStatus: 301 Moved\n\n"), GOOD, 301, "location=/a|",
	    "Moved", -1, "" },
	{ ROW("HTTP/1.1 201 Created\r\nA: 1\r\n\r\nz"), GOOD, 201, "A=1|",
	    "Created", -1, "z" },
	{ ROW("HTTP/1.0 200\nA: 1\n\n"), GOOD, 200, "A=1|", "", -1, "" },
	{ ROW("Set-Cookie: a=1\nX: y\nSet-Cookie: b=2\nSet-Cookie: a=1\n\n"),
	    GOOD, 200, "Set-Cookie=a=1|X=y|Set-Cookie=b=2|Set-Cookie=a=1|", "",
	    -1, "" },
	{ ROW("Empty:\nBlank:   \nT:\tv\t \nC: a:b\n\n"), GOOD, 200,
	    "Empty=|Blank=|T=v|C=a:b|", "", -1, "" },
	{ ROW("Content-Length: 12\nA: 1\ncontent-length:12\n\nx"), GOOD, 200,
	    "Content-Length=12|A=1|", "", 12, "x" },
	{ ROW("Status: 199\n\nStatus: 200\n\n"), GOOD, 200, "", "", -1, "" },
	{ ROW("Content-Length: 0\n\n"), GOOD, 200, "Content-Length=0|", "", 0,
	    "" },
	{ ROW("Content-Length: 9223372036854775807\n\n"), GOOD, 200,
	    "Content-Length=9223372036854775807|", "",
	    INT64_C(9223372036854775807), "" },
	{ ROW("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 Fine\nA: 1\n\nb"),
	    GOOD, 200, "A=1|", "Fine", -1, "b" },
	{ ROW("Status: 103\nLink: x\nContent-Length: 7\nLocation: /a\n\n"
	      "Status: 102\n\nA: 1\n\nb"),
	    GOOD, 200, "A=1|", "", -1, "b" },
	{ ROW("A: \x01\x7f\xff\n\n"), GOOD, 200, "A=\x01\x7f\xff|", "", -1,
	    "" },

	{ ROW("A: 1\nB"), CGI_HEAD_MORE, 0, "", "", -1, "" },
	{ ROW("A: 1\n"), CGI_HEAD_MORE, 0, "", "", -1, "" },
	{ ROW("A: 1\n\r"), CGI_HEAD_MORE, 0, "", "", -1, "" },
	{ ROW("Status: 100\n\n"), CGI_HEAD_MORE, 0, "", "", -1, "" },
	{ ROW(""), CGI_HEAD_MORE, 0, "", "", -1, "" },

	{ ROW("\n"), BAD("empty") },
	{ ROW("\r\nA: 1\n\n"), BAD("empty") },
	{ ROW("Status: 100\n\n\n"), BAD("empty") },
	{ ROW("A: 1\nB: \0\n\n"), BAD("a NUL") },
	{ ROW("A: 1\rB: 2\n\n"), BAD("a bare CR") },
	{ ROW("A: 1\r\r\n\n"), BAD("a bare CR") },
	{ ROW("\rA: 1\n\n"), BAD("a bare CR") },
	{ ROW("A: 1\n B: 2\n\n"), BAD("a folded line") },
	{ ROW("A: 1\n\tmore\n\n"), BAD("a folded line") },
	{ ROW(" \n\n"), BAD("a folded line") },
	{ ROW("A: 1\n<html>\n\n"), BAD("without a colon: `<html>`") },
	{ ROW("A: 1\nHTTP/1.1 200 OK\n\n"), BAD("without a colon") },
	{ ROW("HTTP/2 200\n\n"), BAD("without a colon") },
	{ ROW("Content-Length : 5\n\n"), BAD("a field name") },
	{ ROW("A B: 5\n\n"), BAD("a field name") },
	{ ROW("A\x01: 5\n\n"), BAD("a field name") },
	{ ROW("A\x7f: 5\n\n"), BAD("a field name") },
	{ ROW(": 5\n\n"), BAD("a field name") },
	{ ROW("Status: 404: Not Found\n\n"), BAD("three digits") },
	{ ROW("Status: 2000\n\n"), BAD("three digits") },
	{ ROW("Status: 20\n\n"), BAD("three digits") },
	{ ROW("Status: 099\n\n"), BAD("three digits") },
	{ ROW("Status: +20\n\n"), BAD("three digits") },
	{ ROW("Status: OK\n\n"), BAD("three digits") },
	{ ROW("Status:\n\n"), BAD("three digits") },
	{ ROW("HTTP/1.1 20x OK\n\n"), BAD("three digits") },
	{ ROW("HTTP/1.1\n\n"), BAD("three digits") },
	{ ROW("HTTP/1.1200\n\n"), BAD("three digits") },
	{ ROW("HTTP/1. 200\n\n"), BAD("three digits") },
	{ ROW("Status: 200\nA: 1\nStatus: 200\n\n"), BAD("a second status") },
	{ ROW("HTTP/1.1 200 OK\nStatus: 200\n\n"), BAD("a second status") },
	{ ROW("Content-Length: 5\nContent-Length: 6\n\n"), BAD("that differ") },
	{ ROW("Content-Length: 5, 5\n\n"), BAD("no number") },
	{ ROW("Content-Length: -1\n\n"), BAD("no number") },
	{ ROW("Content-Length: +1\n\n"), BAD("no number") },
	{ ROW("Content-Length: 0x1\n\n"), BAD("no number") },
	{ ROW("Content-Length:\n\n"), BAD("no number") },
	{ ROW("Content-Length: 9223372036854775808\n\n"), BAD("no number") },
};

#define ROWS (sizeof(table) / sizeof(table[0]))

static void
expect_row(const struct row *row, const struct cgi_head *h,
    enum cgi_head_state state, const char *rest, size_t rest_len)
{
	char fields[512] = "";
	char body[64] = "";
	size_t n = 0;

	assert_int_equal(state, row->state);
	if (state == CGI_HEAD_BAD) {
		if (strstr(h->error.text, row->fields) == NULL)
			fail_msg(
			    "error `%s`, not `%s`", h->error.text, row->fields);
		return;
	}
	if (state == CGI_HEAD_MORE)
		return;
	for (size_t i = 0; i < h->n_fields; i++)
		n += (size_t)snprintf(fields + n, sizeof(fields) - n,
		    "%.*s=%.*s|", STR_ARG(h->field[i].name),
		    STR_ARG(h->field[i].value));
	assert_string_equal(fields, row->fields);
	assert_int_equal(h->status, row->status);
	assert_true(str_eq(h->reason, str_of(row->reason)));
	assert_int_equal(h->content_length, row->length);
	snprintf(body, sizeof(body), "%.*s%.*s", (int)(h->raw.len - h->body_at),
	    h->raw.p + h->body_at, (int)rest_len, rest);
	assert_string_equal(body, row->body);
}

/* Feeds from a block of its own, so that reading beyond it is caught. */
static enum cgi_head_state
feed_copy(struct cgi_head *h, const char *bytes, size_t len)
{
	char *copy = malloc(len + 1);
	enum cgi_head_state state;

	memcpy(copy, bytes, len);
	state = cgi_head_feed(h, copy, len);
	free(copy);
	return state;
}

static void
run_split(const struct row *row, size_t first, size_t step)
{
	enum cgi_head_state state = CGI_HEAD_MORE;
	struct cgi_head h;
	size_t at = 0;
	size_t n = first;

	cgi_head_init(&h);
	while (state == CGI_HEAD_MORE && at <= row->bytes.len) {
		if (n > row->bytes.len - at)
			n = row->bytes.len - at;
		state = feed_copy(&h, row->bytes.p + at, n);
		at += n;
		if (at == row->bytes.len)
			break;
		n = step;
	}
	expect_row(row, &h, state, row->bytes.p + at, row->bytes.len - at);
	cgi_head_release(&h);
}

static void
test_table_at_every_split(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		for (size_t first = 0; first <= table[i].bytes.len; first++) {
			run_split(&table[i], first, table[i].bytes.len + 1);
			run_split(&table[i], first, 1);
			run_split(&table[i], first, 3);
		}
	}
}

static void
test_who_said_the_status(void **state)
{
	struct cgi_head h;

	(void)state;
	cgi_head_init(&h);
	assert_int_equal(feed_copy(&h, "Location: /\n\n", 13), CGI_HEAD_DONE);
	assert_false(h.has_status);
	cgi_head_release(&h);
	assert_int_equal(feed_copy(&h, "Status: 302\n\n", 13), CGI_HEAD_DONE);
	assert_true(h.has_status);
	cgi_head_release(&h);
}

static void
test_field_of_any_case(void **state)
{
	struct cgi_head h;

	(void)state;
	cgi_head_init(&h);
	assert_null(cgi_head_field(&h, STR("X")));
	assert_int_equal(
	    feed_copy(&h, "x-a: 1\nX-A: 2\n\n", 15), CGI_HEAD_DONE);
	assert_true(str_eq(cgi_head_field(&h, STR("X-A"))->value, STR("1")));
	assert_null(cgi_head_field(&h, STR("X-")));
	assert_null(cgi_head_field(&h, STR("Status")));
	cgi_head_release(&h);
}

/* "X: aaa...\n\n" of `len` bytes in all, and one byte of body. */
static char *
long_head(size_t len)
{
	char *p = malloc(len + 1);

	memset(p, 'a', len);
	memcpy(p, "X: ", 3);
	memcpy(p + len - 2, "\n\nb", 3);
	return p;
}

static void
feed_long(size_t len, size_t step, enum cgi_head_state expected)
{
	char *p = long_head(len);
	enum cgi_head_state state = CGI_HEAD_MORE;
	struct cgi_head h;

	cgi_head_init(&h);
	for (size_t at = 0; at <= len && state == CGI_HEAD_MORE; at += step)
		state = cgi_head_feed(
		    &h, p + at, step < len + 1 - at ? step : len + 1 - at);
	assert_int_equal(state, expected);
	if (state == CGI_HEAD_DONE) {
		assert_int_equal(h.field[0].value.len, len - 5);
		assert_int_equal(h.body_at, len);
	} else {
		assert_non_null(strstr(h.error.text, "longer than 65536"));
	}
	cgi_head_release(&h);
	free(p);
}

static void
test_largest_head(void **state)
{
	static const size_t steps[] = { 1, 7, 8192, 65535, 100000 };

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		feed_long(CGI_HEAD_BYTES_MAX, steps[i], CGI_HEAD_DONE);
		feed_long(CGI_HEAD_BYTES_MAX + 1, steps[i], CGI_HEAD_BAD);
		feed_long(100 * 1024, steps[i], CGI_HEAD_BAD);
	}
}

/* Case B 88: a head over many records, cut where they happen to end. */
static void
test_long_head_at_every_split(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b);
	for (int i = 0; i < 100; i++)
		buf_addf(&b, "Set-Cookie: c%d=%d\r\n", i, i);
	buf_addf(&b, "\r\n");
	for (size_t cut = 0; cut < b.len; cut++) {
		struct cgi_head h;

		cgi_head_init(&h);
		assert_int_equal(feed_copy(&h, b.p, cut), CGI_HEAD_MORE);
		assert_int_equal(
		    feed_copy(&h, b.p + cut, b.len - cut), CGI_HEAD_DONE);
		assert_int_equal(h.n_fields, 100);
		assert_true(str_eq(h.field[99].value, STR("c99=99")));
		assert_int_equal(h.body_at, b.len);
		cgi_head_release(&h);
	}
	buf_release(&b);
}

static enum cgi_head_state
feed_fields(int n, struct cgi_head *h)
{
	enum cgi_head_state state;
	struct buf b;

	buf_init(&b);
	buf_addf(&b, "Status: 200\n");
	for (int i = 0; i < n; i++)
		buf_addf(&b, "F: %d\n", i);
	buf_add_char(&b, '\n');
	state = cgi_head_feed(h, b.p, b.len);
	buf_release(&b);
	return state;
}

static void
test_most_fields(void **state)
{
	struct cgi_head h;

	(void)state;
	cgi_head_init(&h);
	assert_int_equal(feed_fields(CGI_HEAD_FIELDS_MAX, &h), CGI_HEAD_DONE);
	assert_int_equal(h.n_fields, CGI_HEAD_FIELDS_MAX);
	cgi_head_release(&h);
	assert_int_equal(
	    feed_fields(CGI_HEAD_FIELDS_MAX + 1, &h), CGI_HEAD_BAD);
	assert_non_null(strstr(h.error.text, "more than 256 fields"));
	cgi_head_release(&h);
}

/* Endless 1xx heads end at the same limit. */
static void
test_endless_interim_heads(void **state)
{
	enum cgi_head_state got = CGI_HEAD_MORE;
	size_t fed = 0;
	struct cgi_head h;

	(void)state;
	cgi_head_init(&h);
	while (got == CGI_HEAD_MORE) {
		got = cgi_head_feed(&h, "Status: 100\n\n", 13);
		fed += 13;
		assert_true(fed < 2 * CGI_HEAD_BYTES_MAX);
	}
	assert_int_equal(got, CGI_HEAD_BAD);
	cgi_head_release(&h);
}

/* An error shows a long line cut. */
static void
test_error_is_short(void **state)
{
	char line[1000];
	struct cgi_head h;

	(void)state;
	memset(line, 'g', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	cgi_head_init(&h);
	assert_int_equal(feed_copy(&h, line, sizeof(line)), CGI_HEAD_BAD);
	assert_in_range(strlen(h.error.text), 64, 160);
	cgi_head_release(&h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table_at_every_split),
		cmocka_unit_test(test_who_said_the_status),
		cmocka_unit_test(test_field_of_any_case),
		cmocka_unit_test(test_largest_head),
		cmocka_unit_test(test_long_head_at_every_split),
		cmocka_unit_test(test_most_fields),
		cmocka_unit_test(test_endless_interim_heads),
		cmocka_unit_test(test_error_is_short),
	};

	return cmocka_run_group_tests_name("cgi_head", tests, NULL, NULL);
}
