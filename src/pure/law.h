/*
 * law: what an algorithm is to algorithm.c, and the six there are. Each
 * answers four questions about a count: how it stands now, how long a cost
 * has to wait, what it is once a cost was taken, and what to print.
 * Nobody else's.
 */
#ifndef SLUICE_LAW_H
#define SLUICE_LAW_H

#include "pure/standing.h"

struct law {
	/* now_us is never before what was seen; all of `at` was 0. */
	void (*stand)(const struct check *c, const struct state *s,
	    int64_t now_us, struct standing *at);
	/* 0: passes now. The cost is at least 1, and none that never does. */
	int64_t (*wait)(
	    const struct check *c, const struct standing *at, int64_t cost);
	void (*take)(struct standing *at, int64_t cost);
	/* remaining, next_us, full_us */
	void (*figures)(const struct check *c, const struct standing *at,
	    struct verdict *v);
	/* The time after which a count that stands so is worth nothing. */
	int64_t (*end)(const struct check *c, const struct standing *at);
	/* Sets a, b and c of the state. */
	void (*keep)(
	    const struct check *c, const struct standing *at, struct state *s);
};

extern const struct law law_fixed;
extern const struct law law_sliding;
extern const struct law law_token;
extern const struct law law_leaky;
extern const struct law law_log;
extern const struct law law_slots;

/* leaky_bucket: see algorithm_limit. */
int64_t law_leaky_limit(const struct check *c);

static inline int64_t
law_max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static inline int64_t
law_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* b > 0. */
static inline int64_t
law_floor(int64_t a, int64_t b)
{
	return a / b - (a % b < 0 ? 1 : 0);
}

/* a >= 0, b > 0. */
static inline int64_t
law_ceil(int64_t a, int64_t b)
{
	return a / b + (a % b > 0 ? 1 : 0);
}

#endif
