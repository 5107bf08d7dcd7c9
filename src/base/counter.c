#include "base/counter.h"

#include <stdatomic.h>

static _Atomic uint64_t values[COUNTER_MAX];

static const char *const names[COUNTER_MAX] = {
#define COUNTER(name, help) #name,
#include "base/counter.def"
#undef COUNTER
};

void
counter_add(enum counter c, uint64_t n)
{
	atomic_fetch_add_explicit(&values[c], n, memory_order_relaxed);
}

uint64_t
counter_get(enum counter c)
{
	return atomic_load_explicit(&values[c], memory_order_relaxed);
}

const char *
counter_name(enum counter c)
{
	return names[c];
}
