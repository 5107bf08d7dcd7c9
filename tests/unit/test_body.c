/*
 * SPEC.md section 7: what CONTENT_LENGTH promised against what STDIN
 * carried, at any split, and when nothing more of a body can come.
 */
#include "request/body.h"

#include <unistd.h>

#include "base/clock.h"
#include "draw.h"
#include "wire.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define S            INT64_C(1000000)

static struct config_gateway gateway = {
	.max_body_bytes = 20,
	.spool_memory_bytes = 8,
	.spool_total_bytes = 1 << 20,
	.spool_directory = (char *)"/tmp",
	.body_timeout_us = 60 * S,
};

/* CONTENT_LENGTH, as often as it comes; "|" parts them, NULL: never. */
static enum body_verdict
announce(struct body *b, const char *lengths, bool coded)
{
	struct param at[8];
	struct params params = { at, 0 };
	struct str rest = { lengths, lengths == NULL ? 0 : strlen(lengths) };

	at[params.n++] = (struct param){ STR("REQUEST_METHOD"), STR("POST") };
	while (rest.p != NULL)
		at[params.n++] = (struct param){ STR("CONTENT_LENGTH"),
			str_cut(&rest, '|') };
	if (coded)
		at[params.n++] = (struct param){ STR("HTTP_TRANSFER_ENCODING"),
			STR("chunked") };
	body_init(b, 1);
	return body_announce(b, &params, &gateway);
}

