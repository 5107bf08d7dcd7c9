/*
 * maintenance: the one thread that does what workers must not: connecting
 * to the store, expiring counts, giving leases back, closing idle connections
 * to backends, arming listeners again after a drought.
 */
#ifndef SLUICE_MAINTENANCE_H
#define SLUICE_MAINTENANCE_H

#include "base/err.h"
#include "domain/decision.h"
#include "domain/upstreams.h"
#include "process/listener.h"

struct maintenance;

/* Makes itself the stores' waker. NULL and err: no thread. */
struct maintenance *maintenance_start(const struct stores *stores,
    struct upstreams *upstreams, struct listeners *listeners, struct err *err);
/* Waits for its end and frees. Nobody may be asking the stores by then. */
void maintenance_stop(struct maintenance *m);

#endif
