#include "domain/figures.h"

#include "base/clock.h"

/* Two readings of clocks are not further apart, but for a step. */
#define SAME_US 500000

static bool
is_told(const struct decision_part *part)
{
	return part->verdict.kind != VERDICT_ERROR &&
	    part->asked != DECISION_ASKED_INSTEAD &&
	    part->limit->mode != CONFIG_MODE_OBSERVE;
}

static bool
is_nearer(const struct verdict *a, const struct verdict *b)
{
	if (a->remaining != b->remaining)
		return a->remaining < b->remaining;
	return a->next_us > b->next_us;
}

static void
choose(struct decision *d, bool concurrency)
{
	for (size_t i = 0; i < d->n_parts; i++) {
		const struct decision_part *part = &d->part[i];

		if (!is_told(part) ||
		    concurrency !=
			(part->limit->algorithm == ALGORITHM_CONCURRENCY) ||
		    (d->has_numbers && !is_nearer(&part->verdict, &d->verdict)))
			continue;
		d->limit = part->limit;
		d->verdict = part->verdict;
		d->has_numbers = true;
	}
}

void
figures_choose(struct decision *d)
{
	d->has_numbers = false;
	choose(d, false);
	if (!d->has_numbers)
		choose(d, true);
}

static bool
is_same(const struct verdict *a, const struct verdict *b)
{
	return a->limit == b->limit && a->remaining == b->remaining &&
	    a->next_us == b->next_us && a->retry_us == b->retry_us;
}

/* The parts of a limit stand together; of several each tells its period. */
static bool
is_one_of_many(const struct decision *d, size_t at)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n_parts; i++)
		n += d->part[i].limit == d->part[at].limit &&
		    is_told(&d->part[i]);
	return n > 1;
}

/*
 * When it was checked, as a date: what its times count from. The clock of a
 * count in memory does not follow the system's where that is set.
 */
static int64_t
date_of(const struct decision_part *part)
{
	int64_t set_us;

	if (!part->is_steady)
		return part->taken_us;
	set_us = clock_real_us() - clock_steady_us();
	if (set_us > -SAME_US && set_us < SAME_US)
		set_us = 0;
	return part->taken_us + set_us;
}

void
figures_tell(struct decision *d, struct arena *arena)
{
	const struct check none = { .period_us = 0 };
	struct numbers_rate *rate;
	const struct numbers_rate *spoken = NULL;
	size_t n = 0;

	if (!d->has_numbers)
		return;
	rate = arena_alloc(arena, (d->n_parts + 1) * sizeof(*rate));
	if (rate == NULL) {
		d->has_numbers = false;
		return;
	}
	for (size_t i = 0; i < d->n_parts; i++) {
		const struct decision_part *part = &d->part[i];

		if (!is_told(part))
			continue;
		rate[n] = numbers_rate(part->limit->name, is_one_of_many(d, i),
		    &part->check.check, &part->verdict);
		if (spoken == NULL && part->limit == d->limit &&
		    is_same(&part->verdict, &d->verdict)) {
			spoken = &rate[n];
			d->numbers.at_us = date_of(part) + part->age_us;
		}
		n++;
	}
	if (spoken == NULL) { /* it refused without being asked */
		rate[n] =
		    numbers_rate(d->limit->name, false, &none, &d->verdict);
		spoken = &rate[n++];
		d->numbers.at_us = clock_real_us();
	}
	d->numbers.rate = rate;
	d->numbers.n = n;
	d->numbers.spoken = spoken;
}
