/*
 * body: what a request brings along, from STDIN records into its spool.
 *
 * Our own codec, at any split; no system call but the spool's. What
 * CONTENT_LENGTH promised is held against what came. The owner's.
 */
#ifndef SLUICE_BODY_H
#define SLUICE_BODY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "config/config.h"
#include "io/spool.h"
#include "pure/params.h"

enum body_verdict {
	BODY_MORE,
	BODY_WHOLE,
	BODY_WRONG,     /* 400: CONTENT_LENGTH and STDIN disagree */
	BODY_TOO_LARGE, /* 413 */
	BODY_NO_ROOM,   /* 503: spool_total is reached */
	BODY_FAILED,    /* 500: the spool can not be written */
	BODY_ABORTED,   /* the web server takes the request back */
	BODY_MALFORMED, /* no FastCGI: close */
};

struct body {
	struct spool spool;
	int64_t announced; /* CONTENT_LENGTH; -1: not said */
	bool coded;        /* HTTP_TRANSFER_ENCODING: one will come */
	bool begun;        /* a STDIN with content has come */
	bool ended;        /* the empty STDIN is there */
	uint16_t id;
	size_t content_left; /* of the STDIN record that is open */
	size_t padding_left;
	int64_t started_us; /* clock_mono_us */
	int64_t moved_us;
};

void body_init(struct body *b, uint16_t id);
void body_release(struct body *b);
/* Reads what the params say: BODY_MORE, BODY_WRONG or BODY_TOO_LARGE. */
enum body_verdict body_announce(struct body *b, const struct params *params,
    const struct config_gateway *gateway);
/*
 * Consumes from the front of `in`; nothing any more once it is whole. A
 * record that makes it ABORTED or MALFORMED stays there.
 */
enum body_verdict body_feed(
    struct body *b, const struct config_gateway *gateway, struct buf *in);
/* A whole body that is still in memory; p NULL: it is in a file. */
void body_as_text(const struct body *b, struct str *text);
/* Will body_as_text have it, for all that is known by now? */
bool body_may_be_text(
    const struct body *b, const struct config_gateway *gateway);
/*
 * May nothing more of it come, or only the mark of its end? Then what comes
 * next on the connection begins with a record.
 */
bool body_is_settled(const struct body *b);
/*
 * When patience ends: no byte for body_timeout, or below 1 KB/s over all
 * of it (clock_mono_us).
 */
int64_t body_deadline(
    const struct body *b, const struct config_gateway *gateway);

#endif
