#include "domain/unsettled.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/log.h"

#define QUIET_US 1000000

void
unsettled_cut(struct str key, int64_t units)
{
	static _Atomic int64_t next_us;
	int64_t now_us = clock_mono_us(), due_us = atomic_load(&next_us);
	struct log_line line;

	counter_add(COUNTER_settlements_cut, 1);
	if (now_us < due_us ||
	    !atomic_compare_exchange_strong(
		&next_us, &due_us, now_us + QUIET_US))
		return;
	log_begin(&line, LOG_LEVEL_WARN, "settlement_cut");
	log_str(&line, "key", key);
	log_number(&line, "units", units);
	log_text(&line, "msg",
	    "a count ends at twice its limit; more was used than that");
	log_end(&line);
}

void
unsettled_lost(size_t n)
{
	counter_add(COUNTER_settlements_lost, n);
}
