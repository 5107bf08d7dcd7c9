/*
 * Connections claimed by many at once: exactly one gets each, and a name
 * never leads to another life (ENGINE.md: a timer by descriptor number hit
 * strangers 12 times in 200,000).
 */
#include "request/connection.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "draw.h"

#define THREADS     4
#define CONNECTIONS 16
#define NONE        INT64_MAX

static const struct claim any = { PARKED_KINDS, INT64_MAX };

static struct connection *
open_one(struct lot *lot)
{
	int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	struct connection *c;

	assert_true(fd >= 0);
	c = connection_open(lot, fd, 1024);
	if (c == NULL)
		close(fd);
	return c;
}

/* --- One parked connection, and four that want it ------------------------- */

struct contest {
	struct lot *lot;
	pthread_barrier_t ready;
	pthread_barrier_t over;
	_Atomic bool done;
	connection_handle handle;
	struct connection *_Atomic winner;
	_Atomic int winners;
};

static struct connection *
want(struct contest *k, size_t how)
{
	enum parked reason;
	struct epoll_event event;

	switch (how) {
	case 0:
		return connection_claim(k->lot, k->handle, &any, &reason);
	case 1:
		return connection_claim_expired(k->lot, &reason);
	case 2:
		return connection_claim_oldest(k->lot, PARKED_BODY);
	default:
		/* Its event, or the timer's, or none any more. */
		if (epoll_wait(lot_epoll(k->lot), &event, 1, 0) != 1)
			return NULL;
		if (event.data.u64 == LOT_TIMER_TAG)
			return connection_claim_expired(k->lot, &reason);
		return connection_claim(k->lot, event.data.u64, &any, &reason);
	}
}

struct contestant {
	struct contest *contest;
	size_t how;
};

static void *
contend(void *context)
{
	struct contestant *me = context;
	struct contest *k = me->contest;

	for (;;) {
		struct connection *c;

		pthread_barrier_wait(&k->ready);
		if (atomic_load(&k->done))
			return NULL;
		c = want(k, me->how);
		if (c != NULL) {
			atomic_store(&k->winner, c);
			atomic_fetch_add(&k->winners, 1);
		}
		pthread_barrier_wait(&k->over);
	}
}

static void
test_one_winner(void **state)
{
	struct contest k = { .done = false };
	struct contestant me[THREADS];
	pthread_t thread[THREADS];
	struct connection *c;
	struct err err;

	(void)state;
	k.lot = lot_new(2, 1 << 20, &err);
	assert_non_null(k.lot);
	pthread_barrier_init(&k.ready, NULL, THREADS + 1);
	pthread_barrier_init(&k.over, NULL, THREADS + 1);
	for (size_t i = 0; i < THREADS; i++) {
		me[i] = (struct contestant){ &k, i };
		assert_int_equal(
		    pthread_create(&thread[i], NULL, contend, &me[i]), 0);
	}
	c = open_one(k.lot);
	for (int round = 0; round < 2000; round++) {
		k.handle = lot_name(c);
		atomic_store(&k.winners, 0);
		assert_true(connection_park(k.lot, c, PARKED_BODY, EPOLLIN, 1));
		pthread_barrier_wait(&k.ready);
		pthread_barrier_wait(&k.over);
		assert_int_equal(atomic_load(&k.winners), 1);
		assert_ptr_equal(atomic_load(&k.winner), c);
		assert_int_equal(lot_count(k.lot, PARKED_BODY), 0);
	}
	atomic_store(&k.done, true);
	pthread_barrier_wait(&k.ready);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	connection_close(k.lot, c);
	lot_free(k.lot);
	pthread_barrier_destroy(&k.ready);
	pthread_barrier_destroy(&k.over);
}

/* --- Lives that end and begin while their old names are still about ------- */

#define NAMES 64
#define STEPS 8000

struct churn {
	struct lot *lot;
	_Atomic uint64_t name[NAMES];
	_Atomic int owners[CONNECTIONS];
	_Atomic int strangers;
	_Atomic int shared;
	_Atomic int refused;
	_Atomic int claims;
};

struct churner {
	struct churn *churn;
	unsigned seed;
};

