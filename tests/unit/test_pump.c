/* The pump over sockets: ends, deadlines, and what is held meanwhile. */
#include "pump_rig.h"

#include <signal.h>
#include <sys/eventfd.h>

/* A response that ends with its connection, or by its own word. */
static void
test_ends(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig);
	put(rig.back[1], "response");
	close_one(&rig.back[1]);
	assert_int_equal(pump_run(&rig.pump), PUMP_END_EOF);
	expect_client(&rig, "response");
	close_rig(&rig);

	open_rig(&rig);
	rig.whole_bytes = 8;
	put(rig.back[1], "response");
	assert_int_equal(pump_run(&rig.pump), PUMP_END_WHOLE);
	assert_false(rig.pump.begun);
	/* The last bytes wait for what is added to them. */
	expect_client(&rig, "");
	buf_add(&rig.pump.down, " end", 4);
	assert_true(pump_flush(&rig.pump));
	assert_true(rig.pump.begun);
	expect_client(&rig, "response end");
	close_rig(&rig);

	open_rig(&rig);
	close_one(&rig.back[1]);
	assert_int_equal(pump_run(&rig.pump), PUMP_END_EOF);
	assert_int_equal(rig.pump.down.len, 0);
	close_rig(&rig);

	open_rig(&rig);
	put(rig.back[1], "response!");
	assert_int_equal(pump_run(&rig.pump), PUMP_END_BROKEN);
	close_rig(&rig);
}

/* What the caller put in first goes first. */
static void
test_first_bytes(void **state)
{
	struct rig rig;
	char got[20];

	(void)state;
	open_rig(&rig);
	buf_add(&rig.pump.down, "first ", 6);
	buf_add(&rig.pump.up, "head ", 5);
	rig.body = STR("body");
	put(rig.back[1], "response");
	shutdown(rig.back[1], SHUT_WR);
	assert_int_equal(pump_run(&rig.pump), PUMP_END_EOF);
	assert_true(pump_flush(&rig.pump));
	expect_client(&rig, "first response");
	assert_int_equal(recv(rig.back[1], got, sizeof(got), MSG_DONTWAIT), 9);
	assert_memory_equal(got, "head body", 9);
	close_rig(&rig);
}

static void
test_client_gone(void **state)
{
	struct rig rig;

	(void)state;
	/* While the application is silent. */
	open_rig(&rig);
	close_one(&rig.front[1]);
	assert_int_equal(pump_run(&rig.pump), PUMP_END_CLIENT_GONE);
	expect_time(&rig, 0);
	close_rig(&rig);
	/* Half-closed is gone: no web server does it otherwise. */
	open_rig(&rig);
	shutdown(rig.front[1], SHUT_WR);
	assert_int_equal(pump_run(&rig.pump), PUMP_END_CLIENT_GONE);
	close_rig(&rig);
	/* While it answers: an error of send, not a signal. */
	open_rig(&rig);
	close_one(&rig.front[1]);
	put(rig.back[1], "response");
	assert_int_equal(pump_run(&rig.pump), PUMP_END_CLIENT_GONE);
	close_rig(&rig);
	open_rig(&rig);
	buf_add(&rig.pump.down, "end", 3);
	close_one(&rig.front[1]);
	assert_false(pump_flush(&rig.pump));
	close_rig(&rig);
}

static void
test_stop(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig);
	rig.pump.stop = eventfd(1, EFD_CLOEXEC);
	assert_int_equal(pump_run(&rig.pump), PUMP_END_CLIENT_GONE);
	close(rig.pump.stop);
	close_rig(&rig);
}

/* No answer at all: from the moment the body is through. */
static void
test_first_byte_timeout(void **state)
{
	struct rig rig;

	(void)state;
	for (int with_body = 0; with_body < 2; with_body++) {
		open_rig(&rig);
		rig.body = with_body ? STR("a body") : STR("");
		rig.pump.first_byte_timeout_us = SHORT_US;
		assert_int_equal(pump_run(&rig.pump), PUMP_END_NO_HEAD);
		expect_time(&rig, SHORT_US);
		close_rig(&rig);
	}
	/* Half a head is none. */
	open_rig(&rig);
	rig.pump.first_byte_timeout_us = SHORT_US;
	rig.head_bytes = 100;
	put(rig.back[1], "Content-Type");
	assert_int_equal(pump_run(&rig.pump), PUMP_END_NO_HEAD);
	expect_time(&rig, SHORT_US);
	close_rig(&rig);
}

static void
one_more_byte(struct rig *rig)
{
	put(rig->back[1], "h");
}

/* Nor does a head that trickles in have for ever. */
static void
test_trickling_head(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig);
	rig.pump.first_byte_timeout_us = SHORT_US;
	rig.head_bytes = SIZE_MAX;
	rig.play = one_more_byte;
	put(rig.back[1], "h");
	assert_int_equal(pump_run(&rig.pump), PUMP_END_NO_HEAD);
	expect_time(&rig, SHORT_US);
	close_rig(&rig);
}

static void
test_idle_timeout(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig);
	rig.pump.idle_timeout_us = SHORT_US;
	put(rig.back[1], "response");
	assert_int_equal(pump_run(&rig.pump), PUMP_END_STALLED);
	expect_time(&rig, SHORT_US);
	expect_client(&rig, "response");
	close_rig(&rig);
}

