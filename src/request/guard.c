/*
 * One record at a time is taken once it is whole, so no byte is looked at
 * twice however slowly it comes. A record that would break max_bytes is
 * refused on its header alone.
 */
#include "request/guard.h"

#include <string.h>

#include "pure/fcgi_record.h"

#define BEGIN_BYTES 8
/* A peer that asks and does not read its answers is cut off. */
#define ANSWER_MAX 65536

void
guard_init(struct guard *g, uint64_t max_bytes)
{
	*g = (struct guard){ .max_bytes = max_bytes, .responder = true };
}

void
guard_release(struct guard *g)
{
	buf_release(&g->pairs);
	buf_release(&g->head);
	buf_release(&g->answer);
}

void
guard_reset(struct guard *g, uint16_t old_id)
{
	struct guard next = {
		.max_bytes = g->max_bytes,
		.responder = g->responder,
		.authorizer = g->authorizer,
		.served = true,
		.old_id = old_id,
	};

	guard_release(g);
	*g = next;
}

static enum guard_verdict
malformed(struct guard *g, const char *fault)
{
	g->fault = fault;
	return GUARD_MALFORMED;
}

/* Values this gateway answers to GET_VALUES. */
static void
answer_values(struct guard *g, struct str asked)
{
	static const struct {
		struct str name;
		struct str value;
	} known[] = {
		{ { "FCGI_MAX_CONNS", 14 }, { "1024", 4 } },
		{ { "FCGI_MAX_REQS", 13 }, { "1024", 4 } },
		{ { "FCGI_MPXS_CONNS", 15 }, { "0", 1 } },
	};
	bool wanted[3] = { false, false, false };
	struct buf content;
	struct str name;
	struct str value;

	buf_init(&content);
	while (fcgi_pair_read(&asked, &name, &value) == 1)
		for (size_t i = 0; i < 3; i++)
			if (str_eq(name, known[i].name))
				wanted[i] = true;
	for (size_t i = 0; i < 3; i++)
		if (wanted[i])
			fcgi_pair_add(&content, known[i].name, known[i].value);
	fcgi_add_record(
	    &g->answer, FCGI_GET_VALUES_RESULT, 0, buf_str(&content));
	buf_release(&content);
}

static enum guard_verdict
manage(struct guard *g, const struct fcgi_header *h, struct str content)
{
	char unknown[8] = { (char)h->type };

	if (h->type == FCGI_GET_VALUES)
		answer_values(g, content);
	else
		fcgi_add_record(&g->answer, FCGI_UNKNOWN_TYPE, 0,
		    (struct str){ unknown, sizeof(unknown) });
	if (g->answer.failed || g->answer.len > ANSWER_MAX)
		return malformed(g, "management records without end");
	return GUARD_MORE;
}

/*
 * After END a peer may still send what it had in its hands of the request
 * that is over: Apache sends the empty STDIN then.
 */
static enum guard_verdict
skip_leftover(struct guard *g, const struct fcgi_header *h)
{
	if (!g->served || h->id != g->old_id ||
	    (h->type != FCGI_STDIN && h->type != FCGI_DATA &&
		h->type != FCGI_ABORT_REQUEST))
		return malformed(g, "a record before BEGIN_REQUEST");
	g->leftover += FCGI_HEADER_BYTES + (size_t)h->content + h->padding;
	if (g->leftover > GUARD_LEFTOVER_MAX)
		return malformed(g, "too much of the request before");
	return GUARD_MORE;
}

static bool
is_served(const struct guard *g)
{
	switch (g->role) {
	case FCGI_RESPONDER:
		return g->responder;
	case FCGI_AUTHORIZER:
		return g->authorizer;
	default:
		return false;
	}
}

static enum guard_verdict
begin(struct guard *g, const struct fcgi_header *h, struct str content)
{
	const uint8_t *b = (const uint8_t *)content.p;

	if (h->id == 0 || content.len != BEGIN_BYTES)
		return malformed(g, "a BEGIN_REQUEST of a wrong form");
	g->begun = true;
	g->id = h->id;
	g->role = (uint16_t)(b[0] << 8 | b[1]);
	g->keep = (b[2] & FCGI_KEEP_CONN) != 0;
	return is_served(g) ? GUARD_MORE : GUARD_UNKNOWN_ROLE;
}