static void
test_announce(void **state)
{
	static const struct {
		const char *lengths;
		enum body_verdict verdict;
		int64_t announced;
	} table[] = {
		{ NULL, BODY_MORE, -1 },
		{ "", BODY_MORE, -1 },
		{ "|", BODY_MORE, -1 },
		{ "0", BODY_MORE, 0 },
		{ "5", BODY_MORE, 5 },
		{ "5|5", BODY_MORE, 5 },
		{ "|5", BODY_WRONG, 0 },
		{ "5|", BODY_WRONG, 0 },
		{ "20", BODY_MORE, 20 },
		{ "21", BODY_TOO_LARGE, 21 },
		{ "9223372036854775807", BODY_TOO_LARGE, INT64_MAX },
		{ "9223372036854775808", BODY_WRONG, 0 },
		{ "18446744073709551621", BODY_WRONG, 0 },
		{ "5|6", BODY_WRONG, 0 },
		{ "0|6", BODY_WRONG, 0 },
		{ "6|0", BODY_WRONG, 0 },
		{ "5|x", BODY_WRONG, 0 },
		{ "x", BODY_WRONG, 0 },
		{ "-1", BODY_WRONG, 0 },
		{ "+5", BODY_WRONG, 0 },
		{ " 5", BODY_WRONG, 0 },
		{ "5 ", BODY_WRONG, 0 },
		{ "5,5", BODY_WRONG, 0 },
		{ "0x5", BODY_WRONG, 0 },
		{ "5.0", BODY_WRONG, 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		enum body_verdict verdict;
		struct body b;

		verdict = announce(&b, table[i].lengths, false);
		if (verdict != table[i].verdict)
			print_message("row %zu\n", i);
		assert_int_equal(verdict, table[i].verdict);
		if (table[i].verdict != BODY_WRONG)
			assert_true(b.announced == table[i].announced);
		body_release(&b);
	}
}

#define ABC  "\1\5\0\1\0\3\0\0abc"
#define DONE WIRE_NO_STDIN
#define ROW(bytes)                         \
	{                                  \
		(bytes), sizeof(bytes) - 1 \
	}

struct row {
	const char *lengths;
	struct str bytes;
	enum body_verdict verdict;
	const char *body;
	size_t rest; /* bytes that are none of ours */
};

static const struct row table[] = {
	{ NULL, ROW(DONE), BODY_WHOLE, "", 0 },
	{ "0", ROW(DONE), BODY_WHOLE, "", 0 },
	{ "3", ROW(ABC DONE), BODY_WHOLE, "abc", 0 },
	{ "", ROW(ABC DONE), BODY_WHOLE, "abc", 0 },
	{ "6", ROW(ABC ABC DONE), BODY_WHOLE, "abcabc", 0 },
	{ "9", ROW(ABC ABC ABC DONE), BODY_WHOLE, "abcabcabc", 0 },
	{ NULL, ROW(ABC ABC DONE WIRE_BEGIN), BODY_WHOLE, "abcabc", 16 },
	/* Padding, of the last record too, is the record's. */
	{ "3", ROW("\1\5\0\1\0\3\5\0abc12345" DONE), BODY_WHOLE, "abc", 0 },
	{ "3", ROW(ABC "\1\5\0\1\0\0\3\0xyz"), BODY_WHOLE, "abc", 0 },
	{ "3", ROW(ABC "\1\5\0\1\0\0\3\0xyz" WIRE_BEGIN), BODY_WHOLE, "abc",
	    16 },
	{ "3", ROW(ABC "\1\5\0\1\0\0\3\0xy"), BODY_MORE, "abc", 0 },
	/* Management records are nobody's. */
	{ "3", ROW("\1\11\0\0\0\2\3\0ab123" ABC DONE), BODY_WHOLE, "abc", 0 },
	{ "3", ROW(ABC "\1\377\0\0\0\0\0\0" DONE), BODY_WHOLE, "abc", 0 },

	{ "3", ROW(ABC), BODY_MORE, "abc", 0 },
	{ "3", ROW("\1\5\0\1\0\3\0\0ab"), BODY_MORE, "ab", 0 },
	{ "3", ROW("\1\5\0\1\0"), BODY_MORE, "", 5 },
	{ NULL, ROW(""), BODY_MORE, "", 0 },

	{ "4", ROW(ABC DONE), BODY_WRONG, "abc", 0 },
	{ "1", ROW(DONE), BODY_WRONG, "", 0 },
	{ "3", ROW(ABC "\1\5\0\1\0\1\0\0x"), BODY_WRONG, "abc", 0 },
	{ "0", ROW("\1\5\0\1\0\1\0\0x"), BODY_WRONG, "", 0 },
	/* max_body, where the length was not known before. */
	{ NULL, ROW("\1\5\0\1\0\24\0\00001234567890123456789" DONE), BODY_WHOLE,
	    "01234567890123456789", 0 },
	{ NULL, ROW(ABC ABC ABC ABC ABC ABC "\1\5\0\1\0\3\0\0abc"),
	    BODY_TOO_LARGE, NULL, 0 },

	/* What is no part of the body is left for who comes after. */
	{ "3", ROW("\1\2\0\1\0\0\0\0"), BODY_ABORTED, "", 8 },
	{ "3", ROW(ABC "\1\2\0\1\0\0\0\0"), BODY_ABORTED, "abc", 8 },
	{ "3", ROW("\1\5\0\2\0\0\0\0"), BODY_MALFORMED, "", 8 },
	{ "3", ROW("\1\2\0\2\0\0\0\0"), BODY_MALFORMED, "", 8 },
	{ "3", ROW(WIRE_BEGIN), BODY_MALFORMED, "", 16 },
	{ "3", ROW(WIRE_NO_PARAMS), BODY_MALFORMED, "", 8 },
	{ "3", ROW("\1\6\0\1\0\0\0\0"), BODY_MALFORMED, "", 8 },
	{ "3", ROW("\1\10\0\1\0\0\0\0"), BODY_MALFORMED, "", 8 },
	{ "3", ROW("\2\5\0\1\0\0\0\0"), BODY_MALFORMED, "", 8 },
	{ "3", ROW("GET / HT"), BODY_MALFORMED, "", 8 },
};

static enum body_verdict
feed(
    struct body *b, struct buf *in, struct str bytes, size_t first, size_t step)
{
	enum body_verdict verdict = BODY_MORE;

	while (bytes.len > 0 && verdict == BODY_MORE) {
		size_t n = first < bytes.len ? first : bytes.len;

		buf_add(in, bytes.p, n);
		verdict = body_feed(b, &gateway, in);
		bytes.p += n;
		bytes.len -= n;
		first = step;
	}
	buf_add_str(in, bytes);
	return verdict;
}

static void
expect_spool(const struct body *b, struct str expected)
{
	char *bytes = malloc(expected.len + 1);

	assert_non_null(bytes);
	assert_int_equal(b->spool.bytes, expected.len);
	for (size_t at = 0; at < expected.len;) {
		ssize_t n = spool_read(
		    &b->spool, at, bytes + at, expected.len - at + 1);

		assert_in_range(n, 1, expected.len - at);
		at += (size_t)n;
	}
	expect_str((struct str){ bytes, expected.len }, expected);
	free(bytes);
}

static void
run_row(const struct row *row, size_t first, size_t step)
{
	struct body b;
	struct buf in;
	enum body_verdict verdict;

	buf_init(&in);
	assert_int_equal(announce(&b, row->lengths, false), BODY_MORE);
	verdict = feed(&b, &in, row->bytes, first, step);
	if (verdict != row->verdict)
		print_message("row %zu cut at %zu by %zu\n",
		    (size_t)(row - table), first, step);
	assert_int_equal(verdict, row->verdict);
	if (row->body != NULL &&
	    (verdict == BODY_WHOLE || verdict == BODY_MORE))
		expect_spool(&b, str_of(row->body));
	if (verdict == BODY_WHOLE) {
		/* Once whole it is whole, and takes nothing more. */
		buf_add(&in, "more", 4);
		assert_int_equal(body_feed(&b, &gateway, &in), BODY_WHOLE);
		assert_int_equal(in.len, row->rest + 4);
		assert_true(body_is_settled(&b));
	} else if (row->rest > 0) {
		assert_int_equal(in.len, row->rest);
	}
	body_release(&b);
	buf_release(&in);
}

static void
test_table_at_every_split(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(table); i++)
		for (size_t first = 1; first <= table[i].bytes.len; first++) {
			run_row(&table[i], first, table[i].bytes.len + 1);
			run_row(&table[i], first, 1);
			run_row(&table[i], first, 3);
		}
}

