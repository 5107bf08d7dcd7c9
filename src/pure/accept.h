/*
 * accept: which of our bodies a client wants (RFC 9110, 12.4.2 and 12.5.1).
 * Pure; any thread.
 */
#ifndef SLUICE_ACCEPT_H
#define SLUICE_ACCEPT_H

#include "base/str.h"

/* What there is to choose from; the earlier where all else is equal. */
enum accept_type {
	ACCEPT_TEXT, /* text/plain */
	ACCEPT_JSON, /* application/problem+json */
	ACCEPT_HTML, /* text/html */
	ACCEPT_TYPES
};

/*
 * By the value of an Accept field; p may be NULL. The highest q wins, then
 * the more exact range, then what the client names first. For the sake of
 * clients that read nothing else, application/json and any
 * application/NAME+json ask for JSON, and no parameter but q counts. An
 * element that is malformed is passed over; where nothing is left, or
 * nothing of ours is acceptable, it is text.
 */
enum accept_type accept_choose(struct str accept);

#endif
