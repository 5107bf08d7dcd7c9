/*
 * breaker: when to stop asking a store that does not answer, and when to
 * try it again (a circuit breaker, Nygard, "Release It!", 2007). Any
 * thread; times are clock_mono_us.
 *
 * A trip is a check that timed out or a failed attempt to connect.
 * `failures` trips in a row open it: that is the outage. It is closed by a
 * probe, an attempt to connect that got its answers, and by nothing else.
 */
#ifndef SLUICE_BREAKER_H
#define SLUICE_BREAKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum breaker_trip {
	BREAKER_CHECK,   /* a check had no answer: connect anew at once */
	BREAKER_ATTEMPT, /* a failed attempt: wait a little, then longer */
	BREAKER_ACCESS,  /* a refused password or right: wait long */
};

struct breaker {
	pthread_mutex_t lock;
	unsigned failures;
	int64_t cooldown_us;
	atomic_uint trips; /* in a row */
	atomic_bool open;
	unsigned attempts; /* failed ones in a row */
	int64_t access_us; /* the wait after the last BREAKER_ACCESS, or 0 */
	_Atomic int64_t next_us;
	uint64_t random;
};

void breaker_init(
    struct breaker *b, unsigned failures, int64_t cooldown_us, uint64_t seed);
void breaker_release(struct breaker *b);
void breaker_configure(
    struct breaker *b, unsigned failures, int64_t cooldown_us);

/* True when this one opened it. */
bool breaker_trip(struct breaker *b, enum breaker_trip trip, int64_t now_us);
/* A check was answered. */
void breaker_answered(struct breaker *b);
/* A probe was answered: true when this closed it. */
bool breaker_close(struct breaker *b);

bool breaker_is_open(struct breaker *b);
/* Not before then may a connection be tried. */
int64_t breaker_next_us(struct breaker *b);

#endif
