#include "process/worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "request/front.h"

#define STACK_BYTES ((size_t)1024 * 1024)

struct workers {
	struct gateway *gateway;
	struct listeners *listeners;
	size_t max;
	_Atomic size_t idle; /* in epoll_wait */
	pthread_mutex_t lock;
	pthread_t *thread;
	_Atomic size_t n;
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
	struct workers *w = context;
	struct err ignored;
	struct kit kit = { front_open_memfd(&ignored) };

	for (;;) {
		struct epoll_event event;
		int n;

		atomic_fetch_add(&w->idle, 1);
		n = epoll_wait(lot_epoll(w->gateway->lot), &event, 1, -1);
		atomic_fetch_sub(&w->idle, 1);
		if (n < 0 && errno != EINTR)
			break;
		if (n <= 0)
			continue;
		if (event.data.u64 == WORKER_STOP_TAG)
			break;
		serve_event(w, &kit, event.data.u64);
	}
	if (kit.memfd >= 0)
		close(kit.memfd);
	return NULL;
}

/* Under the lock. */
static int
start_one(struct workers *w)
{
	pthread_attr_t attr;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	rc = pthread_create(&w->thread[w->n], &attr, work, w);
	pthread_attr_destroy(&attr);
	if (rc == 0)
		w->n++;
	return rc;
}

/* As the gateway's about_to_block. */
static void
about_to_block(void *workers)
{
	struct workers *w = workers;

	if (atomic_load_explicit(&w->idle, memory_order_relaxed) > 0 ||
	    atomic_load_explicit(&w->n, memory_order_relaxed) == w->max)
		return;
	pthread_mutex_lock(&w->lock);
	/* Where the system gives no thread, those there are go on. */
	if (!w->closed && w->n < w->max)
		start_one(w);
	pthread_mutex_unlock(&w->lock);
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

struct workers *
workers_start(struct gateway *gateway, struct listeners *listeners, size_t max,
    struct err *err)
{
	struct workers *w = calloc(1, sizeof(*w));
	int rc = ENOMEM;

	if (w != NULL)
		w->thread = calloc(max, sizeof(pthread_t));
	if (w == NULL || w->thread == NULL) {
		free(w);
		err_set(err, "out of memory");
		return NULL;
	}
	w->gateway = gateway;
	w->listeners = listeners;
	w->max = max;
	pthread_mutex_init(&w->lock, NULL);
	gateway->about_to_block = about_to_block;
	gateway->about_to_block_context = w;
	if (watch_stop(gateway, err)) {
		pthread_mutex_lock(&w->lock);
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
workers_join(struct workers *w)
{
	pthread_mutex_lock(&w->lock);
	w->closed = true;
	pthread_mutex_unlock(&w->lock);
	for (size_t i = 0; i < w->n; i++)
		pthread_join(w->thread[i], NULL);
	pthread_mutex_destroy(&w->lock);
	free(w->thread);
	free(w);
}
