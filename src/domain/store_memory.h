/*
 * store_memory: counts of this process alone, in a sharded table.
 *
 * Serves `address = memory:` and, whatever the address, `scope = local`.
 * Time is clock_steady_us. An entry dies at its end; when max_keys is
 * reached the entry that would end soonest goes, but never one at its
 * limit: where only such are left, the check gets VERDICT_ERROR.
 */
#ifndef SLUICE_STORE_MEMORY_H
#define SLUICE_STORE_MEMORY_H

#include "domain/store.h"

/* NULL: no memory. Freed by its ops->free. */
struct store *store_memory_new(size_t max_keys);
void store_memory_set_max_keys(struct store *store, size_t max_keys);
/* Forgets a count and its penalty. No set of slots: requests hold them. */
void store_memory_clear(struct store *store, struct str key);
size_t store_memory_count(struct store *store);

#endif
