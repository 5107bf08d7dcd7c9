#include "pure/fcgi_record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void
expect_bytes(const struct buf *b, const char *bytes, size_t len)
{
	assert_false(b->failed);
	assert_int_equal(b->len, len);
	assert_memory_equal(b->p, bytes, len);
}

static void
test_header(void **state)
{
	static const struct fcgi_header table[] = {
		{ 1, FCGI_STDOUT, 0x0102, 0xfffe, 255 },
		{ 1, FCGI_PARAMS, 0, 0, 0 },
		{ 1, 255, 0xffff, 0x00ff, 7 },
	};
	static const uint8_t first[] = { 1, 6, 1, 2, 0xff, 0xfe, 255, 0 };
	uint8_t bytes[FCGI_HEADER_BYTES];
	struct fcgi_header h;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		memset(bytes, 0xaa, sizeof(bytes));
		fcgi_header_write(bytes, table[i].type, table[i].id,
		    table[i].content, table[i].padding);
		assert_int_equal(bytes[7], 0);
		if (i == 0)
			assert_memory_equal(bytes, first, sizeof(first));
		fcgi_header_read(bytes, &h);
		assert_int_equal(h.version, table[i].version);
		assert_int_equal(h.type, table[i].type);
		assert_int_equal(h.id, table[i].id);
		assert_int_equal(h.content, table[i].content);
		assert_int_equal(h.padding, table[i].padding);
	}
}

static void
test_foreign_version_is_told(void **state)
{
	static const uint8_t bytes[] = { 'H', 'T', 'T', 'P', '/', '1', '.',
		'1' };
	struct fcgi_header h;

	(void)state;
	fcgi_header_read(bytes, &h);
	assert_int_equal(h.version, 'H');
	assert_int_equal(h.padding, '.');
}

static void
test_records(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b);
	fcgi_add_begin(&b, 1, FCGI_RESPONDER, FCGI_KEEP_CONN);
	expect_bytes(&b, "\1\1\0\1\0\10\0\0\0\1\1\0\0\0\0\0", 16);
	buf_reset(&b);
	fcgi_add_begin(&b, 0x1234, 0x0203, 0);
	expect_bytes(&b, "\1\1\x12\x34\0\10\0\0\2\3\0\0\0\0\0\0", 16);
	buf_reset(&b);
	fcgi_add_end(&b, 2, 0x01020304, FCGI_OVERLOADED);
	expect_bytes(&b, "\1\3\0\2\0\10\0\0\1\2\3\4\2\0\0\0", 16);
	buf_reset(&b);
	fcgi_add_record(&b, FCGI_STDIN, 1, STR("ab\0c"));
	fcgi_add_record(&b, FCGI_STDIN, 1, STR_NONE);
	expect_bytes(&b, "\1\5\0\1\0\4\0\0ab\0c\1\5\0\1\0\0\0\0", 20);
	buf_release(&b);
}

static void
test_another_id(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b);
	fcgi_set_id(&b, 7);
	expect_bytes(&b, "", 0);
	fcgi_add_begin(&b, 1, FCGI_RESPONDER, FCGI_KEEP_CONN);
	buf_add(&b, "\1\4\0\1\0\3\2\0abcxx", 13); /* padded */
	fcgi_add_record(&b, FCGI_STDIN, 1, STR_NONE);
	fcgi_set_id(&b, 0x1234);
	expect_bytes(&b,
	    "\1\1\x12\x34\0\10\0\0\0\1\1\0\0\0\0\0"
	    "\1\4\x12\x34\0\3\2\0abcxx"
	    "\1\5\x12\x34\0\0\0\0",
	    37);
	buf_release(&b);
}

static void
test_largest_record(void **state)
{
	char *content = calloc(1, FCGI_CONTENT_MAX);
	struct fcgi_header h;
	struct buf b;

	(void)state;
	buf_init(&b);
	fcgi_add_record(
	    &b, FCGI_STDIN, 1, (struct str){ content, FCGI_CONTENT_MAX });
	assert_int_equal(b.len, FCGI_HEADER_BYTES + FCGI_CONTENT_MAX);
	fcgi_header_read((const uint8_t *)b.p, &h);
	assert_int_equal(h.content, FCGI_CONTENT_MAX);
	buf_release(&b);
	free(content);
}

