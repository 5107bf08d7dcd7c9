/*
 * buf: bytes in one growing heap block.
 *
 * The caller owns the struct; buf_init makes it empty (no allocation),
 * buf_release frees the block and leaves it empty again.  When memory runs
 * out the buf keeps what it had and `failed` stays set until buf_reset, so
 * a builder checks once, at its end.  Not for sharing between threads.
 */
#ifndef SLUICE_BUF_H
#define SLUICE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct buf {
	char *p;
	size_t len;
	size_t cap;
	bool failed;
};

void buf_init(struct buf *b);
void buf_release(struct buf *b);
/* Empties it and clears `failed`; the block is kept. */
void buf_reset(struct buf *b);
/* Room for `more` bytes behind len; false (and failed) without memory. */
bool buf_grow(struct buf *b, size_t more);
static inline bool
buf_reserve(struct buf *b, size_t more)
{
	return more <= b->cap - b->len || buf_grow(b, more);
}
void buf_add(struct buf *b, const void *bytes, size_t len);
void buf_add_str(struct buf *b, struct str s);
void buf_add_char(struct buf *b, char c);
/* In decimal. */
void buf_add_i64(struct buf *b, int64_t number);
void buf_addf(struct buf *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Takes the first `n` bytes out and moves the rest to the front. */
void buf_consume(struct buf *b, size_t n);
/* Gives back the room behind len; all of it where len is 0. */
void buf_shrink(struct buf *b);
/* A slice of all of it, good until the next change. */
struct str buf_str(const struct buf *b);

#endif
