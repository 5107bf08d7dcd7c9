/* The pump over pipes, as a CGI script has them. */
#include "pump_rig.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>

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
		assert_int_equal(rig.pump.errors, -1);
		close_pipes(&rig, &p);
		buf_release(&text);
	}
}

static void
complain_on(struct rig *rig)
{
	static const char more[4096] = "more";

	if (rig->complained.len > 300000)
		close_one(rig->to_close);
	else
		assert_int_equal(write(rig->complaints, more, 4096), 4096);
}

/* They are taken as they come: a pipe holds no more than 64 KB of them. */
static void
test_many_complaints(void **state)
{
	struct rig rig;
	struct pipes p;

	(void)state;
	open_pipes(&rig, &p);
	rig.complaints = p.errors[1];
	rig.to_close = &p.out[1];
	rig.play_complaint = complain_on;
	put(p.errors[1], "first");
	assert_int_equal(pump_run(&rig.pump), PUMP_END_EOF);
	assert_in_range(rig.complained.len, 300000, 310000);
	expect_time(&rig, 0);
	close_pipes(&rig, &p);
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
		cmocka_unit_test(test_close_in),
		cmocka_unit_test(test_script_reads_nothing),
		cmocka_unit_test(test_complaints),
		cmocka_unit_test(test_many_complaints),
		cmocka_unit_test(test_exited),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests_name("pump_pipes", tests, NULL, NULL);
}
