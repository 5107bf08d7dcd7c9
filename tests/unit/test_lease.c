/*
 * Leases of several gateways on one store, by clocks that are variables:
 * what is admitted, held against the limit.
 */
#include "base/clock.h"
#include "domain/lease.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/counter.h"
#include "domain/deny_cache.h"
#include "domain/store_memory.h"
#include "draw.h"

#define SPAN_US  200000
#define GATEWAYS 4
#define SIZE     16
#define WAIT_US  INT64_C(60000000) /* in the time that really passes */
#define HOUR_US  INT64_C(3600000000)
/* The store's clock, when the gateways' is 0. */
#define STORE_US INT64_C(1790000000123456)
#define ADMITTED 4096

static _Atomic int64_t clock_us = HOUR_US;

int64_t __wrap_clock_mono_us(void);
int64_t __wrap_clock_steady_us(void);

int64_t
__wrap_clock_mono_us(void)
{
	return atomic_load(&clock_us);
}

int64_t
__wrap_clock_steady_us(void)
{
	return STORE_US + atomic_load(&clock_us);
}

static unsigned seed;

static int64_t
draw(int64_t low, int64_t high)
{
	return low + (int64_t)draw_below(&seed, (size_t)(high - low + 1));
}

/* A store behind trips that take some time, or that is out. */
struct distant {
	struct store store;
	struct store *counts;
	bool slow;
	bool out;
	int64_t settle_us;  /* how long it takes to settle */
	int64_t taken;      /* what it says it took, if not 0 */
	unsigned out_at;    /* when asked for the so-manieth time; 0: never */
	unsigned broken_at; /* then it has no answer for the first check */
	_Atomic unsigned asked;
	_Atomic unsigned settled; /* calls */
	_Atomic int64_t taken_us; /* the last answer's */
	_Atomic int64_t until_us; /* the last question's */
	/* Whose leases are given back while it is asked; NULL: none. */
	struct leases *ending;
	/* Whose count begins anew when it has answered; NULL: none. */
	struct leases *resetting;
	/* The first to ask gets its answer when so many have come, or asked. */
	unsigned await;
	_Atomic unsigned come;
};

static void
pass_time(const struct distant *d)
{
	if (d->slow)
		atomic_fetch_add(&clock_us, draw(0, 3000));
}

static void
answer_but_first(
    struct distant *d, const struct store_question *q, struct store_answer *a)
{
	struct store_question rest = { .check = q->check + 1, .n = q->n - 1 };

	d->counts->ops->ask(d->counts, &rest, a);
	for (size_t i = q->n - 1; i > 0; i--)
		a->verdict[i] = a->verdict[i - 1];
	a->verdict[0] = (struct verdict){ .kind = VERDICT_ERROR };
}

static void
distant_answer(struct distant *d, unsigned asked,
    const struct store_question *q, struct store_answer *a)
{
	if (d->out || asked == d->out_at) {
		a->status = STORE_OUT;
		a->reason = "out";
		a->retry_us = 700000;
		return;
	}
	pass_time(d);
	if (asked == d->broken_at)
		answer_but_first(d, q, a);
	else
		d->counts->ops->ask(d->counts, q, a);
	if (d->taken != 0)
		a->verdict[0].taken = d->taken;
	atomic_store(&d->taken_us, a->taken_us);
	if (d->ending != NULL)
		leases_return(d->ending, &d->store, HOUR_US);
	if (d->resetting != NULL) {
		store_memory_clear(d->counts, q->check[0].key);
		leases_drop(d->resetting, q->check[0].key);
	}
	pass_time(d);
}

static void
distant_ask(struct store *store, const struct store_question *q,
    struct store_answer *answer)
{
	struct distant *d = (struct distant *)store;
	unsigned asked = atomic_fetch_add(&d->asked, 1) + 1;
	bool is_first = asked == 1;

	atomic_store(&d->until_us, q->until_us);
	distant_answer(d, asked, q, answer);
	if (!is_first)
		atomic_fetch_add(&d->come, 1);
	while (is_first && atomic_load(&d->come) < d->await)
		sched_yield();
}

static void
distant_settle(struct store *store, const struct store_settlement *s, size_t n)
{
	struct distant *d = (struct distant *)store;

	atomic_fetch_add(&d->settled, 1);
	atomic_fetch_add(&clock_us, d->settle_us);
	pass_time(d);
	d->counts->ops->settle(d->counts, s, n);
}

static const struct store_ops distant_ops = {
	.ask = distant_ask,
	.settle = distant_settle,
};

static struct distant distant;
static int64_t size; /* of leases */

static int
set_up(void **state)
{
	(void)state;
	size = SIZE;
	distant = (struct distant){
		.store = { .ops = &distant_ops, .may_block = true },
		.counts = store_memory_new(1000),
	};
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	distant.counts->ops->free(distant.counts);
	return 0;
}

static struct store_check
check_of(const char *key, int64_t count)
{
	return (struct store_check){
		.key = str_of(key),
		.check = { .algorithm = ALGORITHM_FIXED_WINDOW,
		    .align = ALIGN_FIRST,
		    .count = count,
		    .burst = count,
		    .period_us = HOUR_US,
		    .cost = 1 },
	};
}

static struct verdict
ask(struct leases *l, const struct store_check *c, struct lease_unit *unit)
{
	struct store_question q = { .check = c, .n = 1 };
	struct store_answer a;

	lease_ask(l, &distant.store, &q, &size, &a, unit);
	assert_int_equal(a.status, STORE_ANSWERED);
	return a.verdict[0];
}

static bool
passes(struct leases *l, const struct store_check *c)
{
	struct lease_unit unit;

	return ask(l, c, &unit).kind == VERDICT_ALLOWED;
}

/* What the store says that is left. */
static int64_t
left_of(struct store_check c)
{
	struct store_answer a;

	c.check.cost = 0;
	distant.counts->ops->ask(distant.counts,
	    &(struct store_question){ .check = &c, .n = 1 }, &a);
	return a.verdict[0].remaining;
}

