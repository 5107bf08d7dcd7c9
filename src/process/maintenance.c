#include "process/maintenance.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

#define DROUGHT_US 100000
#define LONGEST_US 1000000

struct maintenance {
	struct stores stores;
	struct upstreams *upstreams;
	struct listeners *listeners;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool woken;
	bool stopping;
	int64_t dry_since_us; /* 0: the listeners are armed */
};

static void
wake(void *context)
{
	struct maintenance *m = context;

	pthread_mutex_lock(&m->lock);
	m->woken = true;
	pthread_cond_signal(&m->changed);
	pthread_mutex_unlock(&m->lock);
}

static int64_t
earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Disarmed listeners get another try after a while. */
static int64_t
tend_listeners(struct maintenance *m)
{
	int64_t now_us = clock_mono_us();

	if (!listeners_are_disarmed(m->listeners)) {
		m->dry_since_us = 0;
		return now_us + LONGEST_US;
	}
	if (m->dry_since_us == 0)
		m->dry_since_us = now_us;
	if (now_us < m->dry_since_us + DROUGHT_US)
		return m->dry_since_us + DROUGHT_US;
	m->dry_since_us = 0;
	listeners_rearm(m->listeners);
	return now_us + LONGEST_US;
}

/* When there is something to do again. */
static int64_t
maintain(struct maintenance *m)
{
	int64_t at_us = tend_listeners(m);

	upstreams_tend(m->upstreams, clock_mono_us());
	if (m->stores.shared != NULL)
		at_us = earlier(
		    at_us, m->stores.shared->ops->maintain(m->stores.shared));
	if (m->stores.leases != NULL)
		at_us = earlier(
		    at_us, leases_maintain(m->stores.leases, m->stores.shared));
	at_us = earlier(at_us, m->stores.local->ops->maintain(m->stores.local));
	return at_us;
}

/* false: it is to end. */
static bool
wait_until(struct maintenance *m, int64_t at_us)
{
	struct timespec at = { at_us / 1000000, at_us % 1000000 * 1000 };
	bool go_on;

	pthread_mutex_lock(&m->lock);
	while (!m->woken && !m->stopping)
		if (pthread_cond_timedwait(&m->changed, &m->lock, &at) != 0)
			break;
	m->woken = false;
	go_on = !m->stopping;
	pthread_mutex_unlock(&m->lock);
	return go_on;
}

static void *
run(void *context)
{
	struct maintenance *m = context;

	while (wait_until(m, maintain(m)))
		;
	return NULL;
}

struct maintenance *
maintenance_start(const struct stores *stores, struct upstreams *upstreams,
    struct listeners *listeners, struct err *err)
{
	struct maintenance *m = calloc(1, sizeof(*m));
	pthread_condattr_t attr;
	int rc;

	if (m == NULL) {
		err_set(err, "out of memory");
		return NULL;
	}
	m->stores = *stores;
	m->upstreams = upstreams;
	m->listeners = listeners;
	pthread_mutex_init(&m->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&m->changed, &attr);
	pthread_condattr_destroy(&attr);
	if (m->stores.shared != NULL) {
		m->stores.shared->wake_context = m;
		m->stores.shared->wake = wake;
	}
	if (m->stores.leases != NULL)
		leases_set_waker(m->stores.leases, wake, m);
	listeners_set_waker(listeners, wake, m);
	rc = pthread_create(&m->thread, NULL, run, m);
	if (rc == 0)
		return m;
	err_set(err, "can not start a thread: %s", strerror(rc));
	free(m);
	return NULL;
}

/* The stores are asked once more: leases are given back at the end. */
static void
leave_stores(struct maintenance *m)
{
	if (m->stores.shared != NULL)
		m->stores.shared->wake = NULL;
	if (m->stores.leases != NULL)
		leases_set_waker(m->stores.leases, NULL, NULL);
}

void
maintenance_stop(struct maintenance *m)
{
	pthread_mutex_lock(&m->lock);
	m->stopping = true;
	pthread_cond_signal(&m->changed);
	pthread_mutex_unlock(&m->lock);
	pthread_join(m->thread, NULL);
	leave_stores(m);
	pthread_cond_destroy(&m->changed);
	pthread_mutex_destroy(&m->lock);
	free(m);
}
