/*
 * Which refusals a request is answered with from memory, and which not: by
 * a store that counts how often it is asked.
 */
#include "domain/denied.h"

#include "base/clock.h"
#include "config_text.h"
#include "domain/decision.h"
#include "domain/store_memory.h"
#include "params_text.h"
#include "wire.h"

struct counting {
	struct store store;
	struct store *inner;
	int asked;
	/* Told of a reset while its answer is on the way; NULL: no. */
	struct deny_cache *resets;
};

struct rig {
	struct config *config;
	struct counting shared;
	struct stores stores;
	struct params params;
	struct subject subject;
	struct decision d;
};

static struct arena arena;

static void
count_ask(struct store *store, const struct store_question *q,
    struct store_answer *answer)
{
	struct counting *c = (struct counting *)store;

	c->asked++;
	c->inner->ops->ask(c->inner, q, answer);
	if (c->resets != NULL)
		denied_forget(c->resets, q->check, q->n);
}

static void
count_refund(
    struct store *store, const struct store_question *q, int64_t taken_us)
{
	struct counting *c = (struct counting *)store;

	c->inner->ops->refund(c->inner, q, taken_us);
}

static void
count_settle(struct store *store, const struct store_settlement *s, size_t n)
{
	struct counting *c = (struct counting *)store;

	c->inner->ops->settle(c->inner, s, n);
}

static void
count_release(struct store *store, const struct store_check *check, size_t n)
{
	struct counting *c = (struct counting *)store;

	c->inner->ops->release(c->inner, check, n);
}

static const struct store_ops ops = {
	.ask = count_ask,
	.refund = count_refund,
	.settle = count_settle,
	.release = count_release,
};

static void
load(struct rig *r, const char *limits)
{
	struct buf text;

	buf_init(&text);
	buf_addf(&text, STORE "%s" BACKEND "%c", limits, '\0');
	r->config = load_warned(text.p);
	buf_release(&text);
	r->stores.naming = &r->config->store;
}

static void
begin(struct rig *r, const char *limits)
{
	*r = (struct rig){ .shared = { .store.ops = &ops } };
	r->shared.inner = store_memory_new(1000);
	r->stores.shared = &r->shared.store;
	r->stores.local = store_memory_new(1000);
	r->stores.denied = deny_cache_new(1000, 60000000);
	load(r, limits);
}

static void
end(struct rig *r)
{
	r->shared.inner->ops->free(r->shared.inner);
	r->stores.local->ops->free(r->stores.local);
	deny_cache_free(r->stores.denied);
	config_unref(r->config);
}

/* What is sent in the microsecond of a reset counts as sent before it. */
static void
await_tick(void)
{
	int64_t before_us = clock_mono_us();

	while (clock_mono_us() == before_us)
		;
}

/* A request for a path; true: it passes. */
static bool
passes(struct rig *r, const char *path)
{
	char text[200];

	await_tick();
	snprintf(text, sizeof(text),
	    "REMOTE_ADDR=192.0.2.1\nREQUEST_METHOD=GET\nREQUEST_URI=%s", path);
	r->params = params_of(text, &arena);
	assert_true(subject_read(
	    &r->subject, CONFIG_ROLE_RESPONDER, &r->params, r->config, &arena));
	decision_make(&r->d, r->config, &r->stores, &r->subject, &arena);
	return decision_passes(&r->d);
}

/* It is refused; false: without asking the store. */
static bool
asks(struct rig *r, const char *path)
{
	int before = r->shared.asked;

	assert_false(passes(r, path));
	assert_int_equal(r->d.kind, DECISION_REFUSED);
	assert_int_equal(r->d.cached, r->shared.asked == before);
	if (r->d.cached)
		assert_int_equal(r->d.store_wait_us, 0);
	return r->shared.asked > before;
}

#define FIRST "algorithm = fixed_window\nalign = first\n"
#define A     "[limit a]\nrate = 1/1h\n" FIRST

struct row {
	const char *limits;
	bool cached;
};

