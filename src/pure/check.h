/*
 * check: a question to a count, what is kept of it, and the answer. What they
 * mean is algorithm.h's.
 */
#ifndef SLUICE_CHECK_H
#define SLUICE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

enum algorithm {
	ALGORITHM_SLIDING_WINDOW,
	ALGORITHM_FIXED_WINDOW,
	ALGORITHM_TOKEN_BUCKET,
	ALGORITHM_SLIDING_LOG,
	ALGORITHM_LEAKY_BUCKET,
	ALGORITHM_CONCURRENCY,
};

enum align { ALIGN_SPREAD, ALIGN_EPOCH, ALIGN_FIRST, ALIGN_CALENDAR };

/* The largest product the two languages share exactly: 2^53 - 1. */
#define ALGORITHM_PRODUCT_MAX INT64_C(9007199254740991)
#define ALGORITHM_NEVER       INT64_C(-1)
/* sliding_log: the largest N, as it keeps so many entries a key. */
#define ALGORITHM_LOG_MAX 10000

/* One question: may `cost` units be taken from this count now? */
struct check {
	enum algorithm algorithm;
	enum align align;  /* fixed_window */
	int64_t count;     /* N >= 1 */
	int64_t period_us; /* > 0; whole milliseconds */
	int64_t burst;     /* token_bucket, leaky_bucket: B >= 1 */
	int64_t cost;      /* >= 0 */
	/*
	 * A lease: where the cost passes, up to so many units are taken, as
	 * far as they remain; at most the cost: the cost alone.
	 */
	int64_t most;
	int64_t offset_us; /* of the window; 0 for epoch and first.
	                      sliding_window: whole milliseconds */
	bool observe;      /* counted as if alone, refuses nothing */
	/*
	 * calendar: where the previous window begins, the current, the next
	 * and what follows it, rising.
	 */
	int64_t boundary_us[4];
	int64_t delay_max_us; /* leaky_bucket: longest wait of an allowed one */
	int64_t full_us;      /* refund: that of its verdict; 0: not known */
	int64_t penalty_us;   /* refused for so long after a refusal; 0: none */
};

/*
 * What is kept for a key. All zero: nothing.
 *	fixed_window    a = window start (us)   b = units taken
 *	                c = its end (us), for the calendar alone
 *	sliding_window  a = bucket start (ms)   b = units in it
 *	                c = units in the bucket before
 *	token_bucket    a = time (us)  b = tokens * P  c = P (lowest terms);
 *	                b < 0 after a settlement
 *	leaky_bucket    a = time (us)  b = queued units * P  c = P
 *	sliding_log     b = units in the log, those that are out too
 *	concurrency     b = slots held
 */
struct state {
	bool exists; /* the count does */
	int64_t a;
	int64_t b;
	int64_t c;
	int64_t penalty_us;      /* when it began; 0: none since the start */
	struct sliding_log *log; /* NULL: empty, or another algorithm */
};

enum verdict_kind { VERDICT_ALLOWED, VERDICT_REFUSED, VERDICT_ERROR };

struct verdict {
	enum verdict_kind kind;
	int64_t limit;
	int64_t remaining;  /* 0 <= remaining <= limit, after this decision */
	int64_t next_us;    /* until one more than that */
	int64_t full_us;    /* until untouched */
	int64_t retry_us;   /* refused: least wait; ALGORITHM_NEVER; else 0 */
	int64_t delay_us;   /* leaky_bucket, allowed: waits so long first */
	int64_t own_count;  /* the key's own, in the place of N; 0: none */
	int64_t penalty_us; /* what is left of it, one that begins now too */
	int64_t taken;      /* of a lease: units, the cost too; else 0 */
};

#endif
