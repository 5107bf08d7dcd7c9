/*
 * Leader and followers. A slot is a question's copy of all it needs, from a
 * pool that only grows, so that its thread may leave before the reply is
 * there. Its state changes under the lane's mutex alone; the futex on it
 * only wakes.
 *
 *	WAITING    in the pending list
 *	TAKEN      in the batch of whoever leads, who alone writes its answer
 *	DONE       answered: its thread's again
 *	LEAD       first of the pending list, and its thread is to lead
 *	ABANDONED  TAKEN, but its thread has left: the leader frees it
 *
 * While somebody leads, `leading` is set and the link is theirs alone.
 * Nobody leads only when nothing is pending.
 */
#include "domain/redis_lane.h"

#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/counter.h"
#include "domain/redis_batch.h"

enum slot_state { FREE, WAITING, TAKEN, DONE, LEAD, ABANDONED };

struct slot {
	struct redis_batch_item item;
	_Atomic uint32_t state; /* enum slot_state */
	int64_t deadline_us;
	struct slot *previous; /* pending list */
	struct slot *next;     /* pending list, or free list */
};

struct redis_lane {
	struct redis_lane_events events;
	pthread_mutex_t lock;
	struct redis_link *link;
	atomic_bool up; /* link is not NULL */
	bool leading;
	struct slot *first; /* pending, oldest first */
	struct slot *last;
	struct slot *free;
	struct redis_batch *batch; /* the leader's working memory */
};

static struct slot *
slot_of(struct redis_batch_item *item)
{
	return (struct slot *)item;
}

/* False: the time has come. */
static bool
sleep_while(_Atomic uint32_t *state, uint32_t value, int64_t deadline_us)
{
	struct timespec at = { deadline_us / 1000000,
		deadline_us % 1000000 * 1000 };

	return syscall(SYS_futex, state, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG,
		   value, &at, NULL, FUTEX_BITSET_MATCH_ANY) == 0 ||
	    errno != ETIMEDOUT;
}

static void
wake(struct slot *slot)
{
	syscall(SYS_futex, &slot->state, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1,
	    NULL, NULL, 0);
}

static struct slot *
slot_acquire(struct redis_lane *lane)
{
	struct slot *slot;

	pthread_mutex_lock(&lane->lock);
	slot = lane->free;
	if (slot != NULL)
		lane->free = slot->next;
	pthread_mutex_unlock(&lane->lock);
	if (slot == NULL)
		slot = calloc(1, sizeof(*slot));
	return slot;
}

/* The functions from here to redis_lane_ask are called with the lock. */
static void
slot_release(struct redis_lane *lane, struct slot *slot)
{
	atomic_store(&slot->state, FREE);
	slot->next = lane->free;
	lane->free = slot;
}

static void
append(struct redis_lane *lane, struct slot *slot)
{
	atomic_store(&slot->state, WAITING);
	slot->next = NULL;
	slot->previous = lane->last;
	if (lane->last != NULL)
		lane->last->next = slot;
	else
		lane->first = slot;
	lane->last = slot;
}

static void
take_out(struct redis_lane *lane, struct slot *slot)
{
	if (slot->previous != NULL)
		slot->previous->next = slot->next;
	else
		lane->first = slot->next;
	if (slot->next != NULL)
		slot->next->previous = slot->previous;
	else
		lane->last = slot->previous;
}

/* NULL: nobody waits, and so nobody leads. */
static struct slot *
pass_lead(struct redis_lane *lane)
{
	lane->leading = lane->first != NULL;
	if (lane->first != NULL)
		atomic_store(&lane->first->state, LEAD);
	return lane->first;
}

static void
set_out(struct store_answer *answer, const struct redis_trouble *trouble)
{
	answer->status = STORE_OUT;
	answer->reason = trouble->reason;
}