static void
test_one_trip_for_many(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US);
	struct store_check c = check_of("k", 100);
	struct lease_unit unit;
	struct verdict v;

	(void)state;
	for (int i = 1; i <= 2 * SIZE; i++) {
		v = ask(l, &c, &unit);
		assert_int_equal(v.kind, VERDICT_ALLOWED);
		assert_int_equal(v.limit, 100);
		assert_int_equal(v.remaining, 100 - i);
		assert_int_equal(v.taken, 0);
		assert_true(unit.id != 0);
	}
	assert_int_equal(distant.asked, 2);
	assert_int_equal(left_of(c), 100 - 2 * SIZE);
	leases_free(l);
}

static void
test_what_remains_and_then_none(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US),
		      *other = leases_new(NULL, WAIT_US);
	struct store_check c = check_of("k", 20);

	(void)state;
	for (int i = 0; i < 20; i++)
		assert_true(passes(l, &c));
	assert_int_equal(distant.asked, 2);
	assert_false(passes(l, &c));
	assert_false(passes(other, &c));
	leases_free(l);
	leases_free(other);
}

/* The last unit is no lease: there is none to give back. */
static void
test_a_cost_alone_leaves_no_lease(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US);
	struct store_check c = check_of("k", 1);
	struct lease_unit unit;

	(void)state;
	assert_int_equal(ask(l, &c, &unit).kind, VERDICT_ALLOWED);
	assert_int_equal(unit.id, 0);
	leases_return(l, &distant.store, HOUR_US);
	assert_int_equal(left_of(c), 0);
	leases_free(l);
}

static void
test_given_back_when_idle_or_old(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US);
	struct store_check c = check_of("k", 100);

	(void)state;
	assert_true(passes(l, &c));
	assert_int_equal(left_of(c), 100 - SIZE);
	clock_us += 60000;
	leases_maintain(l, &distant.store);
	assert_int_equal(left_of(c), 100 - SIZE);
	clock_us += 60000;
	leases_maintain(l, &distant.store);
	assert_int_equal(left_of(c), 99);
	/* Used all the time, but not for longer than its span. */
	for (int i = 0; i < 4; i++) {
		assert_true(passes(l, &c));
		clock_us += 60000;
		leases_maintain(l, &distant.store);
	}
	assert_int_equal(left_of(c), 95);
	assert_int_equal(distant.asked, 2);
	assert_int_equal(distant.settled, 2);
	leases_free(l);
}

/* All of a key, of whatever N, and of no other. */
static void
test_dropped(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US);
	struct store_check c = check_of("k", 100), gold = check_of("k", 200),
			   other = check_of("other", 100);
	uint64_t expired = counter_get(COUNTER_lease_units_expired);

	(void)state;
	leases_drop(l, c.key);
	assert_true(passes(l, &c));
	assert_true(passes(l, &gold));
	assert_true(passes(l, &other));
	assert_int_equal(distant.asked, 3);
	store_memory_clear(distant.counts, c.key);
	leases_drop(l, c.key);
	assert_int_equal(
	    counter_get(COUNTER_lease_units_expired), expired + 2 * (SIZE - 1));
	assert_true(passes(l, &c));
	assert_true(passes(l, &other));
	assert_int_equal(distant.asked, 4);
	leases_return(l, &distant.store, HOUR_US);
	assert_int_equal(left_of(c), 99);
	assert_int_equal(left_of(other), 98);
	leases_free(l);
}

/* Of units that were taken just before nothing but the cost was spent. */
static void
test_dropped_while_it_is_taken(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US);
	struct store_check c = check_of("k", 100);
	uint64_t expired = counter_get(COUNTER_lease_units_expired);
	struct lease_unit unit;

	(void)state;
	distant.resetting = l;
	assert_int_equal(ask(l, &c, &unit).kind, VERDICT_ALLOWED);
	assert_int_equal(unit.id, 0);
	assert_int_equal(
	    counter_get(COUNTER_lease_units_expired), expired + SIZE - 1);
	distant.resetting = NULL;
	assert_true(passes(l, &c));
	assert_int_equal(distant.asked, 2);
	leases_return(l, &distant.store, HOUR_US);
	assert_int_equal(left_of(c), 99);
	leases_free(l);
}

/* And with `auto` there is no pace to go by. */
static void
test_dropped_while_its_pace_is_measured(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US);
	struct store_check c = check_of("k", 1000);

	(void)state;
	size = LEASE_AUTO;
	distant.resetting = l;
	for (int i = 0; i < 10; i++)
		assert_true(passes(l, &c));
	assert_int_equal(distant.asked, 10);
	leases_free(l);
}

/* It is as full as if the rest had never been taken. */
static void
test_a_bucket_gets_its_tokens_back(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US);
	struct store_check c = check_of("k", 100);

	(void)state;
	c.check.algorithm = ALGORITHM_TOKEN_BUCKET;
	c.check.period_us = 1000000;
	assert_true(passes(l, &c));
	clock_us += 120000; /* 12 tokens, of which it has room for one */
	leases_maintain(l, &distant.store);
	assert_int_equal(left_of(c), 100);
	leases_free(l);
}

static void
test_nothing_is_spent_late(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US);
	struct store_check c = check_of("k", 100);

	(void)state;
	assert_true(passes(l, &c));
	clock_us += SPAN_US - 1;
	assert_true(passes(l, &c));
	assert_int_equal(distant.asked, 1);
	clock_us++;
	assert_true(passes(l, &c));
	assert_int_equal(distant.asked, 2);
	leases_maintain(l, &distant.store);
	assert_int_equal(left_of(c), 100 - 2 - SIZE);
	leases_return(l, &distant.store, HOUR_US);
	assert_int_equal(left_of(c), 97);
	leases_free(l);
}

static void
test_a_lease_ends_with_its_window(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US);
	struct store_check c = check_of("k", 100);
	uint64_t expired = counter_get(COUNTER_lease_units_expired);

	(void)state;
	c.check.period_us = 100000;
	assert_true(passes(l, &c));
	clock_us += 99500;
	assert_true(passes(l, &c));
	assert_int_equal(distant.asked, 2);
	clock_us += 500;
	leases_maintain(l, &distant.store);
	assert_int_equal(distant.settled, 0);
	assert_int_equal(
	    counter_get(COUNTER_lease_units_expired) - expired, 2 * (SIZE - 1));
	assert_int_equal(left_of(c), 100);
	leases_free(l);
}

