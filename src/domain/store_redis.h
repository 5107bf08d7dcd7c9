/*
 * store_redis: counts in Redis or Valkey, one script call for many checks.
 *
 * Checks of many threads are combined (leader and followers): whoever
 * finds nobody leading sends all that is pending in one EVALSHA. A caller
 * waits at most settings->timeout_us. Threads that ask never resolve nor
 * connect: ops->maintain does.
 */
#ifndef SLUICE_STORE_REDIS_H
#define SLUICE_STORE_REDIS_H

#include "config/config.h"
#include "domain/store.h"
#include "pure/redis_address.h"

/* Strings are copied; NULL: none. */
struct store_redis_settings {
	struct redis_address address;
	const char *username;
	const char *password;
	int64_t timeout_us;
	int64_t connect_timeout_us;
	unsigned connections;
	unsigned breaker_failures;
	int64_t breaker_cooldown_us;
	const char *alert_command;
	/*
	 * Of all keys. A new link is tried by writing PREFIX:probe, which
	 * lasts a millisecond; NULL: it is not.
	 */
	const char *prefix;
	/*
	 * What other gateways are to agree with: the limits of one, the
	 * prefix and secret of the other. NULL: nobody asks.
	 */
	const struct config *config;
	const struct config_store *naming;
	/*
	 * Nobody calls maintain: whoever asks first connects too, all within
	 * timeout_us. The link is not tried: the question does that.
	 */
	bool alone;
};

/* NULL and err: no memory. Does not connect; starts out until it has. */
struct store *store_redis_new(
    const struct store_redis_settings *settings, struct err *err);
/* What a reload may change: all but address and connections. */
bool store_redis_configure(struct store *store,
    const struct store_redis_settings *settings, struct err *err);
/* From now on no longer than this, if it was to be longer. Any thread. */
void store_redis_hurry(struct store *store, int64_t timeout_us);
/* True while no breaker is open and a link is up. */
bool store_redis_is_up(struct store *store);

#endif
