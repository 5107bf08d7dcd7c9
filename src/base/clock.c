#include "base/clock.h"

#include <pthread.h>
#include <time.h>

#define POLL_MS_MAX (24 * 60 * 60 * 1000)

static int64_t
read_clock(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t
clock_mono_us(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

int64_t
clock_real_us(void)
{
	return read_clock(CLOCK_REALTIME);
}

static int64_t steady_base_us;
static pthread_once_t steady_once = PTHREAD_ONCE_INIT;

static void
set_steady_base(void)
{
	steady_base_us = clock_real_us() - clock_mono_us();
}

int64_t
clock_steady_us(void)
{
	pthread_once(&steady_once, set_steady_base);
	return steady_base_us + clock_mono_us();
}

int
clock_poll_ms(int64_t deadline_us)
{
	int64_t left_us = deadline_us - clock_mono_us();

	if (left_us <= 0)
		return 0;
	if (left_us >= (int64_t)POLL_MS_MAX * 1000)
		return POLL_MS_MAX;
	return (int)((left_us + 999) / 1000);
}