/* Two keys: what one has is not spent where the other refuses. */
static void
test_all_or_nothing(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US),
		      *other = leases_new(NULL, WAIT_US);
	struct store_check c[2] = { check_of("wide", 100),
		check_of("narrow", 3) };
	struct store_question q = { .check = c, .n = 2 };
	int64_t sizes[2] = { SIZE, SIZE };
	struct lease_unit unit[2];
	struct store_answer a;

	(void)state;
	lease_ask(l, &distant.store, &q, sizes, &a, unit);
	assert_int_equal(a.verdict[0].remaining, 99);
	assert_int_equal(a.verdict[1].remaining, 2);
	for (int i = 0; i < 2; i++)
		lease_ask(l, &distant.store, &q, sizes, &a, unit);
	assert_int_equal(distant.asked, 1);
	lease_ask(l, &distant.store, &q, sizes, &a, unit);
	assert_int_equal(distant.asked, 2);
	assert_int_equal(a.verdict[0].kind, VERDICT_ALLOWED);
	assert_int_equal(a.verdict[0].remaining, 97);
	assert_int_equal(a.verdict[1].kind, VERDICT_REFUSED);
	leases_return(l, &distant.store, HOUR_US);
	assert_int_equal(left_of(c[0]), 97);
	/* Nor is anything taken of a key that has none yet. */
	lease_ask(other, &distant.store, &q, sizes, &a, unit);
	assert_int_equal(a.verdict[1].kind, VERDICT_REFUSED);
	assert_int_equal(left_of(c[0]), 97);
	leases_free(l);
	leases_free(other);
}

/* What it came from has ended meanwhile: then it goes back to the store. */
static void
test_nothing_is_spent_of_a_lease_that_ended(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US);
	struct store_check c[2] = { check_of("wide", 100),
		check_of("narrow", 1) };
	struct store_question q = { .check = c, .n = 2 };
	int64_t sizes[2] = { SIZE, SIZE };
	struct lease_unit unit[2];
	struct store_answer a;

	(void)state;
	c[0].check.algorithm = ALGORITHM_TOKEN_BUCKET;
	lease_ask(l, &distant.store, &q, sizes, &a, unit);
	assert_int_equal(a.verdict[1].kind, VERDICT_ALLOWED);
	clock_us += 70000;
	distant.ending = l;
	lease_ask(l, &distant.store, &q, sizes, &a, unit);
	assert_int_equal(a.verdict[0].kind, VERDICT_ALLOWED);
	assert_int_equal(a.verdict[1].kind, VERDICT_REFUSED);
	/* 1 of 100 an hour was taken: it is full then, and not before. */
	clock_us += 35930000 - 1;
	assert_int_equal(left_of(c[0]), 99);
	clock_us++;
	assert_int_equal(left_of(c[0]), 100);
	leases_free(l);
}

/* What is left is too little: it goes back, and is in the next lease. */
static void
test_a_cost_above_what_is_left(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US);
	struct store_check c = check_of("k", 100);

	(void)state;
	c.check.cost = 6;
	for (int i = 0; i < 3; i++)
		assert_true(passes(l, &c));
	assert_int_equal(distant.asked, 2);
	leases_return(l, &distant.store, HOUR_US);
	assert_int_equal(left_of(c), 100 - 18);
	c.check.cost = SIZE + 1; /* as if there were no leases */
	assert_true(passes(l, &c));
	assert_int_equal(left_of(c), 100 - 18 - SIZE - 1);
	leases_free(l);
}

static void
test_other_counts_have_other_leases(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US);
	struct store_check base = check_of("k", 100), gold = base;
	struct lease_unit unit;

	(void)state;
	gold.check.count = 200;
	assert_int_equal(ask(l, &base, &unit).remaining, 99);
	assert_int_equal(ask(l, &gold, &unit).remaining, 200 - SIZE - 1);
	gold.check.burst = 200;
	assert_true(passes(l, &gold));
	assert_int_equal(distant.asked, 3);
	leases_free(l);
}

static void
test_put_back(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US);
	struct store_check c = check_of("k", 100);
	struct lease_unit unit;

	(void)state;
	ask(l, &c, &unit);
	assert_true(lease_put_back(l, &c, unit.id));
	assert_int_equal(ask(l, &c, &unit).remaining, 99);
	leases_return(l, &distant.store, HOUR_US);
	assert_false(lease_put_back(l, &c, unit.id));
	assert_int_equal(left_of(c), 99);
	leases_free(l);
}

/* They were taken: the store is not needed to spend them. */
static void
test_while_the_store_is_out(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US);
	struct store_check c[2] = { check_of("k", 100), check_of("new", 100) };
	struct store_question q = { .check = c, .n = 2 };
	int64_t sizes[2] = { SIZE, SIZE };
	struct lease_unit unit[2];
	struct store_answer a;

	(void)state;
	assert_true(passes(l, &c[0]));
	distant.out = true;
	for (int i = 1; i < SIZE - 1; i++)
		assert_true(passes(l, &c[0]));
	lease_ask(l, &distant.store, &q, sizes, &a, unit);
	assert_int_equal(a.status, STORE_ANSWERED);
	assert_int_equal(a.verdict[0].kind, VERDICT_ALLOWED);
	assert_int_equal(a.verdict[1].kind, VERDICT_ERROR);
	assert_int_equal(a.retry_us, 700000);
	assert_string_equal(a.reason, "out");
	assert_int_equal(ask(l, &c[0], unit).kind, VERDICT_ERROR);
	leases_free(l);
}

/* A cost of 0 passes and takes nothing, whatever there is. */
static void
test_no_cost(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US);
	struct store_check c = check_of("k", 100), none = c;

	(void)state;
	none.check.cost = 0;
	assert_true(passes(l, &none));
	assert_int_equal(left_of(c), 100);
	assert_true(passes(l, &c));
	assert_true(passes(l, &none));
	leases_return(l, &distant.store, HOUR_US);
	assert_int_equal(left_of(c), 99);
	leases_free(l);
}

/* More keys than one call settles, each once. */
static void
test_many_are_returned_together(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US);
	char key[300][16];

	(void)state;
	for (int i = 0; i < 300; i++) {
		struct store_check c;

		snprintf(key[i], sizeof(key[i]), "k%d", i);
		c = check_of(key[i], 100);
		assert_true(passes(l, &c));
		clock_us += 10;
	}
	leases_return(l, &distant.store, HOUR_US);
	assert_int_equal(distant.settled, 10);
	for (int i = 0; i < 300; i++)
		assert_int_equal(left_of(check_of(key[i], 100)), 99);
	leases_free(l);
}

