/*
 * numbers: the rate-limit header fields. Pure; any thread.
 *
 *	X-RateLimit-Limit, -Remaining, -Reset    as everybody writes them
 *	RateLimit-Limit, -Remaining, -Reset      draft-ietf-httpapi-ratelimit-
 *	                                         headers-03
 *	RateLimit-Policy, RateLimit              the same, -11: structured
 *	                                         fields (RFC 9651)
 *
 * All of them speak for one limit, but RateLimit-Policy, which lists all
 * that were asked.
 */
#ifndef SLUICE_NUMBERS_H
#define SLUICE_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "pure/algorithm.h"

/* A set of bits. */
enum numbers_family {
	NUMBERS_X_RATELIMIT = 1,
	NUMBERS_DRAFT_03 = 2,
	NUMBERS_DRAFT_11 = 4,
};

/* X-RateLimit-Reset: seconds until then, or the moment since 1970 UTC. */
enum numbers_reset { NUMBERS_RESET_DELTA, NUMBERS_RESET_EPOCH };

/* A rate of a limit, and what was said of it. */
struct numbers_rate {
	const char *limit;   /* its name: [a-z0-9_-]+ */
	bool is_one_of_many; /* of the limit's: its period is named too */
	int64_t period_us;
	bool is_calendar;
	/* `units` come back in `per_us`, which may be 0: no window. */
	int64_t units;
	int64_t per_us;
	bool is_in_flight; /* counts requests that run at a time */
	struct verdict verdict;
};

struct numbers {
	const struct numbers_rate *rate; /* in file order */
	size_t n;
	const struct numbers_rate *spoken; /* for which the others speak */
	int64_t at_us;                     /* when that was so, UTC */
};

/* How they are said. */
struct numbers_style {
	uint64_t families; /* 0: not at all */
	uint64_t reset;    /* enum numbers_reset */
};

/* Whole seconds, rounded up; 0 for what is past. */
int64_t numbers_seconds(int64_t us);
/* A rate that was asked for; the others of its limit are not looked at. */
struct numbers_rate numbers_rate(const char *limit, bool is_one_of_many,
    const struct check *check, const struct verdict *verdict);
/* NAME, or NAME-PERIOD ("login-1h") of one of many. */
void numbers_add_name(struct buf *out, const struct numbers_rate *rate);
/* Their lines, each with its CRLF. */
void numbers_write(struct buf *out, const struct numbers *numbers,
    const struct numbers_style *style);
/*
 * What X-RateLimit-* would say, as an authorizer says it for the application:
 * the lines Variable-RATELIMIT_LIMIT, _REMAINING and _RESET. Of the style its
 * reset counts, not its families: these are no headers, no client sees them.
 */
void numbers_write_variables(struct buf *out, const struct numbers *numbers,
    const struct numbers_style *style);
/* The names of what numbers_write writes, and Retry-After: a list. */
void numbers_add_field_names(struct buf *out, uint64_t families);

/* Is that a rate-limit field, of these families or one like them? */
bool numbers_is_field(struct str name);
/*
 * What somebody else's field says is left: a Remaining, or the least r of
 * a RateLimit (also as draft-07 wrote it). False: it says nothing of that.
 */
bool numbers_remaining(struct str name, struct str value, int64_t *remaining);

#endif
