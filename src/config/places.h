/*
 * places: how the workers are shared out.
 */
#ifndef SLUICE_PLACES_H
#define SLUICE_PLACES_H

#include "config/config.h"

/*
 * How many workers may wait for backends at once, however many hang: the
 * rest refuse, park and answer.
 */
uint64_t places_may_block(const struct config_gateway *gateway);
/*
 * max_inflight where it is not given: 3/4 of the workers, but a place is
 * left for another backend.
 */
uint64_t places_of_backend(const struct config_gateway *gateway);

#endif