/* Takes a lease for each of n keys, which is left with all but a unit. */
static void
lease_many(struct leases *l, int n)
{
	char key[32];

	for (int i = 0; i < n; i++) {
		struct store_check c;

		snprintf(key, sizeof(key), "k%d", i);
		c = check_of(key, 100);
		assert_true(passes(l, &c));
	}
}

/* How many of those have all back but what was spent? */
static int
count_back(int n)
{
	char key[32];
	int back = 0;

	for (int i = 0; i < n; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		back += left_of(check_of(key, 100)) == 99;
	}
	return back;
}

/* The maintenance thread has other work too, and all goes back in the end. */
static void
test_a_turn_with_a_slow_store(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US);
	int n = 4 * STORE_CHECKS_MAX + 3, turns = 0;

	(void)state;
	lease_many(l, n);
	clock_us += SPAN_US;
	distant.settle_us = 30000;
	while (count_back(n) < n) {
		int64_t begun_us = clock_us;
		unsigned settled = distant.settled;

		clock_us = leases_maintain(l, &distant.store);
		assert_in_range(distant.settled - settled, 1, 2);
		assert_in_range(clock_us - begun_us, 50001, 60000 + 1000000);
		assert_in_range(++turns, 1, 3);
	}
	assert_int_equal(turns, 3);
	assert_int_equal(distant.settled, 5);
	leases_free(l);
}

/* What a reload has no time for comes back as ever. */
static void
test_a_return_with_a_slow_store(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US);
	int n = 4 * STORE_CHECKS_MAX;

	(void)state;
	lease_many(l, n);
	distant.settle_us = 30000;
	leases_return(l, &distant.store, 50000);
	assert_int_equal(count_back(n), 2 * STORE_CHECKS_MAX);
	clock_us += SPAN_US;
	leases_maintain(l, &distant.store);
	assert_int_equal(count_back(n), n);
	leases_free(l);
}

/* At the end there is nobody to whom the rest could be left. */
static void
test_an_end_with_a_slow_store(void **state)
{
	uint64_t expired = counter_get(COUNTER_lease_units_expired),
		 returned = counter_get(COUNTER_lease_units_returned);
	struct leases *l = leases_new(NULL, WAIT_US);
	int n = 4 * STORE_CHECKS_MAX;

	(void)state;
	lease_many(l, n);
	distant.settle_us = 30000;
	leases_end(l, &distant.store, 90000);
	assert_int_equal(count_back(n), 3 * STORE_CHECKS_MAX);
	assert_int_equal(counter_get(COUNTER_lease_units_returned) - returned,
	    3 * STORE_CHECKS_MAX * (SIZE - 1));
	assert_int_equal(counter_get(COUNTER_lease_units_expired) - expired,
	    STORE_CHECKS_MAX * (SIZE - 1));
	leases_return(l, &distant.store, HOUR_US);
	assert_int_equal(distant.settled, 3);
	leases_free(l);
}

/* Refusals that are remembered do not stand before what there is now. */
static void
test_what_was_denied_is_forgotten(void **state)
{
	struct deny_cache *denied = deny_cache_new(100, HOUR_US);
	struct leases *l = leases_new(denied, WAIT_US);
	struct store_check c = check_of("k", 100);
	const struct deny_cache_id id = { &c, 1 };
	struct deny_cache_answer told = {
		.verdict = { .kind = VERDICT_REFUSED,
		    .retry_us = HOUR_US,
		    .next_us = HOUR_US,
		    .full_us = HOUR_US },
	};
	struct lease_unit unit;

	(void)state;
	for (int i = 0; i < 3; i++) {
		told.sent_us = told.answered_us =
		    atomic_fetch_add(&clock_us, 10) + 10;
		deny_cache_put(denied, &id, &told, HOUR_US);
		assert_int_equal(deny_cache_find(denied, &id, clock_us, &told),
		    DENY_CACHE_REFUSED);
		clock_us += 10;
		if (i == 0)
			ask(l, &c, &unit);
		else if (i == 1)
			lease_put_back(l, &c, unit.id);
		else
			leases_return(l, &distant.store, HOUR_US);
		assert_int_equal(deny_cache_find(denied, &id, clock_us, &told),
		    DENY_CACHE_UNKNOWN);
	}
	leases_free(l);
	deny_cache_free(denied);
}

/* By 10 a ms: one, then as many as its pace and the share of the rest are. */
static void
test_auto(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US);
	struct store_check c = check_of("k", 100000);
	struct lease_unit unit;

	(void)state;
	size = LEASE_AUTO;
	assert_int_equal(ask(l, &c, &unit).remaining, 99999);
	assert_int_equal(unit.id, 0);
	clock_us += 2000; /* one in 2 ms is 50 in 100 ms */
	assert_int_equal(ask(l, &c, &unit).remaining, 99998);
	assert_true(unit.id != 0);
	assert_int_equal(left_of(c), 99999 - 50);
	for (int i = 1; i < 50; i++) {
		clock_us += 100;
		assert_true(passes(l, &c));
	}
	assert_int_equal(distant.asked, 2);
	clock_us += 100; /* 50 in 5 ms */
	assert_true(passes(l, &c));
	assert_int_equal(left_of(c), 99949 - 1000);
	clock_us += SPAN_US; /* one in 200 ms */
	assert_true(passes(l, &c));
	assert_int_equal(left_of(c), 99949 - 1000 - 1);
	leases_return(l, &distant.store, HOUR_US);
	assert_int_equal(left_of(c), 99949 - 2);
	leases_free(l);
}

/* A lease of less than nothing would be charged when it goes back. */
static void
test_less_was_taken_than_the_cost(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US);
	struct store_check c = check_of("k", 100);

	(void)state;
	size = LEASE_AUTO;
	c.check.cost = 5;
	distant.taken = 1;
	assert_true(passes(l, &c));
	leases_return(l, &distant.store, HOUR_US);
	assert_int_equal(left_of(c), 95);
	leases_free(l);
}

