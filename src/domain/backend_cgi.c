/*
 * A CGI script for one request (RFC 3875): run by posix_spawn in a group
 * and directory of its own, its input and output served at once, ended with
 * its whole group when its time is up or nobody waits for it any more, and
 * always reaped.
 */
#include "domain/backend_cgi.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/counter.h"
#include "domain/cgi_env.h"
#include "domain/script.h"
#include "io/net.h"
#include "io/spawn.h"

#define STDIN_PIECE   32768
#define TERM_GRACE_US 2000000
/* How often a script that works on is let know that the gateway ends. */
#define LOOK_US 100000
/* Closed output may come a moment before the end. */
#define STATUS_GRACE_US 300000

/* The gateway's ends of the pipes, and the script's. */
struct pipes {
	int in[2];
	int out[2];
	int errors[2];
};

static void
close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void
close_pair(int pair[2])
{
	close_one(&pair[0]);
	close_one(&pair[1]);
}

static void
close_pipes(struct pipes *p)
{
	close_pair(p->in);
	close_pair(p->out);
	close_pair(p->errors);
}

static bool
open_pipes(struct pipes *p, struct err *err)
{
	*p = (struct pipes){ { -1, -1 }, { -1, -1 }, { -1, -1 } };
	if (pipe2(p->in, O_CLOEXEC) == 0 && pipe2(p->out, O_CLOEXEC) == 0 &&
	    pipe2(p->errors, O_CLOEXEC) == 0) {
		fcntl(p->in[1], F_SETFL, O_NONBLOCK);
		fcntl(p->out[0], F_SETFL, O_NONBLOCK);
		fcntl(p->errors[0], F_SETFL, O_NONBLOCK);
		return true;
	}
	err_set(err, "pipe: %s", strerror(errno));
	close_pipes(p);
	return false;
}

static bool
refill(void *context, struct buf *up)
{
	struct exchange *x = context;
	UNINITIALIZED char bytes[STDIN_PIECE];
	ssize_t n = spool_read(x->body, x->body_at, bytes, sizeof(bytes));

	if (n < 0) {
		err_set(&x->error, "the spooled body can not be read");
		up->failed = true;
	}
	if (n <= 0)
		return false;
	x->body_at += (uint64_t)n;
	buf_add(up, bytes, (size_t)n);
	return x->body_at < x->body->bytes;
}

static enum pump_verdict
take(void *context, struct str bytes, struct buf *down)
{
	struct exchange *x = context;

	return response_take(&x->response, bytes, down);
}

static void
begun(void *context)
{
	exchange_begun(context);
}

static void
complain(void *context, struct str bytes)
{
	exchange_complain(context, bytes);
}

static pid_t
start(struct exchange *x, const struct script *script, struct pipes *pipes)
{
	char *argv[SCRIPT_ARGV];
	struct spawn s = {
		.path = script_command(script, argv),
		.argv = argv,
		.directory = script->directory,
		.fd = { pipes->in[0], pipes->out[1], pipes->errors[1] },
	};
	pid_t pid;

	s.envp = cgi_env_make(x->params, &x->backend->env, script, x->arena);
	if (s.envp == NULL) {
		err_set(&x->error, "out of memory");
		return -1;
	}
	pid = spawn_start(&s, &x->error);
	close_one(&pipes->in[0]);
	close_one(&pipes->out[1]);
	close_one(&pipes->errors[1]);
	if (pid >= 0)
		counter_add(COUNTER_scripts_run, 1);
	return pid;
}

/* Ends the group, before its leader is reaped and the number is free. */
static void
end_group(pid_t pid)
{
	spawn_signal(pid, SIGTERM);
	spawn_wait(pid, clock_mono_us() + TERM_GRACE_US);
	spawn_signal(pid, SIGKILL);
}