/* Owned by this thread from here on, and by nobody else. */
static void
own(struct churn *ch, const struct connection *c)
{
	if (atomic_fetch_add(&ch->owners[c->index], 1) != 0)
		atomic_fetch_add(&ch->shared, 1);
}

static void
give_up(struct churn *ch, struct connection *c, unsigned *seed)
{
	static const enum parked reasons[] = { PARKED_HEAD, PARKED_IDLE,
		PARKED_BODY, PARKED_QUEUE, PARKED_DRAIN };
	enum parked reason = reasons[draw_below(seed, 5)];
	int64_t deadline_us =
	    draw_below(seed, 3) == 0 ? NONE : (int64_t)draw_below(seed, 1000);

	if (draw_below(seed, 4) != 0)
		atomic_store(&ch->name[draw_below(seed, NAMES)], lot_name(c));
	atomic_fetch_sub(&ch->owners[c->index], 1);
	if (draw_below(seed, 3) == 0)
		connection_close(ch->lot, c);
	else if (!connection_park(ch->lot, c, reason, EPOLLIN, deadline_us))
		atomic_fetch_add(&ch->refused, 1);
}

static struct connection *
claim_named(struct churn *ch, uint64_t name)
{
	enum parked reason;
	struct connection *c = connection_claim(ch->lot, name, &any, &reason);

	if (c != NULL && lot_name(c) != name)
		atomic_fetch_add(&ch->strangers, 1);
	return c;
}

static struct connection *
claim_somehow(struct churn *ch, unsigned *seed)
{
	struct epoll_event event;
	enum parked reason;

	switch (draw_below(seed, 6)) {
	case 0:
		return connection_claim_expired(ch->lot, &reason);
	case 1:
		return connection_claim_oldest(
		    ch->lot, (enum parked)(1 + draw_below(seed, 5)));
	case 2:
		if (epoll_wait(lot_epoll(ch->lot), &event, 1, 0) != 1 ||
		    event.data.u64 < LOT_TAGS)
			return NULL;
		return claim_named(ch, event.data.u64);
	default:
		return claim_named(
		    ch, atomic_load(&ch->name[draw_below(seed, NAMES)]));
	}
}

static void *
churn(void *context)
{
	struct churner *me = context;
	struct churn *ch = me->churn;

	for (int i = 0; i < STEPS; i++) {
		struct connection *c = draw_below(&me->seed, 3) == 0
		    ? open_one(ch->lot)
		    : claim_somehow(ch, &me->seed);

		if (c == NULL)
			continue;
		atomic_fetch_add(&ch->claims, 1);
		own(ch, c);
		give_up(ch, c, &me->seed);
	}
	return NULL;
}

static void
test_churn(void **state)
{
	unsigned seed = draw_seed();
	struct churn ch = { .strangers = 0 };
	struct churner me[THREADS];
	pthread_t thread[THREADS];
	struct err err;
	size_t left = 0;

	(void)state;
	ch.lot = lot_new(CONNECTIONS, 1 << 20, &err);
	assert_non_null(ch.lot);
	for (size_t i = 0; i < THREADS; i++) {
		me[i] = (struct churner){ &ch, seed + (unsigned)i };
		assert_int_equal(
		    pthread_create(&thread[i], NULL, churn, &me[i]), 0);
	}
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(ch.shared, 0);
	assert_int_equal(ch.strangers, 0);
	assert_int_equal(ch.refused, 0);
	assert_in_range(ch.claims, THREADS * STEPS / 10, THREADS * STEPS);
	for (enum parked reason = PARKED_HEAD; reason < PARKED_KINDS;
	     reason++) {
		struct connection *c;

		left += lot_count(ch.lot, reason);
		while ((c = connection_claim_oldest(ch.lot, reason)) != NULL) {
			connection_close(ch.lot, c);
			left--;
		}
	}
	assert_int_equal(left, 0);
	assert_int_equal(lot_open_count(ch.lot), 0);
	assert_false(lot_half_heads_full(ch.lot));
	lot_free(ch.lot);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_winner),
		cmocka_unit_test(test_churn),
	};

	return cmocka_run_group_tests_name("lot_race", tests, NULL, NULL);
}
