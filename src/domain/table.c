/*
 * Every entry is in exactly one of two binary heaps. One that is at its
 * limit is in `full`, ordered by when it will no longer be, and moves over
 * to `loose`, ordered by end, once that time has come. So the soonest end
 * among those not at their limit is always the top of `loose`.
 *
 * A heap has room for every entry of the table before the entry is added,
 * so that moving an entry over can not fail.
 */
#include "domain/table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct entry {
	UT_hash_handle hh;
	struct state state;
	int64_t end_us;
	int64_t order_us; /* its place in its heap */
	struct heap *heap;
	size_t index;
	struct str key;
	char bytes[];
};

static void
place(struct heap *h, size_t i, struct entry *e)
{
	h->at[i] = e;
	e->index = i;
}

static void
sift_up(struct heap *h, size_t i, struct entry *e)
{
	while (i > 0 && h->at[(i - 1) / 2]->order_us > e->order_us) {
		place(h, i, h->at[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	place(h, i, e);
}

static void
sift_down(struct heap *h, size_t i, struct entry *e)
{
	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= h->n)
			break;
		if (child + 1 < h->n &&
		    h->at[child + 1]->order_us < h->at[child]->order_us)
			child++;
		if (h->at[child]->order_us >= e->order_us)
			break;
		place(h, i, h->at[child]);
		i = child;
	}
	place(h, i, e);
}

static bool
heap_reserve(struct heap *h, size_t n)
{
	size_t cap = h->cap > 0 ? h->cap * 2 : 16;
	struct entry **at;

	if (n <= h->cap)
		return true;
	at = realloc(h->at, cap * sizeof(struct entry *));
	if (at == NULL)
		return false;
	h->at = at;
	h->cap = cap;
	return true;
}

static void
heap_add(struct heap *h, struct entry *e, int64_t order_us)
{
	assert(h->n < h->cap);
	e->heap = h;
	e->order_us = order_us;
	h->n++;
	sift_up(h, h->n - 1, e);
}

static void
heap_remove(struct entry *e)
{
	struct heap *h = e->heap;
	struct entry *last = h->at[h->n - 1];
	size_t i = e->index;

	h->n--;
	if (last == e)
		return;
	if (last->order_us < e->order_us)
		sift_up(h, i, last);
	else
		sift_down(h, i, last);
}

void
table_init(struct table *t)
{
	*t = (struct table){ 0 };
}

static void
heap_release(struct heap *h)
{
	for (size_t i = 0; i < h->n; i++) {
		algorithm_forget(&h->at[i]->state);
		free(h->at[i]);
	}
	free(h->at);
}

void
table_release(struct table *t)
{
	HASH_CLEAR(hh, t->entries);
	heap_release(&t->loose);
	heap_release(&t->full);
	table_init(t);
}

struct entry *
table_find(struct table *t, struct str key, unsigned hash)
{
	struct entry *e;

	HASH_FIND_BYHASHVALUE(hh, t->entries, key.p, key.len, hash, e);
	return e;
}

struct entry *
table_add(struct table *t, struct str key, unsigned hash)
{
	size_t n = t->loose.n + t->full.n + 1;
	struct entry *e;

	if (!heap_reserve(&t->loose, n) || !heap_reserve(&t->full, n))
		return NULL;
	e = calloc(1, sizeof(*e) + key.len);
	if (e == NULL)
		return NULL;
	memcpy(e->bytes, key.p, key.len);
	e->key = (struct str){ e->bytes, key.len };
	HASH_ADD_KEYPTR_BYHASHVALUE(
	    hh, t->entries, e->key.p, e->key.len, hash, e);
	if (e->hh.tbl == NULL) {
		free(e);
		return NULL;
	}
	heap_add(&t->loose, e, 0);
	return e;
}

void
table_remove(struct table *t, struct entry *e)
{
	heap_remove(e);
	HASH_DEL(t->entries, e);
	algorithm_forget(&e->state);
	free(e);
}

const struct state *
table_state(const struct entry *e)
{
	return &e->state;
}

void
table_keep(struct table *t, struct entry *e, const struct state *s,
    int64_t end_us, int64_t full_us, int64_t now_us)
{
	heap_remove(e);
	e->state = *s;
	e->end_us = end_us;
	if (full_us > now_us)
		heap_add(&t->full, e, full_us);
	else
		heap_add(&t->loose, e, end_us);
}

int64_t
table_end_us(const struct entry *e)
{
	return e->end_us;
}

struct entry *
table_soonest(struct table *t, int64_t now_us)
{
	while (t->full.n > 0 && t->full.at[0]->order_us <= now_us) {
		struct entry *e = t->full.at[0];

		heap_remove(e);
		heap_add(&t->loose, e, e->end_us);
	}
	return t->loose.n > 0 ? t->loose.at[0] : NULL;
}
