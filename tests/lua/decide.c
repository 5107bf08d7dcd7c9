/*
 * Reads questions and prints what src/pure/algorithm.c makes of them, so
 * that the scripts can be held against it.
 *
 *	new                     forget the state
 *	check CHECK NOW         a line: wait remaining next full exists a b c
 *	refund CHECK TAKEN NOW  a line: exists a b c
 *	charge CHECK TAKEN NOW  a line: cut exists a b c
 *
 * CHECK: algorithm align count period_us burst cost offset_us
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
	return c;
}

static void
print_state(const struct state *s)
{
	if (s->exists)
		printf("1 %" PRId64 " %" PRId64 " %" PRId64 "\n", s->a, s->b,
		    s->c);
	else
		printf("0 0 0 0\n");
}

static void
check(struct state *s)
{
	struct check c = next_check();
	struct state after;
	struct verdict v;
	int64_t end_us;

	algorithm_check(&c, s, next_number(), &v, &after, &end_us);
	*s = after;
	printf("%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " ", v.retry_us,
	    v.remaining, v.next_us, v.full_us);
	print_state(s);
}

static void
refund(struct state *s)
{
	struct check c = next_check();
	int64_t taken_us = next_number();

	settlement_refund(&c, s, taken_us, next_number());
	print_state(s);
}

static void
charge(struct state *s)
{
	struct check c = next_check();
	int64_t taken_us = next_number(), end_us;

	printf("%" PRId64 " ",
	    settlement_charge(&c, s, taken_us, next_number(), &end_us));
	print_state(s);
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
			s = (struct state){ 0 };
	}
	return 0;
}