/* The application takes nothing of the body, before and after its head. */
static void
test_send_timeout(void **state)
{
	static char much[1 << 20];

	(void)state;
	for (int answers = 0; answers < 2; answers++) {
		struct rig rig;

		open_rig(&rig);
		rig.body = (struct str){ much, sizeof(much) };
		rig.piece = 100000;
		rig.pump.send_timeout_us = SHORT_US;
		if (answers)
			put(rig.back[1], "response");
		assert_int_equal(pump_run(&rig.pump),
		    answers ? PUMP_END_STALLED : PUMP_END_NO_HEAD);
		assert_false(rig.pump.all_up);
		assert_in_range(rig.pump.up_bytes, 1, sizeof(much) - 1);
		expect_time(&rig, SHORT_US);
		close_rig(&rig);
	}
}

static void
fill_back(struct rig *rig)
{
	static char much[65536];
	char drain[65536];

	while (send(rig->back[1], much, sizeof(much), MSG_DONTWAIT) > 0)
		;
	while (recv(rig->front[1], drain, sizeof(drain), MSG_DONTWAIT) > 0)
		;
	buf_reset(&rig->taken);
}

/* A response without end, as fast as can be: the total holds. */
static void
test_total_of_busy_one(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig);
	rig.play = fill_back;
	rig.pump.deadline_us = clock_mono_us() + SHORT_US;
	put(rig.back[1], "response");
	assert_int_equal(pump_run(&rig.pump), PUMP_END_STALLED);
	expect_time(&rig, SHORT_US);
	close_rig(&rig);
}

/* Who answers and does not read, or answers for long, breaks no limit. */
static void
test_busy_goes_on(void **state)
{
	static char much[1 << 20];

	(void)state;
	for (int with_body = 0; with_body < 2; with_body++) {
		struct rig rig;

		open_rig(&rig);
		if (with_body)
			rig.body = (struct str){ much, sizeof(much) };
		rig.piece = 100000;
		rig.play = fill_back;
		rig.pump.send_timeout_us = SHORT_US;
		rig.pump.first_byte_timeout_us = SHORT_US;
		rig.pump.idle_timeout_us = SHORT_US;
		rig.pump.deadline_us = rig.begun_us + 4 * SHORT_US;
		put(rig.back[1], "response");
		assert_int_equal(pump_run(&rig.pump), PUMP_END_STALLED);
		expect_time(&rig, 4 * SHORT_US);
		close_rig(&rig);
	}
}

static void
fill_and_stop(struct rig *rig)
{
	fill_back(rig);
	if (clock_mono_us() - rig->begun_us > SHORT_US)
		assert_int_equal(eventfd_write(rig->pump.stop, 1), 0);
}

/* And it is told to stop. */
static void
test_stop_of_busy_one(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig);
	rig.play = fill_and_stop;
	rig.pump.stop = eventfd(0, EFD_CLOEXEC);
	put(rig.back[1], "response");
	assert_int_equal(pump_run(&rig.pump), PUMP_END_CLIENT_GONE);
	close(rig.pump.stop);
	close_rig(&rig);
}

static void
test_total_of_silent_one(void **state)
{
	struct rig rig;

	(void)state;
	for (int head = 0; head < 2; head++) {
		open_rig(&rig);
		rig.pump.deadline_us = clock_mono_us() + SHORT_US;
		if (head)
			put(rig.back[1], "response");
		assert_int_equal(pump_run(&rig.pump),
		    head ? PUMP_END_STALLED : PUMP_END_NO_HEAD);
		expect_time(&rig, SHORT_US - 5 * MS);
		close_rig(&rig);
	}
}

/* Fills a socket until it takes no more; returns how many bytes it took. */
static size_t
stuff(int fd)
{
	static char much[4096];
	size_t sum = 0;
	ssize_t n;

	while ((n = send(fd, much, sizeof(much), MSG_DONTWAIT)) > 0)
		sum += (size_t)n;
	return sum;
}

/* A client that does not read: the application is not read either. */
static void
test_client_stalls(void **state)
{
	struct rig rig;
	size_t sent, left = 0;
	char bytes[4096];
	ssize_t n;

	(void)state;
	open_rig(&rig);
	rig.pump.idle_timeout_us = SHORT_US;
	stuff(rig.front[0]);
	sent = stuff(rig.back[1]);
	assert_true(sent > 65536);
	assert_int_equal(pump_run(&rig.pump), PUMP_END_STALLED);
	expect_time(&rig, SHORT_US);
	assert_in_range(rig.pump.down.len, 1, 65536);
	while ((n = recv(rig.back[0], bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		left += (size_t)n;
	assert_int_equal(left + rig.taken.len, sent);
	assert_in_range(rig.taken.len, 1, 65536);
	close_rig(&rig);
	/* At the end it has its time as well. */
	open_rig(&rig);
	rig.pump.idle_timeout_us = SHORT_US;
	stuff(rig.front[0]);
	buf_add(&rig.pump.down, "end", 3);
	assert_false(pump_flush(&rig.pump));
	expect_time(&rig, SHORT_US);
	close_rig(&rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_first_bytes),
		cmocka_unit_test(test_client_gone),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_first_byte_timeout),
		cmocka_unit_test(test_trickling_head),
		cmocka_unit_test(test_idle_timeout),
		cmocka_unit_test(test_send_timeout),
		cmocka_unit_test(test_total_of_busy_one),
		cmocka_unit_test(test_busy_goes_on),
		cmocka_unit_test(test_stop_of_busy_one),
		cmocka_unit_test(test_total_of_silent_one),
		cmocka_unit_test(test_client_stalls),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests_name("pump", tests, NULL, NULL);
}