static void
test_pair_read(void **state)
{
	static const struct {
		struct str bytes;
		int result;
		struct str name;
		struct str value;
		size_t left;
	} table[] = {
		{ { "", 0 }, 0, { "", 0 }, { "", 0 }, 0 },
		{ { "\0\0", 2 }, 1, { "", 0 }, { "", 0 }, 0 },
		{ { "\1\2abc", 5 }, 1, { "a", 1 }, { "bc", 2 }, 0 },
		{ { "\1\0ax", 4 }, 1, { "a", 1 }, { "", 0 }, 1 },
		{ { "\x80\0\0\1\2abc", 8 }, 1, { "a", 1 }, { "bc", 2 }, 0 },
		{ { "\1\x80\0\0\2abcd", 9 }, 1, { "a", 1 }, { "bc", 2 }, 1 },
		{ { "\1", 1 }, -1, { "", 0 }, { "", 0 }, 0 },
		{ { "\1\1a", 3 }, -1, { "", 0 }, { "", 0 }, 0 },
		{ { "\x80\0\0", 3 }, -1, { "", 0 }, { "", 0 }, 0 },
		{ { "\x80\0\0\1", 4 }, -1, { "", 0 }, { "", 0 }, 0 },
		{ { "\1\xff\xff\xff\xffxyz", 8 }, -1, { "", 0 }, { "", 0 }, 0 },
		{ { "\xff\xff\xff\xff\xff\xff\xff\xff", 8 }, -1, { "", 0 },
		    { "", 0 }, 0 },
		{ { "\xff\xff\xff\xff\1ab", 7 }, -1, { "", 0 }, { "", 0 }, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct str rest = table[i].bytes;
		struct str name;
		struct str value;
		int result = fcgi_pair_read(&rest, &name, &value);

		assert_int_equal(result, table[i].result);
		if (result < 0) {
			assert_ptr_equal(rest.p, table[i].bytes.p);
			assert_int_equal(rest.len, table[i].bytes.len);
		}
		if (result <= 0)
			continue;
		assert_true(str_eq(name, table[i].name));
		assert_true(str_eq(value, table[i].value));
		assert_int_equal(rest.len, table[i].left);
	}
}

static struct str
drawn_text(size_t len, char fill)
{
	char *p = malloc(len + 1);

	memset(p, fill, len + 1);
	return (struct str){ p, len };
}

/* Every length around the border of one and four bytes, read back. */
static void
test_pair_round_trip(void **state)
{
	static const size_t lengths[] = { 0, 1, 126, 127, 128, 129, 255, 256,
		65535, 65536 };
	size_t n = sizeof(lengths) / sizeof(lengths[0]);
	struct buf b;

	(void)state;
	buf_init(&b);
	for (size_t i = 0; i < n * n; i++) {
		struct str name = drawn_text(lengths[i / n], 'n');
		struct str value = drawn_text(lengths[i % n], 'v');
		struct str rest;
		struct str got_name;
		struct str got_value;

		buf_reset(&b);
		fcgi_pair_add(&b, name, value);
		assert_int_equal(b.len, fcgi_pair_bytes(name.len, value.len));
		assert_int_equal(b.p[0]<0, name.len> 127);
		rest = buf_str(&b);
		assert_int_equal(
		    fcgi_pair_read(&rest, &got_name, &got_value), 1);
		assert_true(str_eq(got_name, name));
		assert_true(str_eq(got_value, value));
		assert_int_equal(rest.len, 0);
		free((void *)name.p);
		free((void *)value.p);
	}
	buf_release(&b);
}

/* A list cut at any byte: whole pairs are read, then 0 or -1, never more. */
static void
test_pairs_cut_anywhere(void **state)
{
	size_t ends[4] = { 0 };
	struct str big = drawn_text(200, 'x');
	struct buf b;

	(void)state;
	buf_init(&b);
	fcgi_pair_add(&b, STR("A"), STR("1"));
	ends[1] = b.len;
	fcgi_pair_add(&b, STR("EMPTY"), STR_NONE);
	ends[2] = b.len;
	fcgi_pair_add(&b, big, big);
	ends[3] = b.len;
	for (size_t cut = 0; cut <= b.len; cut++) {
		char *copy = malloc(cut + 1);
		struct str rest = { copy, cut };
		struct str name;
		struct str value;
		size_t whole = 0;
		size_t expected = 0;
		int result;

		memcpy(copy, b.p, cut);
		while ((result = fcgi_pair_read(&rest, &name, &value)) == 1)
			whole++;
		while (expected < 3 && ends[expected + 1] <= cut)
			expected++;
		assert_int_equal(whole, expected);
		assert_int_equal(result, cut == ends[expected] ? 0 : -1);
		free(copy);
	}
	buf_release(&b);
	free((void *)big.p);
}

/* Reads a PARAMS stream as php-fpm does: each record on its own. */
static size_t
read_params(const struct buf *b, size_t *records, size_t *value_bytes)
{
	size_t at = 0;
	size_t pairs = 0;

	*records = 0;
	*value_bytes = 0;
	for (;;) {
		struct fcgi_header h;
		struct str rest;
		struct str name;
		struct str value;
		int result;

		assert_true(b->len - at >= FCGI_HEADER_BYTES);
		fcgi_header_read((const uint8_t *)b->p + at, &h);
		assert_int_equal(h.version, 1);
		assert_int_equal(h.type, FCGI_PARAMS);
		assert_int_equal(h.id, 7);
		assert_int_equal(h.padding, 0);
		assert_int_equal(b->p[at + 7], 0);
		at += FCGI_HEADER_BYTES;
		if (h.content == 0)
			break;
		(*records)++;
		assert_true(b->len - at >= h.content);
		rest = (struct str){ b->p + at, h.content };
		while ((result = fcgi_pair_read(&rest, &name, &value)) == 1) {
			pairs++;
			*value_bytes += value.len;
		}
		assert_int_equal(result, 0);
		at += h.content;
	}
	assert_int_equal(at, b->len);
	return pairs;
}

static void
test_params_whole_pairs(void **state)
{
	static const struct {
		size_t first;
		size_t second;
		size_t records;
	} table[] = {
		{ 0, 0, 1 },
		{ 100, 100, 1 },
		{ 65521, 0, 1 }, /* 65527 and 3 more: 65530 */
		{ 65521, 5, 1 }, /* exactly 65535 */
		{ 65521, 6, 2 }, /* one more */
		{ 65521, 65521, 2 },
		{ 40000, 40000, 2 },
		{ 8192, 57331, 1 }, /* 8198 + 57337 = 65535 */
		{ 8192, 57332, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct str first = drawn_text(table[i].first, '1');
		struct str second = drawn_text(table[i].second, '2');
		struct fcgi_params_writer w;
		size_t records;
		size_t bytes;
		struct buf b;

		buf_init(&b);
		buf_add(&b, "before", 6);
		fcgi_params_start(&w, &b, 7);
		fcgi_params_add(&w, STR("A"), first);
		fcgi_params_add(&w, STR("B"), second);
		fcgi_params_end(&w);
		assert_memory_equal(b.p, "before", 6);
		buf_consume(&b, 6);
		assert_int_equal(read_params(&b, &records, &bytes), 2);
		assert_int_equal(records, table[i].records);
		assert_int_equal(bytes, first.len + second.len);
		buf_release(&b);
		free((void *)first.p);
		free((void *)second.p);
	}
}

static void
test_params_many(void **state)
{
	struct fcgi_params_writer w;
	size_t records;
	size_t bytes;
	struct buf b;

	(void)state;
	buf_init(&b);
	fcgi_params_start(&w, &b, 7);
	for (int i = 0; i < 20000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "HTTP_X_%d", i);
		fcgi_params_add(&w, str_of(name), STR("value"));
	}
	fcgi_params_end(&w);
	assert_int_equal(read_params(&b, &records, &bytes), 20000);
	assert_int_equal(bytes, 100000);
	assert_int_equal(records, 6); /* of 368,890 bytes */
	buf_release(&b);
}

static void
test_params_empty(void **state)
{
	struct fcgi_params_writer w;
	struct buf b;

	(void)state;
	buf_init(&b);
	fcgi_params_start(&w, &b, 258);
	fcgi_params_end(&w);
	expect_bytes(&b, "\1\4\1\2\0\0\0\0", 8);
	buf_release(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_foreign_version_is_told),
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_another_id),
		cmocka_unit_test(test_largest_record),
		cmocka_unit_test(test_pair_read),
		cmocka_unit_test(test_pair_round_trip),
		cmocka_unit_test(test_pairs_cut_anywhere),
		cmocka_unit_test(test_params_whole_pairs),
		cmocka_unit_test(test_params_many),
		cmocka_unit_test(test_params_empty),
	};

	return cmocka_run_group_tests_name("fcgi_record", tests, NULL, NULL);
}