static enum pump_end
serve(struct exchange *x, pid_t pid, struct pipes *pipes, struct pump *pump)
{
	const struct config_backend *b = x->backend;

	pump->in = pipes->in[1];
	pipes->in[1] = -1;
	pump->out = pipes->out[0];
	pump->errors = pipes->errors[0];
	pump->exited = pidfd_open(pid, 0);
	pump->front = x->front;
	pump->stop = x->stop;
	pump->pipes = true;
	pump->close_in = true;
	pump->send_timeout_us = b->run_timeout_us;
	pump->first_byte_timeout_us = b->run_timeout_us;
	pump->idle_timeout_us = b->idle_timeout_us;
	pump->deadline_us = clock_mono_us() + b->run_timeout_us;
	return pump_run(pump);
}

/*
 * Its output has ended, and it has, with this status. Behind an answer that
 * is whole a status is only told to the log.
 */
static enum exchange_end
conclude(struct exchange *x, struct pump *pump, int status)
{
	bool was_killed = WIFSIGNALED(status);

	if (was_killed)
		err_set(&x->error, "ended by signal %d", WTERMSIG(status));
	else if (WEXITSTATUS(status) != 0)
		err_set(&x->error, "ended with status %d", WEXITSTATUS(status));
	if (response_is_whole(&x->response) &&
	    (!was_killed || x->response.body_left >= 0))
		return exchange_finish(x, pump);
	return exchange_give_up(x, pump, PUMP_END_EOF);
}

/*
 * The script has closed its output and works on: it may read the rest of its
 * input, and complain. true: it has ended.
 */
static bool
let_work(struct exchange *x, struct pump *pump, pid_t pid)
{
	int64_t deadline_us = pump->deadline_us;
	bool ended = false;

	buf_reset(&pump->down);
	pump->down_at = 0;
	pump->out = pump->front = -1;
	pump->idle_timeout_us = x->backend->run_timeout_us;
	while (!ended && clock_mono_us() < deadline_us &&
	    !net_wait(x->stop, POLLIN, 0)) {
		pump->deadline_us = clock_mono_us() + LOOK_US;
		/* Half a body must not be taken for a whole one. */
		if (pump_run(pump) == PUMP_END_BROKEN)
			break;
		ended = spawn_wait(pid, 0);
	}
	return ended;
}

/* The response has ended while the script still works on. */
static enum exchange_end
conclude_early(struct exchange *x, struct pump *pump, pid_t pid)
{
	enum exchange_end result = conclude(x, pump, 0);

	/* Who has no answer yet is not to wait for a script without one. */
	if (result != EXCHANGE_DONE || !let_work(x, pump, pid))
		end_group(pid);
	spawn_reap(pid);
	return result;
}

static enum exchange_end
run(struct exchange *x, const struct script *script)
{
	static const struct pump_ops ops = { refill, take, begun, complain };
	struct pipes pipes;
	struct pump pump;
	enum exchange_end result;
	enum pump_end end;
	pid_t pid;

	if (!open_pipes(&pipes, &x->error))
		return EXCHANGE_BROKEN;
	pid = start(x, script, &pipes);
	if (pid < 0) {
		close_pipes(&pipes);
		return EXCHANGE_BROKEN;
	}
	pump_init(&pump, &ops, x);
	end = serve(x, pid, &pipes, &pump);
	if (end != PUMP_END_EOF) {
		end_group(pid);
		spawn_reap(pid);
		result = exchange_give_up(x, &pump, end);
	} else if (spawn_wait(pid, clock_mono_us() + STATUS_GRACE_US)) {
		result = conclude(x, &pump, spawn_reap(pid));
	} else {
		result = conclude_early(x, &pump, pid);
	}
	close_one(&pump.in);
	close_one(&pump.exited);
	pump_release(&pump);
	close_pipes(&pipes);
	return result;
}

enum exchange_end
backend_cgi_run(struct exchange *x)
{
	struct script script;

	switch (
	    script_find(x->backend, x->params, x->arena, &script, &x->error)) {
	case SCRIPT_OK:
		break;
	case SCRIPT_NOT_FOUND:
		return EXCHANGE_NOT_FOUND;
	case SCRIPT_FORBIDDEN:
		return EXCHANGE_FORBIDDEN;
	case SCRIPT_NO_MEMORY:
		return EXCHANGE_NO_MEMORY;
	}
	x->error.text[0] = '\0';
	return run(x, &script);
}
