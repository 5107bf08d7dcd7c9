/*
 * Three orders over the parked: a list for each reason, oldest first; a
 * binary heap by deadline; and a table by index that lives as long as the
 * lot. Locks: a connection's, then the lot's. Whoever comes from the lot's
 * side (the timer) takes a handle under the lot's lock, lets it go, and
 * claims like anybody else.
 */
#include "request/lot.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"

struct list {
	struct connection *first;
	struct connection *last;
	_Atomic size_t count;
};

struct lot {
	int epoll;
	int timer;
	size_t max;
	uint64_t half_heads_max;

	pthread_mutex_t lock;
	struct connection **table; /* max entries, made on demand */
	_Atomic size_t made;       /* entries of table; they never go */
	struct connection *free;   /* by next */
	struct list list[PARKED_KINDS];
	struct connection **heap; /* 1 to heap_n */
	size_t heap_n;
	int64_t armed_us; /* what the timer is set to; INT64_MAX: nothing */
	_Atomic size_t open;
	_Atomic uint64_t half_heads;
};

static bool
open_descriptors(struct lot *lot, struct err *err)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET,
		.data.u64 = LOT_TIMER_TAG };

	lot->epoll = epoll_create1(EPOLL_CLOEXEC);
	lot->timer =
	    timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (lot->epoll < 0 || lot->timer < 0 ||
	    epoll_ctl(lot->epoll, EPOLL_CTL_ADD, lot->timer, &event) < 0)
		return err_set(err, "epoll: %s", strerror(errno));
	return true;
}

struct lot *
lot_new(size_t max, uint64_t half_heads_bytes, struct err *err)
{
	struct lot *lot = calloc(1, sizeof(*lot));

	if (lot == NULL) {
		err_set(err, "out of memory");
		return NULL;
	}
	lot->epoll = lot->timer = -1;
	lot->max = max;
	lot->half_heads_max = half_heads_bytes;
	lot->armed_us = INT64_MAX;
	pthread_mutex_init(&lot->lock, NULL);
	lot->table = calloc(max, sizeof(struct connection *));
	lot->heap = calloc(max + 1, sizeof(struct connection *));
	if (lot->table == NULL || lot->heap == NULL)
		err_set(err, "out of memory");
	else if (open_descriptors(lot, err))
		return lot;
	lot_free(lot);
	return NULL;
}

void
lot_free(struct lot *lot)
{
	for (size_t i = 0; lot->table != NULL && i < lot->made; i++) {
		struct connection *c = lot->table[i];

		if (c == NULL)
			break;
		if (c->fd >= 0)
			close(c->fd);
		buf_release(&c->in);
		guard_release(&c->guard);
		pthread_mutex_destroy(&c->lock);
		free(c);
	}
	if (lot->epoll >= 0)
		close(lot->epoll);
	if (lot->timer >= 0)
		close(lot->timer);
	pthread_mutex_destroy(&lot->lock);
	free(lot->table);
	free(lot->heap);
	free(lot);
}

int
lot_epoll(const struct lot *lot)
{
	return lot->epoll;
}

static struct connection *
make_connection(struct lot *lot)
{
	struct connection *c;

	if (lot->made == lot->max)
		return NULL;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return NULL;
	pthread_mutex_init(&c->lock, NULL);
	c->index = (uint32_t)lot->made;
	c->fd = -1;
	lot->table[c->index] = c;
	atomic_store(&lot->made, c->index + 1);
	return c;
}

struct connection *
lot_take(struct lot *lot)
{
	struct connection *c;

	pthread_mutex_lock(&lot->lock);
	c = lot->free;
	if (c != NULL)
		lot->free = c->next;
	else
		c = make_connection(lot);
	pthread_mutex_unlock(&lot->lock);
	if (c == NULL)
		return NULL;
	c->next = NULL;
	atomic_fetch_add(&lot->open, 1);
	return c;
}

void
lot_give_back(struct lot *lot, struct connection *c)
{
	pthread_mutex_lock(&c->lock);
	c->life++;
	pthread_mutex_unlock(&c->lock);
	pthread_mutex_lock(&lot->lock);
	c->next = lot->free;
	lot->free = c;
	pthread_mutex_unlock(&lot->lock);
	atomic_fetch_sub(&lot->open, 1);
}

struct connection *
lot_find(struct lot *lot, connection_handle handle)
{
	uint32_t index = (uint32_t)handle - LOT_TAGS;

	return index < atomic_load(&lot->made) ? lot->table[index] : NULL;
}

size_t
lot_open_count(const struct lot *lot)
{
	return atomic_load(&lot->open);
}

size_t
lot_max(const struct lot *lot)
{
	return lot->max;
}

size_t
lot_count(const struct lot *lot, enum parked reason)
{
	return atomic_load(&lot->list[reason].count);
}

