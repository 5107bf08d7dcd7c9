#include "process/activation.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/net.h"

/* What the variable said; it stays readable once it is unset. */
static const char *
take_variable(const char *name)
{
	const char *value = getenv(name);

	unsetenv(name);
	return value;
}

static bool
is_for_us(const char *pid)
{
	uint64_t number;

	return pid != NULL && str_to_u64(str_of(pid), INT32_MAX, &number) &&
	    number == (uint64_t)getpid();
}

static bool
take_sockets(const struct activation *a, struct err *err)
{
	struct activation names = *a;

	for (size_t i = 0; i < a->n; i++) {
		int fd = ACTIVATION_FD + (int)i;
		struct str name = activation_next_name(&names);

		if (!net_is_listening(fd))
			return err_set(err,
			    "LISTEN_FDS: descriptor %d (%.*s) is no listening "
			    "stream socket: a .socket unit has ListenStream= "
			    "and Accept=no",
			    fd, STR_ARG(name));
		fcntl(fd, F_SETFD, FD_CLOEXEC);
		/* Another worker may have been quicker: no accept may wait. */
		net_set_nonblocking(fd);
	}
	return true;
}

bool
activation_take(struct activation *a, size_t max, struct err *err)
{
	const char *pid = take_variable("LISTEN_PID");
	const char *count = take_variable("LISTEN_FDS");
	const char *names = take_variable("LISTEN_FDNAMES");
	uint64_t n;

	/* Which process they are for, in other words (systemd 258). */
	unsetenv("LISTEN_PIDFDID");
	*a = (struct activation){ .n = 0 };
	if (!is_for_us(pid) || count == NULL)
		return true;
	if (!str_to_u64(str_of(count), max, &n))
		return err_set(err,
		    "LISTEN_FDS=%.40s: not a number of sockets, 0 to %zu",
		    count, max);
	a->n = (size_t)n;
	a->names = str_of(names == NULL ? "" : names);
	return take_sockets(a, err);
}

struct str
activation_next_name(struct activation *a)
{
	struct str name = str_cut(&a->names, ':');

	return name.len == 0 ? STR("unknown") : name;
}
