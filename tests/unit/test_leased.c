/*
 * What is printed while units of a lease are unspent, held against the count
 * that has them back: never more than there is, never earlier than it comes.
 */
#include "draw.h"
#include "pure/algorithm.h"
#include "pure/leased.h"

#define ROUNDS 200000
#define BASE   INT64_C(1790000000123456) /* some day in 2026 */

static unsigned seed;

/* low to high */
static int64_t
draw(int64_t low, int64_t high)
{
	return low + (int64_t)draw_below(&seed, (size_t)(high - low + 1));
}

static struct check
draw_check(void)
{
	static const enum algorithm algorithms[] = { ALGORITHM_FIXED_WINDOW,
		ALGORITHM_SLIDING_WINDOW, ALGORITHM_TOKEN_BUCKET };
	static const int64_t ms[] = { 7, 1000, 60000, 3599999, 86400000 };
	int64_t period_ms = ms[draw(0, 4)];

	return (struct check){
		.algorithm = algorithms[draw(0, 2)],
		.align = ALIGN_SPREAD,
		.period_us = period_ms * 1000,
		.count = 1 + (int64_t)draw_size(&seed, 1000),
		.burst = 1 + (int64_t)draw_size(&seed, 1000),
		.offset_us = draw(0, period_ms - 1) * 1000,
	};
}

/* What passes is taken; returns whether it does. */
static bool
take(struct check *c, struct state *s, int64_t now_us, int64_t cost,
    struct verdict *v)
{
	struct state after;
	int64_t end_us;

	c->cost = cost;
	algorithm_check(c, s, now_us, v, &after, &end_us);
	algorithm_keep(c, s, &after);
	return v->kind == VERDICT_ALLOWED;
}

static int64_t
draw_history(struct check *c, struct state *s)
{
	int64_t now_us = BASE + draw(0, 1000000);
	struct verdict v;

	for (int64_t i = draw(0, 4); i > 0; i--) {
		take(c, s, now_us, 1 + (int64_t)draw_size(&seed, 1000), &v);
		now_us += draw(0, 1500) * (c->period_us / 1000) + draw(0, 999);
	}
	return now_us;
}

static int64_t
left_at(const struct check *c, const struct state *s, int64_t now_us)
{
	struct verdict v;

	algorithm_peek(c, s, now_us, &v);
	return v.remaining;
}

static void
judge(const struct check *c, const struct state *s, int64_t now_us,
    const struct verdict *v)
{
	assert_true(v->remaining >= 0 && v->remaining <= v->limit);
	assert_true(left_at(c, s, now_us) >= v->remaining);
	if (v->remaining == v->limit) {
		assert_int_equal(v->next_us, 0);
		assert_int_equal(v->full_us, 0);
		return;
	}
	assert_true(v->next_us > 0 && v->full_us >= v->next_us);
	assert_true(left_at(c, s, now_us + v->next_us) > v->remaining);
	assert_int_equal(left_at(c, s, now_us + v->full_us), v->limit);
}

/* At once they are those of the count, but for what was rounded twice. */
static void
judge_fresh(const struct check *c, const struct state *s, int64_t now_us,
    const struct verdict *v)
{
	struct verdict exact;

	algorithm_peek(c, s, now_us, &exact);
	assert_int_equal(v->remaining, exact.remaining);
	assert_int_equal(v->next_us, exact.next_us);
	assert_in_range(v->full_us - exact.full_us, 0, 1);
}

/* False: the lease was refused. */
static bool
play(void)
{
	struct check c = draw_check();
	struct state s = { .exists = false }, spent;
	int64_t now_us = draw_history(&c, &s), age_us = 0, units;
	struct verdict then, v, ignored;

	spent = s;
	units = draw(1, 3);
	c.most = units + draw(1, 40);
	if (!take(&c, &s, now_us, units, &then))
		return false;
	/* The same count, of which as much was taken as is spent by now. */
	c.most = 0;
	units = draw(units, then.taken);
	assert_true(take(&c, &spent, now_us, units, &ignored));
	if (draw(0, 1) > 0)
		age_us = draw(0, 200000);
	if (c.algorithm == ALGORITHM_FIXED_WINDOW && age_us >= then.full_us)
		age_us = 0; /* the window and with it the lease are over */
	leased_figures(&c, &then, then.taken - units, age_us, &v);
	assert_int_equal(v.limit, then.limit);
	judge(&c, &spent, now_us + age_us, &v);
	if (age_us == 0)
		judge_fresh(&c, &spent, now_us, &v);
	return true;
}

static void
test_never_more_than_there_is(void **state)
{
	unsigned played = 0;

	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++)
		played += play();
	assert_true(played > ROUNDS / 4);
}

/* Of every size, and often at the edges. */
static int64_t
draw_figure(int64_t low)
{
	int64_t figure = LEASED_FIGURE_MAX >> draw(0, 61);

	if (draw(0, 1) > 0)
		figure -= draw(0, figure < 1000 ? figure : 1000);
	return low < 0 && draw(0, 1) > 0 ? -figure : figure;
}

static struct verdict
draw_verdict(void)
{
	return (struct verdict){
		.kind = VERDICT_ALLOWED,
		.limit = draw_figure(0),
		.remaining = draw_figure(-1),
		.next_us = draw_figure(0),
		.full_us = draw_figure(0),
		.own_count = draw(0, 1) > 0 ? draw_figure(0) : 0,
	};
}

/* A store that says anything: what is printed is no nonsense all the same. */
static void
test_any_figures(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct check c = draw_check();
		struct verdict then = draw_verdict(), v;
		int64_t unspent = draw_figure(0), missing;

		leased_figures(&c, &then, unspent, draw_figure(-1), &v);
		assert_true(v.remaining >= 0 && v.remaining <= v.limit);
		assert_true(v.next_us >= 0 && v.full_us >= v.next_us);
		missing = leased_missing(
		    &c, then.own_count, unspent, draw_figure(-1));
		assert_true(missing >= 0 && missing <= unspent);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_never_more_than_there_is),
		cmocka_unit_test(test_any_figures),
	};

	seed = draw_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
