/*
 * activation: the sockets that systemd opened and passed (sd_listen_fds(3)).
 *
 * LISTEN_PID is the process they are for, LISTEN_FDS how many there are, from
 * descriptor 3 on, LISTEN_FDNAMES their names, which need not be there.
 */
#ifndef SLUICE_ACTIVATION_H
#define SLUICE_ACTIVATION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

/* The first of them. */
#define ACTIVATION_FD 3

struct activation {
	size_t n;
	struct str names; /* what is left of LISTEN_FDNAMES */
};

/*
 * Makes them close-on-exec and takes the variables out of the environment, so
 * that no child inherits either. Once, while there is no other thread. false
 * and err: more than max, or a descriptor that is no listening stream socket.
 */
bool activation_take(struct activation *a, size_t max, struct err *err);
/* The name of the next one, from the first on; "unknown" without one. */
struct str activation_next_name(struct activation *a);

#endif
