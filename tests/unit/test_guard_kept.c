/*
 * ENGINE.md, "Kept connections", and the management records of FACTS.md
 * 1.5 and 1.6: what the guard passes over and answers before a head.
 */
#include "request/guard.h"

#include "draw.h"
#include "wire.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define OLD_ID       7

static enum guard_verdict
feed(struct guard *g, struct str bytes, size_t step)
{
	enum guard_verdict verdict = GUARD_MORE;
	struct buf in;

	buf_init(&in);
	while (bytes.len > 0 && verdict == GUARD_MORE) {
		size_t n = step < bytes.len ? step : bytes.len;

		buf_add(&in, bytes.p, n);
		verdict = guard_feed(g, &in);
		bytes.p += n;
		bytes.len -= n;
	}
	buf_release(&in);
	return verdict;
}

/* A guard whose connection had a request of OLD_ID before. */
static void
start_kept(struct guard *g)
{
	guard_init(g, 4096);
	assert_int_equal(
	    feed(
		g, STR("\1\1\0\7\0\10\0\0\0\1\1\0\0\0\0\0\1\4\0\7\0\0\0\0"), 1),
	    GUARD_HEAD);
	guard_reset(g, OLD_ID);
	assert_true(g->served);
	assert_int_equal(g->max_bytes, 4096);
	assert_null(g->head.p);
	assert_null(g->pairs.p);
	assert_null(g->answer.p);
}

#define NEXT WIRE_BEGIN WIRE_NO_PARAMS

static void
test_late_records(void **state)
{
	static const struct {
		struct str before; /* the next head */
		enum guard_verdict verdict;
	} table[] = {
		/* [M] Apache's empty STDIN behind our END. */
		{ { "\1\5\0\7\0\0\0\0", 8 }, GUARD_HEAD },
		{ { "\1\5\0\7\0\3\5\0abc12345", 16 }, GUARD_HEAD },
		{ { "\1\10\0\7\0\1\0\0a\1\2\0\7\0\0\0\0\1\5\0\7\0\0\0\0", 25 },
		    GUARD_HEAD },
		/* A management record between them is still answered. */
		{ { "\1\5\0\7\0\0\0\0\1\11\0\0\0\0\0\0", 16 }, GUARD_HEAD },
		/* Of another request, or no such record. */
		{ { "\1\5\0\6\0\0\0\0", 8 }, GUARD_MALFORMED },
		{ { "\1\5\1\7\0\0\0\0", 8 }, GUARD_MALFORMED },
		{ { "\1\4\0\7\0\0\0\0", 8 }, GUARD_MALFORMED },
		{ { "\1\3\0\7\0\0\0\0", 8 }, GUARD_MALFORMED },
		{ { "\1\6\0\7\0\0\0\0", 8 }, GUARD_MALFORMED },
		{ { "\1\7\0\7\0\0\0\0", 8 }, GUARD_MALFORMED },
		{ { "\1\377\0\7\0\0\0\0", 8 }, GUARD_MALFORMED },
		{ { "\2\5\0\7\0\0\0\0", 8 }, GUARD_MALFORMED },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++)
		for (size_t step = 1; step <= 40; step++) {
			struct guard g;
			struct buf all;

			buf_init(&all);
			buf_add_str(&all, table[i].before);
			buf_add_str(&all, STR(NEXT));
			start_kept(&g);
			assert_int_equal(
			    feed(&g, buf_str(&all), step), table[i].verdict);
			if (table[i].verdict == GUARD_HEAD)
				expect_str(buf_str(&g.head), STR(NEXT));
			guard_release(&g);
			buf_release(&all);
		}
}

/* Once the next request has begun nothing is late any more. */
static void
test_too_late(void **state)
{
	struct guard g;

	(void)state;
	start_kept(&g);
	assert_int_equal(
	    feed(&g, STR(WIRE_BEGIN "\1\5\0\7\0\0\0\0"), 1), GUARD_MALFORMED);
	guard_release(&g);
	/* The same id again is the new request's. */
	start_kept(&g);
	assert_int_equal(feed(&g,
			     STR("\1\1\0\7\0\10\0\0\0\1\0\0\0\0\0\0"
				 "\1\5\0\7\0\0\0\0"),
			     1),
	    GUARD_MALFORMED);
	guard_release(&g);
}