/* A cold key is asked for each time, and leaves nothing. */
static void
test_auto_of_a_cold_key(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US);
	struct store_check c = check_of("k", 100000);

	(void)state;
	size = LEASE_AUTO;
	for (int i = 1; i <= 5; i++) {
		assert_true(passes(l, &c));
		assert_int_equal(left_of(c), 100000 - i);
		clock_us += 110000;
		leases_maintain(l, &distant.store);
	}
	assert_int_equal(distant.asked, 5);
	assert_int_equal(distant.settled, 0);
	leases_free(l);
}

/* Near the limit it takes one at a time, and all of them. */
static void
test_auto_near_the_limit(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US);
	struct store_check c = check_of("k", 40);

	(void)state;
	size = LEASE_AUTO;
	for (int i = 1; i <= 40; i++) {
		assert_true(passes(l, &c));
		assert_true(left_of(c) >= 40 - i - 2);
	}
	assert_int_equal(left_of(c), 0);
	assert_false(passes(l, &c));
	leases_free(l);
}

/* ---- what is printed --------------------------------------------- */

/* As a request does to which another limit applies that has no lease. */
static struct verdict
ask_exactly(struct leases *l, const struct store_check *c)
{
	int64_t asked_us = clock_us;
	struct store_question q = { .check = c, .n = 1 };
	struct store_answer a;

	distant_ask(&distant.store, &q, &a);
	lease_learn(l, &q, asked_us, &a);
	return a.verdict[0];
}

static void
expect_remaining(int64_t count, int64_t taken_ahead, const int64_t (*row)[2])
{
	struct leases *l = leases_new(NULL, WAIT_US);
	struct store_check c = check_of("k", count);
	struct lease_unit unit;

	size = taken_ahead;
	for (; (*row)[0] > 0; row++) {
		c.check.cost = (*row)[0];
		assert_int_equal(ask(l, &c, &unit).remaining, (*row)[1]);
	}
	leases_free(l);
	tear_down(NULL);
	set_up(NULL);
}

/* Alone: what is left of all, refused or not, and whoever has the rest. */
static void
test_remaining_is_what_is_left(void **state)
{
	static const int64_t mixed[][2] = { { 1, 99 }, { 20, 79 }, { 20, 59 },
		{ 20, 39 }, { 1, 38 }, { 1, 37 }, { 20, 17 }, { 1, 16 },
		{ 0, 0 } };
	static const int64_t rests[][2] = { { 5, 95 }, { 5, 90 }, { 5, 85 },
		{ 5, 80 }, { 0, 0 } };
	static const int64_t refused[][2] = { { 1, 39 }, { 20, 19 }, { 20, 19 },
		{ 1, 18 }, { 0, 0 } };

	(void)state;
	expect_remaining(100, 4, mixed);
	expect_remaining(100, 8, rests);
	expect_remaining(40, 4, refused);
}

static void
draw_question(struct leases *l, struct store_check *c, int64_t *left)
{
	struct lease_unit unit;
	struct verdict v;

	c->check.cost = draw(0, 3) > 0 ? 1 : draw(0, 25);
	v = draw(0, 2) > 0 ? ask(l, c, &unit) : ask_exactly(l, c);
	if (v.kind == VERDICT_ALLOWED)
		*left -= c->check.cost;
	assert_true(*left >= 0);
	assert_int_equal(v.limit, c->check.count);
	assert_int_equal(v.remaining, *left);
}

/* One gateway, one window: what is printed is what was not admitted. */
static void
test_remaining_of_drawn_requests(void **state)
{
	(void)state;
	distant.slow = true;
	for (int round = 0; round < 600; round++) {
		struct leases *l = leases_new(NULL, WAIT_US);
		struct store_check c = check_of("k", draw(1, 400));
		int64_t left = c.check.count;

		size = draw(2, 40);
		store_memory_clear(distant.counts, c.key);
		for (int i = 0; i < 200; i++) {
			draw_question(l, &c, &left);
			clock_us += draw(0, 2) * draw(0, 40000);
			if (draw(0, 2) > 0)
				leases_maintain(l, &distant.store);
		}
		leases_return(l, &distant.store, HOUR_US);
		assert_int_equal(left_of(c), left);
		leases_free(l);
	}
}

/* Of all algorithms: with all given back there is as much as was printed. */
static void
test_remaining_is_there(void **state)
{
	static const enum algorithm algorithms[] = { ALGORITHM_FIXED_WINDOW,
		ALGORITHM_SLIDING_WINDOW, ALGORITHM_TOKEN_BUCKET };
	struct lease_unit unit;

	(void)state;
	for (int round = 0; round < 3000; round++) {
		struct leases *l = leases_new(NULL, WAIT_US);
		struct store_check c = check_of("k", draw(1, 100));
		struct verdict v = { .remaining = 0 };

		c.check.algorithm = algorithms[draw(0, 2)];
		c.check.align = ALIGN_SPREAD;
		c.check.period_us = draw(1, 1000) * 1000;
		c.check.burst = draw(1, 100);
		size = draw(2, 40);
		store_memory_clear(distant.counts, c.key);
		for (int64_t i = draw(1, 20); i > 0; i--) {
			clock_us += draw(0, 2) * draw(0, 40000);
			if (draw(0, 2) > 0)
				leases_maintain(l, &distant.store);
			c.check.cost = draw(0, 3) > 0 ? 1 : draw(0, 25);
			v = draw(0, 2) > 0 ? ask(l, &c, &unit)
					   : ask_exactly(l, &c);
		}
		leases_return(l, &distant.store, HOUR_US);
		assert_true(left_of(c) >= v.remaining);
		leases_free(l);
	}
}

/* What is printed when the store says that so much remains, at that time. */
static int64_t
told(struct leases *l, const struct store_check *c, int64_t asked_us,
    int64_t taken_us, int64_t remaining)
{
	struct store_question q = { .check = c, .n = 1 };
	struct store_answer a = { .status = STORE_ANSWERED,
		.taken_us = taken_us };

	a.verdict[0] = (struct verdict){ .kind = VERDICT_ALLOWED,
		.limit = 100,
		.remaining = remaining,
		.full_us = HOUR_US };
	lease_learn(l, &q, asked_us, &a);
	return a.verdict[0].remaining;
}

