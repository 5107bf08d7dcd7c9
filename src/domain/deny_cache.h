/*
 * deny_cache: what the shared store has refused a moment ago.
 *
 * An answer is remembered of a check by its key in the store, its N, period,
 * burst and cost and the configuration that it was asked under. A refusal
 * stands until the moment at which it was sent plus the least of four: its
 * wait, the time until one more unit is there (another number would be told
 * then), what is left of its penalty (the next refusal begins another), and a
 * ttl. So it is over before the store would let the check pass, and what it
 * tells is what the store would: waits are shorter by the time since the
 * answer came, and never too short. Of several that one answer refuses the
 * longest wait is told: whoever puts them gives all the least of their times
 * (denied.c).
 *
 * The cost is part of it, since a larger one has a longer wait.
 *
 * What makes the store allow more than it said (a refund, other own counts, a
 * reset), or wait longer (others who spend what was too little for this one),
 * is told to deny_cache_forget. An answer to what was sent before that is not
 * remembered any more, whenever it comes.
 *
 * Any thread; memory is taken once, at the start. Times are clock_mono_us.
 */
#ifndef SLUICE_DENY_CACHE_H
#define SLUICE_DENY_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "domain/store.h"

struct deny_cache;

/* At most so many entries, at least 1. NULL: no memory. */
struct deny_cache *deny_cache_new(size_t entries, int64_t ttl_us);
void deny_cache_free(struct deny_cache *c);
void deny_cache_set_ttl(struct deny_cache *c, int64_t ttl_us);

/* Of which check, and of which configuration (config->serial). */
struct deny_cache_id {
	const struct store_check *check;
	uint64_t serial;
};

struct deny_cache_answer {
	struct verdict verdict; /* refused or allowed */
	int64_t sent_us;
	int64_t answered_us;
	int64_t taken_us; /* on the store's clock */
};

/* The least of those times without the ttl; INT64_MAX: there is none. */
int64_t deny_cache_stands_us(const struct verdict *refusal);
/*
 * Remembers it for ttl_us at most. One that allows stands beside the refusal
 * of another rate of its limit: of it only `limit` and own_count are good
 * later on.
 */
void deny_cache_put(struct deny_cache *c, const struct deny_cache_id *id,
    const struct deny_cache_answer *answer, int64_t ttl_us);

enum deny_cache_known {
	DENY_CACHE_UNKNOWN,
	DENY_CACHE_TOLD,   /* `limit` and own_count are known */
	DENY_CACHE_REFUSED /* it would be refused now */
};

/* The answer that the store would give now, as far as that is known. */
enum deny_cache_known deny_cache_find(struct deny_cache *c,
    const struct deny_cache_id *id, int64_t now_us,
    struct deny_cache_answer *answer);

/* All that is known of that key, whoever asked. */
void deny_cache_forget(struct deny_cache *c, struct str key, int64_t now_us);
void deny_cache_flush(struct deny_cache *c, int64_t now_us);

#endif
