/*
 * wire: FastCGI records written for tests, by an encoder that is not the
 * program's, and text put together from pieces.
 */
#ifndef SLUICE_TESTS_WIRE_H
#define SLUICE_TESTS_WIRE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"

/* Octal, so that no digit behind can be taken for a part of it. */
#define WIRE_BEGIN      "\1\1\0\1\0\10\0\0\0\1\0\0\0\0\0\0"
#define WIRE_BEGIN_KEEP "\1\1\0\1\0\10\0\0\0\1\1\0\0\0\0\0"
#define WIRE_NO_PARAMS  "\1\4\0\1\0\0\0\0"
#define WIRE_NO_STDIN   "\1\5\0\1\0\0\0\0"

static inline void
wire_header(struct buf *out, int type, int id, size_t content, size_t padding)
{
	const char header[8] = { 1, (char)type, (char)(id >> 8), (char)id,
		(char)(content >> 8), (char)content, (char)padding, 0 };

	assert_in_range(content, 0, 65535);
	assert_in_range(padding, 0, 255);
	buf_add(out, header, sizeof(header));
}

/* Padding is not zero: nobody may look at it. */
static inline void
wire_record(
    struct buf *out, int type, int id, struct str content, size_t padding)
{
	wire_header(out, type, id, content.len, padding);
	buf_add_str(out, content);
	for (size_t i = 0; i < padding; i++)
		buf_add_char(out, '\1');
}

static inline void
wire_length(struct buf *out, size_t n, int four_bytes)
{
	if (n > 127 || four_bytes) {
		buf_add_char(out, (char)(n >> 24 | 0x80));
		buf_add_char(out, (char)(n >> 16));
		buf_add_char(out, (char)(n >> 8));
	}
	buf_add_char(out, (char)n);
}

static inline void
wire_pair(struct buf *out, struct str name, struct str value)
{
	wire_length(out, name.len, 0);
	wire_length(out, value.len, 0);
	buf_add_str(out, name);
	buf_add_str(out, value);
}

/* A text of n bytes that shows what is missing from it. */
static inline void
wire_fill(struct buf *out, size_t n)
{
	assert_true(buf_reserve(out, n));
	for (size_t i = 0; i < n; i++)
		out->p[out->len++] = (char)('!' + (i * 7 + i / 90) % 90);
}

static inline void
expect_str(struct str got, struct str expected)
{
	bool same = got.len == expected.len &&
	    (got.len == 0 || memcmp(got.p, expected.p, got.len) == 0);

	if (!same)
		print_message("got: %.*s\nexpected: %.*s\n",
		    (int)(got.len < 2000 ? got.len : 2000), got.p,
		    (int)(expected.len < 2000 ? expected.len : 2000),
		    expected.p);
	assert_true(same);
}

#endif
