/*
 * cost: the units a request takes from a limit. Pure; any thread.
 *
 *	5                                   each request that many
 *	/search*=10, POST /export=50, *=1   the first pattern that matches
 *	response:NAME                       1 at first; then what the response
 *	                                    says in its header NAME
 *
 * A pattern is a glob over the path, with a method and a blank in front of
 * it or not; `GET` includes HEAD. What no pattern matches costs 1.
 */
#ifndef SLUICE_COST_H
#define SLUICE_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define COST_MAX          INT64_C(1000000000000)
#define COST_RESPONSE_MAX INT64_C(1000000) /* that a response may say */

enum cost_kind {
	COST_UNREAD, /* 1 */
	COST_FIXED,
	COST_PATTERNS,
	COST_RESPONSE,
};

struct cost_pattern {
	struct str method; /* len 0: any */
	struct str glob;
	int64_t units;
};

struct cost {
	enum cost_kind kind;
	int64_t units; /* FIXED */
	size_t n;      /* PATTERNS, in the order written */
	struct cost_pattern *pattern;
	struct str header; /* RESPONSE: its name */
};

/* `PATTERN=N`; the pattern's texts point into the item. */
bool cost_parse_pattern(
    struct str item, struct cost_pattern *pattern, struct err *err);
/* Does `before` match whatever `pattern` does, so that this never counts? */
bool cost_covers(
    const struct cost_pattern *before, const struct cost_pattern *pattern);
/* An integer or `response:NAME`, whose name points into the text. */
bool cost_parse_single(struct str text, struct cost *cost, struct err *err);
/* What a request of that method costs by its path. */
int64_t cost_of(const struct cost *cost, struct str method, struct str path);
/*
 * What the pattern that matches says, if it is one of some paths and not of
 * all (`*`, `POST *`, the same with a slash in front); else 0.
 */
int64_t cost_of_some(
    const struct cost *cost, struct str method, struct str path);
/* The most that a request can be asked for before its response. */
int64_t cost_most(const struct cost *cost);
/* The least that one takes that is not free; 1 where all are. */
int64_t cost_least(const struct cost *cost);

#endif
