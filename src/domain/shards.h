/*
 * shards: the entries of store_memory, in tables of a lock each, and never
 * more of them than there are places.
 *
 * Any thread. Whoever asks for several keys locks all their shards at once;
 * what is found or added is theirs until they unlock.
 */
#ifndef SLUICE_SHARDS_H
#define SLUICE_SHARDS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "domain/table.h"

#define SHARDS 16

struct shards {
	uint64_t secret[2]; /* that keys are hashed with */
	_Atomic size_t max_keys;
	_Atomic size_t count;
	atomic_bool told; /* that it is full, since it last was not */
	struct {
		pthread_mutex_t lock;
		struct table table;
	} shard[SHARDS];
};

void shards_init(struct shards *s, size_t max_keys);
void shards_release(struct shards *s);

uint64_t shards_hash(const struct shards *s, struct str key);
/* A bit for the shard that the hash falls into; of several, together. */
unsigned shards_bit(uint64_t hash);
void shards_lock(struct shards *s, unsigned bits);
void shards_unlock(struct shards *s, unsigned bits);

/* With the lock of the hash's shard, from here on. */
struct table *shards_table(struct shards *s, uint64_t hash);
/*
 * A new entry, in the place of the one that would end soonest if there is no
 * other; that is never one at its limit. bits: all that the caller has
 * locked; entries found there before may be gone. NULL: no room, counted.
 */
struct entry *shards_add(struct shards *s, unsigned bits, struct str key,
    uint64_t hash, int64_t now_us);
void shards_remove(struct shards *s, uint64_t hash, struct entry *e);

/* Without a lock: removes what has ended. True: there is more to do. */
bool shards_sweep(struct shards *s, int64_t now_us);

#endif
