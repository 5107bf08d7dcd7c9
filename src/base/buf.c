#include "base/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
buf_init(struct buf *b)
{
	*b = (struct buf){ 0 };
}

void
buf_release(struct buf *b)
{
	free(b->p);
	buf_init(b);
}

void
buf_reset(struct buf *b)
{
	b->len = 0;
	b->failed = false;
}

bool
buf_grow(struct buf *b, size_t more)
{
	size_t cap = b->cap < 256 ? 256 : b->cap;
	char *grown;

	if (more > SIZE_MAX / 4 - b->len) {
		b->failed = true;
		return false;
	}
	while (cap - b->len < more)
		cap *= 2;
	grown = realloc(b->p, cap);
	if (grown == NULL) {
		b->failed = true;
		return false;
	}
	b->p = grown;
	b->cap = cap;
	return true;
}

void
buf_add(struct buf *b, const void *bytes, size_t len)
{
	if (len == 0 || !buf_reserve(b, len))
		return;
	memcpy(b->p + b->len, bytes, len);
	b->len += len;
}

void
buf_add_str(struct buf *b, struct str s)
{
	buf_add(b, s.p, s.len);
}

void
buf_add_char(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void
buf_add_i64(struct buf *b, int64_t number)
{
	uint64_t size = number < 0 ? -(uint64_t)number : (uint64_t)number;
	char digits[STR_DIGITS_MAX];

	if (number < 0)
		buf_add_char(b, '-');
	buf_add_str(b, str_of_u64(size, digits));
}

/* What does not fit into the room there is, is written a second time. */
void
buf_addf(struct buf *b, const char *format, ...)
{
	va_list args;
	size_t room;
	int n;

	if (!buf_reserve(b, 1))
		return;
	room = b->cap - b->len;
	va_start(args, format);
	n = vsnprintf(b->p + b->len, room, format, args);
	va_end(args);
	if (n < 0 || !buf_reserve(b, (size_t)n + 1)) {
		b->failed = true;
		return;
	}
	if ((size_t)n >= room) {
		va_start(args, format);
		vsnprintf(b->p + b->len, (size_t)n + 1, format, args);
		va_end(args);
	}
	b->len += (size_t)n;
}

void
buf_consume(struct buf *b, size_t n)
{
	assert(n <= b->len);
	b->len -= n;
	if (n > 0 && b->len > 0)
		memmove(b->p, b->p + n, b->len);
}

void
buf_shrink(struct buf *b)
{
	char *smaller;

	if (b->len == 0) {
		buf_release(b);
		return;
	}
	smaller = realloc(b->p, b->len);
	if (smaller == NULL)
		return;
	b->p = smaller;
	b->cap = b->len;
}

struct str
buf_str(const struct buf *b)
{
	return (struct str){ b->p, b->len };
}
