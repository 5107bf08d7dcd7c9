/*
 * draw: what a test draws by lot; SEED=N runs the same draws again.
 */
#ifndef SLUICE_TESTS_DRAW_H
#define SLUICE_TESTS_DRAW_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

static inline unsigned
draw_seed(void)
{
	const char *text = getenv("SEED");
	unsigned seed = text != NULL ? (unsigned)strtoul(text, NULL, 10)
				     : (unsigned)time(NULL);

	print_message("seed %u\n", seed);
	return seed;
}

/* 0 to n - 1. */
static inline size_t
draw_below(unsigned *seed, size_t n)
{
	return (size_t)rand_r(seed) % n;
}

/* 0 to max, small ones as often as large ones. */
static inline size_t
draw_size(unsigned *seed, size_t max)
{
	size_t top = 1;

	while (top < max && rand_r(seed) % 4 != 0)
		top = top * 4;
	return draw_below(seed, (top < max ? top : max) + 1);
}

#endif
