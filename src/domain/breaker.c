#include "domain/breaker.h"

/* The first wait after a failed attempt; doubled up to the cooldown. */
#define RETRY_US 20000
/* The longest wait after a refused password or right. */
#define ACCESS_MAX_US 30000000

void
breaker_init(
    struct breaker *b, unsigned failures, int64_t cooldown_us, uint64_t seed)
{
	*b = (struct breaker){ .failures = failures,
		.cooldown_us = cooldown_us,
		.random = seed | 1 };
	pthread_mutex_init(&b->lock, NULL);
}

void
breaker_release(struct breaker *b)
{
	pthread_mutex_destroy(&b->lock);
}

void
breaker_configure(struct breaker *b, unsigned failures, int64_t cooldown_us)
{
	pthread_mutex_lock(&b->lock);
	b->failures = failures;
	b->cooldown_us = cooldown_us;
	pthread_mutex_unlock(&b->lock);
}

/* Half to all of it, so that many gateways do not come back as one. */
static int64_t
jitter(struct breaker *b, int64_t wait_us)
{
	int64_t half_us = wait_us / 2;

	b->random ^= b->random << 13;
	b->random ^= b->random >> 7;
	b->random ^= b->random << 17;
	return half_us + (int64_t)(b->random % (uint64_t)(half_us + 1));
}

static int64_t
retry_wait(const struct breaker *b)
{
	int64_t wait_us = RETRY_US;

	for (unsigned i = 1; i < b->attempts && wait_us < b->cooldown_us; i++)
		wait_us *= 2;
	return wait_us < b->cooldown_us ? wait_us : b->cooldown_us;
}

static int64_t
access_wait(struct breaker *b)
{
	b->access_us = b->access_us > 0 ? b->access_us * 2 : b->cooldown_us;
	if (b->access_us > ACCESS_MAX_US)
		b->access_us = ACCESS_MAX_US;
	return b->access_us;
}

static int64_t
wait_after(struct breaker *b, enum breaker_trip trip)
{
	if (trip == BREAKER_ACCESS)
		return jitter(b, access_wait(b));
	b->access_us = 0;
	if (atomic_load(&b->open))
		return jitter(b, b->cooldown_us);
	return trip == BREAKER_CHECK ? 0 : jitter(b, retry_wait(b));
}

bool
breaker_trip(struct breaker *b, enum breaker_trip trip, int64_t now_us)
{
	bool opened = false;

	pthread_mutex_lock(&b->lock);
	if (trip != BREAKER_CHECK)
		b->attempts++;
	if (atomic_fetch_add(&b->trips, 1) + 1 >= b->failures)
		opened = !atomic_exchange(&b->open, true);
	/* A check that was under way as it opened does not put a try off. */
	if (opened || trip != BREAKER_CHECK || !atomic_load(&b->open))
		atomic_store(&b->next_us, now_us + wait_after(b, trip));
	pthread_mutex_unlock(&b->lock);
	return opened;
}

void
breaker_answered(struct breaker *b)
{
	if (atomic_load_explicit(&b->trips, memory_order_relaxed) != 0 &&
	    !atomic_load(&b->open))
		atomic_store(&b->trips, 0);
}

bool
breaker_close(struct breaker *b)
{
	bool closed;

	pthread_mutex_lock(&b->lock);
	b->attempts = 0;
	b->access_us = 0;
	atomic_store(&b->next_us, 0);
	closed = atomic_exchange(&b->open, false);
	if (closed)
		atomic_store(&b->trips, 0);
	pthread_mutex_unlock(&b->lock);
	return closed;
}

bool
breaker_is_open(struct breaker *b)
{
	return atomic_load(&b->open);
}

int64_t
breaker_next_us(struct breaker *b)
{
	return atomic_load(&b->next_us);
}
