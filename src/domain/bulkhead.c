#include "domain/bulkhead.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct gate {
	char *name;
	unsigned references;
	size_t inflight;
	size_t max;
	size_t queue_max;
	size_t waiting;
	struct waiter *first;
	struct waiter *last;
	struct gate *next;
};

/* One lock: it is held for a few instructions, twice a request. */
struct bulkhead {
	pthread_mutex_t lock;
	size_t total;
	size_t total_max;
	uint64_t turns;
	struct gate *gates;
};

struct bulkhead *
bulkhead_new(size_t total_max)
{
	struct bulkhead *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return NULL;
	pthread_mutex_init(&b->lock, NULL);
	b->total_max = total_max;
	return b;
}

void
bulkhead_free(struct bulkhead *b)
{
	if (b == NULL)
		return;
	pthread_mutex_destroy(&b->lock);
	free(b);
}

static struct gate *
find_gate(struct bulkhead *b, const char *name)
{
	struct gate *gate = b->gates;

	while (gate != NULL && strcmp(gate->name, name) != 0)
		gate = gate->next;
	return gate;
}

static struct gate *
new_gate(struct bulkhead *b, const char *name)
{
	struct gate *gate = calloc(1, sizeof(*gate));

	if (gate == NULL)
		return NULL;
	gate->name = strdup(name);
	if (gate->name == NULL) {
		free(gate);
		return NULL;
	}
	gate->next = b->gates;
	b->gates = gate;
	return gate;
}

struct gate *
bulkhead_open_gate(
    struct bulkhead *b, const char *name, size_t max_inflight, size_t queue_max)
{
	struct gate *gate;

	pthread_mutex_lock(&b->lock);
	gate = find_gate(b, name);
	if (gate == NULL)
		gate = new_gate(b, name);
	if (gate != NULL) {
		gate->references++;
		gate->max = max_inflight;
		gate->queue_max = queue_max;
	}
	pthread_mutex_unlock(&b->lock);
	return gate;
}

static void
unlink_gate(struct bulkhead *b, const struct gate *gate)
{
	struct gate **at = &b->gates;

	while (*at != gate)
		at = &(*at)->next;
	*at = gate->next;
}

void
bulkhead_close_gate(struct bulkhead *b, struct gate *gate)
{
	bool last;

	pthread_mutex_lock(&b->lock);
	last = --gate->references == 0;
	if (last)
		unlink_gate(b, gate);
	pthread_mutex_unlock(&b->lock);
	if (last) {
		free(gate->name);
		free(gate);
	}
}

static bool
has_place(const struct bulkhead *b, const struct gate *gate)
{
	return gate->inflight < gate->max && b->total < b->total_max;
}

static void
take_place(struct bulkhead *b, struct gate *gate)
{
	gate->inflight++;
	b->total++;
}

static void
append(struct bulkhead *b, struct gate *gate, struct waiter *waiter)
{
	waiter->turn = b->turns++;
	waiter->gate = gate;
	waiter->next = NULL;
	waiter->previous = gate->last;
	if (gate->last == NULL)
		gate->first = waiter;
	else
		gate->last->next = waiter;
	gate->last = waiter;
	gate->waiting++;
}

static void
detach(struct waiter *waiter)
{
	struct gate *gate = waiter->gate;

	if (waiter->previous == NULL)
		gate->first = waiter->next;
	else
		waiter->previous->next = waiter->next;
	if (waiter->next == NULL)
		gate->last = waiter->previous;
	else
		waiter->next->previous = waiter->previous;
	waiter->gate = NULL;
	gate->waiting--;
}

enum bulkhead_entry
bulkhead_enter(struct bulkhead *b, struct gate *gate, struct waiter *waiter)
{
	enum bulkhead_entry entry = BULKHEAD_FULL;

	pthread_mutex_lock(&b->lock);
	if (gate->waiting == 0 && has_place(b, gate)) {
		take_place(b, gate);
		entry = BULKHEAD_IN;
	} else if (gate->waiting < gate->queue_max) {
		append(b, gate, waiter);
		entry = BULKHEAD_QUEUED;
	}
	pthread_mutex_unlock(&b->lock);
	return entry;
}

static struct gate *
gate_to_serve(struct bulkhead *b)
{
	struct gate *found = NULL;
	struct gate *gate;

	for (gate = b->gates; gate != NULL; gate = gate->next)
		if (gate->first != NULL && has_place(b, gate) &&
		    (found == NULL || gate->first->turn < found->first->turn))
			found = gate;
	return found;
}

bool
bulkhead_admit(struct bulkhead *b, uint64_t *handle, struct gate **gate)
{
	struct gate *found;

	pthread_mutex_lock(&b->lock);
	found = gate_to_serve(b);
	if (found != NULL) {
		*handle = found->first->handle;
		*gate = found;
		detach(found->first);
		take_place(b, found);
	}
	pthread_mutex_unlock(&b->lock);
	return found != NULL;
}

bool
bulkhead_can_admit(struct bulkhead *b)
{
	bool can;

	pthread_mutex_lock(&b->lock);
	can = gate_to_serve(b) != NULL;
	pthread_mutex_unlock(&b->lock);
	return can;
}

void
bulkhead_leave(struct bulkhead *b, struct gate *gate)
{
	pthread_mutex_lock(&b->lock);
	gate->inflight--;
	b->total--;
	pthread_mutex_unlock(&b->lock);
}

bool
bulkhead_is_queued(struct bulkhead *b, const struct waiter *waiter)
{
	bool queued;

	pthread_mutex_lock(&b->lock);
	queued = waiter->gate != NULL;
	pthread_mutex_unlock(&b->lock);
	return queued;
}

void
bulkhead_forget(struct bulkhead *b, struct waiter *waiter)
{
	pthread_mutex_lock(&b->lock);
	if (waiter->gate != NULL)
		detach(waiter);
	pthread_mutex_unlock(&b->lock);
}

size_t
bulkhead_inflight(struct bulkhead *b)
{
	size_t total;

	pthread_mutex_lock(&b->lock);
	total = b->total;
	pthread_mutex_unlock(&b->lock);
	return total;
}
