#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "domain/held_slots.h"

static struct store_check
check_of(const char *key, const char *slot)
{
	struct store_check c = { .key = str_of(key) };

	c.check.algorithm = ALGORITHM_CONCURRENCY;
	c.slot = str_of(slot);
	return c;
}

static bool
hold(struct held_slots *s, const char *key, const char *slot)
{
	char texts[2][64];
	struct store_check c;

	snprintf(texts[0], sizeof(texts[0]), "%s", key);
	snprintf(texts[1], sizeof(texts[1]), "%s", slot);
	c = check_of(texts[0], texts[1]);
	return held_slots_hold(s, &c);
}

/* Each once, and only what is held. */
static void
test_hold_and_drop(void **context)
{
	struct held_slots s;

	(void)context;
	held_slots_init(&s);
	assert_false(held_slots_drop(&s, STR("a")));
	assert_true(hold(&s, "k", "a"));
	assert_true(hold(&s, "k", "b"));
	assert_true(held_slots_drop(&s, STR("a")));
	assert_false(held_slots_drop(&s, STR("a")));
	assert_true(held_slots_drop(&s, STR("b")));
	assert_true(hold(&s, "left", "behind"));
	held_slots_release(&s);
}

static void
note(void *context, const struct store_check *check)
{
	char *said = context;

	snprintf(said + strlen(said), 64, "%.*s/%.*s ", STR_ARG(check->key),
	    STR_ARG(check->slot));
}

/* Dropped while it is being renewed: told of at the end. */
static void
test_renewal(void **context)
{
	const struct store_check *check;
	char said[256] = "";
	struct held_slots s;
	size_t n;

	(void)context;
	held_slots_init(&s);
	held_slots_begin_renewal(&s, &n);
	assert_int_equal(n, 0);
	held_slots_end_renewal(&s, note, said);
	hold(&s, "k", "a");
	hold(&s, "k", "b");
	check = held_slots_begin_renewal(&s, &n);
	assert_int_equal(n, 2);
	assert_true(held_slots_drop(&s, STR("a")));
	assert_false(held_slots_drop(&s, STR("a")));
	assert_true(hold(&s, "k", "c"));
	for (size_t i = 0; i < n; i++)
		assert_true(str_eq(check[i].key, STR("k")));
	assert_true(
	    str_eq(check[0].slot, STR("a")) || str_eq(check[1].slot, STR("a")));
	held_slots_end_renewal(&s, note, said);
	assert_string_equal(said, "k/a ");
	held_slots_begin_renewal(&s, &n);
	assert_int_equal(n, 2);
	held_slots_end_renewal(&s, note, said);
	assert_string_equal(said, "k/a ");
	held_slots_release(&s);
}

struct race {
	struct held_slots slots;
	atomic_int stop;
	atomic_int again;
};

static void
count(void *context, const struct store_check *check)
{
	struct race *r = context;

	assert_int_equal(check->key.len, 1);
	atomic_fetch_add(&r->again, 1);
}

static void *
renewer(void *context)
{
	struct race *r = context;
	size_t n;

	while (atomic_load(&r->stop) < 4) {
		held_slots_begin_renewal(&r->slots, &n);
		held_slots_end_renewal(&r->slots, count, r);
	}
	return NULL;
}

static void *
holder(void *context)
{
	struct race *r = context;
	char slot[64];

	for (int i = 0; i < 2000; i++) {
		snprintf(slot, sizeof(slot), "%p-%d", (void *)slot, i);
		if (!hold(&r->slots, "k", slot) ||
		    !held_slots_drop(&r->slots, str_of(slot)))
			abort();
	}
	atomic_fetch_add(&r->stop, 1);
	return NULL;
}

static void
test_renewals_race(void **context)
{
	struct race r = { .stop = 0 };
	pthread_t thread[5];

	(void)context;
	held_slots_init(&r.slots);
	for (int i = 0; i < 5; i++)
		assert_int_equal(pthread_create(&thread[i], NULL,
				     i < 4 ? holder : renewer, &r),
		    0);
	for (int i = 0; i < 5; i++)
		pthread_join(thread[i], NULL);
	assert_null(r.slots.held);
	held_slots_release(&r.slots);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hold_and_drop),
		cmocka_unit_test(test_renewal),
		cmocka_unit_test(test_renewals_race),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
