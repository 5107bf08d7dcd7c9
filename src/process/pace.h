/*
 * pace: how many workers are awake.
 *
 * Where requests are short, a few threads serve them with fewer wake-ups and
 * context switches than many do. So at most `brisk` workers wait in the epoll
 * set or serve; the others rest. A worker that has been with one request for
 * a tick or two (a millisecond each) is slow and no longer counts: another is
 * called in its place, up to as many as there may be. So many threads cost
 * nothing until peers make them wait.
 *
 * init to release: one thread; add, remove: one at a time; the rest: any.
 */
#ifndef SLUICE_PACE_H
#define SLUICE_PACE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One worker's: 0: none; else the tick its request began at, slow: below 0. */
typedef _Atomic int64_t pace_mark;

struct pace {
	size_t max;             /* workers there may be */
	pace_mark *mark;        /* of each */
	_Atomic size_t threads; /* that there are */
	_Atomic size_t active;  /* that do not rest */
	_Atomic size_t idle;    /* that wait for an event */
	_Atomic size_t allowed; /* to be active: the brisk and the slow */
	_Atomic int64_t tick;   /* goes on while the pacer is awake */
	sem_t bench;            /* where workers rest */
	sem_t alarm;            /* where the pacer sleeps */
	atomic_bool asleep;
	atomic_bool stopped;
	pthread_t pacer;
	bool running;
	/* Starts a worker, who calls pace_add; false: there can be none. */
	bool (*start)(void *context);
	void *context;
};

/* brisk, max: 1 or more. False: no memory. */
bool pace_init(struct pace *p, size_t brisk, size_t max,
    bool (*start)(void *context), void *context);
/* Starts the pacer, a thread of its own; 0 or an errno. */
int pace_start(struct pace *p);
/* Nobody rests any more; waits for the pacer. */
void pace_stop(struct pace *p);
void pace_release(struct pace *p);

/* Before a worker's thread is started: its number, from 0, max - 1 at most. */
size_t pace_add(struct pace *p);
/* The one added last could not be started. */
void pace_remove(struct pace *p);

/* Before a worker waits for an event: it rests if enough others are awake. */
void pace_wait(struct pace *p);
/* It has one, or wants none any more; and is done with it. */
void pace_begin(struct pace *p, size_t worker);
void pace_end(struct pace *p, size_t worker);
/* Is nobody there to take an event, and may one be started? */
bool pace_is_short(const struct pace *p);

#endif
