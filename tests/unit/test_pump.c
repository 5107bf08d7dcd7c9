/*
 * The pump in one thread: the application and the client are what the
 * callbacks do with the other ends. Deadlines, ends, and what is held.
 */
#include "io/pump.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "wire.h"

#define MS         INT64_C(1000)
#define LONG_US    10000000
#define SHORT_US   (30 * MS)
#define GIVE_UP_US 3000000 /* the test's own patience */

/* Both ends of everything, and what the callbacks were given. */
struct rig {
	struct pump pump;
	int back[2];  /* out (and in); the application's end */
	int front[2]; /* the pump's; the client's */
	struct str body;
	size_t piece; /* bytes a refill */
	struct buf taken;
	struct buf complained;
	size_t head_bytes; /* the head is there when so many came */
	size_t whole_bytes;
	/* Called in take, to play the application and the client on. */
	void (*play)(struct rig *rig);
	int64_t begun_us;
};

static bool
refill(void *context, struct buf *up)
{
	struct rig *rig = context;
	size_t n = rig->piece < rig->body.len ? rig->piece : rig->body.len;

	buf_add(up, rig->body.p, n);
	rig->body.p += n;
	rig->body.len -= n;
	return rig->body.len > 0;
}

static enum pump_verdict
take(void *context, struct str bytes, struct buf *down)
{
	struct rig *rig = context;

	buf_add_str(&rig->taken, bytes);
	if (rig->play != NULL)
		rig->play(rig);
	if (clock_mono_us() - rig->begun_us > GIVE_UP_US)
		return PUMP_BROKEN;
	if (memchr(bytes.p, '!', bytes.len) != NULL)
		return PUMP_BROKEN;
	if (rig->taken.len < rig->head_bytes)
		return PUMP_HEAD_MORE;
	buf_add_str(down, bytes);
	return rig->taken.len >= rig->whole_bytes ? PUMP_WHOLE : PUMP_GO_ON;
}

static void
complain(void *context, struct str bytes)
{
	struct rig *rig = context;

	buf_add_str(&rig->complained, bytes);
}

static void
open_rig(struct rig *rig)
{
	static const struct pump_ops ops = { refill, take, complain };
	struct pump *p = &rig->pump;

	*rig = (struct rig){ .piece = 1000, .whole_bytes = SIZE_MAX };
	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, rig->back), 0);
	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, rig->front), 0);
	pump_init(p, &ops, rig);
	p->in = p->out = rig->back[0];
	p->front = rig->front[0];
	p->send_timeout_us = LONG_US;
	p->first_byte_timeout_us = LONG_US;
	p->idle_timeout_us = LONG_US;
	rig->begun_us = clock_mono_us();
}

static void
close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void
close_rig(struct rig *rig)
{
	pump_release(&rig->pump);
	buf_release(&rig->taken);
	buf_release(&rig->complained);
	for (int i = 0; i < 2; i++) {
		close_one(&rig->back[i]);
		close_one(&rig->front[i]);
	}
}

