/*
 * held_slots: the slots of concurrency limits that requests of this process
 * hold.
 *
 * A store puts one in when it has taken it and drops it when it is given
 * back, so that none goes back twice or without having been taken. Any
 * thread; a renewal is for one thread at a time.
 */
#ifndef SLUICE_HELD_SLOTS_H
#define SLUICE_HELD_SLOTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "domain/store.h"

struct held_slot;

struct held_slots {
	pthread_mutex_t lock;
	struct held_slot *held; /* uthash's head, by the slot's name */
	/* Of the renewal under way: */
	struct held_slot **renewed;
	struct store_check *check;
	size_t n_renewed;
};

void held_slots_init(struct held_slots *s);
void held_slots_release(struct held_slots *s);

/* The check is copied, its texts too. False: no memory. */
bool held_slots_hold(struct held_slots *s, const struct store_check *check);
/*
 * Those that an answered question has taken. One without memory for it is
 * not renewed, and free after a while.
 */
void held_slots_hold_taken(struct held_slots *s, const struct store_question *q,
    const struct store_answer *answer);
/* False: it is not held. */
bool held_slots_drop(struct held_slots *s, struct str slot);

/*
 * All that are held now, n of them, good until held_slots_end_renewal; n is 0
 * without memory too. Those that were dropped meanwhile may have been put
 * back by the renewal: `again` is called for each of them at its end.
 */
const struct store_check *held_slots_begin_renewal(
    struct held_slots *s, size_t *n);
void held_slots_end_renewal(struct held_slots *s,
    void (*again)(void *context, const struct store_check *check),
    void *context);

#endif
