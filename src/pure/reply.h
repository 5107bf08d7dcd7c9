/*
 * reply: the text of the answers that are Sluice's own, as CGI responses.
 * Pure; any thread.
 */
#ifndef SLUICE_REPLY_H
#define SLUICE_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "pure/accept.h"
#include "pure/numbers.h"

enum reply_retry { REPLY_RETRY_SECONDS, REPLY_RETRY_DATE };

/* How they are written; all zero is good for an answer without numbers. */
struct reply_style {
	struct numbers_style numbers;
	uint64_t retry_after;    /* enum reply_retry */
	uint64_t jitter_percent; /* of the wait, at most added to it */
	int64_t never_us;        /* said where no wait would help */
	/* The body of a refusal, a template; p NULL: ours. */
	struct str body[ACCEPT_TYPES];
	/* Origins that scripts in browsers may come from; one "*": all. */
	size_t n_origins;
	char *const *origin;
	struct str lines; /* more of the head, each with its CRLF */
};

struct reply {
	int status;
	bool without_body; /* to HEAD */
	bool is_refusal;   /* by a limit, whose name is known */
	const char *limit; /* its name */
	/* What is known of the limits; NULL: nothing. */
	const struct numbers *numbers;
	bool tells_numbers; /* there are lines of them */
	bool has_retry;
	int64_t retry_us;    /* or ALGORITHM_NEVER */
	int64_t now_us;      /* UTC; for a date */
	uint64_t lot;        /* of the jitter: any number, drawn */
	const char *message; /* NULL: none */
	struct str accept;   /* the request's fields; p NULL: none */
	struct str origin;
	struct str request_id;           /* for the templates that name it */
	const struct reply_style *style; /* never NULL */
};

/* Of a reply that has_retry: seconds, at least 1, never early. */
int64_t reply_retry_seconds(const struct reply *reply);
/* The phrase of a status we send; "Error" for another. */
const char *reply_reason(int status);
/* Would its body name the request? */
bool reply_has_request_id(const struct reply *reply);
/* A whole response: Status first, no-store, a body of the type accepted. */
void reply_write(struct buf *out, const struct reply *reply);
/*
 * What an authorizer says of a request that may go on: 200, the numbers as
 * variables of the application, no body. numbers NULL: there are none.
 */
void reply_write_pass(struct buf *out, const struct numbers *numbers,
    const struct numbers_style *style);

#endif
