/*
 * bulkhead: how many workers may be inside a backend, and who waits for a
 * place there.
 *
 * A backend's gate lets max_inflight in; all gates together let in what
 * leaves some workers free to refuse and to park, however many backends
 * hang. Who finds no place waits in the gate's queue by name (a handle) and
 * holds no worker. A gate is shared by the configurations that have a
 * backend of its name. Any thread.
 */
#ifndef SLUICE_BULKHEAD_H
#define SLUICE_BULKHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bulkhead;
struct gate;

/* One that waits; belongs to the request. All zero: waits nowhere. */
struct waiter {
	uint64_t handle;
	uint64_t turn;     /* its place among all who wait */
	struct gate *gate; /* NULL: not in a queue */
	struct waiter *next;
	struct waiter *previous;
};

enum bulkhead_entry { BULKHEAD_IN, BULKHEAD_QUEUED, BULKHEAD_FULL };

/* NULL: no memory. */
struct bulkhead *bulkhead_new(size_t total_max);
/* All gates must have been closed. */
void bulkhead_free(struct bulkhead *b);

/* The gate of that name, made if need be; one reference. NULL: no memory. */
struct gate *bulkhead_open_gate(struct bulkhead *b, const char *name,
    size_t max_inflight, size_t queue_max);
void bulkhead_close_gate(struct bulkhead *b, struct gate *gate);

/*
 * A place if there is one, else a place in the queue (the waiter's handle
 * is set) while that has room. May a worker that looks for a place overtake
 * those who wait? No.
 */
enum bulkhead_entry bulkhead_enter(
    struct bulkhead *b, struct gate *gate, struct waiter *waiter);
/*
 * Gives a free place to who has waited longest of those who can have it:
 * *handle names him and *gate is where, and the caller runs him, or leaves
 * the place in turn. False: nobody waits, or no place is free.
 */
bool bulkhead_admit(struct bulkhead *b, uint64_t *handle, struct gate **gate);
/* Would bulkhead_admit find somebody? */
bool bulkhead_can_admit(struct bulkhead *b);
void bulkhead_leave(struct bulkhead *b, struct gate *gate);
/* Is it still in its queue? */
bool bulkhead_is_queued(struct bulkhead *b, const struct waiter *waiter);
/* Takes a waiter out of its queue, if it still is in one. */
void bulkhead_forget(struct bulkhead *b, struct waiter *waiter);

size_t bulkhead_inflight(struct bulkhead *b);

#endif
