/*
 * posix_spawn never copies the process (glibc uses CLONE_VFORK), so it is
 * cheap and safe with any number of threads. Waiting goes through a pidfd
 * where there is one: nobody reaps a child but the one who started it.
 */
#include "io/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/net.h"

#define LOOK_MS 5

static struct rlimit kept;
static bool has_kept;

void
spawn_keep_limit(void)
{
	if (!has_kept)
		has_kept = getrlimit(RLIMIT_NOFILE, &kept) == 0;
}

static int
set_attributes(posix_spawnattr_t *attr)
{
	sigset_t none;
	sigset_t defaults;

	sigemptyset(&none);
	sigfillset(&defaults);
	posix_spawnattr_setsigmask(attr, &none);
	posix_spawnattr_setsigdefault(attr, &defaults);
	posix_spawnattr_setpgroup(attr, 0);
	return posix_spawnattr_setflags(attr,
	    POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
		POSIX_SPAWN_SETPGROUP);
}

/*
 * The descriptors handed in are above 2 (0 to 2 are opened at start), so
 * no dup2 overwrites one that is still wanted.
 */
static int
set_actions(posix_spawn_file_actions_t *actions, const struct spawn *s)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < 3; i++) {
		if (s->fd[i] >= 0)
			rc = posix_spawn_file_actions_adddup2(
			    actions, s->fd[i], i);
		else
			rc = posix_spawn_file_actions_addopen(
			    actions, i, "/dev/null", O_RDWR, 0);
	}
	if (rc == 0)
		rc = posix_spawn_file_actions_addclosefrom_np(actions, 3);
	if (rc == 0 && s->directory != NULL)
		rc =
		    posix_spawn_file_actions_addchdir_np(actions, s->directory);
	return rc;
}

pid_t
spawn_start(const struct spawn *s, struct err *err)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	pid_t pid = -1;
	int rc;

	posix_spawnattr_init(&attr);
	posix_spawn_file_actions_init(&actions);
	rc = set_attributes(&attr);
	if (rc == 0)
		rc = set_actions(&actions, s);
	if (rc == 0)
		rc = posix_spawn(
		    &pid, s->path, &actions, &attr, s->argv, s->envp);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	if (rc == 0 && has_kept)
		prlimit(pid, RLIMIT_NOFILE, &kept, NULL);
	if (rc == 0)
		return pid;
	err_set(err, "can not start %s: %s", s->path, strerror(rc));
	errno = rc;
	return -1;
}

void
spawn_become(const struct spawn *s, struct err *err)
{
	sigset_t none;
	int error;

	sigemptyset(&none);
	/* Not what the C library keeps for itself, nor what can not be. */
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	/* Before the mask: what was held back may end us, as it would it. */
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* Closed once it succeeds: should it fail there is a log to tell. */
	if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		closefrom(3);
	if (s->directory != NULL && chdir(s->directory) < 0) {
		error = errno;
		err_set(err, "%s: %s", s->path, strerror(error));
	} else {
		execve(s->path, s->argv, s->envp);
		error = errno;
		err_set(err, "can not start %s: %s", s->path, strerror(error));
	}
	errno = error;
}

void
spawn_signal(pid_t pid, int signal)
{
	kill(-pid, signal);
}

static bool
has_ended(pid_t pid)
{
	siginfo_t info = { .si_pid = 0 };

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) ==
	    0 &&
	    info.si_pid == pid;
}

/* Without a pidfd: no descriptor is left, or the system has none. */
static bool
look_often(pid_t pid, int64_t deadline_us)
{
	while (!has_ended(pid)) {
		if (clock_mono_us() >= deadline_us)
			return false;
		poll(NULL, 0, LOOK_MS);
	}
	return true;
}

bool
spawn_wait(pid_t pid, int64_t deadline_us)
{
	bool ended;
	int fd;

	if (has_ended(pid))
		return true;
	if (clock_mono_us() >= deadline_us)
		return false;
	fd = pidfd_open(pid, 0);
	if (fd < 0)
		return look_often(pid, deadline_us);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	ended = net_wait(fd, POLLIN, deadline_us);
	close(fd);
	return ended;
}

int
spawn_reap(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}