/* An answer that was overtaken tells what the later one does. */
static void
test_the_newest_answer_counts(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US);
	struct store_check c = check_of("k", 100);
	int64_t asked_us = clock_us, at_us;
	struct lease_unit unit;

	(void)state;
	clock_us++;
	ask(l, &c, &unit);
	at_us = distant.taken_us;
	assert_int_equal(told(l, &c, asked_us, at_us + 2, 70), 70 + SIZE - 1);
	assert_int_equal(told(l, &c, asked_us, at_us + 1, 80), 70 + SIZE - 1);
	/* But a clock that steps back does not stay behind for ever. */
	clock_us += 2;
	assert_int_equal(told(l, &c, clock_us, at_us + 1, 75), 75 + SIZE - 1);
	leases_free(l);
}

/* ---- drawn traces ------------------------------------------------ */

struct trace {
	struct store_check check;
	struct leases *gateway[GATEWAYS];
	size_t n;
	int64_t at_us[ADMITTED]; /* when, on the store's clock */
	int64_t units[ADMITTED];
	int64_t taken_us[ADMITTED]; /* and when its units were taken */
};

static void
draw_limit(struct trace *t)
{
	static const enum algorithm algorithms[] = { ALGORITHM_FIXED_WINDOW,
		ALGORITHM_SLIDING_WINDOW, ALGORITHM_TOKEN_BUCKET };
	static const int64_t ms[] = { 50, 300, 1000, 10000 };
	struct check *c = &t->check.check;

	t->check = check_of("k", draw(1, 200));
	c->algorithm = algorithms[draw(0, 2)];
	c->align = ALIGN_SPREAD;
	c->period_us = ms[draw(0, 3)] * 1000;
	c->burst = draw(1, 200);
	c->offset_us = draw(0, c->period_us / 1000 - 1) * 1000;
}

static void
trace_ask(struct trace *t, struct leases *l)
{
	unsigned trips = distant.asked;
	struct lease_unit unit;
	struct store_check c = t->check;

	c.check.cost = draw(0, 9) == 0 ? 3 : 1;
	if (ask(l, &c, &unit).kind != VERDICT_ALLOWED)
		return;
	t->taken_us[t->n] = unit.id != 0 ? unit.taken_us : distant.taken_us;
	t->at_us[t->n] =
	    distant.asked == trips ? STORE_US + clock_us : t->taken_us[t->n];
	assert_true(t->at_us[t->n] - t->taken_us[t->n] < SPAN_US);
	t->units[t->n++] = c.check.cost;
}

static int64_t
floor_of(int64_t a, int64_t b)
{
	return a / b - (a % b < 0 ? 1 : 0);
}

/* Which window a moment is in. */
static int64_t
window_of(const struct check *c, int64_t at_us)
{
	return floor_of(at_us - c->offset_us, c->period_us);
}

/* No window has more than its limit, by when it was admitted. */
static void
judge_windows(const struct trace *t)
{
	const struct check *c = &t->check.check;
	int64_t sum = 0;

	for (size_t i = 0; i < t->n; i++) {
		if (i == 0 ||
		    window_of(c, t->at_us[i]) != window_of(c, t->at_us[i - 1]))
			sum = 0;
		sum += t->units[i];
		assert_true(sum <= c->count);
		assert_int_equal(
		    window_of(c, t->at_us[i]), window_of(c, t->taken_us[i]));
	}
}

/* In any interval no more than the bucket gives in that and SPAN_US. */
static void
judge_bucket(const struct trace *t)
{
	const struct check *c = &t->check.check;

	for (size_t i = 0; i < t->n; i++) {
		int64_t sum = 0;

		for (size_t k = i; k < t->n; k++) {
			int64_t time_us = t->at_us[k] - t->at_us[i] + SPAN_US;

			sum += t->units[k];
			assert_true((sum - c->burst) * c->period_us <=
			    c->count * time_us);
		}
	}
}

/* Two buckets: in any interval of W and SPAN_US at most twice the limit. */
static void
judge_sliding(const struct trace *t)
{
	const struct check *c = &t->check.check;

	for (size_t i = 0; i < t->n; i++) {
		int64_t sum = 0;

		for (size_t k = i; k < t->n &&
		     t->at_us[k] - t->at_us[i] < c->period_us - SPAN_US;
		     k++)
			sum += t->units[k];
		assert_true(sum <= 2 * c->count);
	}
}

/* All is back: in the store is what was admitted, and no more. */
static void
judge_end(struct trace *t)
{
	const struct check *c = &t->check.check;
	int64_t used = 0, now_us;

	for (size_t i = 0; i < GATEWAYS; i++)
		leases_return(t->gateway[i], &distant.store, HOUR_US);
	now_us = STORE_US + clock_us;
	for (size_t i = 0; i < t->n; i++)
		if (window_of(c, t->taken_us[i]) == window_of(c, now_us))
			used += t->units[i];
	if (c->algorithm == ALGORITHM_FIXED_WINDOW)
		assert_int_equal(left_of(t->check), c->count - used);
	clock_us += 2 * c->period_us + HOUR_US;
	assert_int_equal(left_of(t->check),
	    c->algorithm == ALGORITHM_TOKEN_BUCKET ? c->burst : c->count);
}

static void
trace_judge(struct trace *t)
{
	switch (t->check.check.algorithm) {
	case ALGORITHM_FIXED_WINDOW:
		judge_windows(t);
		break;
	case ALGORITHM_TOKEN_BUCKET:
		judge_bucket(t);
		break;
	case ALGORITHM_SLIDING_WINDOW:
		judge_sliding(t);
		break;
	case ALGORITHM_SLIDING_LOG:
	case ALGORITHM_LEAKY_BUCKET:
	case ALGORITHM_CONCURRENCY:
		fail();
	}
	judge_end(t);
}

static void
trace_step(struct trace *t)
{
	static const int64_t steps_us[] = { 0, 0, 10, 1000, 20000, 250000 };
	size_t at = (size_t)draw(0, draw(0, 1) * (GATEWAYS - 1));

	clock_us += draw(0, steps_us[draw(0, 5)]);
	for (size_t i = 0; i < GATEWAYS; i++)
		if (draw(0, 3) > 0)
			leases_maintain(t->gateway[i], &distant.store);
	trace_ask(t, t->gateway[at]);
}

