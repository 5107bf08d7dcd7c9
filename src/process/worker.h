/*
 * worker: the threads that serve, started on demand.
 *
 * One waits at first. Few are on watch at a time: they wait for events, and
 * serve what needs no waiting. One that is about to wait for a peer (the
 * store, a backend) says so, and another takes its place, a new one if there
 * are less than `max`.
 */
#ifndef SLUICE_WORKER_H
#define SLUICE_WORKER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "process/listener.h"
#include "request/gateway.h"

/* In the epoll set: every worker ends when it is ready. */
#define WORKER_STOP_TAG (LOT_TAGS - 2)

struct workers;

/* Starts the first one. NULL and err: not even that. */
struct workers *workers_start(struct gateway *gateway,
    struct listeners *listeners, size_t max, struct err *err);
/* Waits for all to end (gateway->stop must be readable) and frees. */
void workers_join(struct workers *w);

#endif
