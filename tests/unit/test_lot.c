/*
 * ENGINE.md, "Descriptors and deadlines": who is parked, in which order,
 * until when, and that of all who want a connection one gets it.
 */
#include "request/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "draw.h"
#include "wire.h"

#define S              INT64_C(1000000)
#define PATIENCE_MS    10000
#define NONE           INT64_MAX
#define HALF_HEADS_MAX 150000

static const struct claim any = { PARKED_KINDS, INT64_MAX };

static struct lot *
new_lot(size_t max)
{
	struct err err;
	struct lot *lot = lot_new(max, HALF_HEADS_MAX, &err);

	assert_non_null(lot);
	return lot;
}

/* Any descriptor that can be watched will do, where nothing is sent. */
static struct connection *
open_one(struct lot *lot)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct connection *c;

	assert_true(fd >= 0);
	c = connection_open(lot, fd, 1024);
	if (c == NULL)
		close(fd);
	return c;
}

/* One with a peer. */
static struct connection *
open_pair(struct lot *lot, int *peer)
{
	int fd[2];

	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	*peer = fd[1];
	return connection_open(lot, fd[0], 1024);
}

static connection_handle
park(struct lot *lot, struct connection *c, enum parked reason,
    int64_t deadline_us)
{
	connection_handle handle = lot_name(c);

	assert_true(connection_park(lot, c, reason, EPOLLIN, deadline_us));
	return handle;
}

static void
test_max(void **state)
{
	struct lot *lot = new_lot(3);
	struct connection *c[3];
	enum parked reason;
	int fd;

	(void)state;
	assert_int_equal(lot_max(lot), 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(lot_open_count(lot), i);
		c[i] = open_one(lot);
		assert_non_null(c[i]);
		assert_null(c[i]->request);
		assert_int_equal(c[i]->in.len, 0);
		assert_int_equal(c[i]->guard.max_bytes, 1024);
	}
	assert_null(open_one(lot));
	/* A name just beyond them is nobody's. */
	assert_null(connection_claim(lot, lot_name(c[2]) + 1, &any, &reason));
	fd = c[1]->fd;
	connection_close(lot, c[1]);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(lot_open_count(lot), 2);
	c[1] = open_one(lot);
	assert_non_null(c[1]);
	assert_null(open_one(lot));
	for (size_t i = 0; i < 3; i++)
		connection_close(lot, c[i]);
	assert_int_equal(lot_open_count(lot), 0);
	lot_free(lot);
}

/* A claim gets what it asks for, once, and only while it is parked. */
static void
test_claim(void **state)
{
	const struct claim head = { PARKED_HEAD, INT64_MAX };
	const struct claim body = { PARKED_BODY, INT64_MAX };
	const struct claim before_5 = { PARKED_KINDS, 5 };
	const struct claim before_4 = { PARKED_HEAD, 4 };
	struct lot *lot = new_lot(3);
	struct connection *c = open_one(lot);
	connection_handle handle = lot_name(c);
	enum parked reason = PARKED_NOT;

	(void)state;
	assert_true(handle >= LOT_TAGS);
	assert_null(connection_claim(lot, handle, &any, &reason));
	assert_int_equal(park(lot, c, PARKED_HEAD, 5), handle);
	assert_int_equal(lot_count(lot, PARKED_HEAD), 1);
	assert_null(connection_claim(lot, handle, &body, &reason));
	assert_null(connection_claim(lot, handle, &before_4, &reason));
	assert_null(connection_claim(lot, handle + 1, &any, &reason));
	assert_null(
	    connection_claim(lot, handle + (UINT64_C(1) << 32), &any, &reason));
	assert_null(connection_claim(lot, 0, &any, &reason));
	assert_null(connection_claim(lot, UINT64_MAX, &any, &reason));
	assert_ptr_equal(connection_claim(lot, handle, &before_5, &reason), c);
	assert_int_equal(reason, PARKED_HEAD);
	assert_int_equal(lot_count(lot, PARKED_HEAD), 0);
	assert_null(connection_claim(lot, handle, &any, &reason));
	park(lot, c, PARKED_HEAD, NONE);
	assert_null(connection_claim(lot, handle, &before_5, &reason));
	assert_ptr_equal(connection_claim(lot, handle, &head, &reason), c);
	/* A deadline that has passed does not last into the next parking. */
	park(lot, c, PARKED_QUEUE, NONE);
	assert_null(connection_claim_expired(lot, &reason));
	assert_ptr_equal(connection_claim(lot, handle, &any, &reason), c);
	connection_close(lot, c);
	lot_free(lot);
}

