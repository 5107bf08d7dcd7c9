/*
 * idle: connections that have carried a request and are kept for more.
 *
 * The last one put in is the first taken, so that what is too many stays
 * unused and is closed after IDLE_MAX_US. One that was closed, or has bytes
 * to read that nobody asked for, is not given out. That is as it was when it
 * was looked at: what a peer sends a moment later is met by the next request,
 * which has to tell it from its own response. `uses` is there for that.
 *
 * That a peer was asked to leave a connection open does not mean that it
 * does: many close it a moment after their answer, and a request that is
 * sent in that moment is lost. So after its first request a connection is
 * not given out for IDLE_TRIAL_US; if it is open by then the peer keeps it.
 * After that it is given out at once, but for a request that may not be
 * lost: php-fpm closes one a moment after any answer, the last that a child
 * gives (pm.max_requests).
 *
 * Any thread; nothing here blocks. Times are clock_mono_us.
 */
#ifndef SLUICE_IDLE_H
#define SLUICE_IDLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IDLE_TRIAL_US 100000
#define IDLE_MAX_US   2000000

struct idle_connection {
	int fd;
	size_t uses; /* requests it has carried */
	int64_t since_us;
};

struct idle {
	pthread_mutex_t lock;
	size_t n;
	size_t max;
	struct idle_connection *at; /* room for max; in order of since_us */
};

void idle_init(struct idle *idle); /* max 0 */
/* Closes all. */
void idle_release(struct idle *idle);
/* Closes what is too many, the oldest first. false: no memory. */
bool idle_set_max(struct idle *idle, size_t max);

/*
 * Takes fd over, which has carried `uses` requests. Where there is no room
 * one that is on trial is closed for one that is not, else fd itself.
 */
void idle_put(struct idle *idle, int fd, size_t uses, int64_t now_us);
/*
 * One that is open, the caller's from now on; fd -1: none. may_fail: what is
 * sent on it can be sent again. *dead: how many were found closed on the way,
 * or among the newest where none could be given out.
 */
struct idle_connection idle_take(
    struct idle *idle, bool may_fail, int64_t now_us, size_t *dead);
/* Closes those that nobody took for IDLE_MAX_US. */
void idle_expire(struct idle *idle, int64_t now_us);

#endif
