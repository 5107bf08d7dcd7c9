/*
 * Active are those in the epoll set, those that serve and those called from
 * the bench; only the pacer calls, and only a worker benches itself. The
 * pacer ticks while there is a moment with nobody idle, and sleeps else: a
 * quiet process is not woken.
 */
#include "process/pace.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define TICK_NS    1000000
#define SLOW_TICKS 2  /* between one and two milliseconds */
#define QUIET      20 /* ticks with somebody idle, before the pacer sleeps */

bool
pace_init(struct pace *p, size_t brisk, size_t max,
    bool (*start)(void *context), void *context)
{
	*p = (struct pace){ .max = max, .start = start, .context = context };
	p->mark = calloc(max, sizeof(*p->mark));
	atomic_init(&p->allowed, brisk < max ? brisk : max);
	sem_init(&p->bench, 0, 0);
	sem_init(&p->alarm, 0, 0);
	return p->mark != NULL;
}

void
pace_release(struct pace *p)
{
	sem_destroy(&p->bench);
	sem_destroy(&p->alarm);
	free(p->mark);
}

size_t
pace_add(struct pace *p)
{
	atomic_fetch_add(&p->active, 1);
	return atomic_fetch_add(&p->threads, 1);
}

void
pace_remove(struct pace *p)
{
	atomic_fetch_sub(&p->threads, 1);
	atomic_fetch_sub(&p->active, 1);
}

static void
take(sem_t *sem)
{
	while (sem_wait(sem) != 0 && errno == EINTR)
		;
}

void
pace_wait(struct pace *p)
{
	size_t active = atomic_load(&p->active);

	while (active > atomic_load(&p->allowed) && !atomic_load(&p->stopped)) {
		if (!atomic_compare_exchange_weak(
			&p->active, &active, active - 1))
			continue;
		/* Whoever calls it counts it again. */
		take(&p->bench);
		active = atomic_load(&p->active);
	}
	atomic_fetch_add(&p->idle, 1);
}

void
pace_begin(struct pace *p, size_t worker)
{
	atomic_store(&p->mark[worker],
	    atomic_load_explicit(&p->tick, memory_order_relaxed) + 1);
	if (atomic_fetch_sub(&p->idle, 1) == 1 && atomic_load(&p->asleep) &&
	    atomic_exchange(&p->asleep, false))
		sem_post(&p->alarm);
}

void
pace_end(struct pace *p, size_t worker)
{
	if (atomic_exchange(&p->mark[worker], 0) < 0)
		atomic_fetch_sub(&p->allowed, 1);
}

bool
pace_is_short(const struct pace *p)
{
	return atomic_load_explicit(&p->idle, memory_order_relaxed) == 0 &&
	    atomic_load_explicit(&p->threads, memory_order_relaxed) <
	    atomic_load_explicit(&p->allowed, memory_order_relaxed);
}

static void
find_slow(struct pace *p, int64_t tick)
{
	size_t n = atomic_load(&p->threads);

	for (size_t i = 0; i < n; i++) {
		int64_t begun = atomic_load(&p->mark[i]);

		if (begun <= 0 || tick + 1 - begun < SLOW_TICKS)
			continue;
		/* Allowed first: its worker may end this very moment. */
		if (atomic_load(&p->allowed) == p->max)
			break;
		atomic_fetch_add(&p->allowed, 1);
		if (!atomic_compare_exchange_strong(&p->mark[i], &begun, -1))
			atomic_fetch_sub(&p->allowed, 1);
	}
}

static void
call_others(struct pace *p)
{
	while (atomic_load(&p->active) < atomic_load(&p->allowed)) {
		if (atomic_load(&p->threads) > atomic_load(&p->active)) {
			atomic_fetch_add(&p->active, 1);
			sem_post(&p->bench);
		} else if (!p->start(p->context)) {
			break;
		}
	}
}

static void
tick_while_busy(struct pace *p)
{
	const struct timespec tick = { 0, TICK_NS };

	for (int quiet = 0; quiet < QUIET && !atomic_load(&p->stopped);) {
		nanosleep(&tick, NULL);
		find_slow(p, atomic_fetch_add(&p->tick, 1) + 1);
		if (atomic_load(&p->idle) > 0) {
			quiet++;
			continue;
		}
		quiet = 0;
		call_others(p);
	}
}

static void *
run(void *context)
{
	struct pace *p = context;

	while (!atomic_load(&p->stopped)) {
		atomic_store(&p->asleep, true);
		if (atomic_load(&p->idle) > 0 || atomic_load(&p->stopped))
			take(&p->alarm);
		else
			atomic_store(&p->asleep, false);
		tick_while_busy(p);
	}
	return NULL;
}

int
pace_start(struct pace *p)
{
	int rc = pthread_create(&p->pacer, NULL, run, p);

	p->running = rc == 0;
	return rc;
}

void
pace_stop(struct pace *p)
{
	atomic_store(&p->stopped, true);
	sem_post(&p->alarm);
	for (size_t i = 0; i < p->max; i++)
		sem_post(&p->bench);
	if (p->running)
		pthread_join(p->pacer, NULL);
	p->running = false;
}
