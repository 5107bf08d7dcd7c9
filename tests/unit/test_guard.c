/*
 * ENGINE.md, "libfcgi behind a private memfd" and "Kept connections", and
 * FACTS.md 1.6: what the guard lets through, what it refuses, and that the
 * cut of the bytes never matters.
 */
#include "request/guard.h"

#include "draw.h"
#include "wire.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define MAX_HEAD     131072

#define BYTES(literal)                         \
	{                                      \
		(literal), sizeof(literal) - 1 \
	}
#define HEAD(pairs) WIRE_BEGIN pairs WIRE_NO_PARAMS
/* PARAMS of id 1; n: its length, an octal escape. */
#define PARAMS(n) "\1\4\0\1\0" n "\0\0"

struct row {
	struct str bytes;
	enum guard_verdict verdict;
	const char *text; /* HEAD: as it should be; MALFORMED: a part of why */
	size_t len;
};

#define GOOD(in, out)                                         \
	{                                                     \
		BYTES(in), GUARD_HEAD, (out), sizeof(out) - 1 \
	}
#define SAME(in) GOOD(in, in)
#define BAD(in, why)                               \
	{                                          \
		BYTES(in), GUARD_MALFORMED, why, 0 \
	}
#define OTHER(in, verdict)                \
	{                                 \
		BYTES(in), verdict, "", 0 \
	}

