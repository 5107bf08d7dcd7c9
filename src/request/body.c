#include "request/body.h"

#include "base/clock.h"
#include "pure/fcgi_record.h"

#define SLOWEST_BYTES_PER_S 1024

void
body_init(struct body *b, uint16_t id)
{
	*b = (struct body){ .announced = -1, .id = id };
	spool_init(&b->spool);
	b->started_us = b->moved_us = clock_mono_us();
}

void
body_release(struct body *b)
{
	spool_release(&b->spool);
}

/* An empty CONTENT_LENGTH says nothing (nginx sends it so). */
static bool
read_length(struct str value, int64_t *length)
{
	uint64_t number;

	*length = -1;
	if (value.len == 0)
		return true;
	if (!str_to_u64(value, INT64_MAX, &number))
		return false;
	*length = (int64_t)number;
	return true;
}

/* Where it is said twice, it must be the same twice. */
enum body_verdict
body_announce(struct body *b, const struct params *params,
    const struct config_gateway *gateway)
{
	bool said = false;

	for (size_t i = 0; i < params->n; i++) {
		int64_t length;

		if (!str_eq(params->at[i].name, STR("CONTENT_LENGTH")))
			continue;
		if (!read_length(params->at[i].value, &length) ||
		    (said && b->announced != length))
			return BODY_WRONG;
		b->announced = length;
		said = true;
	}
	b->coded = params_get(params, STR("HTTP_TRANSFER_ENCODING")).len > 0;
	if (b->announced > 0 &&
	    (uint64_t)b->announced > gateway->max_body_bytes)
		return BODY_TOO_LARGE;
	return BODY_MORE;
}

static enum body_verdict
keep(struct body *b, const struct config_gateway *gateway, const char *bytes,
    size_t len)
{
	const struct spool_limits limits = {
		.memory_bytes = gateway->spool_memory_bytes,
		.total_bytes = gateway->spool_total_bytes,
		.directory = gateway->spool_directory,
	};
	uint64_t sum = b->spool.bytes + len;

	if (b->announced >= 0 && sum > (uint64_t)b->announced)
		return BODY_WRONG;
	if (sum > gateway->max_body_bytes)
		return BODY_TOO_LARGE;
	switch (spool_add(&b->spool, &limits, bytes, len)) {
	case SPOOL_OK:
		return BODY_MORE;
	case SPOOL_FULL:
		return BODY_NO_ROOM;
	case SPOOL_FAILED:
		break;
	}
	return BODY_FAILED;
}

static size_t
least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* The padding of the last record belongs to it. */
static bool
is_whole(const struct body *b)
{
	return b->ended && b->padding_left == 0;
}

static enum body_verdict
end(struct body *b)
{
	b->ended = true;
	if (b->announced >= 0 && b->spool.bytes != (uint64_t)b->announced)
		return BODY_WRONG;
	return is_whole(b) ? BODY_WHOLE : BODY_MORE;
}

/* Management records are no part of a request; they are passed over. */
static enum body_verdict
open_record(struct body *b, const struct fcgi_header *h)
{
	if (h->version != 1)
		return BODY_MALFORMED;
	if (h->id == 0) {
		b->padding_left = (size_t)h->content + h->padding;
		return BODY_MORE;
	}
	if (h->id != b->id)
		return BODY_MALFORMED;
	if (h->type == FCGI_ABORT_REQUEST)
		return BODY_ABORTED;
	if (h->type != FCGI_STDIN)
		return BODY_MALFORMED;
	b->content_left = h->content;
	b->padding_left = h->padding;
	if (h->content == 0)
		return end(b);
	b->begun = true;
	return BODY_MORE;
}

/*
 * One step from `in`; returns how many bytes it took, 0: needs more. What
 * is no part of the body is not taken: if the connection goes on, the guard
 * judges it.
 */
static size_t
step(struct body *b, const struct config_gateway *gateway, struct str in,
    enum body_verdict *verdict)
{
	struct fcgi_header h;
	size_t n;

	*verdict = BODY_MORE;
	if (b->content_left > 0) {
		n = least(b->content_left, in.len);
		*verdict = keep(b, gateway, in.p, n);
		b->content_left -= n;
		return n;
	}
	if (b->padding_left > 0) {
		n = least(b->padding_left, in.len);
		b->padding_left -= n;
		if (is_whole(b))
			*verdict = BODY_WHOLE;
		return n;
	}
	if (in.len < FCGI_HEADER_BYTES)
		return 0;
	fcgi_header_read((const uint8_t *)in.p, &h);
	*verdict = open_record(b, &h);
	if (*verdict == BODY_ABORTED || *verdict == BODY_MALFORMED)
		return 0;
	return FCGI_HEADER_BYTES;
}

enum body_verdict
body_feed(struct body *b, const struct config_gateway *gateway, struct buf *in)
{
	enum body_verdict verdict = is_whole(b) ? BODY_WHOLE : BODY_MORE;
	size_t at = 0;

	while (verdict == BODY_MORE && at < in->len) {
		size_t n = step(b, gateway,
		    (struct str){ in->p + at, in->len - at }, &verdict);

		if (n == 0)
			break;
		at += n;
	}
	if (at > 0)
		b->moved_us = clock_mono_us();
	buf_consume(in, at);
	return verdict;
}

void
body_as_text(const struct body *b, struct str *text)
{
	*text = b->spool.fd < 0 ? buf_str(&b->spool.memory) : STR_NONE;
}

bool
body_may_be_text(const struct body *b, const struct config_gateway *gateway)
{
	return b->spool.fd < 0 &&
	    (b->announced < 0 ||
		(uint64_t)b->announced <= gateway->spool_memory_bytes);
}

bool
body_is_settled(const struct body *b)
{
	return is_whole(b) ||
	    (b->announced <= 0 && !b->coded && !b->begun &&
		b->padding_left == 0);
}

int64_t
body_deadline(const struct body *b, const struct config_gateway *gateway)
{
	int64_t still = b->moved_us + gateway->body_timeout_us;
	int64_t slow = b->started_us + gateway->body_timeout_us +
	    (int64_t)(b->spool.bytes / SLOWEST_BYTES_PER_S) * 1000000;

	return still < slow ? still : slow;
}
