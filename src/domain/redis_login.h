/*
 * redis_login: where a Redis is and as whom to go there, as configured now;
 * starts the attempts to get a link.
 *
 * Any thread may configure it, one starts attempts.
 */
#ifndef SLUICE_REDIS_LOGIN_H
#define SLUICE_REDIS_LOGIN_H

#include <pthread.h>

#include "domain/drift.h"
#include "domain/redis_session.h"

struct redis_login {
	struct redis_address address;
	struct drift drift;
	pthread_mutex_t lock; /* of what follows */
	char *username;
	char *password;
	char *prefix;
	int64_t connect_timeout_us;
	bool untried; /* of redis_session.h; set before the first attempt */
};

void redis_login_init(
    struct redis_login *l, const struct redis_address *address);
void redis_login_release(struct redis_login *l);
/* Copied; NULL: none. False: no memory. */
bool redis_login_configure(struct redis_login *l, const char *username,
    const char *password, const char *prefix, int64_t connect_timeout_us);
/* NULL and err: it has failed. Attempts must end before the login does. */
struct redis_session *redis_login_start(struct redis_login *l, struct err *err);

#endif
