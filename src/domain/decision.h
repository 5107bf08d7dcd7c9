/*
 * decision: the answer of all limits of a request together.
 *
 * decision_make asks the local table, then the shared store, and puts what
 * they said into one decision, which the request keeps to its end. Any
 * thread; waits for the shared store at most its timeout.
 *
 * When the request is over, decision_settle is called once, with what became
 * of it, and decision_release at the latest when its work has ended: both on
 * every path, also of a request that was refused.
 */
#ifndef SLUICE_DECISION_H
#define SLUICE_DECISION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "config/config.h"
#include "domain/deny_cache.h"
#include "domain/lease.h"
#include "domain/store.h"
#include "domain/subject.h"
#include "pure/numbers.h"

enum decision_kind {
	DECISION_UNDECIDED, /* all zero: decision_make has not been called */
	DECISION_UNLIMITED, /* no limit applied */
	DECISION_ALLOWED,
	DECISION_REFUSED,   /* a limit is used up: 429 */
	DECISION_FORBIDDEN, /* a key is missing: 403 */
	DECISION_AMBIGUOUS, /* a param or field of a key has two values: 400 */
	DECISION_OUTAGE,    /* a limit that must be asked could not be: 503 */
};

/* Who was asked. */
enum decision_asked {
	DECISION_ASKED_LOCAL, /* scope = local */
	DECISION_ASKED_SHARED,
	DECISION_ASKED_INSTEAD, /* the local table, for the store was out */
};

/* One check and what was said; several of a limit that has several rates. */
struct decision_part {
	const struct config_limit *limit;
	struct store_check check;
	struct verdict verdict; /* VERDICT_ERROR: no answer */
	enum decision_asked asked;
	int64_t taken_us; /* on that store's clock */
	bool is_steady;   /* which is that of store->is_steady */
	bool taken;       /* its cost is, and has not been given back */
	uint64_t lease;   /* its cost came from that one; 0: from none */
	int64_t age_us;   /* of the verdict, which was made then */
	int64_t said;     /* cost = response: what it said; -1: nothing */
};

struct decision {
	enum decision_kind kind;
	/* The limit that the headers and the log speak of; NULL: none. */
	const struct config_limit *limit;
	bool has_numbers;
	struct verdict verdict; /* if has_numbers */
	struct numbers numbers; /* if has_numbers; in the request's arena */
	int64_t retry_us;       /* of a refusal or outage; ALGORITHM_NEVER */
	int64_t store_wait_us;
	int64_t delay_us;   /* of an allowed request: to be held so long */
	bool outage;        /* some limit got no answer */
	bool cached;        /* the store was not asked: it has refused before */
	const char *reason; /* of that; static text, or NULL */
	/* In file order, observed limits among them; in the request's arena. */
	size_t n_parts;
	struct decision_part *part;
	bool to_settle;  /* some part's cost is not known for good yet */
	bool to_release; /* some part holds a slot */
	const struct config *config;
	struct arena *arena;
};

/*
 * The two places where counts are; shared is NULL where none is needed. denied
 * is what is known of the shared one's refusals, and leases what is taken of
 * it ahead; NULL: nothing ever.
 * naming holds what makes the names of counts (prefix, key_secret): that of
 * the start, whatever is reloaded, or all counts would begin anew.
 */
struct stores {
	struct store *shared;
	struct store *local;
	const struct config_store *naming;
	struct deny_cache *denied;
	struct leases *leases;
};

/* Does nothing refuse it, by what is decided so far? */
static inline bool
decision_passes(const struct decision *d)
{
	return d->kind == DECISION_UNDECIDED || d->kind == DECISION_UNLIMITED ||
	    d->kind == DECISION_ALLOWED;
}

void decision_make(struct decision *d, const struct config *config,
    const struct stores *stores, const struct subject *subject,
    struct arena *arena);
/*
 * A header of the response, before it goes out: true when some limit's cost
 * is said by a header of that name, which no client is to see. What it says
 * is kept for decision_settle, and less remains in what is printed; what is
 * no whole number up to COST_RESPONSE_MAX is logged, and nothing is said.
 */
bool decision_take_cost(struct decision *d, struct str name, struct str value);
/*
 * Charges or gives back what turned out at the end (`count`, `cost =
 * response:`). status: what was sent to the client; 0: nothing could be.
 * To be called once the response's head is out, or it is known that there
 * will be none; a second call does nothing.
 */
void decision_settle(
    struct decision *d, const struct stores *stores, int status);
/* Gives the slots of concurrency limits back; may be called again. */
void decision_release(struct decision *d, const struct stores *stores);
/*
 * Gives everything back, of a request that was held for its delay and then
 * not served. Nothing is left to settle then, and no numbers to show.
 */
void decision_withdraw(struct decision *d, const struct stores *stores);
/* Leaves everything taken: nothing of the above does anything any more. */
void decision_forfeit(struct decision *d);

/* For decision.c and decision_end.c. */
struct store *decision_store(
    const struct stores *stores, enum decision_asked asked);
/* What a refused request took, but not for observed limits. */
void decision_give_back(struct decision *d, const struct stores *stores);

#endif
