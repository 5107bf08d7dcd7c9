/*
 * Reads questions and prints what src/pure/algorithm.c makes of them, so
 * that the scripts can be held against it.
 *
 *	new                     forget the state
 *	check CHECK NOW         a line: wait remaining next full (of a
 *	                        leaky bucket and a lease: delay limit; of a
 *	                        lease: 0, what was taken) STATE
 *	refund CHECK TAKEN NOW  a line: STATE
 *	charge CHECK TAKEN NOW  a line: cut STATE
 *
 * CHECK: algorithm align count period_us burst cost offset_us, four
 *	boundaries, delay_max_us full_us penalty_us most
 * STATE: exists a b c (nothing of what Redis keeps as a set) penalty_us
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pure/algorithm.h"
#include "pure/settlement.h"

static int64_t
next_number(void)
{
	int64_t x;

	if (scanf("%" SCNd64, &x) != 1)
		exit(1);
	return x;
}

static struct check
next_check(void)
{
	struct check c = { 0 };

	c.algorithm = (enum algorithm)next_number();
	c.align = (enum align)next_number();
	c.count = next_number();
	c.period_us = next_number();
	c.burst = next_number();
	c.cost = next_number();
	c.offset_us = next_number();
	for (int i = 0; i < 4; i++)
		c.boundary_us[i] = next_number();
	c.delay_max_us = next_number();
	c.full_us = next_number();
	c.penalty_us = next_number();
	c.most = next_number();
	return c;
}

static void
print_state(const struct check *c, const struct state *s)
{
	bool is_set = c->algorithm == ALGORITHM_SLIDING_LOG ||
	    c->algorithm == ALGORITHM_CONCURRENCY;

	if (s->exists && !is_set)
		printf("1 %" PRId64 " %" PRId64 " %" PRId64, s->a, s->b, s->c);
	else
		printf("0 0 0 0");
	printf(" %" PRId64 "\n", s->penalty_us);
}

static void
check(struct state *s)
{
	struct check c = next_check();
	struct state after;
	struct verdict v;
	int64_t end_us;

	algorithm_check(&c, s, next_number(), &v, &after, &end_us);
	if (!algorithm_keep(&c, s, &after))
		exit(1);
	printf("%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " ", v.retry_us,
	    v.remaining, v.next_us, v.full_us);
	if (c.algorithm == ALGORITHM_LEAKY_BUCKET || c.most > c.cost)
		printf("%" PRId64 " %" PRId64 " ", v.delay_us, v.limit);
	if (c.most > c.cost)
		printf("0 %" PRId64 " ", v.taken);
	print_state(&c, s);
}

static void
refund(struct state *s)
{
	struct check c = next_check();
	int64_t taken_us = next_number();

	settlement_refund(&c, s, taken_us, next_number());
	print_state(&c, s);
}

static void
charge(struct state *s)
{
	struct check c = next_check();
	int64_t taken_us = next_number(), end_us;

	printf("%" PRId64 " ",
	    settlement_charge(&c, s, taken_us, next_number(), &end_us));
	print_state(&c, s);
}

int
main(void)
{
	struct state s = { 0 };
	char word[16];

	while (scanf("%15s", word) == 1) {
		if (strcmp(word, "check") == 0)
			check(&s);
		else if (strcmp(word, "refund") == 0)
			refund(&s);
		else if (strcmp(word, "charge") == 0)
			charge(&s);
		else
			algorithm_forget(&s);
	}
	algorithm_forget(&s);
	return 0;
}