/* With the link gone there is nothing to wait for. */
static void
fail_pending(struct redis_lane *lane, const struct redis_trouble *trouble)
{
	while (lane->first != NULL) {
		struct slot *slot = lane->first;

		take_out(lane, slot);
		set_out(&slot->item.answer, trouble);
		atomic_store(&slot->state, DONE);
		wake(slot);
	}
}

static void
take_batch(struct redis_lane *lane)
{
	struct slot *slot;

	redis_batch_reset(lane->batch);
	while ((slot = lane->first) != NULL &&
	    redis_batch_add(lane->batch, &slot->item)) {
		take_out(lane, slot);
		atomic_store(&slot->state, TAKEN);
	}
}

/* Those to wake are left in `done`. */
static size_t
finish_batch(struct redis_lane *lane, const struct slot *own,
    struct slot *done[REDIS_BATCH_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < redis_batch_count(lane->batch); i++) {
		struct slot *slot = slot_of(redis_batch_at(lane->batch, i));

		if (slot == own)
			continue;
		if (atomic_load(&slot->state) == ABANDONED) {
			slot_release(lane, slot);
		} else {
			atomic_store(&slot->state, DONE);
			done[n++] = slot;
		}
	}
	return n;
}

static void
copy_answer(const struct slot *slot, struct store_answer *answer)
{
	const struct store_answer *from = &slot->item.answer;

	answer->status = from->status;
	answer->reason = from->reason;
	answer->taken_us = from->taken_us;
	memcpy(answer->verdict, from->verdict,
	    slot->item.n * sizeof(answer->verdict[0]));
}

/* Called, and returns, without the lock. */
static void
lead(struct redis_lane *lane, struct slot *own, struct store_answer *answer)
{
	struct slot *done[REDIS_BATCH_MAX], *heir = NULL;
	struct redis_link *dropped = NULL;
	const struct redis_trouble *trouble;
	size_t n;

	pthread_mutex_lock(&lane->lock);
	assert(lane->leading && lane->link != NULL);
	take_batch(lane);
	pthread_mutex_unlock(&lane->lock);

	trouble = redis_batch_run(lane->batch, lane->link, own->deadline_us);

	pthread_mutex_lock(&lane->lock);
	n = finish_batch(lane, own, done);
	if (trouble != NULL) {
		dropped = lane->link;
		lane->link = NULL;
		atomic_store(&lane->up, false);
		fail_pending(lane, trouble);
		lane->leading = false;
	} else {
		heir = pass_lead(lane);
	}
	copy_answer(own, answer);
	slot_release(lane, own);
	pthread_mutex_unlock(&lane->lock);

	if (heir != NULL)
		wake(heir);
	for (size_t i = 0; i < n; i++)
		wake(done[i]);
	redis_link_close(dropped);
	if (trouble != NULL)
		lane->events.tripped(lane->events.context, trouble);
	else
		lane->events.answered(lane->events.context);
}

/* The deadline has passed: takes what there is and leaves. */
static void
leave(struct redis_lane *lane, struct slot *slot, struct store_answer *answer)
{
	struct slot *heir = NULL;

	pthread_mutex_lock(&lane->lock);
	set_out(answer, &redis_trouble_timeout);
	switch ((enum slot_state)atomic_load(&slot->state)) {
	case TAKEN:
		atomic_store(&slot->state, ABANDONED);
		break;
	case DONE:
		copy_answer(slot, answer);
		slot_release(lane, slot);
		break;
	case LEAD:
		take_out(lane, slot);
		slot_release(lane, slot);
		heir = pass_lead(lane);
		break;
	case WAITING:
		take_out(lane, slot);
		slot_release(lane, slot);
		break;
	case FREE:
	case ABANDONED:
		assert(false);
	}
	pthread_mutex_unlock(&lane->lock);
	if (heir != NULL)
		wake(heir);
}

