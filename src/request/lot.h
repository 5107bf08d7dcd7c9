/*
 * lot: the connections there are, and those that wait.
 *
 * Holds their memory (kept until the lot is freed), the epoll set, and for
 * the parked who waits for what, in which order, until when. It hands out
 * names and knows nothing of claiming: connection.h is its upper half.
 */
#ifndef SLUICE_LOT_H
#define SLUICE_LOT_H

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
	PARKED_DELAY, /* a limit holds it back */
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
	bool is_bounded; /* a blocking write to it has a timeout */

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

/* Has the timer fire now, so that a worker looks at who waits. Any thread. */
void lot_kick(struct lot *lot);

/* Epoll set, for listeners: data.u64 values below LOT_TAGS are theirs. */
#define LOT_TAGS 256
int lot_epoll(const struct lot *lot);
/* The tag that the lot's own timer has. */
#define LOT_TIMER_TAG (LOT_TAGS - 1)

size_t lot_open_count(const struct lot *lot);
size_t lot_max(const struct lot *lot);
size_t lot_count(const struct lot *lot, enum parked reason);
/* Are half heads above what they may hold together? */
bool lot_half_heads_full(const struct lot *lot);

/* A free connection in a new life; NULL: max is reached. */
struct connection *lot_take(struct lot *lot);
void lot_give_back(struct lot *lot, struct connection *c);
/* Among the parked and out again; the caller holds c->lock. */
void lot_enter(struct lot *lot, struct connection *c);
void lot_leave(struct lot *lot, struct connection *c);

/* A name for one life of a connection, never below LOT_TAGS. */
connection_handle lot_name(const struct connection *c);
/* The connection that may still have that life; NULL: there was none. */
struct connection *lot_find(struct lot *lot, connection_handle handle);
/* Who has been parked longest for a reason; false: nobody is. */
bool lot_oldest(struct lot *lot, enum parked reason, connection_handle *handle);
/*
 * Whose deadline comes first and has passed; false: nobody's, and the timer
 * is set for the next.
 */
bool lot_expired(struct lot *lot, int64_t now_us, connection_handle *handle);

#endif