static const struct row table[] = {
	SAME(HEAD("")),
	SAME(HEAD(PARAMS("\5") "\1\2abc")),
	SAME(HEAD(PARAMS("\3") "\1\0a")),
	SAME(HEAD(PARAMS("\4") "\1\1a=")),
	SAME(HEAD(PARAMS("\10") "\1\1ab\1\1ac")),
	SAME(WIRE_BEGIN_KEEP PARAMS("\5") "\1\2abc" WIRE_NO_PARAMS),
	/* All that may differ is made plain. */
	GOOD("\1\1\0\1\0\10\3\xff\0\1\xfe\xff\xff\xff\xff\xff\xff\xff\xff"
	     "\1\4\0\1\0\5\2\x55\1\2abc\1\1\1\4\0\1\0\0\1\0\1",
	    HEAD(PARAMS("\5") "\1\2abc")),
	GOOD("\1\1\0\1\0\10\0\0\0\1\xff\0\0\0\0\0" WIRE_NO_PARAMS,
	    WIRE_BEGIN_KEEP WIRE_NO_PARAMS),
	GOOD(HEAD(PARAMS("\13") "\x80\0\0\1\x80\0\0\2abc"),
	    HEAD(PARAMS("\5") "\1\2abc")),
	/* Pairs that are cut by records come out whole. */
	GOOD(HEAD(PARAMS("\1") "\1" PARAMS("\3") "\2ab" PARAMS("\1") "c"),
	    HEAD(PARAMS("\5") "\1\2abc")),
	GOOD(HEAD(PARAMS("\3") "\1\1a" PARAMS("\5") "b\1\1ac"),
	    HEAD(PARAMS("\10") "\1\1ab\1\1ac")),
	SAME("\1\1\xff\xfe\0\10\0\0\0\1\0\0\0\0\0\0"
	     "\1\4\xff\xfe\0\0\0\0"),

	OTHER("", GUARD_MORE),
	OTHER("\1", GUARD_MORE),
	OTHER(WIRE_BEGIN, GUARD_MORE),
	OTHER(WIRE_BEGIN PARAMS("\5") "\1\2abc", GUARD_MORE),
	OTHER(WIRE_BEGIN "\1\4\0\1\0\0\1\0", GUARD_MORE),
	OTHER("\1\1\0\1\0\10\0\0\0\0\0\0\0\0\0\0", GUARD_UNKNOWN_ROLE),
	OTHER("\1\1\0\1\0\10\0\0\0\2\0\0\0\0\0\0", GUARD_UNKNOWN_ROLE),
	OTHER("\1\1\0\1\0\10\0\0\0\3\0\0\0\0\0\0", GUARD_UNKNOWN_ROLE),
	OTHER("\1\1\0\1\0\10\0\0\1\1\0\0\0\0\0\0", GUARD_UNKNOWN_ROLE),

	BAD("GET / HTTP/1.1\r\n\r\n", "version"),
	BAD("\0\1\0\1\0\10\0\0", "version"),
	BAD("\2\1\0\1\0\10\0\0", "version"),
	BAD(WIRE_BEGIN "\2\4\0\1\0\0\0\0", "version"),
	BAD("\1\1\0\0\0\10\0\0\0\1\0\0\0\0\0\0", "BEGIN_REQUEST"),
	BAD("\1\1\0\1\0\7\0\0\0\1\0\0\0\0\0", "BEGIN_REQUEST"),
	BAD("\1\1\0\1\0\11\0\0\0\1\0\0\0\0\0\0\0", "BEGIN_REQUEST"),
	BAD("\1\1\0\1\0\0\0\0", "BEGIN_REQUEST"),
	/* Another type, or another request, inside or before the head. */
	BAD(WIRE_BEGIN WIRE_BEGIN, "inside the head"),
	BAD(WIRE_BEGIN "\1\1\0\2\0\10\0\0\0\1\0\0\0\0\0\0", "inside the head"),
	BAD(WIRE_BEGIN "\1\1\0\0\0\10\0\0\0\1\0\0\0\0\0\0", "inside the head"),
	BAD(WIRE_BEGIN "\1\2\0\1\0\0\0\0", "inside the head"),
	BAD(WIRE_BEGIN "\1\3\0\1\0\0\0\0", "inside the head"),
	BAD(WIRE_BEGIN "\1\4\0\2\0\0\0\0", "inside the head"),
	BAD(WIRE_BEGIN WIRE_NO_STDIN, "inside the head"),
	BAD(WIRE_BEGIN "\1\6\0\1\0\0\0\0", "inside the head"),
	BAD(WIRE_BEGIN "\1\10\0\1\0\0\0\0", "inside the head"),
	BAD(WIRE_BEGIN "\1\11\0\1\0\0\0\0", "inside the head"),
	BAD(WIRE_BEGIN "\1\377\0\1\0\0\0\0", "inside the head"),
	BAD(WIRE_NO_PARAMS, "before BEGIN_REQUEST"),
	BAD(WIRE_NO_STDIN, "before BEGIN_REQUEST"),
	BAD("\1\2\0\1\0\0\0\0", "before BEGIN_REQUEST"),
	/* FACTS 1.6: the packet that aborts libfcgi, and its like. */
	BAD(HEAD(PARAMS("\10") "\377\377\377\376\0abc"), "longer"),
	BAD(HEAD(PARAMS("\10") "\1\377\377\377\377abc"), "longer"),
	BAD(HEAD(PARAMS("\10") "\377\377\377\377\377\377\377\377"), "longer"),
	BAD(HEAD(PARAMS("\1") "\1"), "longer"),
	BAD(HEAD(PARAMS("\1") "\200"), "longer"),
	BAD(HEAD(PARAMS("\3") "\200\0\0"), "longer"),
	BAD(HEAD(PARAMS("\4") "\1\2ab"), "longer"),
	BAD(HEAD(PARAMS("\6") "\1\1ab\1\1"), "longer"),
	BAD(HEAD(PARAMS("\3") "\0\1a"), "without a name"),
	BAD(HEAD(PARAMS("\2") "\0\0"), "without a name"),
	BAD(HEAD(PARAMS("\4") "\1\1=a"), "= in its name"),
	BAD(HEAD(PARAMS("\7") "\3\2a=bcd"), "= in its name"),
	BAD(HEAD(PARAMS("\4") "\1\1\0a"), "NUL"),
	BAD(HEAD(PARAMS("\4") "\1\1a\0"), "NUL"),
	BAD(HEAD(PARAMS("\10") "\1\1ab\1\1c\0"), "NUL"),
};

/* Feeds `first` bytes, then `step` at a time, until there is a verdict. */
static enum guard_verdict
feed(struct guard *g, struct buf *in, struct str bytes, size_t first,
    size_t step)
{
	enum guard_verdict verdict = GUARD_MORE;

	while (bytes.len > 0 && verdict == GUARD_MORE) {
		size_t n = first < bytes.len ? first : bytes.len;

		buf_add(in, bytes.p, n);
		verdict = guard_feed(g, in);
		bytes.p += n;
		bytes.len -= n;
		first = step;
	}
	/* What has not been looked at stays where it was. */
	buf_add_str(in, bytes);
	return verdict;
}

