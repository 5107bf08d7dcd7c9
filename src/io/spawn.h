/*
 * spawn: start a program without fork in a threaded process, or become it.
 *
 * Signal mask empty, every signal at its default, no descriptor but 0, 1 and 2.
 * Started, by posix_spawn, in a process group of its own. Any thread.
 */
#ifndef SLUICE_SPAWN_H
#define SLUICE_SPAWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct spawn {
	const char *path; /* executed as it is, no search */
	char *const *argv;
	char *const *envp;
	const char *directory; /* NULL: stay */
	int fd[3];             /* become 0, 1, 2; -1: /dev/null */
};

/*
 * The limit of descriptors as it is now is what programs get, whatever it is
 * raised to: old ones count up to it, and select() has no more than 1024.
 * They get it right behind their start. The first call counts; before any
 * thread.
 */
void spawn_keep_limit(void);
/* The pid, which leads its group; -1 and err (errno is kept). */
pid_t spawn_start(const struct spawn *s, struct err *err);
/*
 * Makes this process that program, with the descriptors 0 to 2 it has (fd is
 * not looked at). For a process of one thread. Returns if it can not: with
 * err, and errno kept; directory, signals and descriptors may be changed.
 */
void spawn_become(const struct spawn *s, struct err *err);
/* Signals the group; the leader must not have been reaped yet. */
void spawn_signal(pid_t pid, int signal);
/*
 * Has it ended? Waits to deadline_us (clock_mono_us) at the most, without
 * reaping. Then spawn_reap takes its status (as waitpid gives it).
 */
bool spawn_wait(pid_t pid, int64_t deadline_us);
int spawn_reap(pid_t pid);

#endif
