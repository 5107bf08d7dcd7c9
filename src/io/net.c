#include "io/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

/* lighttpd takes one full backlog for a dead backend: as large as can be. */
#define BACKLOG               4096
#define FULL_BACKLOG_RETRY_MS 2

bool
net_address_unix(const char *path, struct net_address *address, struct err *err)
{
	struct sockaddr_un *un = (struct sockaddr_un *)&address->storage;
	size_t len = strlen(path);

	if (len == 0 || len >= sizeof(un->sun_path))
		return err_set(err, "a socket path has 1 to %zu bytes",
		    sizeof(un->sun_path) - 1);
	memset(&address->storage, 0, sizeof(address->storage));
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, path, len + 1);
	address->len =
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1);
	return true;
}

bool
net_address_tcp(const char *host, uint16_t port, struct net_address *address,
    struct err *err)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	char service[8];
	int rc;

	snprintf(service, sizeof(service), "%u", (unsigned)port);
	rc = getaddrinfo(host, service, &hints, &found);
	if (rc != 0)
		return err_set(
		    err, "can not resolve %s: %s", host, gai_strerror(rc));
	memset(&address->storage, 0, sizeof(address->storage));
	memcpy(&address->storage, found->ai_addr, found->ai_addrlen);
	address->len = found->ai_addrlen;
	freeaddrinfo(found);
	return true;
}

