#include "request/connection.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/net.h"

/* A small answer to a peer that does not read waits no longer than this. */
#define SEND_TIMEOUT_US 1000000

struct connection *
connection_open(struct lot *lot, int fd, uint64_t max_head)
{
	struct connection *c = lot_take(lot);

	if (c == NULL)
		return NULL;
	c->fd = fd;
	c->in_epoll = false;
	c->is_bounded = false;
	buf_init(&c->in);
	guard_init(&c->guard, max_head);
	c->request = NULL;
	c->head_deadline_us = 0;
	c->drained_bytes = 0;
	c->drain_max_bytes = 0;
	return c;
}

void
connection_close(struct lot *lot, struct connection *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	buf_release(&c->in);
	guard_release(&c->guard);
	lot_give_back(lot, c);
}

static bool
watch(struct lot *lot, struct connection *c, uint32_t events)
{
	struct epoll_event event = {
		.events = events | EPOLLONESHOT,
		.data.u64 = lot_name(c),
	};
	int op = c->in_epoll ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (epoll_ctl(lot_epoll(lot), op, c->fd, &event) < 0)
		return false;
	c->in_epoll = true;
	return true;
}

void
connection_hold(struct connection *c)
{
	pthread_mutex_lock(&c->lock);
}

void
connection_release(struct connection *c)
{
	pthread_mutex_unlock(&c->lock);
}

/*
 * The lock is held until the connection is both in the lot and watched:
 * whoever gets its event waits there and then finds it parked.
 */
bool
connection_park_held(struct lot *lot, struct connection *c, enum parked reason,
    uint32_t events, int64_t deadline_us)
{
	bool watched;

	c->parked = reason;
	c->deadline_us = deadline_us;
	c->parked_bytes = c->in.cap + c->guard.pairs.cap;
	lot_enter(lot, c);
	watched = watch(lot, c, events);
	if (!watched) {
		lot_leave(lot, c);
		c->parked = PARKED_NOT;
	}
	connection_release(c);
	return watched;
}

bool
connection_park(struct lot *lot, struct connection *c, enum parked reason,
    uint32_t events, int64_t deadline_us)
{
	connection_hold(c);
	return connection_park_held(lot, c, reason, events, deadline_us);
}

static bool
is_wanted(const struct connection *c, connection_handle handle,
    const struct claim *claim)
{
	return c->parked != PARKED_NOT && c->life == (uint32_t)(handle >> 32) &&
	    (claim->reason == PARKED_KINDS || claim->reason == c->parked) &&
	    c->deadline_us <= claim->deadline_us;
}

struct connection *
connection_claim(struct lot *lot, connection_handle handle,
    const struct claim *claim, enum parked *reason)
{
	struct connection *c = lot_find(lot, handle);

	if (c == NULL)
		return NULL;
	pthread_mutex_lock(&c->lock);
	if (!is_wanted(c, handle, claim)) {
		pthread_mutex_unlock(&c->lock);
		return NULL;
	}
	*reason = c->parked;
	lot_leave(lot, c);
	c->parked = PARKED_NOT;
	pthread_mutex_unlock(&c->lock);
	return c;
}

struct connection *
connection_claim_oldest(struct lot *lot, enum parked reason)
{
	const struct claim claim = { reason, INT64_MAX };
	connection_handle handle;

	while (lot_oldest(lot, reason, &handle)) {
		struct connection *c =
		    connection_claim(lot, handle, &claim, &reason);

		if (c != NULL)
			return c;
	}
	return NULL;
}

struct connection *
connection_claim_expired(struct lot *lot, enum parked *reason)
{
	const struct claim claim = { PARKED_KINDS, clock_mono_us() };
	connection_handle handle;

	while (lot_expired(lot, claim.deadline_us, &handle)) {
		struct connection *c =
		    connection_claim(lot, handle, &claim, reason);

		if (c != NULL)
			return c;
	}
	return NULL;
}

enum connection_read
connection_read(struct connection *c, size_t most)
{
	ssize_t n;

	if (!buf_reserve(&c->in, most))
		return CONNECTION_EOF;
	do
		n = recv(c->fd, c->in.p + c->in.len, most, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		c->in.len += (size_t)n;
		return CONNECTION_READ;
	}
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return CONNECTION_EMPTY;
	return CONNECTION_EOF;
}

bool
connection_send(struct connection *c, const void *bytes, size_t len)
{
	ssize_t n;

	do
		n = send(c->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)len;
}

void
connection_bound_writes(struct connection *c)
{
	if (!c->is_bounded)
		net_set_send_timeout(c->fd, SEND_TIMEOUT_US);
	c->is_bounded = true;
}

static bool
is_ready(const struct connection *c, short events)
{
	struct pollfd p = { .fd = c->fd, .events = events };

	return poll(&p, 1, 0) == 1 && (p.revents & events) != 0;
}

bool
connection_has_input(const struct connection *c)
{
	return is_ready(c, POLLIN);
}

bool
connection_is_writable(const struct connection *c)
{
	return is_ready(c, POLLOUT);
}
