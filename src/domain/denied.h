/*
 * denied: which requests the deny cache answers, and what it gets to know.
 *
 * decision.c asks it and tells it what the store answered; whoever gives units
 * back or changes counts otherwise has them forgotten. Any thread. A cache that
 * is NULL knows nothing.
 */
#ifndef SLUICE_DENIED_H
#define SLUICE_DENIED_H

#include <stdbool.h>

#include "config/config.h"
#include "domain/deny_cache.h"
#include "domain/store.h"

/* The shared checks of a request, all that there are. */
struct denied_request {
	struct deny_cache *cache;
	uint64_t serial; /* of its configuration */
	struct store_check *check;
	const struct config_limit **limit; /* of check[i] */
	size_t n;
	bool observes; /* some limit of the request only observes */
};

/*
 * True: at least one check would be refused, and no limit that is not known to
 * refuse can have begun to for longer than it would be remembered: 100 ms with
 * lease, leaky_bucket and cost = response:, and never with concurrency and
 * count, beside which the store is always asked. Then check and limit hold the
 * checks of the limits that refuse, n and answer are theirs, and the store is
 * not to be asked. now_us: by clock_mono_us.
 */
bool denied_recall(
    struct denied_request *r, int64_t now_us, struct store_answer *answer);
/*
 * What the store has said of them; sent_us: not after it was asked. All that it
 * refuses is known equally long: as long as what is known the shortest.
 */
void denied_learn(const struct denied_request *r,
    const struct store_answer *answer, int64_t sent_us);
/* These have got units back, or have been charged more. */
void denied_forget(
    struct deny_cache *cache, const struct store_check *check, size_t n);
/* Their counts have been changed otherwise. */
void denied_forget_keys(
    struct deny_cache *cache, const struct str *key, size_t n);

#endif
