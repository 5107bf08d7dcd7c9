#include "domain/redis_lanes.h"

#include <stdlib.h>

bool
redis_lanes_init(
    struct redis_lanes *l, unsigned n, const struct redis_lane_events *events)
{
	atomic_init(&l->turn, 0);
	l->n = 0;
	l->lane = calloc(n, sizeof(struct redis_lane *));
	for (; l->lane != NULL && l->n < n; l->n++) {
		l->lane[l->n] = redis_lane_new(events);
		if (l->lane[l->n] == NULL)
			return false;
	}
	return l->lane != NULL;
}

void
redis_lanes_release(struct redis_lanes *l)
{
	for (unsigned i = 0; i < l->n; i++)
		redis_lane_free(l->lane[i]);
	free(l->lane);
}

struct redis_lane *
redis_lanes_pick(struct redis_lanes *l)
{
	unsigned turn = l->n > 1 ? atomic_fetch_add(&l->turn, 1) : 0;

	for (unsigned i = 0; i < l->n; i++) {
		struct redis_lane *lane = l->lane[(turn + i) % l->n];

		if (redis_lane_is_up(lane))
			return lane;
	}
	return NULL;
}

struct redis_lane *
redis_lanes_tidy(struct redis_lanes *l, bool all)
{
	struct redis_lane *down = NULL;

	for (unsigned i = 0; i < l->n; i++) {
		struct redis_lane *lane = l->lane[i];

		if (redis_lane_is_up(lane)) {
			if (all)
				redis_lane_drop(lane);
			else
				redis_lane_drop_dead(lane);
		}
		if (down == NULL && !redis_lane_is_up(lane))
			down = lane;
	}
	return down;
}
