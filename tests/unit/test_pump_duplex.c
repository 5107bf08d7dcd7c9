/*
 * Body up and response down at once: an application and a client, each a
 * thread of its own, that read and write in every order, and nobody waits
 * for another in a circle.
 */
#include "io/pump.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "draw.h"
#include "wire.h"

#define PATIENCE_US 10000000

enum order {
	ECHO,         /* each byte back as it comes */
	ANSWER_FIRST, /* all of the answer, then it reads */
	READ_FIRST,   /* all of the body, then it answers */
	READ_NOTHING, /* it answers and ends */
};

struct duplex {
	struct pump pump;
	enum order order;
	bool pipes;
	int to;   /* the application's ends */
	int from; /* the same, but with pipes */
	int client;
	struct buf body;
	struct buf answer;
	size_t refilled;
	unsigned seed;
	struct buf got_body;   /* the application's thread's */
	struct buf got_answer; /* the client's thread's */
	bool failed;
};

static bool
refill(void *context, struct buf *up)
{
	struct duplex *d = context;
	size_t n = 1 + draw_size(&d->seed, 70000);
	size_t left = d->body.len - d->refilled;

	n = n < left ? n : left;
	buf_add(up, d->body.p + d->refilled, n);
	d->refilled += n;
	return d->refilled < d->body.len;
}

static enum pump_verdict
take(void *context, struct str bytes, struct buf *down)
{
	(void)context;
	buf_add_str(down, bytes);
	return PUMP_GO_ON;
}

static void
complain(void *context, struct str bytes)
{
	(void)context;
	(void)bytes;
}

/* Reads into `out` up to `upto` bytes or the end; false: an error. */
static bool
read_up_to(int fd, struct buf *out, size_t upto)
{
	char bytes[30000];

	while (out->len < upto) {
		ssize_t n = read(fd, bytes, sizeof(bytes));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0;
		buf_add(out, bytes, (size_t)n);
	}
	return true;
}

static bool
write_all(int fd, struct str bytes)
{
	while (bytes.len > 0) {
		size_t most = bytes.len < 50000 ? bytes.len : 50000;
		ssize_t n = write(fd, bytes.p, most);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		bytes.p += n;
		bytes.len -= (size_t)n;
	}
	return true;
}

static bool
echo(struct duplex *d)
{
	size_t sent = 0;

	while (sent < d->body.len) {
		struct str piece;

		if (!read_up_to(d->to, &d->got_body, sent + 1) ||
		    d->got_body.len == sent)
			return false;
		piece = (struct str){ d->got_body.p + sent,
			d->got_body.len - sent };
		sent = d->got_body.len;
		if (!write_all(d->from, piece))
			return false;
	}
	return true;
}

static bool
run_application(struct duplex *d)
{
	/* Through a pipe its end is seen, on a socket it is counted. */
	size_t all = d->pipes ? SIZE_MAX : d->body.len;

	switch (d->order) {
	case ECHO:
		return echo(d);
	case ANSWER_FIRST:
		return write_all(d->from, buf_str(&d->answer)) &&
		    read_up_to(d->to, &d->got_body, all);
	case READ_FIRST:
		return read_up_to(d->to, &d->got_body, all) &&
		    write_all(d->from, buf_str(&d->answer));
	case READ_NOTHING:
		return write_all(d->from, buf_str(&d->answer));
	}
	return false;
}

static void *
application(void *context)
{
	struct duplex *d = context;

	if (!run_application(d))
		d->failed = true;
	if (d->pipes)
		close(d->to);
	close(d->from);
	return NULL;
}

static void *
client(void *context)
{
	struct duplex *d = context;

	read_up_to(d->client, &d->got_answer, SIZE_MAX);
	return NULL;
}

