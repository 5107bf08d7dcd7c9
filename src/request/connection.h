/*
 * connection: one web server's connection, and the lot where connections
 * wait.
 *
 * A connection is owned by one worker, or it is parked: then it waits in
 * the epoll set for its peer, for a deadline, or for a place in a backend's
 * queue, and nobody touches it before claiming it. connection_claim is the
 * only way in: of all who want it (an event, the timer, a free place) one
 * wins, the others find it gone. A handle names a connection and the one
 * life of it, so a late event never hits a stranger; the memory of
 * connections is kept until the lot is freed.
 */
#ifndef SLUICE_CONNECTION_H
#define SLUICE_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "request/lot.h"

/* A connection for an accepted descriptor; NULL: max is reached. */
struct connection *connection_open(struct lot *lot, int fd, uint64_t max_head);
/* Closes it and gives it back; its request must be gone. The owner's. */
void connection_close(struct lot *lot, struct connection *c);

/*
 * Gives the connection up: it waits for `events` (EPOLLIN, EPOLLRDHUP) and
 * its deadline. The caller must not touch it afterwards. false: the kernel
 * refused; it is the caller's still.
 */
bool connection_park(struct lot *lot, struct connection *c, enum parked reason,
    uint32_t events, int64_t deadline_us);
/*
 * The same in two steps, for what must be done when nobody can claim it
 * yet: hold, then park_held (or release, if it shall not be parked).
 */
void connection_hold(struct connection *c);
void connection_release(struct connection *c);
bool connection_park_held(struct lot *lot, struct connection *c,
    enum parked reason, uint32_t events, int64_t deadline_us);
/* What a claimer wants of the connection that it names. */
struct claim {
	enum parked reason;  /* PARKED_KINDS: any */
	int64_t deadline_us; /* its deadline is at most this; INT64_MAX: any */
};
/*
 * Takes it out of the lot; NULL: somebody else has, it is gone, or it is
 * parked otherwise by now. *reason: why it was parked.
 */
struct connection *connection_claim(struct lot *lot, connection_handle handle,
    const struct claim *claim, enum parked *reason);
/* One whose deadline has passed, claimed; NULL: none. */
struct connection *connection_claim_expired(
    struct lot *lot, enum parked *reason);
/* The one that has been parked longest for that reason; NULL: none. */
struct connection *connection_claim_oldest(struct lot *lot, enum parked reason);

/* Reads what is there, up to `most` bytes, into c->in. */
enum connection_read {
	CONNECTION_READ, /* something came */
	CONNECTION_EMPTY,
	CONNECTION_EOF, /* or an error: the peer is gone */
};
enum connection_read connection_read(struct connection *c, size_t most);
/* Sends small things at once; false: gone, or it does not read. */
bool connection_send(struct connection *c, const void *bytes, size_t len);
/* Blocking writes to it (libfcgi's) end after a second from now on. */
void connection_bound_writes(struct connection *c);
/* Is there something to be read, if only that the peer has closed it? */
bool connection_has_input(const struct connection *c);
/* Will a small write go through without waiting? */
bool connection_is_writable(const struct connection *c);

#endif
