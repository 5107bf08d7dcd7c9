/*
 * SPEC [backend], `keep_alive`: which kept connections are given out, and
 * which are closed.
 */
#include "io/idle.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define NOW INT64_C(50000000)

/* Ours, and the application's end of it. */
struct pair {
	int fd;
	int peer;
};

static struct pair
connect_pair(void)
{
	int fd[2];

	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	return (struct pair){ fd[0], fd[1] };
}

static bool
is_closed(const struct pair *pair)
{
	char byte;

	return recv(pair->peer, &byte, 1, MSG_DONTWAIT) == 0;
}

static int
take(struct idle *idle, int64_t now_us)
{
	size_t dead;
	int fd = idle_take(idle, true, now_us, &dead).fd;

	assert_int_equal(dead, 0);
	return fd;
}

static void
open_idle(struct idle *idle, size_t max)
{
	idle_init(idle);
	assert_true(idle_set_max(idle, max));
}

static void
test_last_in_first_out(void **state)
{
	struct idle idle;
	struct pair pair[4];

	(void)state;
	open_idle(&idle, 3);
	assert_int_equal(take(&idle, NOW), -1);
	for (int i = 0; i < 4; i++) {
		pair[i] = connect_pair();
		idle_put(&idle, pair[i].fd, 2, NOW + i);
	}
	assert_true(is_closed(&pair[3])); /* there was no room */
	assert_int_equal(take(&idle, NOW + 4), pair[2].fd);
	assert_int_equal(take(&idle, NOW + 4), pair[1].fd);
	idle_put(&idle, pair[2].fd, 2, NOW + 5);
	assert_int_equal(take(&idle, NOW + 5), pair[2].fd);
	idle_release(&idle);
	assert_true(is_closed(&pair[0]));
	assert_false(is_closed(&pair[1]));
	for (int i = 0; i < 4; i++)
		close(pair[i].peer);
	close(pair[1].fd);
	close(pair[2].fd);
}

/* A connection goes on to tell how many requests it has carried. */
static void
test_uses(void **state)
{
	struct idle idle;
	struct pair pair[2] = { connect_pair(), connect_pair() };
	struct idle_connection taken;
	size_t dead;

	(void)state;
	open_idle(&idle, 2);
	idle_put(&idle, pair[0].fd, 70000, NOW);
	idle_put(&idle, pair[1].fd, 3, NOW);
	taken = idle_take(&idle, true, NOW, &dead);
	assert_int_equal(taken.fd, pair[1].fd);
	assert_int_equal(taken.uses, 3);
	taken = idle_take(&idle, true, NOW, &dead);
	assert_int_equal(taken.fd, pair[0].fd);
	assert_int_equal(taken.uses, 70000);
	idle_release(&idle);
	for (int i = 0; i < 2; i++) {
		close(pair[i].fd);
		close(pair[i].peer);
	}
}

/* Nothing is kept unless it is said how many. */
static void
test_none(void **state)
{
	struct idle idle;
	struct pair pair = connect_pair();

	(void)state;
	idle_init(&idle);
	idle_put(&idle, pair.fd, 2, NOW);
	assert_true(is_closed(&pair));
	assert_int_equal(take(&idle, NOW), -1);
	close(pair.peer);
	idle_release(&idle);
}

/* Each has carried `uses` requests; all but one are dead, each in its way. */
static void
expect_dead_ones_closed(size_t uses, bool given_out)
{
	enum { CLOSED, HALF_CLOSED, RESET, SAID_MORE, MANY };
	struct idle idle;
	struct pair pair[MANY + 1];
	size_t dead;

	open_idle(&idle, MANY + 1);
	for (int i = 0; i <= MANY; i++)
		pair[i] = connect_pair();
	/* What was not read when it closed makes it a reset. */
	assert_int_equal(send(pair[RESET].fd, "x", 1, 0), 1);
	for (int i = MANY; i >= 0; i--)
		idle_put(&idle, pair[i].fd, uses, NOW);
	close(pair[CLOSED].peer);
	assert_int_equal(shutdown(pair[HALF_CLOSED].peer, SHUT_WR), 0);
	close(pair[RESET].peer);
	assert_int_equal(send(pair[SAID_MORE].peer, "x", 1, 0), 1);
	assert_int_equal(idle_take(&idle, true, NOW, &dead).fd,
	    given_out ? pair[MANY].fd : -1);
	assert_int_equal(dead, MANY);
	assert_int_equal(
	    take(&idle, NOW + IDLE_TRIAL_US), given_out ? -1 : pair[MANY].fd);
	for (int i = 0; i < MANY; i++)
		assert_true(fcntl(pair[i].fd, F_GETFD) < 0 && errno == EBADF);
	close(pair[MANY].fd);
	close(pair[MANY].peer);
	close(pair[HALF_CLOSED].peer);
	close(pair[SAID_MORE].peer);
	idle_release(&idle);
}

static void
test_dead_ones(void **state)
{
	(void)state;
	expect_dead_ones_closed(2, true);
}

/* Nor does one that is not given out yet stay when its peer is gone. */
static void
test_dead_on_trial(void **state)
{
	(void)state;
	expect_dead_ones_closed(1, false);
}

/* A peer that may be about to close is not trusted at once. */
static void
test_trial(void **state)
{
	struct idle idle;
	struct pair proven = connect_pair();
	struct pair fresh = connect_pair();
	size_t dead;

	(void)state;
	open_idle(&idle, 2);
	idle_put(&idle, proven.fd, 2, NOW);
	idle_put(&idle, fresh.fd, 1, NOW);
	assert_int_equal(idle_take(&idle, false, NOW, &dead).fd, -1);
	assert_int_equal(take(&idle, NOW), proven.fd);
	assert_int_equal(take(&idle, NOW + IDLE_TRIAL_US - 1), -1);
	assert_int_equal(take(&idle, NOW + IDLE_TRIAL_US), fresh.fd);
	idle_put(&idle, proven.fd, 2, NOW);
	assert_int_equal(
	    idle_take(&idle, false, NOW + IDLE_TRIAL_US, &dead).fd, proven.fd);
	idle_release(&idle);
	close(proven.fd);
	close(proven.peer);
	close(fresh.fd);
	close(fresh.peer);
}