/* Records of `each` bytes with framing, `sum` of them together. */
static enum guard_verdict
send_leftover(size_t each, size_t sum)
{
	struct guard g;
	struct buf all;
	enum guard_verdict verdict;

	buf_init(&all);
	while (all.len < sum) {
		size_t n = sum - all.len < each ? sum - all.len : each;
		struct buf content;

		buf_init(&content);
		wire_fill(&content, n - 8);
		wire_record(&all, 5, OLD_ID, buf_str(&content), 0);
		buf_release(&content);
	}
	assert_int_equal(all.len, sum);
	buf_add_str(&all, STR(NEXT));
	start_kept(&g);
	verdict = feed(&g, buf_str(&all), 5000);
	guard_release(&g);
	buf_release(&all);
	return verdict;
}

static void
test_leftover_max(void **state)
{
	static const size_t each[] = { 8, 1000, 32768, 65536 };

	(void)state;
	assert_int_equal(GUARD_LEFTOVER_MAX, 65536);
	for (size_t i = 0; i < COUNT(each); i++) {
		assert_int_equal(
		    send_leftover(each[i], GUARD_LEFTOVER_MAX - 8), GUARD_HEAD);
		assert_int_equal(
		    send_leftover(each[i], GUARD_LEFTOVER_MAX), GUARD_HEAD);
		assert_int_equal(send_leftover(each[i], GUARD_LEFTOVER_MAX + 8),
		    GUARD_MALFORMED);
	}
	assert_int_equal(
	    send_leftover(65543, GUARD_LEFTOVER_MAX + 1), GUARD_MALFORMED);
}

/* Padding is sent as well as anything. */
static void
test_leftover_of_padding(void **state)
{
	(void)state;
	for (size_t padding = 255; padding >= 248; padding -= 7) {
		size_t n = GUARD_LEFTOVER_MAX / (8 + padding);
		struct guard g;
		struct buf late;

		buf_init(&late);
		for (size_t i = 0; i < n; i++)
			wire_record(&late, 5, OLD_ID, STR_NONE, padding);
		start_kept(&g);
		assert_int_equal(feed(&g, buf_str(&late), 777), GUARD_MORE);
		assert_int_equal(
		    feed(&g, (struct str){ late.p, 8 + padding }, 777),
		    GUARD_MALFORMED);
		guard_release(&g);
		buf_release(&late);
	}
}

/* What was skipped is no part of the head, and begins at 0 each time. */
static void
test_leftover_is_no_head(void **state)
{
	struct guard g;
	struct buf late;

	(void)state;
	buf_init(&late);
	wire_header(&late, 5, OLD_ID, 60000, 0);
	wire_fill(&late, 60000);
	buf_add_str(&late, STR(NEXT));
	start_kept(&g);
	assert_int_equal(feed(&g, buf_str(&late), late.len), GUARD_HEAD);
	assert_int_equal(g.raw, sizeof(NEXT) - 1);
	guard_reset(&g, OLD_ID);
	assert_int_equal(feed(&g, buf_str(&late), 777), GUARD_HEAD);
	guard_release(&g);
	buf_release(&late);
}

/* What a peer asks, and what it is to be told. */
struct question {
	struct str asked;
	struct str answer;
};

#define MPXS "\17\0FCGI_MPXS_CONNS"

static const struct question questions[] = {
	{ { "\1\11\0\0\0\0\0\0", 8 }, { "\1\12\0\0\0\0\0\0", 8 } },
	{ { "\1\11\0\0\0\21\0\0" MPXS, 25 },
	    { "\1\12\0\0\0\22\0\0\17\1FCGI_MPXS_CONNS0", 26 } },
	/* FACTS 1.6: asked four times it smashed libfcgi's stack. */
	{ { "\1\11\0\0\0\104\4\0" MPXS MPXS MPXS MPXS "abcd", 80 },
	    { "\1\12\0\0\0\22\0\0\17\1FCGI_MPXS_CONNS0", 26 } },
	{ { "\1\11\0\0\0\6\0\0\4\0NONE", 14 }, { "\1\12\0\0\0\0\0\0", 8 } },
	/* Half a question is answered as far as it goes. */
	{ { "\1\11\0\0\0\3\0\0\17\0F", 11 }, { "\1\12\0\0\0\0\0\0", 8 } },
	{ { "\1\144\0\0\0\0\0\0", 8 },
	    { "\1\13\0\0\0\10\0\0\144\0\0\0\0\0\0\0", 16 } },
	{ { "\1\377\0\0\0\3\2\0abc12", 13 },
	    { "\1\13\0\0\0\10\0\0\377\0\0\0\0\0\0\0", 16 } },
	/* Streams and ends belong to requests, not to id 0. */
	{ { "\1\5\0\0\0\0\0\0", 8 },
	    { "\1\13\0\0\0\10\0\0\5\0\0\0\0\0\0\0", 16 } },
};