/* The name of a life that is over names nobody. */
static void
test_stale_handle(void **state)
{
	struct lot *lot = new_lot(1);
	connection_handle old[100];
	enum parked reason;

	(void)state;
	for (size_t i = 0; i < 100; i++) {
		struct connection *c = open_one(lot);

		old[i] = park(lot, c, PARKED_HEAD, NONE);
		for (size_t k = 0; k < i; k++) {
			assert_int_not_equal(old[k], old[i]);
			assert_null(
			    connection_claim(lot, old[k], &any, &reason));
		}
		assert_ptr_equal(
		    connection_claim(lot, old[i], &any, &reason), c);
		connection_close(lot, c);
	}
	lot_free(lot);
}

static void
test_oldest_first(void **state)
{
	struct lot *lot = new_lot(10);
	struct connection *c[6];
	enum parked reason;
	int fd[2];

	(void)state;
	assert_null(connection_claim_oldest(lot, PARKED_IDLE));
	for (size_t i = 0; i < 6; i++) {
		c[i] = open_one(lot);
		park(lot, c[i], i % 2 == 0 ? PARKED_IDLE : PARKED_HEAD,
		    (int64_t)(100 - i));
	}
	assert_int_equal(lot_count(lot, PARKED_IDLE), 3);
	assert_int_equal(lot_count(lot, PARKED_HEAD), 3);
	assert_ptr_equal(
	    connection_claim(lot, lot_name(c[2]), &any, &reason), c[2]);
	assert_ptr_equal(connection_claim_oldest(lot, PARKED_IDLE), c[0]);
	park(lot, c[0], PARKED_IDLE, NONE);
	assert_ptr_equal(connection_claim_oldest(lot, PARKED_IDLE), c[4]);
	assert_ptr_equal(connection_claim_oldest(lot, PARKED_IDLE), c[0]);
	assert_null(connection_claim_oldest(lot, PARKED_IDLE));
	assert_ptr_equal(connection_claim_oldest(lot, PARKED_HEAD), c[1]);
	for (size_t i = 0; i < 5; i++)
		if (i != 3)
			connection_close(lot, c[i]);
	/* The rest is closed with the lot. */
	fd[0] = c[3]->fd;
	fd[1] = c[5]->fd;
	lot_free(lot);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(fcntl(fd[i], F_GETFD), -1);
}

/* Drawn deadlines, some taken out before: the rest comes in order. */
static void
test_deadlines_in_order(void **state)
{
	enum { N = 200 };
	unsigned seed = draw_seed();
	struct lot *lot = new_lot(N);
	struct connection *c[N];

	(void)state;
	for (int i = 0; i < N; i++)
		c[i] = open_one(lot);
	for (int round = 0; round < 30; round++) {
		int64_t now_us = clock_mono_us();
		int64_t last_us = INT64_MIN;
		size_t due = 0;
		enum parked reason;
		struct connection *got;

		for (int i = 0; i < N; i++) {
			int64_t ahead_us = (int64_t)draw_below(&seed, 50) - 40;

			park(lot, c[i], PARKED_BODY,
			    now_us + ahead_us * 100 * S);
			due += ahead_us <= 0;
		}
		for (int i = 0; i < N; i++) {
			int64_t deadline_us = c[i]->deadline_us;

			if (draw_below(&seed, 3) != 0)
				continue;
			got = connection_claim(
			    lot, lot_name(c[i]), &any, &reason);
			assert_ptr_equal(got, c[i]);
			due -= deadline_us <= now_us;
		}
		while ((got = connection_claim_expired(lot, &reason)) != NULL) {
			assert_int_equal(reason, PARKED_BODY);
			assert_true(got->deadline_us >= last_us);
			last_us = got->deadline_us;
			due--;
		}
		assert_int_equal(due, 0);
		while (connection_claim_oldest(lot, PARKED_BODY) != NULL)
			;
		assert_int_equal(lot_count(lot, PARKED_BODY), 0);
	}
	lot_free(lot);
}