static int
new_socket(const struct net_address *address)
{
	return socket(address->storage.ss_family,
	    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static int
fail(int fd, struct err *err, const char *what)
{
	err_set(err, "%s: %s", what, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

int
net_listen_tcp(const struct net_address *address, struct err *err)
{
	int fd = new_socket(address);
	int on = 1;

	if (fd < 0)
		return fail(fd, err, "socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	/* [::]:PORT and 0.0.0.0:PORT are two sockets. */
	if (address->storage.ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, (const struct sockaddr *)&address->storage, address->len) <
	    0)
		return fail(fd, err, "bind");
	if (listen(fd, BACKLOG) < 0)
		return fail(fd, err, "listen");
	return fd;
}

/*
 * Is the path free, or can it be made so? Only ECONNREFUSED says that nobody
 * answers there: a live socket can be busy, of another type, or not ours to
 * connect to.
 */
static bool
path_is_free(
    const char *path, const struct net_address *address, struct err *err)
{
	struct stat st;
	bool is_dead;
	int fd;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ||
		    err_set(err, "%s: %s", path, strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, "%s is there and is no socket", path);
	fd = new_socket(address);
	if (fd < 0)
		return err_set(err, "socket: %s", strerror(errno));
	is_dead = connect(fd, (const struct sockaddr *)&address->storage,
		      address->len) < 0 &&
	    errno == ECONNREFUSED;
	close(fd);
	if (!is_dead)
		return err_set(err, "%s: another process listens on it", path);
	if (unlink(path) < 0)
		return err_set(err, "%s: %s", path, strerror(errno));
	return true;
}

static bool
dress_path(
    const char *path, const struct net_unix_options *options, struct err *err)
{
	if (chmod(path, options->mode) < 0)
		return err_set(err, "chmod %s: %s", path, strerror(errno));
	if ((options->uid != (uid_t)-1 || options->gid != (gid_t)-1) &&
	    chown(path, options->uid, options->gid) < 0)
		return err_set(err, "chown %s: %s", path, strerror(errno));
	return true;
}

int
net_listen_unix(
    const char *path, const struct net_unix_options *options, struct err *err)
{
	struct net_address address = { .len = 0 };
	mode_t mask;
	int fd;
	int rc;

	if (!net_address_unix(path, &address, err) ||
	    !path_is_free(path, &address, err))
		return -1;
	fd = new_socket(&address);
	if (fd < 0)
		return fail(fd, err, "socket");
	/* Nobody gets in between bind and chmod. */
	mask = umask(0177);
	rc = bind(fd, (const struct sockaddr *)&address.storage, address.len);
	umask(mask);
	if (rc < 0)
		return fail(fd, err, "bind");
	if (!dress_path(path, options, err)) {
		unlink(path);
		close(fd);
		return -1;
	}
	if (listen(fd, BACKLOG) < 0) {
		unlink(path);
		return fail(fd, err, "listen");
	}
	return fd;
}

void
net_unlink_own(const char *path, dev_t device, ino_t inode)
{
	struct stat st;

	if (lstat(path, &st) == 0 && st.st_dev == device && st.st_ino == inode)
		unlink(path);
}

bool
net_is_listening(int fd)
{
	int on = 0;
	int type = 0;
	socklen_t len = sizeof(on);

	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &len) == 0 &&
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && on != 0 &&
	    type == SOCK_STREAM;
}

bool
net_is_bound(int fd, const struct net_address *address)
{
	struct net_address own = { .len = sizeof(own.storage) };

	/* The kernel's len of a path may leave its NUL out: no lens here. */
	return getsockname(fd, (struct sockaddr *)&own.storage, &own.len) ==
	    0 &&
	    memcmp(&own.storage, &address->storage, sizeof(own.storage)) == 0;
}

void
net_set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0)
		fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

int
net_accept(int listener)
{
	struct sockaddr_storage peer = { .ss_family = AF_UNSPEC };
	socklen_t len = sizeof(peer);
	int on = 1;
	int fd =
	    accept4(listener, (struct sockaddr *)&peer, &len, SOCK_CLOEXEC);

	if (fd < 0)
		return -1;
	if (peer.ss_family != AF_UNIX)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

void
net_set_send_timeout(int fd, int64_t timeout_us)
{
	struct timeval timeout = {
		.tv_sec = timeout_us / 1000000,
		.tv_usec = timeout_us % 1000000,
	};

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
}

bool
net_peer_uid(int fd, uid_t *uid)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 ||
	    cred.uid == (uid_t)-1)
		return false;
	*uid = cred.uid;
	return true;
}

bool
net_wait(int fd, short events, int64_t deadline_us)
{
	struct pollfd p = { .fd = fd, .events = events };

	for (;;) {
		int n = poll(&p, 1, clock_poll_ms(deadline_us));

		if (n > 0)
			return true;
		if (n == 0 || errno != EINTR)
			return false;
	}
}

static enum net_connected
finish_connect(int fd, int64_t deadline_us)
{
	int error = 0;
	socklen_t len = sizeof(error);

	if (!net_wait(fd, POLLOUT, deadline_us))
		return NET_TIMED_OUT;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
	errno = error;
	return error == 0 ? NET_CONNECTED : NET_REFUSED;
}

static enum net_connected
try_connect(int fd, const struct net_address *address, int64_t deadline_us)
{
	for (;;) {
		if (connect(fd, (const struct sockaddr *)&address->storage,
			address->len) == 0)
			return NET_CONNECTED;
		if (errno == EINPROGRESS || errno == EINTR)
			return finish_connect(fd, deadline_us);
		if (errno != EAGAIN)
			return NET_REFUSED;
		if (clock_mono_us() >= deadline_us)
			return NET_TIMED_OUT;
		poll(NULL, 0, FULL_BACKLOG_RETRY_MS);
	}
}

enum net_connected
net_connect(const struct net_address *address, int64_t deadline_us, int *fd,
    struct err *err)
{
	enum net_connected result;
	int on = 1;

	*fd = new_socket(address);
	if (*fd < 0) {
		fail(*fd, err, "socket");
		return NET_NO_SOCKET;
	}
	result = try_connect(*fd, address, deadline_us);
	if (result == NET_CONNECTED) {
		if (address->storage.ss_family != AF_UNIX)
			setsockopt(
			    *fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		return result;
	}
	if (result == NET_TIMED_OUT)
		errno = ETIMEDOUT;
	*fd = fail(*fd, err, "connect");
	return result;
}
