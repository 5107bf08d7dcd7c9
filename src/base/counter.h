/*
 * counter: the one table of counters (counter.def). Any thread; relaxed.
 */
#ifndef SLUICE_COUNTER_H
#define SLUICE_COUNTER_H

#include <stdint.h>

enum counter {
#define COUNTER(name, help) COUNTER_##name,
#include "base/counter.def"
#undef COUNTER
	COUNTER_MAX
};

void counter_add(enum counter c, uint64_t n);
uint64_t counter_get(enum counter c);
const char *counter_name(enum counter c);

#endif