static void
follow(struct redis_lane *lane, struct slot *slot, struct store_answer *answer)
{
	uint32_t state;

	while (
	    (state = atomic_load(&slot->state)) == WAITING || state == TAKEN) {
		if (!sleep_while(&slot->state, state, slot->deadline_us)) {
			leave(lane, slot, answer);
			return;
		}
	}
	if (state == LEAD) {
		lead(lane, slot, answer);
		return;
	}
	copy_answer(slot, answer);
	pthread_mutex_lock(&lane->lock);
	slot_release(lane, slot);
	pthread_mutex_unlock(&lane->lock);
}

static void
count_outcome(const struct store_answer *answer, size_t n)
{
	size_t errors = 0;

	if (answer->status == STORE_OUT) {
		if (answer->reason == redis_trouble_timeout.reason)
			counter_add(COUNTER_check_timeouts, 1);
		return;
	}
	for (size_t i = 0; i < n; i++)
		errors += answer->verdict[i].kind == VERDICT_ERROR;
	if (errors > 0)
		counter_add(COUNTER_check_errors, errors);
}

void
redis_lane_ask(struct redis_lane *lane, enum redis_script_name name,
    const struct store_question *q, int64_t deadline_us,
    struct store_answer *answer)
{
	struct slot *slot = slot_acquire(lane);
	bool filled, leads;

	set_out(answer, &redis_trouble_unreachable);
	if (slot == NULL)
		return;
	slot->deadline_us = deadline_us;
	filled = redis_batch_item_fill(&slot->item, name, q);
	pthread_mutex_lock(&lane->lock);
	if (lane->link == NULL || !filled) {
		slot_release(lane, slot);
		pthread_mutex_unlock(&lane->lock);
		return;
	}
	append(lane, slot);
	leads = !lane->leading;
	lane->leading = true;
	pthread_mutex_unlock(&lane->lock);
	if (leads)
		lead(lane, slot, answer);
	else
		follow(lane, slot, answer);
	if (name == REDIS_SCRIPT_CHECK)
		count_outcome(answer, q->n);
}

struct redis_lane *
redis_lane_new(const struct redis_lane_events *events)
{
	struct redis_lane *lane = calloc(1, sizeof(*lane));

	if (lane == NULL)
		return NULL;
	lane->batch = redis_batch_new();
	if (lane->batch == NULL) {
		free(lane);
		return NULL;
	}
	lane->events = *events;
	pthread_mutex_init(&lane->lock, NULL);
	return lane;
}

void
redis_lane_free(struct redis_lane *lane)
{
	struct slot *slot;

	if (lane == NULL)
		return;
	assert(!lane->leading && lane->first == NULL);
	while ((slot = lane->free) != NULL) {
		lane->free = slot->next;
		redis_batch_item_release(&slot->item);
		free(slot);
	}
	redis_link_close(lane->link);
	redis_batch_free(lane->batch);
	pthread_mutex_destroy(&lane->lock);
	free(lane);
}

bool
redis_lane_is_up(const struct redis_lane *lane)
{
	return atomic_load(&lane->up);
}

void
redis_lane_give(struct redis_lane *lane, struct redis_link *link)
{
	pthread_mutex_lock(&lane->lock);
	assert(lane->link == NULL);
	lane->link = link;
	atomic_store(&lane->up, true);
	pthread_mutex_unlock(&lane->lock);
}

static void
drop_if(struct redis_lane *lane, bool even_quiet)
{
	struct redis_link *dropped = NULL;

	pthread_mutex_lock(&lane->lock);
	if (lane->link != NULL && !lane->leading &&
	    (even_quiet || !redis_link_is_quiet(lane->link))) {
		dropped = lane->link;
		lane->link = NULL;
		atomic_store(&lane->up, false);
	}
	pthread_mutex_unlock(&lane->lock);
	redis_link_close(dropped);
}

void
redis_lane_drop_dead(struct redis_lane *lane)
{
	drop_if(lane, false);
}

void
redis_lane_drop(struct redis_lane *lane)
{
	drop_if(lane, true);
}