static enum guard_verdict
feed_whole(struct guard *g, struct str bytes)
{
	enum guard_verdict verdict;
	struct buf in;

	buf_init(&in);
	verdict = feed(g, &in, bytes, bytes.len, bytes.len);
	buf_release(&in);
	return verdict;
}

static void
run_row(const struct row *row, size_t first, size_t step)
{
	struct guard g;
	struct buf in;
	enum guard_verdict verdict;

	buf_init(&in);
	guard_init(&g, MAX_HEAD);
	verdict = feed(&g, &in, row->bytes, first, step);
	if (verdict != row->verdict)
		print_message("row %zu cut at %zu by %zu\n",
		    (size_t)(row - table), first, step);
	assert_int_equal(verdict, row->verdict);
	if (verdict == GUARD_HEAD) {
		expect_str(
		    buf_str(&g.head), (struct str){ row->text, row->len });
		assert_int_equal(in.len, 0);
		assert_int_equal(g.role, 1);
		assert_int_equal(g.keep, (g.head.p[10] & 1) != 0);
	}
	if (verdict == GUARD_MALFORMED)
		assert_non_null(strstr(g.fault, row->text));
	if (verdict == GUARD_UNKNOWN_ROLE)
		assert_int_equal(g.id, 1);
	assert_int_equal(g.answer.len, 0);
	guard_release(&g);
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
			run_row(&table[i], first, 5);
		}
}

/* [gateway] roles: what is not served has an id to be told so, no head. */
static void
test_roles(void **state)
{
	static const struct {
		int role;
		bool of_responder;
		bool of_authorizer;
	} roles[] = { { 0, false, false }, { 1, true, false },
		{ 2, false, true }, { 3, false, false }, { 4, false, false },
		{ 0x101, false, false }, { 0x200, false, false },
		{ 0x202, false, false }, { 0xffff, false, false } };

	(void)state;
	for (size_t i = 0; i < COUNT(roles) * 4; i++) {
		bool responder = (i & 1) != 0;
		bool authorizer = (i & 2) != 0;
		int role = roles[i / 4].role;
		bool served = (responder && roles[i / 4].of_responder) ||
		    (authorizer && roles[i / 4].of_authorizer);
		struct buf head;
		struct guard g;

		buf_init(&head);
		buf_add_str(&head, STR(HEAD(PARAMS("\5") "\1\2abc")));
		head.p[8] = (char)(role >> 8);
		head.p[9] = (char)role;
		guard_init(&g, MAX_HEAD);
		assert_true(g.responder);
		assert_false(g.authorizer);
		g.responder = responder;
		g.authorizer = authorizer;
		assert_int_equal(feed_whole(&g, buf_str(&head)),
		    served ? GUARD_HEAD : GUARD_UNKNOWN_ROLE);
		assert_int_equal(g.id, 1);
		assert_int_equal(g.role, role);
		/* The role is a part of what libfcgi gets to see. */
		expect_str(
		    buf_str(&g.head), served ? buf_str(&head) : STR_NONE);
		guard_reset(&g, 1);
		assert_int_equal(g.responder, responder);
		assert_int_equal(g.authorizer, authorizer);
		assert_true(g.served);
		guard_release(&g);
		buf_release(&head);
	}
}

/* Not a byte of what follows a head is touched. */
static void
test_rest_stays(void **state)
{
	static const char bytes[] = HEAD(PARAMS("\4") "\1\1ab") //
	    "\1\5\0\1\0\3\0\0xyz" WIRE_NO_STDIN WIRE_BEGIN;
	const struct str all = BYTES(bytes);
	const size_t head_len = sizeof(HEAD(PARAMS("\4") "\1\1ab")) - 1;

	(void)state;
	for (size_t first = 1; first <= all.len; first++) {
		struct guard g;
		struct buf in;

		buf_init(&in);
		guard_init(&g, MAX_HEAD);
		assert_int_equal(
		    feed(&g, &in, all, first, all.len), GUARD_HEAD);
		expect_str(buf_str(&in),
		    (struct str){ all.p + head_len, all.len - head_len });
		guard_release(&g);
		buf_release(&in);
	}
}

