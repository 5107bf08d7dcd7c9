/*
 * What a program finds that was started by spawn, and that nothing of it
 * outlives its group. The program is this one, run as `test_spawn child`.
 */
#include "io/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "wire.h"

#define PATIENCE_US 10000000

extern char **environ;
static char self[4096];

/* --- The program that is started ----------------------------------------- */

static void
tell_descriptors(void)
{
	for (int fd = 0; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			printf("fd %d\n", fd);
}

static void
tell_signals(void)
{
	static const struct {
		int signal;
		const char *name;
	} table[] = { { SIGPIPE, "PIPE" }, { SIGTERM, "TERM" },
		{ SIGHUP, "HUP" }, { SIGUSR1, "USR1" }, { SIGINT, "INT" },
		{ SIGQUIT, "QUIT" }, { SIGUSR2, "USR2" }, { SIGALRM, "ALRM" } };
	sigset_t mask;

	sigprocmask(SIG_BLOCK, NULL, &mask);
	for (int i = 1; i < 32; i++)
		if (sigismember(&mask, i) == 1)
			printf("blocked %d\n", i);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct sigaction action;

		sigaction(table[i].signal, NULL, &action);
		if (action.sa_handler != SIG_DFL)
			printf("not at its default: %s\n", table[i].name);
	}
}

static int
tell(int argc, char **argv)
{
	char cwd[4096];

	tell_descriptors();
	tell_signals();
	if (getpgrp() != getpid())
		printf("not the leader of its group\n");
	if (getcwd(cwd, sizeof(cwd)) != NULL)
		printf("in %s\n", cwd);
	for (int i = 2; i < argc; i++)
		printf("argument %s\n", argv[i]);
	for (char **at = environ; *at != NULL; at++)
		printf("environment %s\n", *at);
	return 0;
}

/* --- The tests ------------------------------------------------------------ */

/* Reads to the end; who still holds the other end fails the test. */
static void
read_all(int fd, struct buf *out)
{
	int64_t deadline_us = clock_mono_us() + PATIENCE_US;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		char bytes[4096];
		ssize_t n;

		assert_int_equal(poll(&p, 1, clock_poll_ms(deadline_us)), 1);
		n = read(fd, bytes, sizeof(bytes));
		assert_in_range(n, 0, sizeof(bytes));
		if (n == 0)
			return;
		buf_add(out, bytes, (size_t)n);
	}
}

static int
finish(pid_t pid)
{
	assert_true(spawn_wait(pid, clock_mono_us() + PATIENCE_US));
	return spawn_reap(pid);
}

/* Starts it with `out` as its standard output (and error, where both). */
static pid_t
start(char *const *argv, char *const *envp, const char *directory, int out)
{
	struct err err = { "" };
	const struct spawn s = { argv[0], argv, envp, directory,
		{ -1, out, -1 } };
	pid_t pid = spawn_start(&s, &err);

	if (pid < 0)
		print_message("%s\n", err.text);
	assert_true(pid > 0);
	return pid;
}

static pid_t
start_shell(const char *command, int out)
{
	char *argv[] = { (char *)"/bin/sh", (char *)"-c",
		(char *)(uintptr_t)command, NULL };
	char *envp[] = { (char *)"PATH=/usr/bin:/bin", NULL };

	return start(argv, envp, NULL, out);
}

/* Ignored, blocked and handled signals; descriptors that are not cloexec. */
static void
spoil(int extra[3], sigset_t *old)
{
	sigset_t all;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	signal(SIGALRM, SIG_IGN);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, old);
	extra[0] = dup(0);
	extra[1] = fcntl(extra[0], F_DUPFD, 100);
	extra[2] = fcntl(extra[0], F_DUPFD, 500);
	assert_true(extra[2] >= 500);
}

static void
unspoil(const int extra[3], const sigset_t *old)
{
	pthread_sigmask(SIG_SETMASK, old, NULL);
	signal(SIGHUP, SIG_DFL);
	signal(SIGUSR1, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	signal(SIGUSR2, SIG_DFL);
	signal(SIGALRM, SIG_DFL);
	for (int i = 0; i < 3; i++)
		close(extra[i]);
}

static void
test_what_it_finds(void **state)
{
	char *argv[] = { self, (char *)"child", (char *)"a b", (char *)"$HOME",
		NULL };
	char *envp[] = { (char *)"ONE=1", (char *)"TWO=a=b",
		(char *)"ASAN_OPTIONS=detect_leaks=0", NULL };
	int extra[3], pipe_fd[2];
	sigset_t old;
	struct buf out;
	pid_t pid;

	(void)state;
	buf_init(&out);
	assert_int_equal(pipe2(pipe_fd, O_CLOEXEC), 0);
	spoil(extra, &old);
	pid = start(argv, envp, "/", pipe_fd[1]);
	unspoil(extra, &old);
	close(pipe_fd[1]);
	read_all(pipe_fd[0], &out);
	expect_str(buf_str(&out),
	    STR("fd 0\nfd 1\nfd 2\n"
		"in /\n"
		"argument a b\nargument $HOME\n"
		"environment ONE=1\nenvironment TWO=a=b\n"
		"environment ASAN_OPTIONS=detect_leaks=0\n"));
	assert_int_equal(finish(pid), 0);
	close(pipe_fd[0]);
	buf_release(&out);
}

/* -1 is /dev/null, and a directory of NULL is ours. */
static void
test_null_and_directory(void **state)
{
	char cwd[4096];
	struct buf out, expected;
	int pipe_fd[2];
	pid_t pid;

	(void)state;
	buf_init(&out);
	buf_init(&expected);
	assert_int_equal(pipe2(pipe_fd, O_CLOEXEC), 0);
	pid = start_shell(
	    "readlink /proc/$$/fd/0 /proc/$$/fd/2 /proc/$$/cwd; cat",
	    pipe_fd[1]);
	close(pipe_fd[1]);
	read_all(pipe_fd[0], &out);
	assert_non_null(getcwd(cwd, sizeof(cwd)));
	buf_addf(&expected, "/dev/null\n/dev/null\n%s\n", cwd);
	expect_str(buf_str(&out), buf_str(&expected));
	assert_int_equal(finish(pid), 0);
	close(pipe_fd[0]);
	buf_release(&out);
	buf_release(&expected);
}

static void
test_status(void **state)
{
	pid_t pid = start_shell("exit 7", -1);
	int status = finish(pid);

	(void)state;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
	status = finish(start_shell("kill -USR1 $$", -1));
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGUSR1);
}