static void
test_drawn_traces(void **state)
{
	static struct trace t;

	(void)state;
	distant.slow = true;
	for (int round = 0; round < 600; round++) {
		distant.counts->ops->free(distant.counts);
		distant.counts = store_memory_new(1000);
		memset(&t, 0, sizeof(t));
		draw_limit(&t);
		size = draw(0, 1) == 0 ? LEASE_AUTO : SIZE;
		for (size_t i = 0; i < GATEWAYS; i++)
			t.gateway[i] = leases_new(NULL, WAIT_US);
		for (int64_t i = draw(10, 600); i > 0; i--)
			trace_step(&t);
		trace_judge(&t);
		for (size_t i = 0; i < GATEWAYS; i++)
			leases_free(t.gateway[i]);
	}
}

/* A gateway that is killed takes its units with it, and nobody gets more. */
static void
test_killed(void **state)
{
	struct leases *l[2] = { leases_new(NULL, WAIT_US),
		leases_new(NULL, WAIT_US) };
	struct store_check c = check_of("k", 40);
	int admitted = 0;

	(void)state;
	for (int i = 0; i < 5; i++)
		admitted += passes(l[0], &c);
	leases_free(l[0]);
	for (int i = 0; i < 60; i++) {
		admitted += passes(l[1], &c);
		clock_us += 10000;
		leases_maintain(l[1], &distant.store);
	}
	assert_int_equal(admitted, 40 - (SIZE - 5));
	leases_free(l[1]);
}

/* ---- threads ----------------------------------------------------- */

#define THREADS 8
#define ASKED   4000

struct racer {
	struct leases *leases;
	_Atomic int *running;
	int64_t admitted;
};

/* Its window outlasts the race, however long the clock is put on in that. */
static struct store_check
raced_check(void)
{
	struct store_check c = check_of("raced", THREADS * ASKED / 2);

	c.check.period_us = 8000 * HOUR_US;
	return c;
}

static void *
race(void *context)
{
	struct racer *r = context;
	struct store_check c = raced_check();

	for (int i = 0; i < ASKED; i++) {
		c.check.cost = 1 + i % 2;
		if (passes(r->leases, &c))
			r->admitted += c.check.cost;
	}
	atomic_fetch_sub(r->running, 1);
	return NULL;
}

/* Each unit is spent or given back, once, whoever looks meanwhile. */
static void
test_raced(void **state)
{
	_Atomic int running = THREADS;
	struct racer racer[THREADS] = { 0 };
	pthread_t thread[THREADS];
	struct leases *l = leases_new(NULL, WAIT_US);
	struct store_check c = raced_check();
	int64_t admitted = 0;

	(void)state;
	for (int i = 0; i < THREADS; i++) {
		racer[i].leases = l;
		racer[i].running = &running;
		assert_int_equal(
		    pthread_create(&thread[i], NULL, race, &racer[i]), 0);
	}
	while (atomic_load(&running) > 0) {
		atomic_fetch_add(&clock_us, 51000);
		leases_maintain(l, &distant.store);
		leases_return(l, &distant.store, HOUR_US);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		admitted += racer[i].admitted;
	}
	leases_return(l, &distant.store, HOUR_US);
	assert_int_equal(left_of(c), THREADS * ASKED / 2 - admitted);
	leases_free(l);
}

static void
test_raced_auto(void **state)
{
	size = LEASE_AUTO;
	test_raced(state);
}

/* Many requests that miss one lease at once. */
struct miss {
	struct leases *leases;
	struct store_check check;
	pthread_t thread[SIZE];
	_Atomic unsigned passed;
	_Atomic unsigned unanswered;
};

static void *
miss_once(void *context)
{
	struct miss *m = context;
	struct store_question q = { .check = &m->check, .n = 1 };
	struct lease_unit unit;
	struct store_answer a;

	atomic_fetch_add(&distant.come, 1);
	lease_ask(m->leases, &distant.store, &q, &size, &a, &unit);
	assert_int_equal(a.status, STORE_ANSWERED);
	m->passed += a.verdict[0].kind == VERDICT_ALLOWED;
	m->unanswered += a.verdict[0].kind == VERDICT_ERROR;
	return NULL;
}

static void
miss_begin(struct miss *m, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_int_equal(
		    pthread_create(&m->thread[i], NULL, miss_once, m), 0);
}

static void
miss_end(struct miss *m, size_t n)
{
	for (size_t i = 0; i < n; i++)
		pthread_join(m->thread[i], NULL);
}

static void
miss_together(struct miss *m, size_t n)
{
	m->passed = m->unanswered = 0;
	distant.asked = distant.come = 0;
	distant.await = (unsigned)n;
	miss_begin(m, n);
	miss_end(m, n);
}

/* One trip, though it took all there is. */
static void
test_who_misses_it_too_waits(void **state)
{
	(void)state;
	for (size_t n = 2; n <= SIZE; n++) {
		struct miss m = { .leases = leases_new(NULL, WAIT_US),
			.check = check_of("k", SIZE) };

		store_memory_clear(distant.counts, m.check.key);
		miss_together(&m, n);
		assert_int_equal(m.passed, n);
		assert_int_equal(distant.asked, 1);
		leases_return(m.leases, &distant.store, HOUR_US);
		assert_int_equal(left_of(m.check), SIZE - n);
		leases_free(m.leases);
	}
}

/* More than it suffices for: they ask, and nobody is refused in vain. */
static void
test_all_pass_that_may(void **state)
{
	(void)state;
	for (int round = 0; round < 300; round++) {
		struct miss m = { .leases = leases_new(NULL, WAIT_US),
			.check = check_of("k", draw(1, SIZE)) };

		size = draw(1, SIZE + 1) == 1 ? LEASE_AUTO : draw(1, SIZE);
		store_memory_clear(distant.counts, m.check.key);
		miss_together(&m, SIZE);
		assert_int_equal(m.passed, m.check.check.count);
		leases_return(m.leases, &distant.store, HOUR_US);
		assert_int_equal(left_of(m.check), 0);
		leases_free(m.leases);
	}
}

/*
 * While another takes all there is of "narrow", one asks for it and for others
 * that nobody has, so that it did not wait: is it refused in the end?
 */
