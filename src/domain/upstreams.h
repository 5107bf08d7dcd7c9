/*
 * upstreams: the addresses of backends, and which of them a request takes.
 *
 * The one with the fewest requests in it is taken; of equals, each in turn.
 * One that can not be connected to rests: UPSTREAMS_REST_US at first, twice
 * as long after each further failure, UPSTREAMS_REST_MAX_US at most. When
 * its rest is over one request tries it, and it is one of them again if that
 * gets through. Where no other is left, those that rest are tried too, who
 * is due first before the others: nobody is turned away untried.
 *
 * An address is known by the name of its backend and its text, and goes on
 * as it is in every configuration that has it, with its idle connections: as
 * many are kept as the configuration says that came last. Any thread. A lock
 * is held only where one begins to rest, is due or comes back, for a few
 * instructions; all else is an atomic counter. Times are clock_mono_us.
 */
#ifndef SLUICE_UPSTREAMS_H
#define SLUICE_UPSTREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "io/idle.h"
#include "io/net.h"

#define UPSTREAMS_REST_US     1000000
#define UPSTREAMS_REST_MAX_US 10000000

struct upstreams; /* those of the process */
struct upstream;  /* one */

/* Those of one backend in one configuration, in the order of its list. */
struct upstreams_set {
	size_t n;
	_Atomic size_t turn;
	struct upstream *at[];
};

/* NULL: no memory. */
struct upstreams *upstreams_new(void);
/* All sets must have been closed. */
void upstreams_free(struct upstreams *all);
/* NULL: no memory. */
struct upstreams_set *upstreams_open(
    struct upstreams *all, const struct config_backend *backend);
void upstreams_close(struct upstreams *all, struct upstreams_set *set);

/* A request at an address; the caller's storage. */
struct upstreams_visit {
	struct upstream *at;
	size_t index; /* in the set */
	bool is_probe;
	int64_t began_us;
};

/*
 * The next address to try, counted as busy until upstreams_leave. tried[i]:
 * this request has tried it; NULL: none yet. false: none is left.
 */
bool upstreams_choose(struct upstreams_set *set, const bool *tried,
    int64_t now_us, struct upstreams_visit *visit);
/* It could not be connected to, and why. */
void upstreams_refused(
    const struct upstreams_visit *visit, int64_t now_us, const char *why);
void upstreams_connected(const struct upstreams_visit *visit, int64_t now_us);
void upstreams_leave(const struct upstreams_visit *visit);

/* Closes what has been idle for too long; to be called now and then. */
void upstreams_tend(struct upstreams *all, int64_t now_us);

const struct net_address *upstreams_address(const struct upstream *u);
/* Its connections that wait for a request. */
struct idle *upstreams_idle(struct upstream *u);
/* As it is written. */
const char *upstreams_text(const struct upstream *u);

#endif
