/*
 * A loop around poll: a line comes in, its answer goes out, and the
 * connection is closed. Who has not done so in time is closed as well.
 */
#include "process/control.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/net.h"

/* Without descriptors a connection can not be taken: so long it waits. */
#define DROUGHT_US 100000

struct peer {
	int fd; /* -1: free */
	int64_t deadline_us;
	size_t len;
	char line[CONTROL_LINE_MAX + 1];
	struct buf answer; /* len 0: its line is not whole yet */
	size_t sent;
};

struct control {
	int fd;
	int stop; /* an eventfd */
	char *path;
	dev_t device;
	ino_t inode;
	bool started;
	pthread_t thread;
	struct gateway *gateway;
	int64_t dry_until_us;
	struct peer peer[CONTROL_PEERS];
};

static void
end_peer(struct peer *p)
{
	close(p->fd);
	p->fd = -1;
	buf_release(&p->answer);
}

static void
take_peer(struct control *c, struct peer *p)
{
	int fd = net_accept(c->fd);
	int64_t now_us = clock_mono_us();

	if (fd < 0) {
		if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
			c->dry_until_us = now_us + DROUGHT_US;
		return;
	}
	p->fd = fd;
	p->deadline_us = now_us + CONTROL_PATIENCE_US;
	p->len = 0;
	p->sent = 0;
	buf_init(&p->answer);
}

/* False: it is over. */
static bool
read_line(struct control *c, struct peer *p)
{
	ssize_t n = recv(
	    p->fd, p->line + p->len, sizeof(p->line) - p->len, MSG_DONTWAIT);
	const char *end;

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR);
	end = memchr(p->line + p->len, '\n', (size_t)n);
	p->len += (size_t)n;
	if (end != NULL)
		control_verb(c->gateway,
		    (struct str){ p->line, (size_t)(end - p->line) },
		    &p->answer);
	else if (p->len == sizeof(p->line))
		buf_addf(&p->answer, "error a line has at most %d bytes\n",
		    CONTROL_LINE_MAX);
	return !p->answer.failed;
}

static bool
send_answer(struct peer *p)
{
	ssize_t n = send(p->fd, p->answer.p + p->sent, p->answer.len - p->sent,
	    MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	p->sent += (size_t)n;
	return p->sent < p->answer.len;
}

static void
serve_peer(struct control *c, struct peer *p, bool ready, int64_t now_us)
{
	bool goes_on = now_us < p->deadline_us;

	if (goes_on && ready && p->answer.len == 0)
		goes_on = read_line(c, p);
	if (goes_on && ready && p->answer.len > 0)
		goes_on = send_answer(p);
	if (!goes_on)
		end_peer(p);
}

/* The descriptors to look at, and until when; a free place, if any. */
static int64_t
look(struct control *c, struct pollfd *fds, struct peer **vacant)
{
	int64_t now_us = clock_mono_us();
	int64_t until_us = INT64_MAX;

	*vacant = NULL;
	for (size_t i = 0; i < CONTROL_PEERS; i++) {
		struct peer *p = &c->peer[i];
		short events = p->answer.len > 0 ? POLLOUT : POLLIN;

		fds[2 + i] = (struct pollfd){ p->fd, events, 0 };
		if (p->fd < 0)
			*vacant = p;
		else if (p->deadline_us < until_us)
			until_us = p->deadline_us;
	}
	if (now_us < c->dry_until_us) {
		*vacant = NULL;
		if (c->dry_until_us < until_us)
			until_us = c->dry_until_us;
	}
	fds[0] = (struct pollfd){ c->stop, POLLIN, 0 };
	fds[1] = (struct pollfd){ *vacant != NULL ? c->fd : -1, POLLIN, 0 };
	return until_us;
}

static void *
run(void *context)
{
	struct control *c = context;

	for (;;) {
		struct pollfd fds[2 + CONTROL_PEERS];
		struct peer *vacant;
		int64_t until_us = look(c, fds, &vacant);
		int64_t now_us;

		poll(fds, 2 + CONTROL_PEERS,
		    until_us == INT64_MAX ? -1 : clock_poll_ms(until_us));
		if (fds[0].revents != 0)
			return NULL;
		now_us = clock_mono_us();
		for (size_t i = 0; i < CONTROL_PEERS; i++)
			if (c->peer[i].fd >= 0)
				serve_peer(c, &c->peer[i],
				    fds[2 + i].revents != 0, now_us);
		if (vacant != NULL && fds[1].revents != 0)
			take_peer(c, vacant);
	}
}

static bool
listen_at(struct control *c, const char *path, struct err *err)
{
	const struct net_unix_options options = { 0600, (uid_t)-1, (gid_t)-1 };
	struct stat st;

	c->fd = net_listen_unix(path, &options, err);
	if (c->fd < 0)
		return false;
	if (lstat(path, &st) == 0) {
		c->path = strdup(path);
		c->device = st.st_dev;
		c->inode = st.st_ino;
	}
	c->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return c->stop >= 0 || err_set(err, "eventfd: %s", strerror(errno));
}

bool
control_open(struct control **control, const char *path, struct err *err)
{
	struct control *c;
	struct err why;

	*control = NULL;
	if (path == NULL)
		return true;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return err_set(err, "out of memory");
	c->fd = -1;
	c->stop = -1;
	for (size_t i = 0; i < CONTROL_PEERS; i++)
		c->peer[i].fd = -1;
	*control = c;
	if (listen_at(c, path, &why))
		return true;
	control_close(c);
	*control = NULL;
	return err_set(err, "control = %s: %.300s", path, why.text);
}

bool
control_start(struct control *c, struct gateway *gateway, struct err *err)
{
	int rc;

	if (c == NULL)
		return true;
	c->gateway = gateway;
	rc = pthread_create(&c->thread, NULL, run, c);
	c->started = rc == 0;
	return rc == 0 ||
	    err_set(err, "can not start a thread: %s", strerror(rc));
}

void
control_close(struct control *c)
{
	if (c == NULL)
		return;
	if (c->started) {
		eventfd_write(c->stop, 1);
		pthread_join(c->thread, NULL);
	}
	for (size_t i = 0; i < CONTROL_PEERS; i++)
		if (c->peer[i].fd >= 0)
			end_peer(&c->peer[i]);
	if (c->path != NULL)
		net_unlink_own(c->path, c->device, c->inode);
	free(c->path);
	if (c->stop >= 0)
		close(c->stop);
	if (c->fd >= 0)
		close(c->fd);
	free(c);
}
