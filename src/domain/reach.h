/*
 * reach: a request's connection to its backend, at the address that
 * upstreams chooses.
 *
 * One that can not be connected to has taken nothing: the next is tried at
 * once, all within the backend's connect_timeout. Who has others to go to
 * waits for one no longer than its share of what is left of that.
 */
#ifndef SLUICE_REACH_H
#define SLUICE_REACH_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "domain/upstreams.h"

struct reach {
	int fd; /* a non-blocking socket, its own; -1: none */
	struct upstreams_visit visit; /* `at` NULL: has been left */
};

/* Blocks. false and err: none can be reached, or there is no memory. */
bool reach_open(struct reach *r, const struct config_backend *backend,
    struct upstreams_set *set, struct arena *arena, struct err *err);
/*
 * The backend has done its part: the address is as free as it was. To be
 * told before the client can know.
 */
void reach_leave(struct reach *r);
/* Ends the connection, whatever has become of the request. */
void reach_close(struct reach *r);

#endif
