/*
 * SPEC.md section 4, "Settling", and law 6: what becomes of what a request
 * took, with two memory stores.
 */
#include "domain/decision.h"

#include "config_text.h"
#include "domain/store_memory.h"
#include "params_text.h"

static struct arena arena;

struct rig {
	struct config *config;
	struct stores stores;
	struct subject subject;
	struct params params;
	struct decision decision;
};

#define HOUR "algorithm = fixed_window\nalign = first\n"

static void
begin(struct rig *r, const char *limits)
{
	struct buf text;

	buf_init(&text);
	buf_addf(&text, STORE "%s" BACKEND "%c", limits, '\0');
	r->config = load_good(text.p);
	buf_release(&text);
	r->stores = (struct stores){ .shared = store_memory_new(100),
		.local = store_memory_new(100),
		.naming = &r->config->store };
	r->params = params_of("REMOTE_ADDR=192.0.2.1", &arena);
	assert_true(subject_read(
	    &r->subject, CONFIG_ROLE_RESPONDER, &r->params, r->config, &arena));
}

static void
end(struct rig *r)
{
	r->stores.shared->ops->free(r->stores.shared);
	r->stores.local->ops->free(r->stores.local);
	config_unref(r->config);
}

static void
decide(struct rig *r)
{
	decision_make(&r->decision, r->config, &r->stores, &r->subject, &arena);
}

/* What remains of its first limit for the next request. */
static int64_t
left(struct rig *r, size_t part)
{
	struct decision d;
	int64_t remaining;

	decision_make(&d, r->config, &r->stores, &r->subject, &arena);
	remaining = d.part[part].verdict.remaining +
	    (d.part[part].taken ? d.part[part].check.check.cost : 0);
	decision_withdraw(&d, &r->stores);
	return remaining;
}