/* A head whose last PARAMS record fills it up to `bytes`. */
static void
make_head(struct buf *out, size_t bytes, size_t padding)
{
	struct buf pair;

	buf_init(&pair);
	buf_add_str(out, STR(WIRE_BEGIN));
	buf_add(&pair, "\1\x80\0\0\0a", 6);
	wire_fill(&pair, bytes - 16 - 8 - 6 - padding - 8);
	pair.p[3] = (char)((pair.len - 6) >> 8);
	pair.p[4] = (char)(pair.len - 6);
	wire_record(out, 4, 1, buf_str(&pair), padding);
	buf_add_str(out, STR(WIRE_NO_PARAMS));
	assert_int_equal(out->len, bytes);
	buf_release(&pair);
}

/* max_head is raw, with framing; above it 431 with a head that is bare. */
static void
test_max_head(void **state)
{
	static const size_t sizes[] = { 1024, 1025, 8192, 65536 };

	(void)state;
	for (size_t i = 0; i < COUNT(sizes); i++)
		for (size_t padding = 0; padding < 256; padding += 85) {
			struct guard g;
			struct buf bytes;

			buf_init(&bytes);
			make_head(&bytes, sizes[i], padding);
			guard_init(&g, sizes[i]);
			assert_int_equal(
			    feed_whole(&g, buf_str(&bytes)), GUARD_HEAD);
			guard_release(&g);
			guard_init(&g, sizes[i] - 1);
			assert_int_equal(
			    feed_whole(&g, buf_str(&bytes)), GUARD_TOO_LARGE);
			expect_str(buf_str(&g.head), STR(HEAD("")));
			assert_int_equal(g.id, 1);
			guard_release(&g);
			buf_release(&bytes);
		}
}

/* A record that would break it is refused on its header alone. */
static void
test_max_head_on_header(void **state)
{
	static const char first[] =
	    WIRE_BEGIN_KEEP "\1\4\0\1\377\377\0\0"; /* 65535 to come */
	struct guard g;

	(void)state;
	guard_init(&g, 16 + 8 + 65535);
	assert_int_equal(feed_whole(&g, STR(first)), GUARD_MORE);
	guard_release(&g);
	guard_init(&g, 16 + 8 + 65534);
	assert_int_equal(feed_whole(&g, STR(first)), GUARD_TOO_LARGE);
	expect_str(buf_str(&g.head), STR(WIRE_BEGIN_KEEP WIRE_NO_PARAMS));
	guard_release(&g);
	/* Without a BEGIN_REQUEST nobody can be answered. */
	guard_init(&g, 1024);
	assert_int_equal(
	    feed_whole(&g, STR("\1\1\0\1\377\377\0\0")), GUARD_MALFORMED);
	guard_release(&g);
}

/* 65,527 bytes of one pair are php-fpm's most. */
static void
test_largest_pair(void **state)
{
	(void)state;
	for (size_t value = 65520; value <= 65523; value++) {
		bool fits = 1 + 4 + 1 + value <= 65527;
		struct guard g;
		struct buf pair;
		struct buf bytes;
		struct str rest;

		buf_init(&pair);
		wire_length(&pair, 1, 0);
		wire_length(&pair, value, 0);
		buf_add_char(&pair, 'n');
		wire_fill(&pair, value);
		buf_init(&bytes);
		buf_add_str(&bytes, STR(WIRE_BEGIN));
		for (rest = buf_str(&pair); rest.len > 0;) {
			size_t n = rest.len < 30000 ? rest.len : 30000;

			wire_record(&bytes, 4, 1, (struct str){ rest.p, n }, 3);
			rest.p += n;
			rest.len -= n;
		}
		buf_add_str(&bytes, STR(WIRE_NO_PARAMS));
		guard_init(&g, MAX_HEAD);
		assert_int_equal(feed_whole(&g, buf_str(&bytes)),
		    fits ? GUARD_HEAD : GUARD_TOO_LARGE);
		if (!fits)
			expect_str(buf_str(&g.head), STR(HEAD("")));
		guard_release(&g);
		buf_release(&bytes);
		buf_release(&pair);
	}
}