static void
test_can_not_start(void **state)
{
	static const struct {
		const char *path;
		const char *directory;
		int error;
	} table[] = {
		{ "/nowhere/at/all", NULL, ENOENT },
		{ "/dev/null", NULL, EACCES },
		{ "/", NULL, EACCES },
		{ "/bin/sh", "/nowhere/at/all", ENOENT },
		{ "/bin/sh", "/dev/null", ENOTDIR },
		/* No search along PATH. */
		{ "sh", NULL, ENOENT },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char *argv[] = { (char *)"x", NULL };
		const struct spawn s = { table[i].path, argv, environ,
			table[i].directory, { -1, -1, -1 } };
		struct err err = { "" };

		pid_t pid = spawn_start(&s, &err);

		/* valgrind's vfork is a fork: it tells by the status. */
		if (getenv("SLUICE_SLOW") != NULL && pid > 0) {
			assert_int_equal(WEXITSTATUS(spawn_reap(pid)), 127);
			continue;
		}
		assert_int_equal(pid, -1);
		assert_int_equal(errno, table[i].error);
		assert_non_null(strstr(err.text, table[i].path));
	}
	/* Nothing is left to reap. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void
test_wait(void **state)
{
	int pipe_fd[2];
	pid_t pid;
	int64_t before;

	(void)state;
	assert_int_equal(pipe2(pipe_fd, O_CLOEXEC), 0);
	pid = start_shell("echo; exec sleep 1000", pipe_fd[1]);
	close(pipe_fd[1]);
	assert_false(spawn_wait(pid, 0));
	before = clock_mono_us();
	assert_false(spawn_wait(pid, before + 20000));
	assert_in_range(clock_mono_us() - before, 20000, PATIENCE_US);
	spawn_signal(pid, SIGTERM);
	assert_true(spawn_wait(pid, before + PATIENCE_US));
	/* It is not reaped by that: as often as one likes. */
	assert_true(spawn_wait(pid, 0));
	assert_true(spawn_wait(pid, before + PATIENCE_US));
	assert_int_equal(WTERMSIG(spawn_reap(pid)), SIGTERM);
	close(pipe_fd[0]);
}

/* The same where no descriptor is left to wait by. */
static void
test_wait_without_descriptor(void **state)
{
	struct rlimit old, none;
	int64_t before = clock_mono_us();
	int lowest = dup(0);
	pid_t pid = start_shell("exec sleep 1000", -1);
	bool early, late;

	(void)state;
	close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = (struct rlimit){ (rlim_t)lowest, old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	early = spawn_wait(pid, before + 20000);
	spawn_signal(pid, SIGTERM);
	late = spawn_wait(pid, before + PATIENCE_US);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_false(early);
	assert_true(late);
	assert_in_range(clock_mono_us() - before, 20000, PATIENCE_US);
	assert_int_equal(WTERMSIG(spawn_reap(pid)), SIGTERM);
}

/*
 * The whole group ends, whether its leader runs or has ended and was not
 * reaped: only then is the end of the pipe seen.
 */
static void
test_group(void **state)
{
	static const char *const commands[] = {
		"sleep 1000 & echo ready; wait",
		"sleep 1000 & echo ready",
		"(trap '' TERM; sleep 1000 & echo ready; wait) & wait",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		int pipe_fd[2];
		char line[6];
		struct buf rest;
		pid_t pid;

		buf_init(&rest);
		assert_int_equal(pipe2(pipe_fd, O_CLOEXEC), 0);
		pid = start_shell(commands[i], pipe_fd[1]);
		close(pipe_fd[1]);
		assert_int_equal(read(pipe_fd[0], line, 6), 6);
		if (i == 1)
			assert_true(
			    spawn_wait(pid, clock_mono_us() + PATIENCE_US));
		spawn_signal(pid, SIGTERM);
		spawn_signal(pid, SIGKILL);
		read_all(pipe_fd[0], &rest);
		assert_int_equal(rest.len, 0);
		finish(pid);
		close(pipe_fd[0]);
	}
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_it_finds),
		cmocka_unit_test(test_null_and_directory),
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_can_not_start),
		cmocka_unit_test(test_wait),
		cmocka_unit_test(test_wait_without_descriptor),
		cmocka_unit_test(test_group),
	};

	if (argc > 1 && strcmp(argv[1], "child") == 0)
		return tell(argc, argv);
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 1;
	return cmocka_run_group_tests_name("spawn", tests, NULL, NULL);
}
