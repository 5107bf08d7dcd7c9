/*
 * lease_table: the leases of a process, by the count they are of.
 *
 * Any thread, by the lock of a shard. A count is a key by its N and burst:
 * who has other ones (a tier's, or those of a configuration before) has
 * leases of its own. Bounded: without room there is no new lease.
 */
#ifndef SLUICE_LEASE_TABLE_H
#define SLUICE_LEASE_TABLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "domain/store.h"

#define LEASE_SHARDS   16
#define LEASE_CHAINS   512
#define LEASE_MAX      65536
#define LEASE_TEXT_MAX 1024

/* What the store said last; all leases of a count have the same. */
struct lease_told {
	struct verdict verdict;
	int64_t store_us; /* when, on its clock */
	int64_t told_us;  /* when it was here, by clock_mono_us; 0: never */
};

struct lease {
	struct lease *next; /* of its chain, or of what was taken out */
	struct lease_shard *shard;
	uint64_t hash;
	/* 0: a thread is asking for it, and it is that thread's alone. */
	uint64_t id;
	int64_t units;    /* not spent */
	uint64_t serial;  /* of all that were begun, whatever came of them */
	int64_t promised; /* while it is being taken: what others wait for */
	bool is_void;     /* while it is being taken: its count began anew */
	/* Stays when all are spent, so that the next one's size is known. */
	bool is_paced;
	/* By clock_mono_us; sure to be within its window and its time. */
	int64_t spend_until_us;
	int64_t gone_us; /* by then the window of its units is over */
	int64_t used_us;
	int64_t begun_us; /* when they were there */
	int64_t taken;    /* units, the cost that asked too */
	int64_t taken_us; /* on the store's clock */
	int64_t full_us;  /* of the verdict then */
	int64_t own_count;
	struct lease_told told;
	struct store_check check; /* a copy of its own */
	char text[];
};

struct lease_shard {
	pthread_mutex_t lock;
	pthread_cond_t concluded; /* of one that was being taken */
	uint64_t last_serial;
	size_t n;
	struct lease *chain[LEASE_CHAINS];
};

struct lease_table {
	uint64_t secret[2];
	_Atomic size_t count;
	struct lease_shard shard[LEASE_SHARDS];
};

/* How far somebody has come; all zero: nowhere yet. */
struct lease_walk {
	size_t shard;
	size_t chain;
};

void lease_table_init(struct lease_table *t);
void lease_table_release(struct lease_table *t);

uint64_t lease_table_hash(const struct lease_table *t, struct str key);
/* Locked, until lease_table_unlock. */
struct lease_shard *lease_table_lock(struct lease_table *t, uint64_t hash);
void lease_table_unlock(struct lease_shard *s);

/*
 * With the lock, which is let go meanwhile: until something was concluded, or
 * so many microseconds have passed; then false.
 */
bool lease_table_wait(struct lease_shard *s, int64_t for_us);

/* With the lock: the newest; NULL: none. */
struct lease *lease_table_find(const struct lease_shard *s, uint64_t hash,
    const struct store_check *check);
/* With the lock: the one before it of the same count; NULL: none. */
struct lease *lease_table_next(const struct lease *lease);
struct lease *lease_table_find_id(
    const struct lease_shard *s, uint64_t hash, uint64_t id);
/*
 * With the lock: one of that key, of whatever count, which stands behind
 * `after`; NULL: the first. NULL: none.
 */
struct lease *lease_table_find_key(const struct lease_shard *s, uint64_t hash,
    struct str key, const struct lease *after);
/* With the lock: a new one, being taken. NULL: no room, or no memory. */
struct lease *lease_table_add(struct lease_table *t, struct lease_shard *s,
    uint64_t hash, const struct store_check *check);
/* With the lock: unlinks and frees. */
void lease_table_remove(struct lease_table *t, struct lease *lease);
/*
 * Without a lock: unlinks those for which is_due says so, up to `most`, from
 * where the walk stands; never one that is being taken. They are the caller's,
 * to be freed one by one. tell is called for each, with the lock of what was
 * its shard. NULL: there is none up to the end; the walk begins anew.
 */
struct lease *lease_table_take_out(struct lease_table *t,
    struct lease_walk *walk, size_t most,
    bool is_due(const struct lease *lease, int64_t now_us), int64_t now_us,
    void tell(struct lease_shard *s, const struct lease *lease));
size_t lease_table_count(const struct lease_table *t);

#endif
