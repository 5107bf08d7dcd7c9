/*
 * standing: how a count stands at a moment, between algorithm.c, which
 * decides, and settlement.c, which changes what was decided. Nobody else's.
 */
#ifndef SLUICE_STANDING_H
#define SLUICE_STANDING_H

#include "pure/algorithm.h"

struct standing {
	int64_t now_us;
	int64_t start;   /* windows: us; sliding: ms */
	int64_t used;    /* windows: units in this one; bucket: tokens * P */
	int64_t before;  /* sliding: units in the bucket before */
	int64_t elapsed; /* sliding: ms since start */
	int64_t width;   /* sliding: the period in ms */
	int64_t r;       /* token bucket: r units every p us */
	int64_t p;
};

void standing_of(const struct check *check, const struct state *state,
    int64_t now_us, struct standing *at);
void standing_keep(
    const struct check *check, const struct standing *at, struct state *state);
/* The time after which a count that stands so is worth nothing. */
int64_t standing_end(const struct check *check, const struct standing *at);
/* sliding_window: the start of the bucket (ms) that a moment falls into. */
int64_t standing_bucket(const struct check *check, int64_t ms);

#endif
