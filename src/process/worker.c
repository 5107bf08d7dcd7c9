#include "process/worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "process/pace.h"
#include "request/front.h"

#define STACK_BYTES ((size_t)1024 * 1024)

/* Awake at a time; each waits for the store or a backend half of its time. */
#define BRISK_A_CORE 3

struct worker {
	struct workers *of;
	pthread_t thread;
};

struct workers {
	struct gateway *gateway;
	struct listeners *listeners;
	size_t max;
	struct pace pace;
	pthread_mutex_t lock;
	struct worker *worker;
	bool closed; /* no new ones */
};

static void
expire(struct workers *w)
{
	struct connection *c;
	enum parked reason;

	while ((c = connection_claim_expired(w->gateway->lot, &reason)) != NULL)
		gateway_expire(w->gateway, c, reason);
	/* A reload may have made room in a backend. */
	gateway_serve_waiters(w->gateway);
}

static void
serve_event(struct workers *w, struct kit *kit, uint64_t tag)
{
	const struct claim claim = { PARKED_KINDS, INT64_MAX };
	enum parked reason = PARKED_NOT;
	struct connection *c;

	if (tag == LOT_TIMER_TAG) {
		expire(w);
		return;
	}
	if (tag < LOT_TAGS)
		c = listeners_accept(w->listeners, tag);
	else
		c = connection_claim(w->gateway->lot, tag, &claim, &reason);
	if (c == NULL)
		return;
	gateway_serve(w->gateway, kit, c, reason);
	/* Where it was closed, there is room again. */
	listeners_rearm(w->listeners);
}

static void *
work(void *context)
{
	struct worker *self = context;
	struct workers *w = self->of;
	size_t number = (size_t)(self - w->worker);
	struct err ignored;
	struct kit kit = { front_open_memfd(&ignored) };

	for (;;) {
		struct epoll_event event;
		int n;

		pace_wait(&w->pace);
		n = epoll_wait(lot_epoll(w->gateway->lot), &event, 1, -1);
		pace_begin(&w->pace, number);
		if (n < 0 && errno != EINTR)
			break;
		if (n > 0 && event.data.u64 == WORKER_STOP_TAG)
			break;
		if (n > 0)
			serve_event(w, &kit, event.data.u64);
		pace_end(&w->pace, number);
	}
	if (kit.memfd >= 0)
		close(kit.memfd);
	return NULL;
}

/* Under the lock. */
static int
start_one(struct workers *w)
{
	struct worker *worker = &w->worker[pace_add(&w->pace)];
	pthread_attr_t attr;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	worker->of = w;
	rc = pthread_create(&worker->thread, &attr, work, worker);
	pthread_attr_destroy(&attr);
	if (rc != 0)
		pace_remove(&w->pace);
	return rc;
}

/* Where the system gives no thread, those there are go on. */
static bool
start_another(void *context)
{
	struct workers *w = context;
	bool started;

	pthread_mutex_lock(&w->lock);
	started = !w->closed && workers_count(w) < w->max && start_one(w) == 0;
	pthread_mutex_unlock(&w->lock);
	return started;
}

static bool
watch_stop(struct gateway *g, struct err *err)
{
	struct epoll_event event = { .events = EPOLLIN,
		.data.u64 = WORKER_STOP_TAG };

	if (epoll_ctl(lot_epoll(g->lot), EPOLL_CTL_ADD, g->stop, &event) == 0)
		return true;
	return err_set(err, "epoll: %s", strerror(errno));
}

static size_t
brisk(void)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	return BRISK_A_CORE * (size_t)(cores < 1 ? 1 : cores);
}

struct workers *
workers_start(struct gateway *gateway, struct listeners *listeners, size_t max,
    struct err *err)
{
	struct workers *w = calloc(1, sizeof(*w));
	int rc = ENOMEM;

	if (w != NULL)
		w->worker = calloc(max, sizeof(*w->worker));
	if (w == NULL || w->worker == NULL ||
	    !pace_init(&w->pace, brisk(), max, start_another, w)) {
		if (w != NULL)
			free(w->worker);
		free(w);
		err_set(err, "out of memory");
		return NULL;
	}
	w->gateway = gateway;
	w->listeners = listeners;
	w->max = max;
	pthread_mutex_init(&w->lock, NULL);
	gateway->about_to_block = workers_about_to_block;
	gateway->about_to_block_context = w;
	if (watch_stop(gateway, err)) {
		rc = pace_start(&w->pace);
		pthread_mutex_lock(&w->lock);
		if (rc == 0)
			rc = start_one(w);
		pthread_mutex_unlock(&w->lock);
		if (rc == 0)
			return w;
		err_set(err, "can not start a thread: %s", strerror(rc));
	}
	workers_join(w);
	return NULL;
}

void
workers_about_to_block(void *workers)
{
	struct workers *w = workers;

	if (pace_is_short(&w->pace))
		start_another(w);
}

size_t
workers_count(struct workers *w)
{
	return atomic_load(&w->pace.threads);
}

void
workers_join(struct workers *w)
{
	pthread_mutex_lock(&w->lock);
	w->closed = true;
	pthread_mutex_unlock(&w->lock);
	pace_stop(&w->pace);
	for (size_t i = 0; i < workers_count(w); i++)
		pthread_join(w->worker[i].thread, NULL);
	pthread_mutex_destroy(&w->lock);
	pace_release(&w->pace);
	free(w->worker);
	free(w);
}