static void
test_questions(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(questions); i++)
		for (size_t step = 1; step <= 81; step += 4) {
			const struct question *q = &questions[i];
			struct guard g;
			struct buf both;

			buf_init(&both);
			guard_init(&g, 1024);
			assert_int_equal(feed(&g, q->asked, step), GUARD_MORE);
			expect_str(buf_str(&g.answer), q->answer);
			/* Inside a head too, and the head is as it was. */
			buf_add_str(&both, STR(WIRE_BEGIN));
			buf_add_str(&both, q->asked);
			buf_add_str(&both, STR(WIRE_NO_PARAMS));
			buf_reset(&g.answer);
			assert_int_equal(
			    feed(&g, buf_str(&both), step), GUARD_HEAD);
			expect_str(buf_str(&g.answer), q->answer);
			expect_str(buf_str(&g.head), STR(NEXT));
			guard_release(&g);
			buf_release(&both);
		}
}

static void
test_all_values(void **state)
{
	static const char asked[] =
	    "\1\11\0\0\0\60\0\0" MPXS "\16\0FCGI_MAX_CONNS"
	    "\15\0FCGI_MAX_REQS";
	struct guard g;

	(void)state;
	guard_init(&g, 1024);
	assert_int_equal(feed(&g, STR(asked), 1), GUARD_MORE);
	assert_in_range(g.answer.len, 8 + 48 + 3, 8 + 48 + 30);
	for (const char *name = "FCGI_MPXS_CONNS\0FCGI_MAX_CONNS\0"
				"FCGI_MAX_REQS\0";
	     *name != '\0'; name += strlen(name) + 1) {
		const char *at =
		    memmem(g.answer.p, g.answer.len, name, strlen(name));

		assert_non_null(at);
		assert_in_range(at[strlen(name)], '0', '9');
	}
	guard_release(&g);
}

/* They count: a head does not grow beyond max_head by them. */
static void
test_questions_count(void **state)
{
	struct guard g;
	struct buf all;

	(void)state;
	buf_init(&all);
	buf_add_str(&all, STR(WIRE_BEGIN));
	for (int i = 0; i < 125; i++)
		buf_add_str(&all, STR("\1\11\0\0\0\0\0\0"));
	buf_add_str(&all, STR(WIRE_NO_PARAMS));
	assert_int_equal(all.len, 1024);
	guard_init(&g, 1024);
	assert_int_equal(feed(&g, buf_str(&all), all.len), GUARD_HEAD);
	guard_release(&g);
	guard_init(&g, 1023);
	assert_int_equal(feed(&g, buf_str(&all), all.len), GUARD_TOO_LARGE);
	guard_release(&g);
	buf_release(&all);
}

/* Who asks without end and reads nothing is cut off. */
static void
test_questions_without_end(void **state)
{
	struct guard g;
	enum guard_verdict verdict = GUARD_MORE;
	size_t asked = 0;

	(void)state;
	guard_init(&g, 1024);
	while (verdict == GUARD_MORE && asked++ < 100000)
		verdict = feed(&g, STR("\1\144\0\0\0\0\0\0"), 8);
	assert_int_equal(verdict, GUARD_MALFORMED);
	assert_in_range(g.answer.len, 1024, 65536 + 16);
	guard_release(&g);
	/* Whose answers are sent may go on: nothing piles up. */
	guard_init(&g, 1024);
	for (size_t i = 0; i < 100000; i++) {
		assert_int_equal(
		    feed(&g, STR("\1\144\0\0\0\0\0\0"), 8), GUARD_MORE);
		buf_reset(&g.answer);
	}
	assert_in_range(g.answer.cap, 16, 1024);
	guard_release(&g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late_records),
		cmocka_unit_test(test_too_late),
		cmocka_unit_test(test_leftover_max),
		cmocka_unit_test(test_leftover_of_padding),
		cmocka_unit_test(test_leftover_is_no_head),
		cmocka_unit_test(test_questions),
		cmocka_unit_test(test_all_values),
		cmocka_unit_test(test_questions_count),
		cmocka_unit_test(test_questions_without_end),
	};

	return cmocka_run_group_tests_name("guard_kept", tests, NULL, NULL);
}
