/*
 * A redis-server of the test's own, on a unix socket in a directory of its
 * own: started, waited for by what it says, killed by its pid, and by the
 * system where the test ends before it (an assertion, a signal).
 */
#ifndef REDIS_SERVER_H
#define REDIS_SERVER_H

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/redis_link.h"

struct redis_server {
	char directory[64];
	char path[96];
	pid_t pid; /* 0: not running */
};

/* By the main thread: the server ends with the thread that started it. */
static void
redis_server_start(struct redis_server *s)
{
	pid_t test = getpid();
	char line[512];
	int out[2];
	FILE *said;

	assert_int_equal(pipe(out), 0);
	s->pid = fork();
	assert_true(s->pid >= 0);
	if (s->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != test)
			_exit(127);
		dup2(out[1], 1);
		close(out[0]);
		close(out[1]);
		execlp("redis-server", "redis-server", "--port", "0",
		    "--unixsocket", s->path, "--save", "", "--appendonly", "no",
		    "--dir", s->directory, (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	said = fdopen(out[0], "r");
	do
		assert_non_null(fgets(line, sizeof(line), said));
	while (strstr(line, "accept connections") == NULL);
	fclose(said);
}

static void
redis_server_init(struct redis_server *s)
{
	memset(s, 0, sizeof(*s));
	strcpy(s->directory, "/tmp/sluice-unit-XXXXXX");
	assert_non_null(mkdtemp(s->directory));
	snprintf(s->path, sizeof(s->path), "%s/redis.sock", s->directory);
	redis_server_start(s);
}

static void
redis_server_stop(struct redis_server *s)
{
	if (s->pid == 0)
		return;
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
	s->pid = 0;
}

/* The directory must be empty but for the server's socket. */
static void
redis_server_release(struct redis_server *s)
{
	redis_server_stop(s);
	unlink(s->path);
	assert_int_equal(rmdir(s->directory), 0);
}

static struct redis_address
redis_server_address(const char *path)
{
	struct redis_address a = { .transport = REDIS_UNIX };

	snprintf(a.host, sizeof(a.host), "%s", path);
	return a;
}

static struct redis_link *
redis_server_connect(const struct redis_server *s)
{
	struct redis_address a = redis_server_address(s->path);
	int64_t deadline_us = clock_mono_us() + 20000000;
	struct err err;
	struct redis_link *link = redis_link_open(&a, deadline_us, &err);

	assert_non_null(link);
	assert_int_equal(redis_link_wait(link, deadline_us, &err), REDIS_READY);
	return link;
}

/* Words apart by one space; true when the reply is no error. */
static bool
redis_server_command(const struct redis_server *s, const char *words)
{
	struct redis_link *link = redis_server_connect(s);
	struct str rest = str_of(words), argument[16];
	struct redis_reply *reply;
	struct err err;
	size_t n = 0;
	bool ok;

	while (rest.p != NULL)
		argument[n++] = str_cut(&rest, ' ');
	assert_true(redis_link_send(link, argument, n));
	assert_int_equal(
	    redis_link_receive(link, clock_mono_us() + 5000000, &reply, &err),
	    REDIS_READY);
	ok = redis_reply_error(reply).p == NULL;
	redis_reply_free(reply);
	redis_link_close(link);
	return ok;
}

#endif