bool
lot_half_heads_full(const struct lot *lot)
{
	return atomic_load(&lot->half_heads) > lot->half_heads_max;
}

static void
heap_set(struct lot *lot, size_t at, struct connection *c)
{
	lot->heap[at] = c;
	c->heap_at = at;
}

static void
heap_up(struct lot *lot, size_t at)
{
	struct connection *c = lot->heap[at];

	while (at > 1 && lot->heap[at / 2]->deadline_us > c->deadline_us) {
		heap_set(lot, at, lot->heap[at / 2]);
		at /= 2;
	}
	heap_set(lot, at, c);
}

static void
heap_down(struct lot *lot, size_t at)
{
	struct connection *c = lot->heap[at];

	for (;;) {
		size_t child = 2 * at;

		if (child > lot->heap_n)
			break;
		if (child < lot->heap_n &&
		    lot->heap[child + 1]->deadline_us <
			lot->heap[child]->deadline_us)
			child++;
		if (lot->heap[child]->deadline_us >= c->deadline_us)
			break;
		heap_set(lot, at, lot->heap[child]);
		at = child;
	}
	heap_set(lot, at, c);
}

static void
heap_remove(struct lot *lot, struct connection *c)
{
	size_t at = c->heap_at;
	struct connection *last = lot->heap[lot->heap_n--];

	c->heap_at = 0;
	if (last == c)
		return;
	heap_set(lot, at, last);
	heap_up(lot, at);
	heap_down(lot, last->heap_at);
}

/* Only an earlier deadline needs the timer set anew. */
static void
arm(struct lot *lot)
{
	struct itimerspec at = { { 0, 0 }, { 0, 0 } };
	int64_t us;

	if (lot->heap_n == 0 || lot->heap[1]->deadline_us >= lot->armed_us)
		return;
	us = lot->heap[1]->deadline_us;
	lot->armed_us = us;
	if (us < 1)
		us = 1;
	at.it_value.tv_sec = us / 1000000;
	at.it_value.tv_nsec = us % 1000000 * 1000;
	timerfd_settime(lot->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

void
lot_kick(struct lot *lot)
{
	const struct itimerspec now = { { 0, 0 }, { 0, 1 } };

	pthread_mutex_lock(&lot->lock);
	lot->armed_us = 0;
	timerfd_settime(lot->timer, 0, &now, NULL);
	pthread_mutex_unlock(&lot->lock);
}

void
lot_enter(struct lot *lot, struct connection *c)
{
	struct list *list = &lot->list[c->parked];

	pthread_mutex_lock(&lot->lock);
	c->next = NULL;
	c->previous = list->last;
	if (list->last == NULL)
		list->first = c;
	else
		list->last->next = c;
	list->last = c;
	atomic_fetch_add(&list->count, 1);
	if (c->parked == PARKED_HEAD)
		atomic_fetch_add(&lot->half_heads, c->parked_bytes);
	if (c->deadline_us != INT64_MAX) {
		lot->heap[++lot->heap_n] = c;
		c->heap_at = lot->heap_n;
		heap_up(lot, lot->heap_n);
		arm(lot);
	}
	pthread_mutex_unlock(&lot->lock);
}

void
lot_leave(struct lot *lot, struct connection *c)
{
	struct list *list = &lot->list[c->parked];

	pthread_mutex_lock(&lot->lock);
	if (c->previous == NULL)
		list->first = c->next;
	else
		c->previous->next = c->next;
	if (c->next == NULL)
		list->last = c->previous;
	else
		c->next->previous = c->previous;
	c->next = c->previous = NULL;
	atomic_fetch_sub(&list->count, 1);
	if (c->parked == PARKED_HEAD)
		atomic_fetch_sub(&lot->half_heads, c->parked_bytes);
	if (c->heap_at != 0)
		heap_remove(lot, c);
	pthread_mutex_unlock(&lot->lock);
}

connection_handle
lot_name(const struct connection *c)
{
	return (uint64_t)c->life << 32 | (c->index + LOT_TAGS);
}

/* life is read: only whoever has claimed a connection ends it. */
bool
lot_oldest(struct lot *lot, enum parked reason, connection_handle *handle)
{
	const struct connection *c;

	pthread_mutex_lock(&lot->lock);
	c = lot->list[reason].first;
	if (c != NULL)
		*handle = lot_name(c);
	pthread_mutex_unlock(&lot->lock);
	return c != NULL;
}

bool
lot_expired(struct lot *lot, int64_t now_us, connection_handle *handle)
{
	bool due;

	pthread_mutex_lock(&lot->lock);
	due = lot->heap_n > 0 && lot->heap[1]->deadline_us <= now_us;
	if (due) {
		*handle = lot_name(lot->heap[1]);
	} else {
		/* It has fired for what it was set to. */
		lot->armed_us = INT64_MAX;
		arm(lot);
	}
	pthread_mutex_unlock(&lot->lock);
	return due;
}
