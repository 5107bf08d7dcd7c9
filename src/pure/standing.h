/*
 * standing: how a count stands at a moment, between algorithm.c, which
 * decides, and settlement.c, which changes what was decided. Nobody else's.
 */
#ifndef SLUICE_STANDING_H
#define SLUICE_STANDING_H

#include <stddef.h>

#include "pure/check.h"

struct standing {
	int64_t now_us;
	int64_t start;  /* windows: us; sliding: ms; log: the oldest */
	int64_t finish; /* fixed window: its end; log: the newest */
	/*
	 * windows, log: units in this one; token bucket: tokens * P; leaky
	 * bucket: queued units * P; slots: those held
	 */
	int64_t used;
	int64_t before;  /* sliding: units in the bucket before */
	int64_t elapsed; /* sliding: ms since start */
	int64_t width;   /* sliding: the period in ms */
	int64_t r;       /* buckets: r units every p us */
	int64_t p;
	int64_t delay_us;              /* leaky bucket: of what comes now */
	const struct sliding_log *log; /* the state's */
	size_t out;                    /* log: so many of the first are */
	int64_t taken;                 /* log: units to be added to it */
};

void standing_of(const struct check *check, const struct state *state,
    int64_t now_us, struct standing *at);
void standing_keep(
    const struct check *check, const struct standing *at, struct state *state);
/* The time after which a count that stands so is worth nothing. */
int64_t standing_end(const struct check *check, const struct standing *at);
/* fixed_window: where the one that is kept ends. */
int64_t standing_window_end(
    const struct check *check, const struct state *state);
/* sliding_window: the start of the bucket (ms) that a moment falls into. */
int64_t standing_bucket(const struct check *check, int64_t ms);

#endif
