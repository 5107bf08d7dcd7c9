/*
 * drift: gateways that share a store and do not agree on a limit would count
 * apart in silence. So each leaves a fingerprint of its definitions and of
 * the secret at PREFIX:fingerprint when it connects, and looks at what was
 * there before.
 *
 * drift_set may be called by any thread, the others by the one that connects.
 */
#ifndef SLUICE_DRIFT_H
#define SLUICE_DRIFT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"
#include "io/redis_link.h"

struct drift_field;

struct drift {
	pthread_mutex_t lock;
	char *name; /* of the hash in the store */
	size_t n;   /* 0: nothing to compare */
	struct drift_field *field;
	unsigned generation; /* of the fields */
	unsigned sent;       /* the generation that drift_send sent */
	bool failed;         /* the last one did, and that was told */
};

void drift_init(struct drift *d);
void drift_release(struct drift *d);
/*
 * What the shared limits of `config` are; naming has the prefix and the
 * secret that keys are made with. False: no memory; nothing is compared.
 */
bool drift_set(struct drift *d, const struct config *config,
    const struct config_store *naming);

/*
 * Queues the command that reads and writes it; *sent: there is a reply to
 * expect. False: no memory, the link is of no use.
 */
bool drift_send(struct drift *d, struct redis_link *link, bool *sent);
/*
 * Its reply: what differs is logged once, and counted; that it is an error,
 * once too, and keeps nobody out.
 */
void drift_judge(struct drift *d, const struct redis_reply *reply);

#endif