static void
test_who_is_remembered(void **state)
{
	static const struct row t[] = {
		{ A, true },
		{ "[limit a]\nrate = 1/1h\n", true },
		{ A "penalty = 2h\n", true },
		{ A "cost = response:X-Cost\n", true },
		{ "[limit a]\nrate = 1/1h\nalgorithm = token_bucket\n", true },
		{ "[limit a]\nrate = 1/1h\nalgorithm = sliding_log\n", true },
		{ "[limit a]\nrate = 1/1h\nalgorithm = leaky_bucket\n", true },
		{ "[limit a]\nrate = 1/1h, 1/1d\n" FIRST, true },
		{ "[limit a]\nrate = 1/1h, 9/1d\n" FIRST, true },
		{ "[limit a]\nrate = 9/1h, 1/1d\n" FIRST, true },
		{ "[limit a]\nrate = 1\nalgorithm = concurrency\n", false },
		{ A "count = 401\n", false },
		/* An observed one counts each request. */
		{ A "[limit o]\nrate = 9/1h\nmode = observe\n", false },
		{ A "[limit o]\nrate = 9/1h\nmode = observe\n"
		    "scope = local\n",
		    false },
		/* Beside others one is enough. */
		{ A "[limit b]\nrate = 9/1h\n", true },
		{ "[limit b]\nrate = 9/1h\n" A, true },
		{ A "[limit b]\nrate = 9/1h\nscope = local\n", true },
		{ A "[limit b]\nrate = 9/1h\nlease = 4\n", true },
		/* But not beside what is not known to refuse when it does. */
		{ A "[limit b]\nrate = 9\nalgorithm = concurrency\n", false },
		{ "[limit b]\nrate = 9/1h\ncount = 401\n" A, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(t); i++) {
		struct rig r;

		begin(&r, t[i].limits);
		assert_true(passes(&r, "/"));
		assert_true(asks(&r, "/"));
		if (asks(&r, "/") == t[i].cached)
			fail_msg("%s", t[i].limits);
		end(&r);
	}
}

/* What is told of each, as a store would tell it. */
static void
tell(const struct decision *d, struct buf *out)
{
	const struct numbers_style style = { .families = NUMBERS_X_RATELIMIT |
		    NUMBERS_DRAFT_03 | NUMBERS_DRAFT_11 };

	buf_reset(out);
	assert_true(d->has_numbers);
	numbers_write(out, &d->numbers, &style);
	buf_addf(out, "%s", d->limit->name);
}

static void
test_it_is_told_the_same(void **state)
{
	static const char *const limits[] = {
		A,
		A "penalty = 2h\n",
		"[limit a]\nrate = 1/1h, 9/1d\n" FIRST,
		"[limit a]\nrate = 9/1h, 1/1d\n" FIRST,
		"[limit a]\nrate = 1/1h burst 3\nalgorithm = token_bucket\n"
		"cost = 3\n",
		"[limit a]\nrate = 8/1h\ncost = 5\n" FIRST,
		A "[limit b]\nrate = 1/2h\n" FIRST,
	};
	struct buf first, second;

	(void)state;
	buf_init(&first);
	buf_init(&second);
	for (size_t i = 0; i < COUNT(limits); i++) {
		struct rig r;
		int64_t retry_us, at_us;

		begin(&r, limits[i]);
		assert_true(passes(&r, "/"));
		assert_true(asks(&r, "/"));
		tell(&r.d, &first);
		retry_us = r.d.retry_us;
		at_us = r.d.numbers.at_us + r.d.numbers.spoken->verdict.full_us;
		assert_false(asks(&r, "/"));
		tell(&r.d, &second);
		expect_str(buf_str(&second), buf_str(&first));
		assert_in_range(r.d.retry_us, retry_us - 1000000, retry_us);
		assert_in_range(
		    r.d.numbers.at_us + r.d.numbers.spoken->verdict.full_us,
		    at_us, at_us + 1000000);
		end(&r);
	}
	buf_release(&first);
	buf_release(&second);
}

/* Of limits that were not asked nothing is told, and nothing taken. */
static void
test_one_refuses_for_all(void **state)
{
	struct rig r;

	(void)state;
	begin(&r,
	    A "path = /a*\n"
	      "[limit b]\nrate = 9/1h\n" FIRST
	      "[limit c]\nrate = 9/1h\nscope = local\n" FIRST);
	assert_true(passes(&r, "/a"));
	assert_true(asks(&r, "/a"));
	assert_int_equal(r.d.n_parts, 3);
	for (int i = 0; i < 5; i++)
		assert_false(asks(&r, "/a"));
	assert_int_equal(r.d.n_parts, 2);
	assert_string_equal(r.d.limit->name, "a");
	assert_true(passes(&r, "/b"));
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(r.d.part[i].verdict.remaining, 7);
	end(&r);
}

static void
test_two_are_known(void **state)
{
	struct rig r;

	(void)state;
	begin(&r,
	    "[limit a]\nrate = 1/1h\npath = /a*\n" FIRST
	    "[limit b]\nrate = 1/2h\npath = *b\n" FIRST);
	assert_true(passes(&r, "/a"));
	assert_true(passes(&r, "/b"));
	assert_true(asks(&r, "/a"));
	assert_false(asks(&r, "/ab"));
	assert_string_equal(r.d.limit->name, "a");
	assert_true(asks(&r, "/b"));
	assert_false(asks(&r, "/ab"));
	assert_string_equal(r.d.limit->name, "b");
	assert_int_equal(r.d.n_parts, 2);
	end(&r);
}

/* When the last answer is asked for so much later; true: a refuses still. */
static bool
is_known_after(struct rig *r, int64_t later_us)
{
	struct deny_cache_id id = { &r->d.part[0].check, r->config->serial };
	struct deny_cache_answer told;

	assert_string_equal(r->d.part[0].limit->name, "a");
	return deny_cache_find(r->stores.denied, &id,
		   clock_mono_us() + later_us, &told) == DENY_CACHE_REFUSED;
}

/* Else the shorter wait would be told when the longer one is forgotten. */
static void
test_one_answer_is_known_equally_long(void **state)
{
	static const struct {
		const char *beside;
		bool shortly;
	} t[] = {
		{ "rate = 1/2h\n" FIRST, false },
		{ "rate = 1/2h\nlease = 2\n" FIRST, true },
		{ "rate = 1/2h\ncost = response:X-Cost\n" FIRST, true },
		{ "rate = 1/2h\nalgorithm = leaky_bucket\n", true },
		/* Another number is to be told soon. */
		{ "rate = 360000/1h\nalgorithm = token_bucket\n"
		  "cost = 360000\n",
		    true },
		/* Those that allow are no news. */
		{ "rate = 9/2h\nlease = 4\n" FIRST, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(t); i++) {
		struct buf limits;
		struct rig r;

		buf_init(&limits);
		buf_addf(&limits, A "[limit b]\n%s%c", t[i].beside, '\0');
		begin(&r, limits.p);
		assert_true(passes(&r, "/"));
		assert_true(asks(&r, "/"));
		assert_int_equal(r.d.n_parts, 2);
		if (is_known_after(&r, 100000) == t[i].shortly)
			fail_msg("%s", t[i].beside);
		end(&r);
		buf_release(&limits);
	}
}

/* Of check 0 of the last decision, as if it had been told so long ago. */
static void
make_older(struct rig *r, int64_t age_us)
{
	struct deny_cache_id id = { &r->d.part[0].check, r->config->serial };
	struct deny_cache_answer told;
	int64_t now_us = clock_mono_us();

	assert_int_equal(deny_cache_find(r->stores.denied, &id, now_us, &told),
	    DENY_CACHE_REFUSED);
	deny_cache_free(r->stores.denied);
	r->stores.denied = deny_cache_new(1000, 60000000);
	told.sent_us = told.answered_us = now_us - age_us;
	deny_cache_put(r->stores.denied, &id, &told, INT64_MAX);
}

/* What may have come to wait longer unnoticed is asked after 100 ms. */
static void
test_beside_one_that_is_not_known_for_long(void **state)
{
	static const char *const beside[] = {
		"lease = 2\n" FIRST,
		"cost = response:X-Cost\n" FIRST,
		"algorithm = leaky_bucket\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(beside); i++) {
		struct buf limits;
		struct rig r;

		buf_init(&limits);
		buf_addf(&limits,
		    A "path = /a*\n[limit b]\nrate = 1/2h\npath = *b\n%s%c",
		    beside[i], '\0');
		begin(&r, limits.p);
		assert_true(passes(&r, "/a"));
		assert_true(passes(&r, "/b"));
		assert_true(asks(&r, "/a"));
		assert_false(asks(&r, "/ab"));
		assert_string_equal(r.d.limit->name, "a");
		make_older(&r, 100000);
		assert_false(asks(&r, "/a"));
		assert_true(asks(&r, "/ab"));
		assert_string_equal(r.d.limit->name, "b");
		end(&r);
		buf_release(&limits);
	}
}

/* A larger cost waits longer, and what is spent meanwhile makes it longer. */
static void
test_costs(void **state)
{
	struct rig r;
	int64_t retry_us;

	(void)state;
	begin(&r,
	    "[limit a]\nrate = 10/1h\nalgorithm = token_bucket\n"
	    "cost = /dear=8, /most=9, /free=0\n");
	assert_true(passes(&r, "/x"));
	assert_true(passes(&r, "/x"));
	assert_true(passes(&r, "/x"));
	assert_true(asks(&r, "/dear"));
	retry_us = r.d.retry_us;
	assert_false(asks(&r, "/dear"));
	assert_true(asks(&r, "/most"));
	assert_true(r.d.retry_us > retry_us);
	assert_true(passes(&r, "/x"));
	assert_true(asks(&r, "/dear"));
	assert_true(r.d.retry_us > retry_us);
	assert_int_equal(r.d.verdict.remaining, 6);
	assert_true(passes(&r, "/free"));
	end(&r);
}

/* What is given back, or charged, is known of at once. */
static void
test_what_changes_here_is_known_here(void **state)
{
	struct decision last;
	struct rig r;

	(void)state;
	begin(&r, A "cost = response:X-Cost\n");
	assert_true(passes(&r, "/"));
	last = r.d;
	assert_true(asks(&r, "/"));
	assert_false(asks(&r, "/"));
	assert_true(decision_take_cost(&last, STR("X-Cost"), STR("0")));
	decision_settle(&last, &r.stores, 200);
	assert_true(passes(&r, "/"));
	end(&r);

	begin(&r, A);
	assert_true(passes(&r, "/"));
	last = r.d;
	assert_true(asks(&r, "/"));
	assert_false(asks(&r, "/"));
	decision_withdraw(&last, &r.stores);
	assert_true(passes(&r, "/"));
	end(&r);
}

/* The answer to what was asked before a reset is not remembered after it. */
static void
test_a_reset_meanwhile(void **state)
{
	struct rig r;

	(void)state;
	begin(&r, A);
	assert_true(passes(&r, "/"));
	r.shared.resets = r.stores.denied;
	assert_true(asks(&r, "/"));
	assert_true(asks(&r, "/"));
	r.shared.resets = NULL;
	assert_true(asks(&r, "/"));
	assert_false(asks(&r, "/"));
	end(&r);
}

static void
test_another_configuration(void **state)
{
	struct config *before;
	struct rig r;

	(void)state;
	begin(&r, A);
	assert_true(passes(&r, "/"));
	assert_true(asks(&r, "/"));
	assert_false(asks(&r, "/"));
	before = r.config;
	load(&r, A);
	assert_true(asks(&r, "/"));
	assert_false(asks(&r, "/"));
	config_unref(before);
	end(&r);
}

/* What one tier may still spend makes another wait longer. */
static void
test_tiers(void **state)
{
	struct rig r;

	(void)state;
	begin(&r,
	    "[limit a]\nrate = 2/1h\nalgorithm = sliding_log\n"
	    "[tier gold]\nwhen = param:PLAN=gold\na = 4/1h\n");
	assert_true(passes(&r, "/"));
	assert_true(passes(&r, "/"));
	assert_true(asks(&r, "/"));
	assert_false(asks(&r, "/"));
	assert_true(passes(&r, "/\nPLAN=gold"));
	assert_true(asks(&r, "/"));
	assert_false(asks(&r, "/"));
	end(&r);
}

static void
test_none(void **state)
{
	struct rig r;

	(void)state;
	begin(&r, A);
	deny_cache_free(r.stores.denied);
	r.stores.denied = NULL;
	assert_true(passes(&r, "/"));
	assert_true(asks(&r, "/"));
	assert_true(asks(&r, "/"));
	end(&r);
}

static int
setup(void **state)
{
	arena_init(&arena);
	return enter_directory(state);
}

static int
teardown(void **state)
{
	arena_release(&arena);
	return leave_directory(state);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_is_remembered),
		cmocka_unit_test(test_it_is_told_the_same),
		cmocka_unit_test(test_one_refuses_for_all),
		cmocka_unit_test(test_two_are_known),
		cmocka_unit_test(test_one_answer_is_known_equally_long),
		cmocka_unit_test(test_beside_one_that_is_not_known_for_long),
		cmocka_unit_test(test_costs),
		cmocka_unit_test(test_what_changes_here_is_known_here),
		cmocka_unit_test(test_a_reset_meanwhile),
		cmocka_unit_test(test_another_configuration),
		cmocka_unit_test(test_tiers),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests_name("denied", tests, setup, teardown);
}
