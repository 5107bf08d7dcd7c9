/*
 * decision: the answer of all limits of a request together.
 *
 * decision_make asks the local table, then the shared store, and puts what
 * they said into one decision, which the request keeps to its end. Any
 * thread; waits for the shared store at most its timeout.
 */
#ifndef SLUICE_DECISION_H
#define SLUICE_DECISION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "config/config.h"
#include "domain/store.h"
#include "domain/subject.h"

enum decision_kind {
	DECISION_UNLIMITED, /* no limit applied */
	DECISION_ALLOWED,
	DECISION_REFUSED,   /* a limit is used up: 429 */
	DECISION_FORBIDDEN, /* a key is missing: 403 */
	DECISION_AMBIGUOUS, /* a param of a key has two values: 400 */
	DECISION_OUTAGE,    /* a limit that must be asked could not be: 503 */
};

struct decision {
	enum decision_kind kind;
	/* The limit that the headers and the log speak of; NULL: none. */
	const struct config_limit *limit;
	bool has_numbers;
	struct verdict verdict; /* if has_numbers */
	int64_t retry_us;       /* of a refusal or outage; ALGORITHM_NEVER */
	int64_t store_wait_us;
	bool outage;        /* some limit got no answer */
	const char *reason; /* of that; static text, or NULL */
};

/*
 * The two places where counts are; shared is NULL where none is needed.
 * naming holds what makes the names of counts (prefix, key_secret): that of
 * the start, whatever is reloaded, or all counts would begin anew.
 */
struct stores {
	struct store *shared;
	struct store *local;
	const struct config_store *naming;
};

void decision_make(struct decision *d, const struct config *config,
    const struct stores *stores, const struct subject *subject,
    struct arena *arena);

#endif
