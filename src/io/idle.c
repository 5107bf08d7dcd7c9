#include "io/idle.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOK_AT 16

void
idle_init(struct idle *idle)
{
	*idle = (struct idle){ .n = 0 };
	pthread_mutex_init(&idle->lock, NULL);
}

void
idle_release(struct idle *idle)
{
	for (size_t i = 0; i < idle->n; i++)
		close(idle->at[i].fd);
	free(idle->at);
	pthread_mutex_destroy(&idle->lock);
}

/* Under the lock. */
static struct idle_connection
remove_at(struct idle *idle, size_t i)
{
	struct idle_connection c = idle->at[i];

	idle->n--;
	memmove(&idle->at[i], &idle->at[i + 1], (idle->n - i) * sizeof(c));
	return c;
}

bool
idle_set_max(struct idle *idle, size_t max)
{
	struct idle_connection *at = NULL;
	bool ok = true;

	pthread_mutex_lock(&idle->lock);
	while (idle->n > max)
		close(remove_at(idle, 0).fd);
	if (max == 0) {
		free(idle->at);
		idle->at = NULL;
	} else if (max != idle->max) {
		at = realloc(idle->at, max * sizeof(*at));
		ok = at != NULL;
		if (ok)
			idle->at = at;
	}
	if (ok)
		idle->max = max;
	pthread_mutex_unlock(&idle->lock);
	return ok;
}

/* It was there for more than one request. */
static bool
is_proven(const struct idle_connection *c)
{
	return c->uses > 1;
}

/*
 * Under the lock. Who has no room: it, or the newest on trial where it is
 * past that. Else those on trial would crowd out who has proved to stay.
 */
static int
make_room(struct idle *idle, const struct idle_connection *c)
{
	if (idle->n < idle->max)
		return -1;
	for (size_t i = idle->n; i > 0 && is_proven(c); i--)
		if (!is_proven(&idle->at[i - 1]))
			return remove_at(idle, i - 1).fd;
	return c->fd;
}

void
idle_put(struct idle *idle, int fd, size_t uses, int64_t now_us)
{
	struct idle_connection c = { fd, uses, now_us };
	int surplus;

	pthread_mutex_lock(&idle->lock);
	surplus = make_room(idle, &c);
	if (surplus != fd)
		idle->at[idle->n++] = c;
	pthread_mutex_unlock(&idle->lock);
	if (surplus >= 0)
		close(surplus);
}

/* Whatever can be read, if only its end, was not asked for. */
static bool
is_open(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) < 0 &&
	    (errno == EAGAIN || errno == EWOULDBLOCK);
}

static bool
can_be_used(const struct idle_connection *c, bool may_fail, int64_t now_us)
{
	return (is_proven(c) && may_fail) ||
	    now_us - c->since_us >= IDLE_TRIAL_US;
}

/* The newest of them; fd -1: none. */
static struct idle_connection
take_newest(struct idle *idle, bool may_fail, int64_t now_us)
{
	struct idle_connection found = { .fd = -1 };

	pthread_mutex_lock(&idle->lock);
	for (size_t i = idle->n; i > 0 && found.fd < 0; i--)
		if (can_be_used(&idle->at[i - 1], may_fail, now_us))
			found = remove_at(idle, i - 1);
	pthread_mutex_unlock(&idle->lock);
	return found;
}

/*
 * Who closes last waits for us to close, too, and holds on to a process all
 * the while: php-fpm's child. It closes a moment after its last answer, so
 * it is among the newest. One poll looks at them all, for the lock is held:
 * outside of it their descriptors could be somebody else's by then.
 */
static size_t
close_dead(struct idle *idle)
{
	struct pollfd look[LOOK_AT];
	size_t n_dead = 0;
	size_t first, n;

	pthread_mutex_lock(&idle->lock);
	n = idle->n < LOOK_AT ? idle->n : LOOK_AT;
	first = idle->n - n;
	for (size_t i = 0; i < n; i++)
		look[i] = (struct pollfd){ idle->at[first + i].fd, POLLIN, 0 };
	poll(look, n, 0);
	for (size_t i = 0; i < n; i++)
		if (look[i].revents != 0) {
			remove_at(idle, first + i - n_dead);
			look[n_dead++].fd = look[i].fd;
		}
	pthread_mutex_unlock(&idle->lock);
	for (size_t i = 0; i < n_dead; i++)
		close(look[i].fd);
	return n_dead;
}

struct idle_connection
idle_take(struct idle *idle, bool may_fail, int64_t now_us, size_t *dead)
{
	*dead = 0;
	for (;;) {
		struct idle_connection c = take_newest(idle, may_fail, now_us);

		if (c.fd < 0)
			*dead += close_dead(idle);
		if (c.fd < 0 || is_open(c.fd))
			return c;
		close(c.fd);
		++*dead;
	}
}

/* fd -1: none is so old. */
static struct idle_connection
take_expired(struct idle *idle, int64_t now_us)
{
	struct idle_connection found = { .fd = -1 };

	pthread_mutex_lock(&idle->lock);
	if (idle->n > 0 && now_us - idle->at[0].since_us >= IDLE_MAX_US)
		found = remove_at(idle, 0);
	pthread_mutex_unlock(&idle->lock);
	return found;
}

void
idle_expire(struct idle *idle, int64_t now_us)
{
	struct idle_connection c;

	while ((c = take_expired(idle, now_us)).fd >= 0)
		close(c.fd);
}
