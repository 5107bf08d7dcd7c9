/*
 * What a renewal is working on is not freed before its end, whoever drops
 * it: then it is marked.
 */
#include "domain/held_slots.h"

#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct held_slot {
	UT_hash_handle hh;
	struct store_check check;
	bool in_renewal;
	bool dropped;
	char text[]; /* the slot's name, then the key */
};

void
held_slots_init(struct held_slots *s)
{
	*s = (struct held_slots){ .held = NULL };
	pthread_mutex_init(&s->lock, NULL);
}

void
held_slots_release(struct held_slots *s)
{
	struct held_slot *h = s->held, *next;

	HASH_CLEAR(hh, s->held);
	for (; h != NULL; h = next) {
		next = h->hh.next;
		free(h);
	}
	pthread_mutex_destroy(&s->lock);
}

bool
held_slots_hold(struct held_slots *s, const struct store_check *check)
{
	struct str slot = check->slot, key = check->key;
	struct held_slot *h = calloc(1, sizeof(*h) + slot.len + key.len);
	bool added;

	if (h == NULL)
		return false;
	h->check = *check;
	h->check.slot.p = memcpy(h->text, slot.p, slot.len);
	h->check.key.p = memcpy(h->text + slot.len, key.p, key.len);
	pthread_mutex_lock(&s->lock);
	HASH_ADD_KEYPTR(hh, s->held, h->check.slot.p, slot.len, h);
	added = h->hh.tbl != NULL;
	pthread_mutex_unlock(&s->lock);
	if (!added)
		free(h);
	return added;
}

void
held_slots_hold_taken(struct held_slots *s, const struct store_question *q,
    const struct store_answer *answer)
{
	bool committed = !store_refuses(q, answer);

	for (size_t i = 0; i < q->n; i++) {
		const struct check *c = &q->check[i].check;

		if (c->algorithm == ALGORITHM_CONCURRENCY && c->cost > 0 &&
		    answer->verdict[i].kind == VERDICT_ALLOWED &&
		    (committed || c->observe))
			held_slots_hold(s, &q->check[i]);
	}
}

bool
held_slots_drop(struct held_slots *s, struct str slot)
{
	struct held_slot *h;

	pthread_mutex_lock(&s->lock);
	HASH_FIND(hh, s->held, slot.p, slot.len, h);
	if (h != NULL) {
		HASH_DEL(s->held, h);
		h->dropped = true;
		if (!h->in_renewal)
			free(h);
	}
	pthread_mutex_unlock(&s->lock);
	return h != NULL;
}

/* Arrays for all that are held; false: none, or no memory. */
static bool
make_room(struct held_slots *s)
{
	size_t n = HASH_COUNT(s->held);

	if (n == 0)
		return false;
	s->check = calloc(n, sizeof(*s->check));
	s->renewed = calloc(n, sizeof(struct held_slot *));
	return s->check != NULL && s->renewed != NULL;
}

const struct store_check *
held_slots_begin_renewal(struct held_slots *s, size_t *n)
{
	struct held_slot *h;

	*n = 0;
	pthread_mutex_lock(&s->lock);
	if (make_room(s)) {
		for (h = s->held; h != NULL; h = h->hh.next) {
			h->in_renewal = true;
			s->renewed[*n] = h;
			s->check[(*n)++] = h->check;
		}
	}
	s->n_renewed = *n;
	pthread_mutex_unlock(&s->lock);
	return s->check;
}

/* Whether it was dropped since; then it is the caller's to free. */
static bool
is_dropped(struct held_slots *s, struct held_slot *h)
{
	bool dropped;

	pthread_mutex_lock(&s->lock);
	h->in_renewal = false;
	dropped = h->dropped;
	pthread_mutex_unlock(&s->lock);
	return dropped;
}

void
held_slots_end_renewal(struct held_slots *s,
    void (*again)(void *context, const struct store_check *check),
    void *context)
{
	for (size_t i = 0; i < s->n_renewed; i++) {
		struct held_slot *h = s->renewed[i];

		if (!is_dropped(s, h))
			continue;
		again(context, &h->check);
		free(h);
	}
	free(s->check);
	free(s->renewed);
	s->check = NULL;
	s->renewed = NULL;
	s->n_renewed = 0;
}
