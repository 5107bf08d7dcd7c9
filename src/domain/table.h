/*
 * table: states by key, and which of them is worthless soonest.
 *
 * One shard of store_memory. Not locked: its owner locks. An entry belongs
 * to the table from table_add to table_remove.
 */
#ifndef SLUICE_TABLE_H
#define SLUICE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "pure/algorithm.h"

struct entry;

struct heap {
	struct entry **at;
	size_t n;
	size_t cap;
};

struct table {
	struct entry *entries; /* uthash's head */
	struct heap loose;     /* by the time an entry is worthless */
	struct heap full;      /* at their limit, by the time they are not */
};

void table_init(struct table *t);
void table_release(struct table *t);

/* `hash`: of the key, the same for the same key. NULL: not there. */
struct entry *table_find(struct table *t, struct str key, unsigned hash);
/* The key is copied and must not be there yet. NULL: no memory. */
struct entry *table_add(struct table *t, struct str key, unsigned hash);
void table_remove(struct table *t, struct entry *e);

const struct state *table_state(const struct entry *e);
/*
 * What is kept now, worthless from end_us on; at its limit until full_us
 * (which is in the past when it is not). The state is the table's from now
 * on, and forgotten with the entry.
 */
void table_keep(struct table *t, struct entry *e, const struct state *s,
    int64_t end_us, int64_t full_us, int64_t now_us);
int64_t table_end_us(const struct entry *e);
/* The entry to lose first, never one at its limit now; NULL: none. */
struct entry *table_soonest(struct table *t, int64_t now_us);

#endif