static void
open_sides(struct duplex *d)
{
	int fd[2];

	if (d->pipes) {
		assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
		d->to = fd[0];
		d->pump.in = fd[1];
		fcntl(fd[1], F_SETFL, O_NONBLOCK);
		assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
		d->from = fd[1];
		d->pump.out = fd[0];
		fcntl(fd[0], F_SETFL, O_NONBLOCK);
	} else {
		assert_int_equal(
		    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
		d->pump.in = d->pump.out = fd[0];
		d->to = d->from = fd[1];
	}
	d->pump.pipes = d->pump.close_in = d->pipes;
	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	d->pump.front = fd[0];
	d->client = fd[1];
}

static void
run(struct duplex *d)
{
	static const struct pump_ops ops = { refill, take, NULL, complain };
	int64_t begun_us = clock_mono_us();
	pthread_t thread[2];
	int out;

	pump_init(&d->pump, &ops, d);
	open_sides(d);
	out = d->pump.out;
	d->pump.send_timeout_us = PATIENCE_US;
	d->pump.first_byte_timeout_us = PATIENCE_US;
	d->pump.idle_timeout_us = PATIENCE_US;
	assert_int_equal(pthread_create(&thread[0], NULL, application, d), 0);
	assert_int_equal(pthread_create(&thread[1], NULL, client, d), 0);
	assert_int_equal(pump_run(&d->pump), PUMP_END_EOF);
	assert_true(pump_flush(&d->pump));
	if (d->pipes && d->pump.in >= 0)
		close(d->pump.in);
	close(out);
	close(d->pump.front);
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
	close(d->client);
	assert_true(clock_mono_us() - begun_us < PATIENCE_US);
	assert_false(d->failed);
	expect_str(buf_str(&d->got_answer),
	    buf_str(d->order == ECHO ? &d->body : &d->answer));
	if (d->order != READ_NOTHING) {
		expect_str(buf_str(&d->got_body), buf_str(&d->body));
		assert_true(d->pump.all_up);
		assert_int_equal(d->pump.up_bytes, d->body.len);
	}
	pump_release(&d->pump);
}

static void
run_with(
    enum order order, bool pipes, size_t body, size_t answer, unsigned seed)
{
	struct duplex d = { .order = order, .pipes = pipes, .seed = seed };

	wire_fill(&d.body, body);
	wire_fill(&d.answer, answer);
	run(&d);
	buf_release(&d.body);
	buf_release(&d.answer);
	buf_release(&d.got_body);
	buf_release(&d.got_answer);
}

/* Both far beyond what all buffers between them hold: forjedio/yerd 214. */
static void
test_large(void **state)
{
	unsigned seed = draw_seed();

	(void)state;
	for (int pipes = 0; pipes < 2; pipes++) {
		run_with(ECHO, pipes, 1000000, 0, seed);
		run_with(ANSWER_FIRST, pipes, 1000000, 1000000, seed);
		run_with(READ_FIRST, pipes, 1000000, 1000000, seed);
		run_with(READ_NOTHING, pipes, 1000000, 1000000, seed);
	}
}

static void
test_small(void **state)
{
	static const size_t sizes[] = { 0, 1, 65536, 65537 };
	unsigned seed = draw_seed();

	(void)state;
	for (int pipes = 0; pipes < 2; pipes++)
		for (size_t i = 0; i < 4; i++)
			for (size_t k = 0; k < 4; k++) {
				run_with(ECHO, pipes, sizes[i], 0, seed);
				run_with(ANSWER_FIRST, pipes, sizes[i],
				    sizes[k], seed);
				run_with(READ_FIRST, pipes, sizes[i], sizes[k],
				    seed);
				run_with(READ_NOTHING, pipes, sizes[i],
				    sizes[k], seed);
			}
}

static void
test_drawn(void **state)
{
	unsigned seed = draw_seed();

	(void)state;
	for (int round = 0; round < 30; round++)
		run_with((enum order)draw_below(&seed, 4),
		    draw_below(&seed, 2) == 0, draw_size(&seed, 400000),
		    draw_size(&seed, 400000), seed + 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_drawn),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests_name("pump_duplex", tests, NULL, NULL);
}
