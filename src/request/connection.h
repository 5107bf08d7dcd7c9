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

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "request/guard.h"

struct request;
struct lot;

enum parked {
	PARKED_NOT,
	PARKED_HEAD,  /* half a head */
	PARKED_IDLE,  /* kept alive, between requests: no deadline */
	PARKED_BODY,  /* a body coming in */
	PARKED_QUEUE, /* for a place in its backend */
	PARKED_DRAIN, /* answered; what the peer still sends is thrown away */
	PARKED_KINDS,
};

typedef uint64_t connection_handle;

struct connection {
	pthread_mutex_t lock; /* guards parked, life and deadline_us */
	uint32_t index;
	uint32_t life;
	int fd;
	enum parked parked;
	int64_t deadline_us; /* clock_mono_us; INT64_MAX: none */
	bool in_epoll;

	/* Under the lot's lock while parked. */
	struct connection *next;
	struct connection *previous;
	size_t heap_at; /* 0: not in the heap */
	size_t parked_bytes;

	/* The owner's. */
	struct buf in; /* read, not yet consumed */
	struct guard guard;
	struct request *request; /* NULL between requests */
	int64_t head_deadline_us;
	uint64_t drained_bytes;
	uint64_t drain_max_bytes;
};

/* The lot makes the epoll set; NULL and err. max: connections at once. */
struct lot *lot_new(size_t max, uint64_t half_heads_bytes, struct err *err);
/* No worker may run. Closes what is still parked; leaves requests alone. */
void lot_free(struct lot *lot);

/* Epoll set, for listeners: data.u64 values below LOT_TAGS are theirs. */
#define LOT_TAGS 256
int lot_epoll(const struct lot *lot);
/* The tag that the lot's own timer has. */
#define LOT_TIMER_TAG (LOT_TAGS - 1)

/* A connection for an accepted descriptor; NULL: max is reached. */
struct connection *connection_open(struct lot *lot, int fd, uint64_t max_head);
/* Closes it and gives it back; its request must be gone. The owner's. */
void connection_close(struct lot *lot, struct connection *c);
size_t lot_open_count(const struct lot *lot);
size_t lot_max(const struct lot *lot);

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
connection_handle connection_name(const struct connection *c);
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
struct connection *lot_claim_expired(struct lot *lot, enum parked *reason);
/* The one that has been parked longest for that reason; NULL: none. */
struct connection *lot_claim_oldest(struct lot *lot, enum parked reason);
size_t lot_count(const struct lot *lot, enum parked reason);
/* Are half heads above what they may hold together? */
bool lot_half_heads_full(const struct lot *lot);

/* Reads what is there, up to `most` bytes, into c->in. */
enum connection_read {
	CONNECTION_READ, /* something came */
	CONNECTION_EMPTY,
	CONNECTION_EOF, /* or an error: the peer is gone */
};
enum connection_read connection_read(struct connection *c, size_t most);
/* Sends small things at once; false: gone, or it does not read. */
bool connection_send(struct connection *c, const void *bytes, size_t len);
/* Will a small write go through without waiting? */
bool connection_is_writable(const struct connection *c);

#endif
