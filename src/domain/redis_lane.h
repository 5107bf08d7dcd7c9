/*
 * redis_lane: one link to Redis that many threads ask through, combined.
 *
 * Whoever asks while nobody leads, leads: sends all that is pending as one
 * script call, shares the answers out and passes the lead on. The others
 * only wait, each to its own deadline (clock_mono_us).
 *
 * Any thread may ask. Giving and dropping links is for one thread, which
 * connects; a link that failed a check is dropped by whoever led it.
 */
#ifndef SLUICE_REDIS_LANE_H
#define SLUICE_REDIS_LANE_H

#include "domain/redis_script.h"
#include "domain/redis_trouble.h"
#include "domain/store.h"
#include "io/redis_link.h"

struct redis_lane;

/* Called by whoever led, without any lock, after each batch. */
struct redis_lane_events {
	void (*answered)(void *context);
	/* The link is gone. */
	void (*tripped)(void *context, const struct redis_trouble *trouble);
	void *context;
};

/* Begins without a link. NULL: no memory. */
struct redis_lane *redis_lane_new(const struct redis_lane_events *events);
/* Nobody may be asking any more. */
void redis_lane_free(struct redis_lane *lane);

bool redis_lane_is_up(const struct redis_lane *lane);
/* Owns the link from now on; the lane must be down. */
void redis_lane_give(struct redis_lane *lane, struct redis_link *link);
/* If nobody uses it: drops the link when it is dead, or whatever it is. */
void redis_lane_drop_dead(struct redis_lane *lane);
void redis_lane_drop(struct redis_lane *lane);

/*
 * Sets the answer's status, verdicts, taken_us and reason. The answer to a
 * settlement has no verdicts.
 */
void redis_lane_ask(struct redis_lane *lane, enum redis_script_name name,
    const struct store_question *q, int64_t deadline_us,
    struct store_answer *answer);

#endif