/* The tag of the next event; 0: none. */
static uint64_t
next_event(struct lot *lot, int wait_ms)
{
	struct epoll_event event;
	int n = epoll_wait(lot_epoll(lot), &event, 1, wait_ms);

	return n == 1 ? event.data.u64 : 0;
}

/* The timer fires for the nearest deadline, whenever it was parked. */
static void
test_timer(void **state)
{
	struct lot *lot = new_lot(4);
	struct connection *c[3];
	int64_t begun_us = clock_mono_us();
	enum parked reason;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		c[i] = open_one(lot);
	park(lot, c[0], PARKED_BODY, begun_us + 3000 * S);
	park(lot, c[1], PARKED_BODY, begun_us + 40000);
	park(lot, c[2], PARKED_HEAD, begun_us + 20000);
	for (size_t i = 2; i >= 1; i--) {
		struct connection *got = NULL;

		/* It may fire early, for one that has gone; never late. */
		while (got == NULL) {
			assert_int_equal(
			    next_event(lot, PATIENCE_MS), LOT_TIMER_TAG);
			got = connection_claim_expired(lot, &reason);
		}
		assert_ptr_equal(got, c[i]);
		assert_true(clock_mono_us() >= got->deadline_us);
		assert_null(connection_claim_expired(lot, &reason));
	}
	assert_int_equal(next_event(lot, 0), 0);
	/* One that is parked with its deadline passed is due at once. */
	park(lot, c[1], PARKED_DRAIN, 1);
	assert_int_equal(next_event(lot, PATIENCE_MS), LOT_TIMER_TAG);
	assert_ptr_equal(connection_claim_expired(lot, &reason), c[1]);
	assert_int_equal(reason, PARKED_DRAIN);
	park(lot, c[1], PARKED_DRAIN, 0);
	assert_int_equal(next_event(lot, PATIENCE_MS), LOT_TIMER_TAG);
	assert_ptr_equal(connection_claim_expired(lot, &reason), c[1]);
	lot_free(lot);
}

/* One event for one parking; the data stays, and nothing spins. */
static void
test_events(void **state)
{
	struct lot *lot = new_lot(2);
	int peer;
	struct connection *c = open_pair(lot, &peer);
	connection_handle handle = park(lot, c, PARKED_IDLE, NONE);
	enum parked reason;

	(void)state;
	assert_int_equal(next_event(lot, 0), 0);
	assert_int_equal(write(peer, "a", 1), 1);
	assert_int_equal(next_event(lot, PATIENCE_MS), handle);
	assert_int_equal(write(peer, "b", 1), 1);
	assert_int_equal(next_event(lot, 0), 0);
	assert_ptr_equal(connection_claim(lot, handle, &any, &reason), c);
	assert_int_equal(connection_read(c, 10), CONNECTION_READ);
	assert_int_equal(connection_read(c, 10), CONNECTION_EMPTY);
	expect_str(buf_str(&c->in), STR("ab"));
	/* What came before it was parked is told as well. */
	assert_int_equal(write(peer, "c", 1), 1);
	park(lot, c, PARKED_HEAD, NONE);
	assert_int_equal(next_event(lot, PATIENCE_MS), handle);
	assert_ptr_equal(connection_claim(lot, handle, &any, &reason), c);
	/* In a queue only going away is news. */
	assert_true(connection_park(lot, c, PARKED_QUEUE, EPOLLRDHUP, NONE));
	assert_int_equal(next_event(lot, 0), 0);
	close(peer);
	assert_int_equal(next_event(lot, PATIENCE_MS), handle);
	assert_ptr_equal(connection_claim(lot, handle, &any, &reason), c);
	assert_int_equal(reason, PARKED_QUEUE);
	assert_int_equal(connection_read(c, 1), CONNECTION_READ);
	assert_int_equal(connection_read(c, 1), CONNECTION_EOF);
	expect_str(buf_str(&c->in), STR("abc"));
	assert_false(connection_send(c, "x", 1));
	connection_close(lot, c);
	lot_free(lot);
}

