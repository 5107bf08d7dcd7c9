/*
 * net: sockets. Every descriptor is close-on-exec at birth and belongs to
 * the caller. Any thread.
 */
#ifndef SLUICE_NET_H
#define SLUICE_NET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/err.h"

/* A resolved place to connect to or listen on. */
struct net_address {
	struct sockaddr_storage storage;
	socklen_t len;
};

/* false and err: a path longer than the kernel takes. */
bool net_address_unix(
    const char *path, struct net_address *address, struct err *err);
/* A numeric address, or a name (then it may block: start-up only). */
bool net_address_tcp(const char *host, uint16_t port,
    struct net_address *address, struct err *err);

/* A listening, non-blocking socket; -1 and err. */
int net_listen_tcp(const struct net_address *address, struct err *err);

struct net_unix_options {
	mode_t mode;
	uid_t uid; /* (uid_t)-1: as it is */
	gid_t gid;
};
/*
 * The same at a path. A socket that is there already is replaced only if
 * nobody answers on it; anything but a socket is left alone (an error).
 */
int net_listen_unix(
    const char *path, const struct net_unix_options *options, struct err *err);
/* Removes a path if the socket there is still the one of fd. */
void net_unlink_own(const char *path, dev_t device, ino_t inode);

/* Is it a stream socket that listens? */
bool net_is_listening(int fd);
/* Is that its own address? */
bool net_is_bound(int fd, const struct net_address *address);
void net_set_nonblocking(int fd);
/*
 * Takes one connection: blocking, no delay on TCP. -1: none waiting or an
 * error (errno).
 */
int net_accept(int listener);
/* How long a blocking write may wait. */
void net_set_send_timeout(int fd, int64_t timeout_us);
/* The user id of the process at the other end of a unix socket. */
bool net_peer_uid(int fd, uid_t *uid);

enum net_connected {
	NET_CONNECTED,
	NET_REFUSED,
	NET_TIMED_OUT,
	NET_NO_SOCKET, /* no descriptor or memory here: nothing was tried */
};
/*
 * Connects a non-blocking socket before deadline_us (clock_mono_us). A unix
 * socket whose backlog is full is tried again until then.
 */
enum net_connected net_connect(const struct net_address *address,
    int64_t deadline_us, int *fd, struct err *err);

/* Waits for events on fd until deadline_us; false: the time is up. */
bool net_wait(int fd, short events, int64_t deadline_us);

#endif
