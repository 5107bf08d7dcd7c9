/*
 * store: where counts live. The interface both stores keep.
 *
 * A question is all the checks of one request; it is answered as a whole:
 * every check is evaluated, and all are committed only if every enforcing
 * one allows (observed ones are committed as if alone). A check the store
 * could not answer has verdict VERDICT_ERROR, and the others stand.
 *
 * Any thread may ask. The question and what it points to belong to the
 * caller; a store that has to keep something beyond the call copies it.
 */
#ifndef SLUICE_STORE_H
#define SLUICE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "pure/algorithm.h"

#define STORE_CHECKS_MAX 32 /* of one request */
#define STORE_SLOT_MAX   64

struct store_check {
	struct str key; /* the whole name in the store */
	struct check check;
	/*
	 * The key's own counts (`sluice set`): the name of their list in the
	 * store, and which of it is this check's. p NULL: none can be.
	 */
	struct str own_key;
	unsigned own_at;
	/*
	 * concurrency: this request's member of the set of slots, unique, at
	 * most STORE_SLOT_MAX bytes; p NULL: another algorithm.
	 */
	struct str slot;
	/* To settle: when it was allowed, on the store's clock. */
	int64_t taken_us;
};

/*
 * What a response said of a check that was allowed: more units are charged
 * (delta > 0), or some are given back (delta < 0).
 */
struct store_settlement {
	struct store_check check;
	int64_t taken_us; /* when it was allowed, on the store's clock */
	int64_t delta;
};

struct store_question {
	const struct store_check *check;
	size_t n; /* 1 to STORE_CHECKS_MAX */
	/*
	 * By clock_mono_us: who asks has waited for others already, and waits
	 * for the store no longer than this; 0: its own timeout.
	 */
	int64_t until_us;
};

enum store_status {
	STORE_ANSWERED, /* verdicts stand, some may be VERDICT_ERROR */
	STORE_OUT,      /* no answer: an outage for every check */
};

struct store_answer {
	enum store_status status;
	struct verdict verdict[STORE_CHECKS_MAX];
	int64_t taken_us;   /* when, on the store's clock */
	int64_t wait_us;    /* how long the caller waited */
	int64_t retry_us;   /* STORE_OUT: until the next try, >= 0 */
	const char *reason; /* STORE_OUT or an error: static text */
};

/* Does an enforcing check refuse? Then only observed ones are committed. */
static inline bool
store_refuses(const struct store_question *q, const struct store_answer *answer)
{
	if (answer->status != STORE_ANSWERED)
		return false;
	for (size_t i = 0; i < q->n; i++)
		if (answer->verdict[i].kind == VERDICT_REFUSED &&
		    !q->check[i].check.observe)
			return true;
	return false;
}

struct store;

struct store_ops {
	void (*ask)(struct store *store, const struct store_question *q,
	    struct store_answer *answer);
	/*
	 * Gives back what an allowed question took, slots too; best effort.
	 * check.full_us is that of the verdict.
	 */
	void (*refund)(struct store *store, const struct store_question *q,
	    int64_t taken_us);
	/*
	 * Settles checks that were allowed: in the window of the check if
	 * that still lasts, else a charge goes to the current one and what
	 * would be given back is dropped. No count goes further than its
	 * limit beyond it; what is cut is logged. Best effort: what fails
	 * is counted (settlements_lost) and never sent twice.
	 */
	void (*settle)(
	    struct store *store, const struct store_settlement *s, size_t n);
	/*
	 * Gives back the slots that these checks hold, if any; others are
	 * passed over. To be called on every way out of a request. Until
	 * then the store keeps them held.
	 */
	void (*release)(
	    struct store *store, const struct store_check *check, size_t n);
	/*
	 * Runs on the maintenance thread: connecting, probing, expiring.
	 * May block, but returns soon after `wake` was called and never
	 * later than a second. Returns the clock_mono_us time at which it
	 * wants to be called again.
	 */
	int64_t (*maintain)(struct store *store);
	void (*free)(struct store *store);
};

struct store {
	const struct store_ops *ops;
	bool may_block; /* `ask` may wait for a peer */
	bool is_steady; /* its clock is clock_steady_us; else that of a host */
	/* Set by the owner before use: gets maintain called at once. */
	void (*wake)(void *context);
	void *wake_context;
};

#endif
