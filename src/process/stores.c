#include "process/stores.h"

#include "base/clock.h"
#include "domain/store_memory.h"
#include "domain/store_redis.h"

/* How long a reload, and the end, give back what was taken ahead. */
#define RELOAD_US 50000
#define END_US    1000000

static bool
redis_settings(const struct config *config, const struct config_store *naming,
    struct store_redis_settings *s, struct err *err)
{
	const struct config_store *c = &config->store;

	*s = (struct store_redis_settings){
		.username = c->username,
		.password = c->password,
		.timeout_us = c->timeout_us,
		.connect_timeout_us = c->connect_timeout_us,
		.connections = (unsigned)c->connections,
		.breaker_failures = (unsigned)c->breaker_failures,
		.breaker_cooldown_us = c->breaker_cooldown_us,
		.alert_command = c->alert_command,
		.prefix = naming->prefix,
		.config = config,
		.naming = naming,
	};
	return redis_address_parse(str_of(c->address), &s->address, err);
}

/* Where counts are in memory to ask costs no more than to look it up. */
static bool
open_denied(
    struct stores *stores, const struct config_store *c, struct err *err)
{
	if (c->deny_cache == 0)
		return true;
	stores->denied =
	    deny_cache_new((size_t)c->deny_cache, c->deny_cache_ttl_us);
	return stores->denied != NULL || err_set(err, "out of memory");
}

static bool
open_shared(struct stores *stores, const struct config *config, struct err *err)
{
	const struct config_store *c = &config->store;
	struct store_redis_settings settings;

	switch (c->kind) {
	case CONFIG_STORE_NONE:
		return true;
	case CONFIG_STORE_MEMORY:
		stores->shared = store_memory_new((size_t)c->max_keys);
		return stores->shared != NULL || err_set(err, "out of memory");
	case CONFIG_STORE_REDIS:
		break;
	}
	if (!redis_settings(config, stores->naming, &settings, err))
		return false;
	stores->shared = store_redis_new(&settings, err);
	if (stores->shared == NULL || !open_denied(stores, c, err))
		return false;
	stores->leases = leases_new(stores->denied, c->timeout_us);
	return stores->leases != NULL || err_set(err, "out of memory");
}

bool
stores_open(struct stores *stores, const struct config *config, struct err *err)
{
	stores->naming = &config->store;
	stores->local = store_memory_new((size_t)config->store.max_keys);
	if (stores->local == NULL)
		return err_set(err, "out of memory");
	return open_shared(stores, config, err);
}

/* The one failed attempt is an outage at once. */
bool
stores_open_once(
    struct stores *stores, const struct config *config, struct err *err)
{
	struct store_redis_settings settings;

	stores->naming = &config->store;
	stores->local = store_memory_new((size_t)config->store.max_keys);
	if (stores->local == NULL)
		return err_set(err, "out of memory");
	if (config->store.kind != CONFIG_STORE_REDIS)
		return true;
	if (!redis_settings(config, stores->naming, &settings, err))
		return false;
	settings.alone = true;
	settings.connections = 1;
	settings.breaker_failures = 1;
	settings.config = NULL;
	stores->shared = store_redis_new(&settings, err);
	return stores->shared != NULL;
}

void
stores_return_leases(struct stores *stores)
{
	if (stores->leases != NULL)
		leases_return(stores->leases, stores->shared, RELOAD_US);
}

void
stores_end_leases(struct stores *stores)
{
	if (stores->leases == NULL)
		return;
	store_redis_hurry(stores->shared, END_US);
	leases_end(stores->leases, stores->shared, END_US);
}

void
stores_close(struct stores *stores)
{
	leases_free(stores->leases);
	if (stores->shared != NULL)
		stores->shared->ops->free(stores->shared);
	if (stores->local != NULL)
		stores->local->ops->free(stores->local);
	deny_cache_free(stores->denied);
	*stores = (struct stores){ .shared = NULL };
}

static bool
needs_shared(const struct config *config)
{
	for (size_t i = 0; i < config->n_limits; i++)
		if (config->limit[i].scope == CONFIG_SCOPE_SHARED)
			return true;
	return false;
}

bool
stores_can_reload(
    const struct stores *stores, const struct config *next, struct err *err)
{
	struct store_redis_settings settings;

	if (stores->shared == NULL && needs_shared(next))
		return err_set(err,
		    "a shared limit needs a store, and [store] address takes "
		    "a restart");
	return next->store.kind != CONFIG_STORE_REDIS ||
	    redis_settings(next, stores->naming, &settings, err);
}

bool
stores_reload(struct stores *stores, const struct config *started,
    const struct config *next, struct err *err)
{
	struct store_redis_settings settings;

	store_memory_set_max_keys(stores->local, (size_t)next->store.max_keys);
	if (stores->denied != NULL) {
		deny_cache_set_ttl(
		    stores->denied, next->store.deny_cache_ttl_us);
		deny_cache_flush(stores->denied, clock_mono_us());
	}
	if (started->store.kind != next->store.kind)
		return true;
	switch (next->store.kind) {
	case CONFIG_STORE_NONE:
		return true;
	case CONFIG_STORE_MEMORY:
		store_memory_set_max_keys(
		    stores->shared, (size_t)next->store.max_keys);
		return true;
	case CONFIG_STORE_REDIS:
		break;
	}
	if (!redis_settings(next, stores->naming, &settings, err) ||
	    !store_redis_configure(stores->shared, &settings, err))
		return false;
	leases_set_wait(stores->leases, next->store.timeout_us);
	return true;
}
