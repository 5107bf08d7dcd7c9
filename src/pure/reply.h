/*
 * reply: the text of the answers that are Sluice's own, as CGI responses.
 * Pure; any thread.
 */
#ifndef SLUICE_REPLY_H
#define SLUICE_REPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "pure/numbers.h"

/* Sent where no wait would help. */
#define REPLY_NEVER_SECONDS 86400

struct reply {
	int status;
	bool without_body;             /* to HEAD */
	const struct numbers *numbers; /* NULL: no rate-limit lines */
	const struct numbers_style *style;
	bool has_retry;
	int64_t retry_us;    /* or ALGORITHM_NEVER */
	const char *message; /* NULL: the reason phrase */
};

/* The Retry-After of a wait: at least 1, never early. */
int64_t reply_retry_seconds(int64_t retry_us);
/* The phrase of a status we send; "Error" for another. */
const char *reply_reason(int status);
/* A whole response: Status first, no-store, a text body. */
void reply_write(struct buf *out, const struct reply *reply);

#endif
