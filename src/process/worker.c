/*
 * Few of the workers are on watch: they wait for events, or serve one without
 * waiting for anybody. Was every idle one waiting, each event woke one, mostly
 * to find that who was awake already had taken it. A worker that is about to
 * wait for a peer leaves the watch first, and calls another if too few are
 * left; who comes back from it goes on watch again, or rests if enough are
 * there. Between too few and enough is some room, so that requests that begin
 * and end in turn call nobody.
 */
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

/* As many as there are processors, up to that: it serves a busy server. */
#define LEAST_ON_WATCH_MAX ((size_t)4)

struct worker {
	struct workers *all;
	pthread_t thread;
	bool on_watch; /* its own, but while it rests: then under the lock */
	pthread_cond_t called;
	struct worker *next; /* that rests */
};

struct workers {
	struct gateway *gateway;
	struct listeners *listeners;
	struct worker *at; /* max of them, n started */
	size_t max;
	size_t least; /* on watch, if there are that many */
	size_t most;
	_Atomic size_t n; /* set under the lock */

	pthread_mutex_t lock;
	size_t on_watch;
	struct worker *resting; /* the last one first: its cache is warm */
	bool closed;            /* no new ones */
	bool ended;
};

/* NULL: this thread is no worker. */
static _Thread_local struct worker *self;

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

static void *work(void *context);

/* Under the lock. */
static int
start_one(struct workers *w)
{
	struct worker *worker = &w->at[w->n];
	pthread_attr_t attr;
	int rc;

	worker->all = w;
	worker->on_watch = true;
	pthread_cond_init(&worker->called, NULL);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	rc = pthread_create(&worker->thread, &attr, work, worker);
	pthread_attr_destroy(&attr);
	if (rc != 0) {
		pthread_cond_destroy(&worker->called);
		return rc;
	}
	w->on_watch++;
	w->n++;
	return 0;
}

/* Under the lock; who is returned is to be woken. */
static struct worker *
call_one(struct workers *w)
{
	struct worker *worker = w->resting;

	if (worker != NULL) {
		w->resting = worker->next;
		worker->on_watch = true;
		w->on_watch++;
	} else if (!w->closed && w->n < w->max) {
		/* Where the system gives none, those there are go on. */
		start_one(w);
	}
	return worker;
}

/* Until there are enough threads for a full watch, each event brings one. */
static void
grow(struct workers *w)
{
	if (atomic_load_explicit(&w->n, memory_order_relaxed) >= w->least)
		return;
	pthread_mutex_lock(&w->lock);
	if (w->resting == NULL && w->on_watch < w->least)
		call_one(w);
	pthread_mutex_unlock(&w->lock);
}

/* Rests if enough are on watch. False: it is over. */
static bool
go_on_watch(struct workers *w)
{
	bool ended;

	pthread_mutex_lock(&w->lock);
	if (w->on_watch < w->most) {
		w->on_watch++;
		self->on_watch = true;
	} else {
		self->next = w->resting;
		w->resting = self;
	}
	while (!self->on_watch && !w->ended)
		pthread_cond_wait(&self->called, &w->lock);
	ended = w->ended;
	pthread_mutex_unlock(&w->lock);
	return !ended;
}

static void
end_rest(struct workers *w)
{
	pthread_mutex_lock(&w->lock);
	w->ended = true;
	for (struct worker *r = w->resting; r != NULL; r = r->next)
		pthread_cond_signal(&r->called);
	pthread_mutex_unlock(&w->lock);
}

static void *
work(void *context)
{
	struct err ignored;
	struct kit kit = { front_open_memfd(&ignored) };
	struct workers *w;

	self = context;
	w = self->all;
	while (self->on_watch || go_on_watch(w)) {
		struct epoll_event event;
		int n = epoll_wait(lot_epoll(w->gateway->lot), &event, 1, -1);

		if (n < 0 && errno != EINTR)
			break;
		if (n <= 0)
			continue;
		if (event.data.u64 == WORKER_STOP_TAG)
			break;
		grow(w);
		serve_event(w, &kit, event.data.u64);
	}
	end_rest(w);
	if (kit.memfd >= 0)
		close(kit.memfd);
	return NULL;
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

/* As the gateway's about_to_block. */
static void
about_to_block(void *workers)
{
	struct workers *w = workers;
	struct worker *called = NULL;

	if (self == NULL || !self->on_watch)
		return;
	self->on_watch = false;
	pthread_mutex_lock(&w->lock);
	if (--w->on_watch < w->least)
		called = call_one(w);
	pthread_mutex_unlock(&w->lock);
	if (called != NULL)
		pthread_cond_signal(&called->called);
}

static struct workers *
new_workers(struct gateway *gateway, struct listeners *listeners, size_t max)
{
	struct workers *w = calloc(1, sizeof(*w));
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	if (w != NULL)
		w->at = calloc(max, sizeof(w->at[0]));
	if (w == NULL || w->at == NULL) {
		free(w);
		return NULL;
	}
	w->gateway = gateway;
	w->listeners = listeners;
	w->max = max;
	w->least = processors < 1 ? 1 : (size_t)processors;
	if (w->least > LEAST_ON_WATCH_MAX)
		w->least = LEAST_ON_WATCH_MAX;
	if (w->least > max)
		w->least = max;
	w->most = 2 * w->least;
	pthread_mutex_init(&w->lock, NULL);
	gateway->about_to_block = about_to_block;
	gateway->about_to_block_context = w;
	return w;
}

struct workers *
workers_start(struct gateway *gateway, struct listeners *listeners, size_t max,
    struct err *err)
{
	struct workers *w = new_workers(gateway, listeners, max);
	int rc;

	if (w == NULL) {
		err_set(err, "out of memory");
		return NULL;
	}
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
		pthread_join(w->at[i].thread, NULL);
	/* Until the last has ended, any may still call any. */
	for (size_t i = 0; i < w->n; i++)
		pthread_cond_destroy(&w->at[i].called);
	pthread_mutex_destroy(&w->lock);
	free(w->at);
	free(w);
}
