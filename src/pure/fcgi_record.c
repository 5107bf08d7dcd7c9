/*
 * Bytes are put together and taken apart one by one; no struct is ever laid
 * over the wire. php-fpm reads each PARAMS record on its own, so the writer
 * of params closes a record before a pair that would not fit it whole.
 */
#include "pure/fcgi_record.h"

#include <assert.h>
#include <string.h>

#define BODY_BYTES    8 /* of BEGIN_REQUEST and of END_REQUEST */
#define SHORT_MAX     127
#define LONG_BYTES    4
#define LONG_BIT      0x80
#define PAIR_PART_MAX 0x7fffffff

void
fcgi_header_read(const uint8_t *bytes, struct fcgi_header *header)
{
	header->version = bytes[0];
	header->type = bytes[1];
	header->id = (uint16_t)(bytes[2] << 8 | bytes[3]);
	header->content = (uint16_t)(bytes[4] << 8 | bytes[5]);
	header->padding = bytes[6];
}

void
fcgi_header_write(uint8_t bytes[FCGI_HEADER_BYTES], uint8_t type, uint16_t id,
    uint16_t content, uint8_t padding)
{
	bytes[0] = 1;
	bytes[1] = type;
	bytes[2] = (uint8_t)(id >> 8);
	bytes[3] = (uint8_t)id;
	bytes[4] = (uint8_t)(content >> 8);
	bytes[5] = (uint8_t)content;
	bytes[6] = padding;
	bytes[7] = 0;
}

static void
add_header(struct buf *out, uint8_t type, uint16_t id, size_t content)
{
	uint8_t bytes[FCGI_HEADER_BYTES];

	assert(content <= FCGI_CONTENT_MAX);
	fcgi_header_write(bytes, type, id, (uint16_t)content, 0);
	buf_add(out, bytes, sizeof(bytes));
}

void
fcgi_add_record(struct buf *out, uint8_t type, uint16_t id, struct str content)
{
	add_header(out, type, id, content.len);
	buf_add_str(out, content);
}

void
fcgi_add_begin(struct buf *out, uint16_t id, uint16_t role, uint8_t flags)
{
	uint8_t body[BODY_BYTES] = { (uint8_t)(role >> 8), (uint8_t)role,
		flags };

	add_header(out, FCGI_BEGIN_REQUEST, id, sizeof(body));
	buf_add(out, body, sizeof(body));
}

void
fcgi_add_end(
    struct buf *out, uint16_t id, uint32_t app_status, uint8_t protocol_status)
{
	uint8_t body[BODY_BYTES] = { (uint8_t)(app_status >> 24),
		(uint8_t)(app_status >> 16), (uint8_t)(app_status >> 8),
		(uint8_t)app_status, protocol_status };

	add_header(out, FCGI_END_REQUEST, id, sizeof(body));
	buf_add(out, body, sizeof(body));
}

void
fcgi_set_id(struct buf *records, uint16_t id)
{
	size_t at = 0;

	while (at + FCGI_HEADER_BYTES <= records->len) {
		uint8_t *bytes = (uint8_t *)records->p + at;
		struct fcgi_header h;

		fcgi_header_read(bytes, &h);
		fcgi_header_write(bytes, h.type, id, h.content, h.padding);
		at += (size_t)FCGI_HEADER_BYTES + h.content + h.padding;
	}
}

static void
skip(struct str *s, size_t n)
{
	s->p += n;
	s->len -= n;
}

static bool
read_length(struct str *rest, size_t *length)
{
	const uint8_t *p = (const uint8_t *)rest->p;

	if (rest->len == 0)
		return false;
	if ((p[0] & LONG_BIT) == 0) {
		*length = p[0];
		skip(rest, 1);
		return true;
	}
	if (rest->len < LONG_BYTES)
		return false;
	*length = (size_t)(p[0] & ~LONG_BIT) << 24 | (size_t)p[1] << 16 |
	    (size_t)p[2] << 8 | p[3];
	skip(rest, LONG_BYTES);
	return true;
}

int
fcgi_pair_read(struct str *rest, struct str *name, struct str *value)
{
	struct str at = *rest;
	size_t name_len;
	size_t value_len;

	if (at.len == 0)
		return 0;
	if (!read_length(&at, &name_len) || !read_length(&at, &value_len))
		return -1;
	if (name_len > at.len || value_len > at.len - name_len)
		return -1;
	*name = (struct str){ at.p, name_len };
	skip(&at, name_len);
	*value = (struct str){ at.p, value_len };
	skip(&at, value_len);
	*rest = at;
	return 1;
}

static size_t
length_bytes(size_t length)
{
	return length <= SHORT_MAX ? 1 : LONG_BYTES;
}

size_t
fcgi_pair_bytes(size_t name_len, size_t value_len)
{
	return length_bytes(name_len) + length_bytes(value_len) + name_len +
	    value_len;
}

static char *
put_length(char *at, size_t length)
{
	assert(length <= PAIR_PART_MAX);
	if (length > SHORT_MAX) {
		*at++ = (char)(length >> 24 | LONG_BIT);
		*at++ = (char)(length >> 16);
		*at++ = (char)(length >> 8);
	}
	*at++ = (char)length;
	return at;
}

static char *
put(char *at, struct str bytes)
{
	if (bytes.len > 0)
		memcpy(at, bytes.p, bytes.len);
	return at + bytes.len;
}

void
fcgi_pair_add(struct buf *out, struct str name, struct str value)
{
	size_t pair = fcgi_pair_bytes(name.len, value.len);
	char *at;

	if (!buf_reserve(out, pair))
		return;
	at = put_length(out->p + out->len, name.len);
	at = put_length(at, value.len);
	put(put(at, name), value);
	out->len += pair;
}

void
fcgi_params_start(struct fcgi_params_writer *w, struct buf *out, uint16_t id)
{
	*w = (struct fcgi_params_writer){ .out = out, .id = id };
}

static void
open_record(struct fcgi_params_writer *w)
{
	w->header_at = w->out->len;
	w->open = true;
	add_header(w->out, FCGI_PARAMS, w->id, 0);
}

/* Writes the length, known only now, into the header that stands open. */
static void
close_record(struct fcgi_params_writer *w)
{
	size_t content = w->out->len - w->header_at - FCGI_HEADER_BYTES;

	w->open = false;
	if (w->out->failed)
		return;
	assert(content <= FCGI_CONTENT_MAX);
	fcgi_header_write((uint8_t *)w->out->p + w->header_at, FCGI_PARAMS,
	    w->id, (uint16_t)content, 0);
}

void
fcgi_params_add(struct fcgi_params_writer *w, struct str name, struct str value)
{
	size_t pair = fcgi_pair_bytes(name.len, value.len);

	assert(pair <= FCGI_PAIR_MAX);
	if (w->open &&
	    w->out->len - w->header_at - FCGI_HEADER_BYTES + pair >
		FCGI_CONTENT_MAX)
		close_record(w);
	if (!w->open)
		open_record(w);
	fcgi_pair_add(w->out, name, value);
}

void
fcgi_params_end(struct fcgi_params_writer *w)
{
	if (w->open)
		close_record(w);
	add_header(w->out, FCGI_PARAMS, w->id, 0);
}