/* Who is on trial does not take the room of who has proved to stay. */
static void
test_proven_ones_have_precedence(void **state)
{
	struct idle idle;
	struct pair on_trial[3] = { connect_pair(), connect_pair(),
		connect_pair() };
	struct pair proven[3] = { connect_pair(), connect_pair(),
		connect_pair() };

	(void)state;
	open_idle(&idle, 2);
	for (int i = 0; i < 3; i++)
		idle_put(&idle, on_trial[i].fd, 1, NOW);
	assert_true(is_closed(&on_trial[2]));
	idle_put(&idle, proven[0].fd, 2, NOW);
	assert_true(is_closed(&on_trial[1]));
	assert_false(is_closed(&on_trial[0]));
	idle_put(&idle, proven[1].fd, 2, NOW);
	assert_true(is_closed(&on_trial[0]));
	idle_put(&idle, proven[2].fd, 2, NOW);
	assert_true(is_closed(&proven[2]));
	assert_int_equal(take(&idle, NOW), proven[1].fd);
	assert_int_equal(take(&idle, NOW), proven[0].fd);
	assert_int_equal(take(&idle, NOW), -1);
	idle_release(&idle);
	for (int i = 0; i < 3; i++) {
		close(on_trial[i].peer);
		close(proven[i].peer);
	}
	close(proven[0].fd);
	close(proven[1].fd);
}

static void
test_expiry(void **state)
{
	struct idle idle;
	struct pair pair[3];

	(void)state;
	open_idle(&idle, 3);
	for (int i = 0; i < 3; i++) {
		pair[i] = connect_pair();
		idle_put(&idle, pair[i].fd, 2, NOW + i);
	}
	idle_expire(&idle, NOW + IDLE_MAX_US - 1);
	assert_false(is_closed(&pair[0]));
	idle_expire(&idle, NOW + IDLE_MAX_US + 1);
	assert_true(is_closed(&pair[0]));
	assert_true(is_closed(&pair[1]));
	assert_int_equal(take(&idle, NOW + IDLE_MAX_US + 1), pair[2].fd);
	idle_release(&idle);
	close(pair[2].fd);
	for (int i = 0; i < 3; i++)
		close(pair[i].peer);
}

static void
test_another_max(void **state)
{
	struct idle idle;
	struct pair pair[3];

	(void)state;
	open_idle(&idle, 2);
	for (int i = 0; i < 2; i++) {
		pair[i] = connect_pair();
		idle_put(&idle, pair[i].fd, 2, NOW);
	}
	assert_true(idle_set_max(&idle, 3));
	pair[2] = connect_pair();
	idle_put(&idle, pair[2].fd, 2, NOW);
	assert_false(is_closed(&pair[2]));
	assert_true(idle_set_max(&idle, 1));
	assert_true(is_closed(&pair[0]));
	assert_true(is_closed(&pair[1]));
	assert_false(is_closed(&pair[2]));
	assert_true(idle_set_max(&idle, 0));
	assert_true(is_closed(&pair[2]));
	for (int i = 0; i < 3; i++)
		close(pair[i].peer);
	idle_release(&idle);
}

/* ---- many at once ------------------------------------------------ */

#define THREADS 4
#define SOCKETS 3
#define ROUNDS  20000

struct race {
	struct idle idle;
	atomic_int holders[1024]; /* of each descriptor */
	atomic_int taken;
};

static void *
take_and_put(void *context)
{
	struct race *race = context;

	for (int i = 0; i < ROUNDS; i++) {
		size_t dead;
		int fd = idle_take(&race->idle, true, NOW, &dead).fd;

		if (fd < 0)
			continue;
		if (atomic_fetch_add(&race->holders[fd], 1) != 0)
			return context;
		atomic_fetch_add(&race->taken, 1);
		atomic_fetch_sub(&race->holders[fd], 1);
		idle_put(&race->idle, fd, 2, NOW);
		idle_expire(&race->idle, NOW + 1);
	}
	return NULL;
}

/* Nobody gets what another has. */
static void
test_race(void **state)
{
	static struct race race;
	struct pair pair[SOCKETS];
	pthread_t thread[THREADS];

	(void)state;
	open_idle(&race.idle, SOCKETS);
	for (int i = 0; i < SOCKETS; i++) {
		pair[i] = connect_pair();
		assert_true(pair[i].fd < 1024);
		idle_put(&race.idle, pair[i].fd, 2, NOW);
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(
		    pthread_create(&thread[i], NULL, take_and_put, &race), 0);
	for (int i = 0; i < THREADS; i++) {
		void *failed;

		pthread_join(thread[i], &failed);
		assert_null(failed);
	}
	assert_true(atomic_load(&race.taken) > 0);
	assert_int_equal(race.idle.n, SOCKETS);
	idle_release(&race.idle);
	for (int i = 0; i < SOCKETS; i++)
		close(pair[i].peer);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_last_in_first_out),
		cmocka_unit_test(test_uses),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_dead_ones),
		cmocka_unit_test(test_trial),
		cmocka_unit_test(test_proven_ones_have_precedence),
		cmocka_unit_test(test_dead_on_trial),
		cmocka_unit_test(test_expiry),
		cmocka_unit_test(test_another_max),
		cmocka_unit_test(test_race),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
