/*
 * redis_batch: many questions as one exchange with Redis: a call of each
 * script that has some. One thread at a time.
 */
#ifndef SLUICE_REDIS_BATCH_H
#define SLUICE_REDIS_BATCH_H

#include "base/buf.h"
#include "domain/redis_script.h"
#include "domain/redis_trouble.h"
#include "domain/store.h"
#include "io/redis_link.h"

#define REDIS_BATCH_MAX 64

/* A question's own copy, and its answer. All zero to begin with. */
struct redis_batch_item {
	enum redis_script_name name;
	size_t n;        /* checks that get an answer */
	struct buf keys; /* see redis_script_put */
	size_t n_keys;
	uint32_t own; /* to settle: a bit for each check with an own_key */
	struct redis_script_bounds bounds[STORE_CHECKS_MAX];
	struct buf argument;
	struct store_answer answer;
};

/*
 * False: no memory. Slots to renew may be more than STORE_CHECKS_MAX.
 */
bool redis_batch_item_fill(struct redis_batch_item *item,
    enum redis_script_name name, const struct store_question *q);
void redis_batch_item_release(struct redis_batch_item *item);

struct redis_batch;

/* NULL: no memory. */
struct redis_batch *redis_batch_new(void);
void redis_batch_free(struct redis_batch *batch);
void redis_batch_reset(struct redis_batch *batch);
/* False when it is full. The item must outlive redis_batch_run. */
bool redis_batch_add(struct redis_batch *batch, struct redis_batch_item *item);
size_t redis_batch_count(const struct redis_batch *batch);
struct redis_batch_item *redis_batch_at(
    const struct redis_batch *batch, size_t i);

/*
 * Sends all and fills in the answers; those that got none are STORE_OUT.
 * NULL, or what went wrong: then the link is of no more use.
 */
const struct redis_trouble *redis_batch_run(
    struct redis_batch *batch, struct redis_link *link, int64_t deadline_us);

#endif
