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
	int fd;      /* a non-blocking socket, its own; -1: none */
	size_t uses; /* requests it has carried before; 0: a new one */
	struct upstreams_visit visit;
};

/* Which connections a request can do with. */
enum reach_wants {
	REACH_ANY,     /* it may be sent again, should one turn out dead */
	REACH_CERTAIN, /* it may not */
	REACH_NEW_ONE,
};

/*
 * A kept connection that is open, or else a new one. Blocks. false and err:
 * none can be reached, or there is no memory.
 */
bool reach_open(struct reach *r, const struct config_backend *backend,
    struct upstreams_set *set, enum reach_wants wants, struct arena *arena,
    struct err *err);
/*
 * The backend has done its part: the address is as free as it was, and
 * keep: so is the connection. To be told before the client can know.
 */
void reach_leave(struct reach *r, bool keep);
/* After reach_leave: closes the connection unless it was left to be kept. */
void reach_close(struct reach *r);

#endif
