/*
 * redis_lanes: all links of a store, taken in turns.
 *
 * Any thread may pick; looking after them is for the one that connects.
 */
#ifndef SLUICE_REDIS_LANES_H
#define SLUICE_REDIS_LANES_H

#include <stdatomic.h>
#include <stdbool.h>

#include "domain/redis_lane.h"

struct redis_lanes {
	atomic_uint turn;
	unsigned n;
	struct redis_lane **lane;
};

/* False: no memory; to be released all the same. */
bool redis_lanes_init(
    struct redis_lanes *l, unsigned n, const struct redis_lane_events *events);
void redis_lanes_release(struct redis_lanes *l);

/* One that is up; NULL: none is. */
struct redis_lane *redis_lanes_pick(struct redis_lanes *l);
/*
 * Drops links that are dead, or all that nobody uses. Returns one to
 * connect; NULL: all are up.
 */
struct redis_lane *redis_lanes_tidy(struct redis_lanes *l, bool all);

#endif