/*
 * A kept connection goes on at the next record only if none of the body is
 * under way: the rest of a record would be read as records, and what is in
 * it is the client's to choose.
 */
static void
test_settled(void **state)
{
	static const struct {
		const char *lengths;
		bool coded;
		struct str bytes;
		bool settled;
	} rows[] = {
		{ NULL, false, ROW(""), true },
		{ "0", false, ROW(""), true },
		{ "", false, ROW(""), true },
		{ "3", false, ROW(""), false },
		{ NULL, true, ROW(""), false },
		{ NULL, true, ROW(DONE), true },
		{ "3", false, ROW(ABC DONE), true },
		{ "3", false, ROW("\1\5\0\1\0\3\0\0ab"), false },
		/* Nobody said so, but one comes. */
		{ NULL, false, ROW("\1\5\0\1\0\3\0\0"), false },
		{ NULL, false, ROW("\1\5\0\1\0\3\0\0ab"), false },
		{ NULL, false, ROW(ABC), false },
		{ NULL, false, ROW(ABC DONE), true },
		{ "0", false, ROW("\1\5\0\1\0\3\0\0a"), false },
		{ NULL, false, ROW("\1\5\0\1\0\0\3\0x"), false },
		{ NULL, false, ROW("\1\11\0\0\0\4\0\0x"), false },
		{ NULL, false, ROW("\1\11\0\0\0\4\0\0xyzw"), true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct body b;
		struct buf in;

		buf_init(&in);
		announce(&b, rows[i].lengths, rows[i].coded);
		feed(&b, &in, rows[i].bytes, 100, 100);
		if (body_is_settled(&b) != rows[i].settled)
			print_message("row %zu\n", i);
		assert_int_equal(body_is_settled(&b), rows[i].settled);
		body_release(&b);
		buf_release(&in);
	}
}

/* spool_total from both sides, and what was taken is given back. */
static void
test_no_room(void **state)
{
	struct body b;
	struct buf in;

	(void)state;
	buf_init(&in);
	for (int round = 0; round < 3; round++) {
		gateway.spool_total_bytes = 3;
		announce(&b, NULL, false);
		assert_int_equal(
		    feed(&b, &in, STR(ABC DONE), 4, 4), BODY_WHOLE);
		body_release(&b);
		buf_reset(&in);
		gateway.spool_total_bytes = 2;
		announce(&b, NULL, false);
		assert_int_equal(
		    feed(&b, &in, STR(ABC DONE), 4, 4), BODY_NO_ROOM);
		body_release(&b);
		buf_reset(&in);
	}
	gateway.spool_total_bytes = 1 << 20;
	gateway.spool_directory = (char *)"/nowhere/at/all";
	announce(&b, NULL, false);
	assert_int_equal(
	    feed(&b, &in, STR(ABC ABC ABC DONE), 100, 100), BODY_FAILED);
	body_release(&b);
	buf_release(&in);
	gateway.spool_directory = (char *)"/tmp";
}

static void
test_deadline(void **state)
{
	int64_t before = clock_mono_us();
	struct body b;
	struct buf in;

	(void)state;
	buf_init(&in);
	announce(&b, "3", false);
	assert_in_range(body_deadline(&b, &gateway), before + 60 * S,
	    clock_mono_us() + 60 * S);
	/* Progress moves it, but not beyond what 1 KB/s allow. */
	b.started_us -= 50 * S;
	b.moved_us -= 50 * S;
	before = clock_mono_us();
	feed(&b, &in, STR("\1\5\0\1\0"), 100, 100);
	assert_true(b.moved_us < before - 49 * S); /* half a header: none */
	feed(&b, &in, STR("\3\0\0a"), 100, 100);
	assert_true(b.moved_us >= before);
	assert_true(body_deadline(&b, &gateway) == b.started_us + 60 * S);
	b.spool.bytes += 10 * 1024;
	assert_in_range(body_deadline(&b, &gateway), b.started_us + 70 * S,
	    b.started_us + 71 * S);
	b.spool.bytes += 1000 * 1024;
	assert_true(body_deadline(&b, &gateway) == b.moved_us + 60 * S);
	b.spool.bytes -= 1010 * 1024;
	body_release(&b);
	buf_release(&in);
}

/* Known from the length that was announced, or once too much has come. */
static void
test_may_be_text(void **state)
{
	struct body b;
	struct buf in;

	(void)state;
	buf_init(&in);
	announce(&b, "8", false);
	assert_true(body_may_be_text(&b, &gateway));
	announce(&b, "9", false);
	assert_false(body_may_be_text(&b, &gateway));
	announce(&b, "0", false);
	assert_true(body_may_be_text(&b, &gateway));
	announce(&b, NULL, true);
	assert_true(body_may_be_text(&b, &gateway));
	feed(&b, &in,
	    STR("\1\5\0\1\0\11\0\0"
		"abcdefgh"),
	    100, 100);
	assert_true(body_may_be_text(&b, &gateway));
	feed(&b, &in, STR("i"), 100, 100);
	assert_false(body_may_be_text(&b, &gateway));
	body_release(&b);
	buf_release(&in);
}

/* Drawn records and padding, cut anywhere, through memory and a file. */
static void
test_drawn(void **state)
{
	unsigned seed = draw_seed();

	(void)state;
	gateway.max_body_bytes = 1 << 20;
	for (int round = 0; round < 60; round++) {
		struct buf bytes, body, in;
		struct str rest;
		struct body b;

		buf_init(&bytes);
		buf_init(&body);
		buf_init(&in);
		gateway.spool_memory_bytes = draw_size(&seed, 100000);
		wire_fill(&body, draw_size(&seed, 200000));
		for (rest = buf_str(&body); rest.len > 0;) {
			size_t n = 1 + draw_size(&seed, 65534);

			n = n < rest.len ? n : rest.len;
			wire_record(&bytes, 5, 1, (struct str){ rest.p, n },
			    draw_size(&seed, 255));
			rest.p += n;
			rest.len -= n;
		}
		wire_record(&bytes, 5, 1, STR_NONE, draw_size(&seed, 255));
		buf_add_str(&bytes, STR(WIRE_BEGIN));
		announce(&b, NULL, round % 2 == 0);
		assert_int_equal(feed(&b, &in, buf_str(&bytes),
				     1 + draw_size(&seed, bytes.len),
				     1 + draw_size(&seed, 70000)),
		    BODY_WHOLE);
		expect_spool(&b, buf_str(&body));
		expect_str(buf_str(&in), STR(WIRE_BEGIN));
		assert_int_equal(body_may_be_text(&b, &gateway),
		    body.len <= gateway.spool_memory_bytes);
		body_release(&b);
		buf_release(&bytes);
		buf_release(&body);
		buf_release(&in);
	}
	gateway.max_body_bytes = 20;
	gateway.spool_memory_bytes = 8;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_announce),
		cmocka_unit_test(test_table_at_every_split),
		cmocka_unit_test(test_settled),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_deadline),
		cmocka_unit_test(test_may_be_text),
		cmocka_unit_test(test_drawn),
	};

	return cmocka_run_group_tests_name("body", tests, NULL, NULL);
}
