/*
 * slots: the slots of concurrency limits that requests of this process hold.
 *
 * A store puts one in when it has taken it and drops it when it is given
 * back, so that none goes back twice or without having been taken. Any
 * thread; a renewal is for one thread at a time.
 */
#ifndef SLUICE_SLOTS_H
#define SLUICE_SLOTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "domain/store.h"

struct held_slot;

struct slots {
	pthread_mutex_t lock;
	struct held_slot *held; /* uthash's head, by the slot's name */
	/* Of the renewal under way: */
	struct held_slot **renewed;
	struct store_check *check;
	size_t n_renewed;
};

void slots_init(struct slots *s);
void slots_release(struct slots *s);

/* The check is copied, its texts too. False: no memory. */
bool slots_hold(struct slots *s, const struct store_check *check);
/* False: it is not held. */
bool slots_drop(struct slots *s, struct str slot);

/*
 * All that are held now, n of them, good until slots_end_renewal; n is 0
 * without memory too. Those that were dropped meanwhile may have been put
 * back by the renewal: `again` is called for each of them at its end.
 */
const struct store_check *slots_begin_renewal(struct slots *s, size_t *n);
void slots_end_renewal(struct slots *s,
    void (*again)(void *context, const struct store_check *check),
    void *context);

#endif
