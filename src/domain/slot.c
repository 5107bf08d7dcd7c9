/*
 * 128 random bits, drawn once, tell the processes apart, and a counter the
 * requests of one.
 */
#include "domain/slot.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/random.h>

#include "domain/store.h"

static pthread_once_t drawn = PTHREAD_ONCE_INIT;
static uint64_t self[2];
static bool is_drawn;
static _Atomic uint64_t next;

static void
draw(void)
{
	is_drawn = getrandom(self, sizeof(self), 0) == sizeof(self);
}

struct str
slot_new(struct arena *arena)
{
	char text[STORE_SLOT_MAX + 1];

	pthread_once(&drawn, draw);
	if (!is_drawn)
		return STR_NONE;
	snprintf(text, sizeof(text), "%016" PRIx64 "%016" PRIx64 "-%" PRIx64,
	    self[0], self[1], atomic_fetch_add(&next, 1));
	return arena_copy(arena, str_of(text));
}