static bool
is_refused_beside(struct leases *l, const struct store_check *c, size_t n)
{
	struct miss m = { .leases = l, .check = c[n - 1] };
	struct store_question q = { .check = c, .n = n };
	int64_t sizes[4] = { SIZE, 1, SIZE, SIZE };
	struct lease_unit unit[4];
	struct store_answer a;

	distant.await = 2;
	miss_begin(&m, 1);
	while (atomic_load(&distant.taken_us) == 0)
		sched_yield();
	sizes[n - 1] = SIZE;
	lease_ask(l, &distant.store, &q, sizes, &a, unit);
	miss_end(&m, 1);
	assert_int_equal(m.passed, 1);
	assert_int_equal(distant.asked, 3);
	assert_int_equal(a.status, STORE_ANSWERED);
	for (size_t i = 0; i < n - 1; i++)
		assert_int_equal(a.verdict[i].kind, VERDICT_ALLOWED);
	leases_return(l, &distant.store, HOUR_US);
	return a.verdict[n - 1].kind == VERDICT_REFUSED;
}

static void
test_who_is_refused_looks_again(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US);
	struct store_check c[2] = { check_of("wide", 100),
		check_of("narrow", SIZE) };

	(void)state;
	assert_false(is_refused_beside(l, c, 2));
	assert_int_equal(left_of(c[0]), 99);
	assert_int_equal(left_of(c[1]), SIZE - 2);
	leases_free(l);
}

/* It is no outage that lets it pass: the store has refused it before. */
static void
test_who_looks_again_during_an_outage(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US);
	struct store_check c[2] = { check_of("wide", 100),
		check_of("narrow", SIZE) };

	(void)state;
	distant.out_at = 3;
	assert_true(is_refused_beside(l, c, 2));
	assert_int_equal(left_of(c[0]), 100);
	assert_int_equal(left_of(c[1]), SIZE - 1);
	leases_free(l);
}

/* What the store has taken of the others goes back. */
static void
test_who_looks_again_at_a_broken_key(void **state)
{
	struct leases *l = leases_new(NULL, WAIT_US);
	struct store_check c[4] = { check_of("broken", 100),
		check_of("plain", 100), check_of("leased", 100),
		check_of("narrow", SIZE) };

	(void)state;
	distant.broken_at = 3;
	assert_true(is_refused_beside(l, c, 4));
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(left_of(c[i]), 100);
	assert_int_equal(left_of(c[3]), SIZE - 1);
	leases_free(l);
}

/* Who waited in vain asks, and is not answered by another's failure. */
static void
test_the_taker_fails(void **state)
{
	struct miss m = { .leases = leases_new(NULL, WAIT_US),
		.check = check_of("k", 100) };

	(void)state;
	distant.out = true;
	miss_together(&m, SIZE);
	assert_int_equal(m.unanswered, SIZE);
	assert_int_equal(distant.asked, SIZE);
	leases_free(m.leases);
}

/* No longer than it was told; and what it asks then has no longer either. */
static void
test_the_taker_is_late(void **state)
{
	struct miss m = { .leases = leases_new(NULL, WAIT_US),
		.check = check_of("k", 100) };
	int64_t begun_us;

	(void)state;
	leases_set_wait(m.leases, 1000);
	distant.await = 2;
	miss_begin(&m, 1);
	while (atomic_load(&distant.asked) == 0)
		sched_yield();
	begun_us = clock_mono_us();
	assert_true(passes(m.leases, &m.check));
	assert_int_equal(distant.asked, 2);
	assert_int_equal(distant.until_us, begun_us + 1000);
	atomic_fetch_add(&distant.come, 1);
	miss_end(&m, 1);
	assert_int_equal(m.passed, 1);
	leases_free(m.leases);
}

int
main(void)
{
#define LEASE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		LEASE_TEST(test_one_trip_for_many),
		LEASE_TEST(test_what_remains_and_then_none),
		LEASE_TEST(test_a_cost_alone_leaves_no_lease),
		LEASE_TEST(test_given_back_when_idle_or_old),
		LEASE_TEST(test_dropped),
		LEASE_TEST(test_dropped_while_it_is_taken),
		LEASE_TEST(test_dropped_while_its_pace_is_measured),
		LEASE_TEST(test_a_bucket_gets_its_tokens_back),
		LEASE_TEST(test_nothing_is_spent_late),
		LEASE_TEST(test_a_lease_ends_with_its_window),
		LEASE_TEST(test_all_or_nothing),
		LEASE_TEST(test_nothing_is_spent_of_a_lease_that_ended),
		LEASE_TEST(test_a_cost_above_what_is_left),
		LEASE_TEST(test_other_counts_have_other_leases),
		LEASE_TEST(test_put_back),
		LEASE_TEST(test_while_the_store_is_out),
		LEASE_TEST(test_no_cost),
		LEASE_TEST(test_many_are_returned_together),
		LEASE_TEST(test_a_turn_with_a_slow_store),
		LEASE_TEST(test_a_return_with_a_slow_store),
		LEASE_TEST(test_an_end_with_a_slow_store),
		LEASE_TEST(test_what_was_denied_is_forgotten),
		LEASE_TEST(test_auto),
		LEASE_TEST(test_less_was_taken_than_the_cost),
		LEASE_TEST(test_auto_of_a_cold_key),
		LEASE_TEST(test_auto_near_the_limit),
		LEASE_TEST(test_remaining_is_what_is_left),
		LEASE_TEST(test_remaining_of_drawn_requests),
		LEASE_TEST(test_remaining_is_there),
		LEASE_TEST(test_the_newest_answer_counts),
		LEASE_TEST(test_drawn_traces),
		LEASE_TEST(test_killed),
		LEASE_TEST(test_raced),
		LEASE_TEST(test_raced_auto),
		LEASE_TEST(test_who_misses_it_too_waits),
		LEASE_TEST(test_all_pass_that_may),
		LEASE_TEST(test_who_is_refused_looks_again),
		LEASE_TEST(test_who_looks_again_during_an_outage),
		LEASE_TEST(test_who_looks_again_at_a_broken_key),
		LEASE_TEST(test_the_taker_fails),
		LEASE_TEST(test_the_taker_is_late),
	};

	seed = draw_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