static void
put(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* What the client has by now. */
static void
expect_client(struct rig *rig, const char *expected)
{
	char bytes[1000];
	ssize_t n = recv(rig->front[1], bytes, sizeof(bytes), MSG_DONTWAIT);

	expect_str(
	    (struct str){ bytes, n < 0 ? 0 : (size_t)n }, str_of(expected));
}

/* It took at least that long, and not much longer than it had to. */
static void
expect_time(const struct rig *rig, int64_t least_us)
{
	assert_in_range(clock_mono_us() - rig->begun_us, least_us, GIVE_UP_US);
}

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
	/* The last bytes wait for what is added to them. */
	expect_client(&rig, "");
	buf_add(&rig.pump.down, " end", 4);
	assert_true(pump_flush(&rig.pump));
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

/* --- With pipes, as a CGI script has them ---------------------------------- */

struct pipes {
	int in[2];
	int out[2];
	int errors[2];
};

static void
open_pipes(struct rig *rig, struct pipes *p)
{
	open_rig(rig);
	close_one(&rig->back[0]);
	close_one(&rig->back[1]);
	assert_int_equal(pipe2(p->in, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(pipe2(p->out, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(pipe2(p->errors, O_CLOEXEC | O_NONBLOCK), 0);
	rig->pump.pipes = true;
	rig->pump.close_in = true;
	rig->pump.in = p->in[1];
	rig->pump.out = p->out[0];
	rig->pump.errors = p->errors[0];
	p->in[1] = -1;
}

static void
close_pipes(struct rig *rig, struct pipes *p)
{
	close_one(&rig->pump.in);
	for (int i = 0; i < 2; i++) {
		close_one(&p->in[i]);
		close_one(&p->out[i]);
		close_one(&p->errors[i]);
	}
	close_rig(rig);
}

/* The end of the body is seen by the script, the body being empty or not. */
static void
test_close_in(void **state)
{
	static const char *const bodies[] = { "", "a body" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct rig rig;
		struct pipes p;
		char bytes[20];

		open_pipes(&rig, &p);
		rig.body = str_of(bodies[i]);
		put(p.out[1], "response");
		close_one(&p.out[1]);
		assert_int_equal(pump_run(&rig.pump), PUMP_END_EOF);
		assert_int_equal(rig.pump.in, -1);
		assert_int_equal(
		    read(p.in[0], bytes, sizeof(bytes)), strlen(bodies[i]));
		assert_memory_equal(bytes, bodies[i], strlen(bodies[i]));
		assert_int_equal(read(p.in[0], bytes, sizeof(bytes)), 0);
		expect_client(&rig, "response");
		close_pipes(&rig, &p);
	}
}

/* Not to read the body is no error: the answer counts. */
static void
test_script_reads_nothing(void **state)
{
	static char much[1 << 20];
	struct rig rig;
	struct pipes p;

	(void)state;
	open_pipes(&rig, &p);
	rig.body = (struct str){ much, sizeof(much) };
	close_one(&p.in[0]);
	put(p.out[1], "response");
	close_one(&p.out[1]);
	assert_int_equal(pump_run(&rig.pump), PUMP_END_EOF);
	assert_int_equal(rig.pump.in, -1);
	expect_client(&rig, "response");
	close_pipes(&rig, &p);
}

/* All that it complained of, to the last byte, whatever ended first. */
static void
test_complaints(void **state)
{
	(void)state;
	for (size_t len = 0; len <= 60000; len = len * 7 + 100) {
		struct rig rig;
		struct pipes p;
		struct buf text;

		buf_init(&text);
		wire_fill(&text, len);
		open_pipes(&rig, &p);
		assert_int_equal(write(p.errors[1], text.p, len), len);
		close_one(&p.errors[1]);
		put(p.out[1], "response");
		close_one(&p.out[1]);
		assert_int_equal(pump_run(&rig.pump), PUMP_END_EOF);
		expect_str(buf_str(&rig.complained), buf_str(&text));
		close_pipes(&rig, &p);
		buf_release(&text);
	}
}

/* Its end counts, though a child of its holds its output open. */
static void
test_exited(void **state)
{
	struct rig rig;
	struct pipes p;

	(void)state;
	open_pipes(&rig, &p);
	rig.pump.exited = eventfd(1, EFD_CLOEXEC);
	put(p.out[1], "response");
	assert_int_equal(pump_run(&rig.pump), PUMP_END_EOF);
	expect_time(&rig, 100 * MS);
	expect_client(&rig, "response");
	close(rig.pump.exited);
	close_pipes(&rig, &p);
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
		cmocka_unit_test(test_stop_of_busy_one),
		cmocka_unit_test(test_total_of_silent_one),
		cmocka_unit_test(test_client_stalls),
		cmocka_unit_test(test_close_in),
		cmocka_unit_test(test_script_reads_nothing),
		cmocka_unit_test(test_complaints),
		cmocka_unit_test(test_exited),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests_name("pump", tests, NULL, NULL);
}