/* Parked in two steps, nobody gets it in between. */
static void
test_hold(void **state)
{
	struct lot *lot = new_lot(2);
	struct connection *c = open_one(lot);
	connection_handle handle = lot_name(c);
	enum parked reason;

	(void)state;
	connection_hold(c);
	connection_release(c);
	assert_null(connection_claim(lot, handle, &any, &reason));
	connection_hold(c);
	assert_true(
	    connection_park_held(lot, c, PARKED_QUEUE, EPOLLRDHUP, NONE));
	assert_ptr_equal(connection_claim(lot, handle, &any, &reason), c);
	/* What the kernel will not watch stays its owner's. */
	close(c->fd);
	c->fd = -1;
	assert_false(connection_park(lot, c, PARKED_HEAD, EPOLLIN, 1));
	assert_int_equal(lot_count(lot, PARKED_HEAD), 0);
	assert_null(connection_claim(lot, handle, &any, &reason));
	assert_null(connection_claim_expired(lot, &reason));
	connection_close(lot, c);
	lot_free(lot);
}

/* Half heads are counted by what they hold, while they are parked. */
static void
test_half_heads(void **state)
{
	struct lot *lot = new_lot(4);
	struct connection *c[3];
	enum parked reason;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct buf *b;

		c[i] = open_one(lot);
		b = i == 1 ? &c[i]->guard.pairs : &c[i]->in;
		assert_true(buf_reserve(b, 60000));
		assert_in_range(b->cap, 60000, 70000);
		park(lot, c[i], PARKED_HEAD, NONE);
		assert_int_equal(lot_half_heads_full(lot), i == 2);
	}
	assert_ptr_equal(connection_claim_oldest(lot, PARKED_HEAD), c[0]);
	assert_false(lot_half_heads_full(lot));
	/* Only half heads count. */
	park(lot, c[0], PARKED_BODY, NONE);
	assert_false(lot_half_heads_full(lot));
	connection_claim(lot, lot_name(c[0]), &any, &reason);
	/* What it grew or shrank to meanwhile is what counts. */
	buf_release(&c[0]->in);
	park(lot, c[0], PARKED_HEAD, NONE);
	assert_false(lot_half_heads_full(lot));
	connection_claim(lot, lot_name(c[1]), &any, &reason);
	buf_reserve(&c[1]->in, 60000);
	park(lot, c[1], PARKED_HEAD, NONE);
	assert_true(lot_half_heads_full(lot));
	lot_free(lot);
}

static void
test_send(void **state)
{
	static char much[1 << 20];
	struct lot *lot = new_lot(1);
	char got[8];
	int peer;
	struct connection *c = open_pair(lot, &peer);

	(void)state;
	assert_true(connection_is_writable(c));
	assert_true(connection_send(c, "hello", 5));
	assert_int_equal(read(peer, got, sizeof(got)), 5);
	assert_memory_equal(got, "hello", 5);
	/* Who does not read is not waited for. */
	assert_false(connection_send(c, much, sizeof(much)));
	assert_false(connection_is_writable(c));
	assert_false(connection_send(c, much, 1));
	connection_close(lot, c);
	close(peer);
	lot_free(lot);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_max),
		cmocka_unit_test(test_claim),
		cmocka_unit_test(test_stale_handle),
		cmocka_unit_test(test_oldest_first),
		cmocka_unit_test(test_deadlines_in_order),
		cmocka_unit_test(test_timer),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_hold),
		cmocka_unit_test(test_half_heads),
		cmocka_unit_test(test_send),
	};

	return cmocka_run_group_tests_name("lot", tests, NULL, NULL);
}