static void
test_count(void **state)
{
	static const struct {
		int status;
		int64_t left;
	} table[] = {
		{ 401, 9 },
		{ 403, 9 },
		{ 503, 9 },
		{ 200, 10 },
		{ 404, 10 },
		{ 429, 10 },
		{ 302, 10 },
		/* Nobody was told anything: it may well have been a failure. */
		{ 0, 9 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct rig r;

		begin(&r,
		    "[limit a]\nrate = 10/1h\ncount = 401, 403, 5xx\n" HOUR);
		decide(&r);
		assert_int_equal(r.decision.verdict.remaining, 9);
		assert_int_equal(left(&r, 0), 9);
		decision_settle(&r.decision, &r.stores, table[i].status);
		assert_int_equal(left(&r, 0), table[i].left);
		/* Once. */
		decision_settle(&r.decision, &r.stores, 200);
		assert_int_equal(left(&r, 0), table[i].left);
		end(&r);
	}
}

/* Of a refused request nothing was taken, but for what is observed. */
static void
test_count_of_a_refused(void **state)
{
	struct rig r;

	(void)state;
	begin(&r,
	    "[limit a]\nrate = 1/1h\n" HOUR
	    "[limit b]\nrate = 10/1h\nmode = observe\ncount = 200\n" HOUR);
	decide(&r);
	decision_settle(&r.decision, &r.stores, 200);
	assert_int_equal(left(&r, 1), 9);
	decide(&r);
	assert_int_equal(r.decision.kind, DECISION_REFUSED);
	decision_settle(&r.decision, &r.stores, 429);
	assert_int_equal(left(&r, 1), 9);
	end(&r);
}

#define COSTLY "cost = response:X-Cost\n"

static void
test_response_cost(void **state)
{
	static const struct {
		const char *value;
		int64_t printed;
		int64_t left;
	} table[] = {
		{ "7", 93, 93 },
		{ "1", 99, 99 },
		{ "0", 100, 100 },
		{ "100", 0, 0 },
		{ "1000", 0, 0 },
		/* Anything else says nothing, and what was held stays. */
		{ "1000001", 99, 99 },
		{ "-3", 99, 99 },
		{ "", 99, 99 },
		{ "7 ", 99, 99 },
		{ "1.5", 99, 99 },
		{ "0x7", 99, 99 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct rig r;

		begin(&r, "[limit a]\nrate = 100/1h\n" COSTLY HOUR);
		decide(&r);
		assert_int_equal(r.decision.verdict.remaining, 99);
		assert_false(
		    decision_take_cost(&r.decision, STR("X-Cos"), STR("5")));
		assert_true(decision_take_cost(
		    &r.decision, STR("x-cost"), str_of(table[i].value)));
		assert_int_equal(
		    r.decision.verdict.remaining, table[i].printed);
		assert_int_equal(r.decision.numbers.spoken->verdict.remaining,
		    table[i].printed);
		assert_int_equal(
		    r.decision.verdict.next_us > 0, table[i].printed < 100);
		assert_int_equal(
		    r.decision.verdict.full_us > 0, table[i].printed < 100);
		decision_settle(&r.decision, &r.stores, 200);
		assert_int_equal(left(&r, 0), table[i].left);
		end(&r);
	}
}

static void
test_said_twice(void **state)
{
	struct rig r;

	(void)state;
	begin(&r, "[limit a]\nrate = 100/1h\n" COSTLY HOUR);
	decide(&r);
	assert_true(decision_take_cost(&r.decision, STR("X-Cost"), STR("7")));
	assert_true(decision_take_cost(&r.decision, STR("X-Cost"), STR("9")));
	decision_settle(&r.decision, &r.stores, 200);
	assert_int_equal(left(&r, 0), 93);
	end(&r);
}

/* Two budgets, a header for each; the headers speak for the nearer one. */
static void
test_two_headers(void **state)
{
	struct rig r;

	(void)state;
	begin(&r,
	    "[limit a]\nrate = 100/1h\ncost = response:X-A\n" HOUR
	    "[limit b]\nrate = 90/1h\ncost = response:X-B\n" HOUR
	    "scope = local\n"
	    "[limit c]\nrate = 95/1h\npath = /other\n" COSTLY HOUR);
	decide(&r);
	assert_string_equal(r.decision.limit->name, "b");
	assert_true(decision_take_cost(&r.decision, STR("X-A"), STR("50")));
	assert_true(decision_take_cost(&r.decision, STR("X-B"), STR("20")));
	/* Nobody is to see it, though its limit does not apply. */
	assert_true(decision_take_cost(&r.decision, STR("X-Cost"), STR("x")));
	assert_string_equal(r.decision.limit->name, "a");
	assert_int_equal(r.decision.verdict.remaining, 50);
	decision_settle(&r.decision, &r.stores, 200);
	assert_int_equal(left(&r, 0), 50);
	assert_int_equal(left(&r, 1), 70);
	end(&r);
}

/* What does not count is not charged either. */
static void
test_cost_and_count(void **state)
{
	struct rig r;

	(void)state;
	begin(&r, "[limit a]\nrate = 100/1h\ncount = 200\n" COSTLY HOUR);
	decide(&r);
	decision_take_cost(&r.decision, STR("X-Cost"), STR("50"));
	decision_settle(&r.decision, &r.stores, 404);
	assert_int_equal(left(&r, 0), 100);
	decide(&r);
	decision_take_cost(&r.decision, STR("X-Cost"), STR("50"));
	decision_settle(&r.decision, &r.stores, 200);
	assert_int_equal(left(&r, 0), 50);
	end(&r);
}

static void
test_withdraw(void **state)
{
	struct rig r;

	(void)state;
	begin(&r,
	    "[limit a]\nrate = 10/1h\ncount = 401\n" HOUR
	    "[limit b]\nrate = 10/1h\ncost = 3\nscope = local\n" HOUR
	    "[limit c]\nrate = 10/1h\nmode = observe\n" HOUR);
	decide(&r);
	assert_int_equal(left(&r, 0), 9);
	assert_int_equal(left(&r, 1), 7);
	assert_int_equal(left(&r, 2), 9);
	decision_withdraw(&r.decision, &r.stores);
	assert_false(r.decision.has_numbers);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(left(&r, i), 10);
	decision_settle(&r.decision, &r.stores, 200);
	decision_withdraw(&r.decision, &r.stores);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(left(&r, i), 10);
	end(&r);
}

static void
test_forfeit(void **state)
{
	struct rig r;

	(void)state;
	begin(&r,
	    "[limit a]\nrate = 10/1h\ncount = 401\n" HOUR
	    "[limit b]\nrate = 10/1h\ncost = 3\nscope = local\n" HOUR);
	decide(&r);
	decision_forfeit(&r.decision);
	decision_settle(&r.decision, &r.stores, 200);
	decision_release(&r.decision, &r.stores);
	decision_withdraw(&r.decision, &r.stores);
	assert_int_equal(left(&r, 0), 9);
	assert_int_equal(left(&r, 1), 7);
	end(&r);
}

#define SLOTS "rate = 2\nalgorithm = concurrency\n"

/* The headers speak of slots only where nothing else was asked. */
static void
test_slots(void **state)
{
	struct rig r;
	struct decision first, second;

	(void)state;
	begin(&r, "[limit a]\n" SLOTS "[limit b]\nrate = 100/1h\n" HOUR);
	decide(&r);
	assert_string_equal(r.decision.limit->name, "b");
	assert_int_equal(r.decision.verdict.remaining, 99);
	end(&r);
	begin(&r, "[limit a]\n" SLOTS "scope = local\n[limit b]\n" SLOTS);
	decide(&r);
	first = r.decision;
	assert_string_equal(first.limit->name, "a");
	assert_int_equal(first.verdict.remaining, 1);
	assert_false(
	    str_eq(first.part[0].check.slot, first.part[1].check.slot));
	decide(&r);
	second = r.decision;
	assert_int_equal(second.kind, DECISION_ALLOWED);
	decide(&r);
	assert_int_equal(r.decision.kind, DECISION_REFUSED);
	decision_release(&r.decision, &r.stores);
	decision_settle(&first, &r.stores, 200);
	decide(&r);
	assert_int_equal(r.decision.kind, DECISION_REFUSED);
	decision_release(&first, &r.stores);
	decision_release(&first, &r.stores);
	decide(&r);
	assert_int_equal(r.decision.kind, DECISION_ALLOWED);
	assert_int_equal(r.decision.verdict.remaining, 0);
	decision_withdraw(&r.decision, &r.stores);
	decision_withdraw(&second, &r.stores);
	decide(&r);
	assert_int_equal(r.decision.verdict.remaining, 1);
	end(&r);
}

static void
test_delay(void **state)
{
	struct rig r;
	struct decision first;

	(void)state;
	begin(&r,
	    "[limit a]\nrate = 10/1h burst 2\ndelay_max = 1h\n"
	    "algorithm = leaky_bucket\n");
	decide(&r);
	assert_int_equal(r.decision.delay_us, 0);
	decide(&r);
	first = r.decision;
	assert_in_range(first.delay_us, 359000000, 360000000);
	decide(&r);
	assert_int_equal(r.decision.kind, DECISION_REFUSED);
	assert_int_equal(r.decision.delay_us, 0);
	decision_withdraw(&first, &r.stores);
	decide(&r);
	assert_int_equal(r.decision.kind, DECISION_ALLOWED);
	assert_in_range(r.decision.delay_us, 359000000, 360000000);
	end(&r);
}

/* What its response says changes what is printed, not what it took. */
static void
test_what_a_refund_knows(void **state)
{
	struct rig r;
	struct decision_part *part;

	(void)state;
	begin(&r,
	    "[limit a]\nrate = 10/1h burst 9\n"
	    "algorithm = token_bucket\n" COSTLY
	    "[limit b]\nrate = 10/1h burst 9\n"
	    "algorithm = leaky_bucket\ndelay_max = 1h\n" COSTLY);
	for (int i = 0; i < 3; i++)
		decide(&r);
	decision_take_cost(&r.decision, STR("X-Cost"), STR("0"));
	for (size_t i = 0; i < 2; i++) {
		part = &r.decision.part[i];
		assert_int_equal(part->verdict.remaining, 7);
		assert_in_range(
		    part->check.check.full_us, 1070000000, 1080000000);
	}
	decision_settle(&r.decision, &r.stores, 200);
	assert_int_equal(left(&r, 0), 7);
	assert_int_equal(left(&r, 1), 7);
	end(&r);
}

/* A request that no limit applies to has nothing to end. */
static void
test_nothing_taken(void **state)
{
	struct rig r;

	(void)state;
	begin(&r, "[limit a]\nrate = 10/1h\npath = /x\n");
	decide(&r);
	assert_int_equal(r.decision.kind, DECISION_UNLIMITED);
	decision_settle(&r.decision, &r.stores, 200);
	decision_release(&r.decision, &r.stores);
	decision_withdraw(&r.decision, &r.stores);
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
		cmocka_unit_test(test_count),
		cmocka_unit_test(test_count_of_a_refused),
		cmocka_unit_test(test_response_cost),
		cmocka_unit_test(test_said_twice),
		cmocka_unit_test(test_two_headers),
		cmocka_unit_test(test_cost_and_count),
		cmocka_unit_test(test_withdraw),
		cmocka_unit_test(test_forfeit),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_delay),
		cmocka_unit_test(test_what_a_refund_knows),
		cmocka_unit_test(test_nothing_taken),
	};

	return cmocka_run_group_tests_name(
	    "decision_end", tests, setup, teardown);
}