static bool
pair_is_sound(struct str name, struct str value, const char **fault)
{
	*fault = NULL;
	if (name.len == 0)
		*fault = "a param without a name";
	else if (memchr(name.p, '=', name.len) != NULL)
		*fault = "a param with = in its name";
	else if (memchr(name.p, '\0', name.len) != NULL ||
	    (value.len > 0 && memchr(value.p, '\0', value.len) != NULL))
		*fault = "a param with a NUL";
	return *fault == NULL;
}

/* A head that only says who asks, for an answer that needs no params. */
static enum guard_verdict
too_large(struct guard *g)
{
	struct fcgi_params_writer w;

	buf_reset(&g->head);
	fcgi_add_begin(&g->head, g->id, g->role, g->keep ? FCGI_KEEP_CONN : 0);
	fcgi_params_start(&w, &g->head, g->id);
	fcgi_params_end(&w);
	return GUARD_TOO_LARGE;
}

static enum guard_verdict
rewrite(struct guard *g)
{
	struct str rest = buf_str(&g->pairs);
	struct fcgi_params_writer w;
	struct str name;
	struct str value;
	int rc;

	buf_reserve(&g->head, g->pairs.len + 64);
	fcgi_add_begin(&g->head, g->id, g->role, g->keep ? FCGI_KEEP_CONN : 0);
	fcgi_params_start(&w, &g->head, g->id);
	while ((rc = fcgi_pair_read(&rest, &name, &value)) == 1) {
		if (!pair_is_sound(name, value, &g->fault))
			return GUARD_MALFORMED;
		if (fcgi_pair_bytes(name.len, value.len) > FCGI_PAIR_MAX)
			return too_large(g);
		fcgi_params_add(&w, name, value);
	}
	if (rc < 0)
		return malformed(g, "a param longer than its record stream");
	fcgi_params_end(&w);
	if (g->head.failed || g->pairs.failed)
		return malformed(g, "out of memory");
	buf_release(&g->pairs);
	return GUARD_HEAD;
}

static enum guard_verdict
take_params(struct guard *g, struct str content)
{
	if (content.len == 0)
		return rewrite(g);
	buf_add_str(&g->pairs, content);
	return GUARD_MORE;
}

static enum guard_verdict
take_record(struct guard *g, const struct fcgi_header *h, struct str content)
{
	if (h->id == 0 && h->type != FCGI_BEGIN_REQUEST)
		return manage(g, h, content);
	if (!g->begun)
		return h->type == FCGI_BEGIN_REQUEST ? begin(g, h, content)
						     : skip_leftover(g, h);
	if (h->type != FCGI_PARAMS || h->id != g->id)
		return malformed(g, "another record inside the head");
	return take_params(g, content);
}

/* Is a record of this size still within the head? */
static bool
is_within(const struct guard *g, const struct fcgi_header *h, size_t whole)
{
	bool counts = g->begun || h->type == FCGI_BEGIN_REQUEST;

	return !counts || g->raw + whole <= g->max_bytes;
}

/* One record from `at`; 0: not whole yet. */
static size_t
next_record(struct guard *g, struct str in, enum guard_verdict *verdict)
{
	struct fcgi_header h;
	size_t whole;

	*verdict = GUARD_MORE;
	if (in.len < FCGI_HEADER_BYTES)
		return 0;
	fcgi_header_read((const uint8_t *)in.p, &h);
	whole = FCGI_HEADER_BYTES + (size_t)h.content + h.padding;
	if (h.version != 1) {
		*verdict = malformed(g, "not FastCGI version 1");
		return 0;
	}
	if (!is_within(g, &h, whole)) {
		*verdict = g->begun ? too_large(g)
				    : malformed(g, "max_head is too small");
		return 0;
	}
	if (in.len < whole)
		return 0;
	*verdict = take_record(
	    g, &h, (struct str){ in.p + FCGI_HEADER_BYTES, h.content });
	if (g->begun)
		g->raw += whole;
	return whole;
}

enum guard_verdict
guard_feed(struct guard *g, struct buf *in)
{
	enum guard_verdict verdict = GUARD_MORE;
	size_t at = 0;

	while (verdict == GUARD_MORE && at < in->len) {
		size_t n = next_record(
		    g, (struct str){ in->p + at, in->len - at }, &verdict);

		if (n == 0)
			break;
		at += n;
	}
	buf_consume(in, at);
	return verdict;
}
