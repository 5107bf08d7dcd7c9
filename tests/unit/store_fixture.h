/*
 * A Redis store with its maintenance thread, as the process has it.
 */
#ifndef STORE_FIXTURE_H
#define STORE_FIXTURE_H

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "domain/store_redis.h"
#include "redis_server.h"

#define TIMEOUT_US 50000

/* SLUICE_SLOW=1, an instrumented run: who waits is often late. */
static bool
is_slow(void)
{
	return getenv("SLUICE_SLOW") != NULL;
}

struct fixture {
	struct store *store;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* woken, stopped, or maintain has run */
	bool woken;
	bool stop;
};

static void
fixture_wake(void *context)
{
	struct fixture *f = context;

	pthread_mutex_lock(&f->lock);
	f->woken = true;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

static void
wait_until(struct fixture *f, int64_t at_us)
{
	struct timespec at = { at_us / 1000000, at_us % 1000000 * 1000 };

	pthread_cond_timedwait(&f->changed, &f->lock, &at);
}

static void *
fixture_maintain(void *context)
{
	struct fixture *f = context;
	int64_t before_us, at_us;

	pthread_mutex_lock(&f->lock);
	while (!f->stop) {
		f->woken = false;
		pthread_mutex_unlock(&f->lock);
		before_us = clock_mono_us();
		at_us = f->store->ops->maintain(f->store);
		if (clock_mono_us() - before_us >
		    (is_slow() ? 30 : 1) * 1000000)
			abort();
		pthread_mutex_lock(&f->lock);
		pthread_cond_broadcast(&f->changed);
		while (!f->woken && !f->stop && clock_mono_us() < at_us)
			wait_until(f, at_us);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

static struct store_redis_settings
settings_for(const char *path)
{
	return (struct store_redis_settings){
		.address = redis_server_address(path),
		.timeout_us = TIMEOUT_US,
		.connect_timeout_us = 200000,
		.connections = 1,
		.breaker_failures = 5,
		.breaker_cooldown_us = 100000,
		.prefix = "sluice",
	};
}

static void
begin(struct fixture *f, const struct store_redis_settings *settings)
{
	pthread_condattr_t attr;
	struct err err;

	memset(f, 0, sizeof(*f));
	pthread_mutex_init(&f->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&f->changed, &attr);
	f->store = store_redis_new(settings, &err);
	assert_non_null(f->store);
	f->store->wake_context = f;
	f->store->wake = fixture_wake;
	assert_int_equal(
	    pthread_create(&f->thread, NULL, fixture_maintain, f), 0);
}

static void
end(struct fixture *f)
{
	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	f->store->ops->free(f->store);
	pthread_cond_destroy(&f->changed);
	pthread_mutex_destroy(&f->lock);
}

/* Waits for it to be up or down; false: not within 5 s. */
static bool
await(struct fixture *f, bool up)
{
	int64_t deadline_us = clock_mono_us() + 20000000;
	bool seen;

	/* Looked at once a turn: another thread may change it at any time. */
	pthread_mutex_lock(&f->lock);
	while (!(seen = store_redis_is_up(f->store) == up) &&
	    clock_mono_us() < deadline_us)
		wait_until(f, deadline_us);
	pthread_mutex_unlock(&f->lock);
	return seen;
}

#endif