/* Our own reading of a rewritten head: its pairs, one behind another. */
static void
read_head(struct str head, struct buf *pairs)
{
	const uint8_t *p = (const uint8_t *)head.p;
	size_t at = 16;
	size_t content;

	expect_str((struct str){ head.p, 16 }, STR(WIRE_BEGIN));
	do {
		size_t end;

		assert_in_range(head.len - at, 8, head.len);
		content = (size_t)p[at + 4] << 8 | p[at + 5];
		assert_memory_equal(head.p + at, "\1\4\0\1", 4);
		assert_memory_equal(head.p + at + 6, "\0\0", 2);
		at += 8;
		end = at + content;
		assert_in_range(end, at, head.len);
		buf_add(pairs, head.p + at, content);
		/* No pair is cut by a record. */
		while (at < end) {
			size_t length[2];

			for (int i = 0; i < 2; i++) {
				length[i] = p[at++];
				if (length[i] < 128)
					continue;
				length[i] = (length[i] & 127) << 24 |
				    (size_t)p[at] << 16 |
				    (size_t)p[at + 1] << 8 | p[at + 2];
				at += 3;
			}
			at += length[0] + length[1];
		}
		assert_int_equal(at, end);
	} while (content > 0);
	assert_int_equal(at, head.len);
}

/* Draws pairs, and records that cut them anywhere. */
static void
draw_head(unsigned *seed, struct buf *pairs, struct buf *bytes)
{
	size_t most = 1 + draw_size(seed, 40);
	struct str rest;

	for (size_t i = 0; i < most && pairs->len < 80000; i++) {
		size_t name_len = 1 + draw_size(seed, 300);
		size_t value_len = draw_size(seed, 20000);
		struct buf name;
		struct buf value;

		buf_init(&name);
		buf_init(&value);
		for (size_t k = 0; k < name_len; k++)
			buf_add_char(&name, (char)('A' + draw_below(seed, 26)));
		for (size_t k = 0; k < value_len; k++)
			buf_add_char(&value, (char)(1 + draw_below(seed, 255)));
		wire_pair(pairs, buf_str(&name), buf_str(&value));
		buf_release(&name);
		buf_release(&value);
	}
	buf_add_str(bytes, STR(WIRE_BEGIN));
	for (rest = buf_str(pairs); rest.len > 0;) {
		size_t n = 1 + draw_size(seed, 65534);

		n = n < rest.len ? n : rest.len;
		wire_record(bytes, 4, 1, (struct str){ rest.p, n },
		    draw_size(seed, 255));
		rest.p += n;
		rest.len -= n;
	}
	wire_record(bytes, 4, 1, STR_NONE, draw_size(seed, 255));
}

/* What goes in comes out, in plain form, and that is a fixed point. */
static void
test_drawn_heads(void **state)
{
	unsigned seed = draw_seed();

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct buf in, pairs, out, bytes;
		struct guard g, again;

		buf_init(&in);
		buf_init(&pairs);
		buf_init(&out);
		buf_init(&bytes);
		draw_head(&seed, &pairs, &bytes);
		guard_init(&g, 1 << 20);
		assert_int_equal(feed(&g, &in, buf_str(&bytes),
				     1 + draw_size(&seed, bytes.len),
				     1 + draw_size(&seed, bytes.len)),
		    GUARD_HEAD);
		read_head(buf_str(&g.head), &out);
		expect_str(buf_str(&out), buf_str(&pairs));
		guard_init(&again, 1 << 20);
		assert_int_equal(
		    feed_whole(&again, buf_str(&g.head)), GUARD_HEAD);
		expect_str(buf_str(&again.head), buf_str(&g.head));
		guard_release(&again);
		guard_release(&g);
		buf_release(&in);
		buf_release(&pairs);
		buf_release(&out);
		buf_release(&bytes);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table_at_every_split),
		cmocka_unit_test(test_roles),
		cmocka_unit_test(test_rest_stays),
		cmocka_unit_test(test_max_head),
		cmocka_unit_test(test_max_head_on_header),
		cmocka_unit_test(test_largest_pair),
		cmocka_unit_test(test_drawn_heads),
	};

	return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
