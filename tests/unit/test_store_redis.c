#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/counter.h"
#include "domain/redis_trouble.h"
#include "store_fixture.h"

#define HOUR_US INT64_C(3600000000)

static struct redis_server server;

static struct store_check
limit(const char *key, int64_t count)
{
	struct store_check c = { 0 };

	c.key = str_of(key);
	c.check = (struct check){
		.algorithm = ALGORITHM_FIXED_WINDOW,
		.align = ALIGN_FIRST,
		.count = count,
		.period_us = 24 * HOUR_US,
		.burst = count,
		.cost = 1,
	};
	return c;
}

static struct store_answer
ask(struct fixture *f, struct store_check *c, size_t n)
{
	struct store_question q = { .check = c, .n = n };
	struct store_answer a;

	memset(&a, 0x5a, sizeof(a));
	f->store->ops->ask(f->store, &q, &a);
	if (a.status == STORE_OUT && (a.reason == NULL || a.retry_us < 0))
		abort();
	return a;
}

static int64_t
slack(int64_t us)
{
	return is_slow() ? us * 20 : us;
}

static int
flush(void **context)
{
	(void)context;
	if (server.pid == 0)
		redis_server_start(&server);
	return redis_server_command(&server, "FLUSHALL") ? 0 : -1;
}

/* Asked before there is a link: the first check waits for it. */
static void
test_answers(void **context)
{
	struct store_redis_settings settings = settings_for(server.path);
	struct store_check c[3] = { limit("a", 3), limit("b", 5),
		limit("c", 7) };
	struct store_question q = { .check = c, .n = 3 };
	struct store_answer a;
	struct fixture f;

	(void)context;
	settings.timeout_us = 2000000;
	c[1].check.algorithm = ALGORITHM_SLIDING_WINDOW;
	c[2].check.algorithm = ALGORITHM_TOKEN_BUCKET;
	begin(&f, &settings);
	for (int i = 0; i < 3; i++) {
		a = ask(&f, c, 3);
		assert_int_equal(a.status, STORE_ANSWERED);
		assert_int_equal(a.verdict[0].kind, VERDICT_ALLOWED);
		assert_int_equal(a.verdict[0].limit, 3);
		assert_int_equal(a.verdict[0].remaining, 2 - i);
		assert_int_equal(a.verdict[1].limit, 5);
		assert_int_equal(a.verdict[1].remaining, 4 - i);
		assert_int_equal(a.verdict[2].limit, 7);
		assert_int_equal(a.verdict[2].remaining, 6 - i);
		assert_in_range(a.taken_us, clock_real_us() - 5000000,
		    clock_real_us() + 5000000);
		assert_in_range(a.wait_us, 1, 2000000);
	}
	a = ask(&f, c, 3);
	assert_int_equal(a.verdict[0].kind, VERDICT_REFUSED);
	assert_in_range(a.verdict[0].retry_us, 23 * HOUR_US, 24 * HOUR_US);
	assert_int_equal(a.verdict[1].remaining, 2);
	f.store->ops->refund(f.store, &q, a.taken_us);
	for (int i = 0; i < 3; i++)
		c[i].check.cost = 0;
	a = ask(&f, c, 3);
	assert_int_equal(a.verdict[0].remaining, 1);
	assert_int_equal(a.verdict[1].remaining, 3);
	assert_int_equal(a.verdict[2].remaining, 5);
	c[0].check.cost = INT64_MAX;
	a = ask(&f, c, 3);
	assert_int_equal(a.verdict[0].retry_us, ALGORITHM_NEVER);
	end(&f);
}

/* Who has hardly any time left is not let ask: it would end the link. */
static void
test_too_late_to_ask(void **context)
{
	struct store_redis_settings settings = settings_for(server.path);
	struct store_check c = limit("late", 3);
	struct store_question q = { .check = &c, .n = 1 };
	uint64_t late = counter_get(COUNTER_check_timeouts);
	struct store_answer a;
	struct fixture f;

	(void)context;
	settings.timeout_us = 2000000;
	begin(&f, &settings);
	assert_int_equal(ask(&f, &c, 1).status, STORE_ANSWERED);
	q.until_us = clock_mono_us() + settings.timeout_us / 8;
	f.store->ops->ask(f.store, &q, &a);
	assert_int_equal(a.status, STORE_OUT);
	assert_ptr_equal(a.reason, redis_trouble_timeout.reason);
	assert_in_range(a.wait_us, 0, settings.timeout_us / 8);
	assert_int_equal(counter_get(COUNTER_check_timeouts), late + 1);
	q.until_us = clock_mono_us() + settings.timeout_us;
	f.store->ops->ask(f.store, &q, &a);
	assert_int_equal(a.status, STORE_ANSWERED);
	assert_int_equal(a.verdict[0].remaining, 1);
	end(&f);
}

static struct store_check
slot(const char *name, int64_t count)
{
	struct store_check c = { .key = STR("slots"), .slot = str_of(name) };

	c.check = (struct check){
		.algorithm = ALGORITHM_CONCURRENCY, .count = count, .cost = 1
	};
	return c;
}

/* As in memory: the same figures of every law, and a penalty of its own. */
static void
test_all_laws(void **context)
{
	struct store_redis_settings settings = settings_for(server.path);
	struct store_check c[5] = { limit("log", 3), limit("queue", 5),
		slot("me", 7), limit("dates", 9), limit("short", 2) };
	struct store_question q = { .check = c, .n = 5 };
	struct store_answer a;
	static const char *const names[] = { "a", "b", "c" };
	int64_t taken_us;
	struct fixture f;

	(void)context;
	settings.timeout_us = 2000000;
	c[0].check.algorithm = ALGORITHM_SLIDING_LOG;
	c[1].check.algorithm = ALGORITHM_LEAKY_BUCKET;
	c[1].check.delay_max_us = 24 * HOUR_US;
	c[3].check.align = ALIGN_CALENDAR;
	for (int i = 0; i < 4; i++)
		c[3].check.boundary_us[i] =
		    clock_real_us() + (i * 2 - 3) * HOUR_US;
	c[4].check.penalty_us = 48 * HOUR_US;
	c[4].check.observe = true;
	begin(&f, &settings);
	for (int i = 0; i < 3; i++) {
		c[2].slot = str_of(names[i]);
		a = ask(&f, c, 5);
		assert_int_equal(a.status, STORE_ANSWERED);
		for (int k = 0; k < 4; k++) {
			assert_int_equal(a.verdict[k].kind, VERDICT_ALLOWED);
			assert_int_equal(a.verdict[k].limit, 3 + 2 * k);
			assert_int_equal(a.verdict[k].remaining, 2 + 2 * k - i);
		}
		assert_true((a.verdict[1].delay_us > 0) == (i > 0));
		assert_in_range(
		    a.verdict[3].full_us, HOUR_US - 20000000, HOUR_US);
	}
	assert_int_equal(a.verdict[4].kind, VERDICT_REFUSED);
	assert_int_equal(a.verdict[4].retry_us, 48 * HOUR_US);
	taken_us = a.taken_us;
	c[1].check.full_us = a.verdict[1].full_us;
	assert_int_equal(ask(&f, c, 5).verdict[0].kind, VERDICT_REFUSED);
	f.store->ops->refund(f.store, &q, taken_us);
	for (int i = 0; i < 5; i++)
		c[i].check.cost = 0;
	a = ask(&f, c, 5);
	for (int k = 0; k < 4; k++)
		assert_int_equal(a.verdict[k].remaining, 1 + 2 * k);
	end(&f);
}

/* A slot goes back once, and only one that was taken. */
static void
test_slots(void **context)
{
	struct store_redis_settings settings = settings_for(server.path);
	struct store_check c[3] = { slot("a", 2), slot("b", 2), slot("c", 2) };
	struct store_check both[2] = { slot("d", 2), limit("full", 1) };
	struct fixture f;

	(void)context;
	settings.timeout_us = 2000000;
	begin(&f, &settings);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ask(&f, &c[i], 1).verdict[0].kind,
		    i < 2 ? VERDICT_ALLOWED : VERDICT_REFUSED);
	f.store->ops->release(f.store, &c[2], 1);
	assert_int_equal(ask(&f, &c[2], 1).verdict[0].retry_us, 1000000);
	f.store->ops->release(f.store, c, 1);
	f.store->ops->release(f.store, c, 1);
	assert_int_equal(ask(&f, &c[2], 1).verdict[0].remaining, 0);
	f.store->ops->release(f.store, c, 3);
	ask(&f, &both[1], 1);
	assert_int_equal(ask(&f, both, 2).verdict[0].remaining, 2);
	f.store->ops->release(f.store, both, 2);
	assert_true(redis_server_command(&server, "RENAMENX full gone"));
	/* Who crashed holds it no longer than its deadline says. */
	assert_true(redis_server_command(
	    &server, "ZADD slots 1 dead 9000000000000000 alive"));
	assert_int_equal(ask(&f, both, 2).verdict[0].remaining, 0);
	end(&f);
}

/* What the server has lost comes back with the next renewal. */
static void
test_slots_are_renewed(void **context)
{
	struct store_redis_settings settings = settings_for(server.path);
	struct store_check c = slot("a", 2);
	int64_t deadline_us = clock_mono_us() + 20000000;
	struct fixture f;

	(void)context;
	settings.timeout_us = 2000000;
	begin(&f, &settings);
	ask(&f, &c, 1);
	assert_true(redis_server_command(&server, "DEL slots"));
	c.check.cost = 0;
	pthread_mutex_lock(&f.lock);
	while (ask(&f, &c, 1).verdict[0].remaining == 2) {
		assert_true(clock_mono_us() < deadline_us);
		wait_until(&f, deadline_us);
	}
	pthread_mutex_unlock(&f.lock);
	c.check.cost = 1;
	f.store->ops->release(f.store, &c, 1);
	c.check.cost = 0;
	assert_int_equal(ask(&f, &c, 1).verdict[0].remaining, 2);
	end(&f);
}

/* B74: a server that forgot the scripts gets them once, by EVAL. */
static void
test_b74_noscript(void **context)
{
	struct store_redis_settings settings = settings_for(server.path);
	struct store_check c = limit("k", 9);
	struct store_question q = { .check = &c, .n = 1 };
	struct store_answer a;
	struct fixture f;

	(void)context;
	begin(&f, &settings);
	assert_true(await(&f, true));
	ask(&f, &c, 1);
	assert_true(redis_server_command(&server, "SCRIPT FLUSH"));
	a = ask(&f, &c, 1);
	assert_int_equal(a.status, STORE_ANSWERED);
	assert_int_equal(a.verdict[0].remaining, 7);
	assert_true(redis_server_command(&server, "SCRIPT FLUSH"));
	f.store->ops->refund(f.store, &q, a.taken_us);
	assert_int_equal(ask(&f, &c, 1).verdict[0].remaining, 7);
	assert_true(store_redis_is_up(f.store));
	end(&f);
}

static void
test_wrong_type(void **context)
{
	struct store_redis_settings settings = settings_for(server.path);
	struct store_check c[2] = { limit("list", 9), limit("k", 9) };
	struct store_answer a;
	struct fixture f;

	(void)context;
	assert_true(redis_server_command(&server, "LPUSH list x"));
	begin(&f, &settings);
	assert_true(await(&f, true));
	a = ask(&f, c, 2);
	assert_int_equal(a.status, STORE_ANSWERED);
	assert_int_equal(a.verdict[0].kind, VERDICT_ERROR);
	assert_non_null(a.reason);
	assert_int_equal(a.verdict[1].kind, VERDICT_ALLOWED);
	assert_true(store_redis_is_up(f.store));
	end(&f);
}

/* What a lease takes, whatever else there is to be told beside it. */
static void
test_leases(void **context)
{
	struct store_redis_settings settings = settings_for(server.path);
	struct store_check c[4] = { limit("plain", 9), limit("settled", 9),
		limit("own", 9), limit("list", 9) };
	struct store_settlement back;
	struct store_answer a;
	struct fixture f;

	(void)context;
	assert_true(redis_server_command(&server, "LPUSH list x"));
	assert_true(redis_server_command(&server, "SET owned 20"));
	for (size_t i = 0; i < 4; i++)
		c[i].check.most = 6;
	c[2].own_key = STR("owned");
	begin(&f, &settings);
	assert_true(await(&f, true));
	a = ask(&f, c, 4);
	assert_int_equal(a.status, STORE_ANSWERED);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(a.verdict[i].kind, VERDICT_ALLOWED);
		assert_int_equal(a.verdict[i].taken, 6);
		assert_int_equal(a.verdict[i].limit, i == 2 ? 20 : 9);
		assert_int_equal(a.verdict[i].remaining, i == 2 ? 14 : 3);
		assert_int_equal(a.verdict[i].own_count, i == 2 ? 20 : 0);
	}
	assert_int_equal(a.verdict[3].kind, VERDICT_ERROR);
	back = (struct store_settlement){ c[1], a.taken_us, -5 };
	f.store->ops->settle(f.store, &back, 1);
	a = ask(&f, c, 3);
	assert_int_equal(a.verdict[0].taken, 3);
	assert_int_equal(a.verdict[1].taken, 6);
	a = ask(&f, &c[1], 1);
	assert_int_equal(a.verdict[0].taken, 2);
	a = ask(&f, &c[1], 1);
	assert_int_equal(a.verdict[0].kind, VERDICT_REFUSED);
	assert_int_equal(a.verdict[0].taken, 0);
	end(&f);
}

struct race {
	struct fixture f;
	pthread_barrier_t start;
	atomic_int passed;
	atomic_int out;
};

static void *
racer(void *context)
{
	struct race *r = context;
	struct store_check c = limit("raced", 100);

	pthread_barrier_wait(&r->start);
	for (int i = 0; i < 100; i++) {
		struct store_answer a = ask(&r->f, &c, 1);

		if (a.status == STORE_OUT)
			atomic_fetch_add(&r->out, 1);
		else if (a.verdict[0].kind == VERDICT_ALLOWED)
			atomic_fetch_add(&r->passed, 1);
	}
	return NULL;
}

/* Law 2: 16 threads, 1600 requests on a fresh key, 100 pass; combined. */
static void
race(unsigned connections)
{
	struct store_redis_settings settings = settings_for(server.path);
	uint64_t trips, checks;
	pthread_t thread[16];
	struct race r = { 0 };

	settings.connections = connections;
	settings.timeout_us = 5000000;
	begin(&r.f, &settings);
	assert_true(await(&r.f, true));
	pthread_barrier_init(&r.start, NULL, 16);
	trips = counter_get(COUNTER_check_trips);
	checks = counter_get(COUNTER_checks);
	for (int i = 0; i < 16; i++)
		assert_int_equal(
		    pthread_create(&thread[i], NULL, racer, &r), 0);
	for (int i = 0; i < 16; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(r.out, 0);
	assert_int_equal(r.passed, 100);
	assert_int_equal(counter_get(COUNTER_checks) - checks, 1600);
	trips = counter_get(COUNTER_check_trips) - trips;
	assert_in_range(trips, 25, 1599);
	pthread_barrier_destroy(&r.start);
	end(&r.f);
}

static void
test_truth(void **context)
{
	(void)context;
	race(1);
}

static void
test_truth_over_three_links(void **context)
{
	(void)context;
	race(3);
}

/* What alert_command has written, waited for as long as it may take. */
static void
await_alerts(struct fixture *f, const char *path, const char *want)
{
	int64_t deadline_us = clock_mono_us() + 20000000;
	char got[4096] = "";

	while (strcmp(got, want) != 0 && clock_mono_us() < deadline_us) {
		FILE *in = fopen(path, "re");
		size_t n = 0;

		if (in != NULL) {
			n = fread(got, 1, sizeof(got) - 1, in);
			fclose(in);
		}
		got[n] = '\0';
		pthread_mutex_lock(&f->lock);
		wait_until(f, clock_mono_us() + 20000);
		pthread_mutex_unlock(&f->lock);
	}
	assert_string_equal(got, want);
}

struct outage_case {
	struct fixture f;
	char alerts[128];
	char command[256];
	char first[256];  /* what the outage's alert has written */
	char second[512]; /* and the recovery's */
	uint64_t outages;
};

static void
outage_begin_case(struct outage_case *o)
{
	struct store_redis_settings settings = settings_for(server.path);

	snprintf(o->alerts, sizeof(o->alerts), "%s/alerts", server.directory);
	snprintf(o->command, sizeof(o->command),
	    "echo $SLUICE_EVENT $SLUICE_STORE >>%s", o->alerts);
	snprintf(o->first, sizeof(o->first), "outage unix:%s\n", server.path);
	snprintf(o->second, sizeof(o->second), "%srecovery unix:%s\n", o->first,
	    server.path);
	settings.alert_command = o->command;
	o->outages = counter_get(COUNTER_store_outages);
	begin(&o->f, &settings);
	assert_true(await(&o->f, true));
}

/* Asks until the breaker has opened; no wait is longer than it may be. */
static void
see_it_open(struct outage_case *o)
{
	struct store_check c = limit("k", 1000000);
	int64_t deadline_us = clock_mono_us() + 20000000;
	int64_t waited_us = 0;

	while (counter_get(COUNTER_store_outages) == o->outages) {
		struct store_answer a = ask(&o->f, &c, 1);

		assert_true(clock_mono_us() < deadline_us);
		assert_int_equal(a.status, STORE_OUT);
		assert_in_range(a.wait_us, 0, TIMEOUT_US + slack(50000));
		if (a.wait_us > waited_us)
			waited_us = a.wait_us;
	}
	for (int i = 0; i < 100; i++) {
		struct store_answer a = ask(&o->f, &c, 1);

		assert_int_equal(a.status, STORE_OUT);
		assert_in_range(a.wait_us, 0, slack(5000));
	}
	assert_int_equal(counter_get(COUNTER_store_outages), o->outages + 1);
}

static void
see_it_recover(struct outage_case *o)
{
	struct store_check c = limit("after", 1000000);

	assert_true(await(&o->f, true));
	assert_int_equal(ask(&o->f, &c, 1).status, STORE_ANSWERED);
	await_alerts(&o->f, o->alerts, o->second);
}

static void
outage_end_case(struct outage_case *o)
{
	end(&o->f);
	assert_int_equal(unlink(o->alerts), 0);
}

static void
test_stopped_server(void **context)
{
	struct outage_case o;

	(void)context;
	outage_begin_case(&o);
	kill(server.pid, SIGSTOP);
	see_it_open(&o);
	await_alerts(&o.f, o.alerts, o.first);
	kill(server.pid, SIGCONT);
	see_it_recover(&o);
	outage_end_case(&o);
}

/* And again within the minute: counted and logged, but no second alert. */
static void
test_killed_and_restarted_server(void **context)
{
	struct outage_case o;

	(void)context;
	outage_begin_case(&o);
	redis_server_stop(&server);
	see_it_open(&o);
	await_alerts(&o.f, o.alerts, o.first);
	redis_server_start(&server);
	see_it_recover(&o);
	o.outages++;
	redis_server_stop(&server);
	see_it_open(&o);
	redis_server_start(&server);
	see_it_recover(&o);
	outage_end_case(&o);
}

/* A command that does not end holds nothing up, and is not left behind. */
static void
test_hanging_alert_command(void **context)
{
	struct store_redis_settings settings = settings_for(server.path);
	struct store_check c = limit("k", 9);
	struct fixture f;
	int64_t begun_us;
	siginfo_t left;

	(void)context;
	settings.alert_command = "exec sleep 100";
	begin(&f, &settings);
	assert_true(await(&f, true));
	redis_server_stop(&server);
	while (store_redis_is_up(f.store))
		ask(&f, &c, 1);
	while (waitid(P_ALL, 0, &left, WEXITED | WNOWAIT | WNOHANG) != 0)
		ask(&f, &c, 1);
	redis_server_start(&server);
	assert_true(await(&f, true));
	begun_us = clock_mono_us();
	end(&f);
	assert_in_range(clock_mono_us() - begun_us, 0, slack(1500000));
	redis_server_stop(&server);
	assert_int_equal(waitid(P_ALL, 0, &left, WEXITED | WNOHANG), -1);
}

/* A fault the server names: out at once, by name, until it is gone. */
static void
see_named_fault(
    const char *cause, const char *cure, const char *name, const char *prefix)
{
	struct store_redis_settings settings = settings_for(server.path);
	struct store_check c = limit("k", 1000000);
	struct store_answer a;
	struct fixture f;

	settings.prefix = prefix;
	settings.breaker_failures = 1;
	begin(&f, &settings);
	assert_true(await(&f, true));
	assert_true(redis_server_command(&server, cause));
	a = ask(&f, &c, 1);
	assert_int_equal(a.status, STORE_OUT);
	assert_non_null(strstr(a.reason, name));
	a = ask(&f, &c, 1);
	assert_int_equal(a.status, STORE_OUT);
	assert_true(redis_server_command(&server, cure));
	assert_true(await(&f, true));
	assert_int_equal(ask(&f, &c, 1).status, STORE_ANSWERED);
	end(&f);
}

static void
test_named_faults(void **context)
{
	(void)context;
	see_named_fault("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0",
	    "OOM", "sluice");
	see_named_fault(
	    "REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "READONLY", "sluice");
}

/* B83: a wrong password is told as one, and never in the log. */
static void
test_wrong_password(void **context)
{
	struct store_redis_settings settings = settings_for(server.path);
	struct store_check c = limit("k", 9);
	struct store_answer a;
	struct fixture f;
	struct err err;

	(void)context;
	assert_true(redis_server_command(
	    &server, "ACL SETUSER limiter on >secret ~* &* +@all"));
	settings.username = "limiter";
	settings.password = "wrong";
	begin(&f, &settings);
	settings.timeout_us = 2000000;
	assert_true(store_redis_configure(f.store, &settings, &err));
	a = ask(&f, &c, 1);
	assert_int_equal(a.status, STORE_OUT);
	assert_non_null(strstr(a.reason, "password"));
	settings.password = "secret";
	assert_true(store_redis_configure(f.store, &settings, &err));
	assert_true(await(&f, true));
	assert_int_equal(ask(&f, &c, 1).status, STORE_ANSWERED);
	end(&f);
	assert_true(redis_server_command(&server, "ACL DELUSER limiter"));
}

/* Nobody there from the start: known as soon as the first attempt failed. */
static void
test_absent_server(void **context)
{
	struct store_redis_settings settings =
	    settings_for("/nonexistent/redis.sock");
	struct store_check c = limit("k", 9);
	struct store_answer a;
	struct fixture f;

	(void)context;
	settings.timeout_us = 5000000;
	begin(&f, &settings);
	a = ask(&f, &c, 1);
	assert_int_equal(a.status, STORE_OUT);
	assert_in_range(a.wait_us, 0, 1000000);
	assert_false(store_redis_is_up(f.store));
	end(&f);
}

static int
set_up(void **context)
{
	(void)context;
	signal(SIGPIPE, SIG_IGN);
	redis_server_init(&server);
	return 0;
}

static int
tear_down(void **context)
{
	(void)context;
	redis_server_release(&server);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_answers, flush),
		cmocka_unit_test_setup(test_too_late_to_ask, flush),
		cmocka_unit_test_setup(test_all_laws, flush),
		cmocka_unit_test_setup(test_slots, flush),
		cmocka_unit_test_setup(test_slots_are_renewed, flush),
		cmocka_unit_test_setup(test_b74_noscript, flush),
		cmocka_unit_test_setup(test_wrong_type, flush),
		cmocka_unit_test_setup(test_leases, flush),
		cmocka_unit_test_setup(test_truth, flush),
		cmocka_unit_test_setup(test_truth_over_three_links, flush),
		cmocka_unit_test_setup(test_stopped_server, flush),
		cmocka_unit_test_setup(test_killed_and_restarted_server, flush),
		cmocka_unit_test_setup(test_hanging_alert_command, flush),
		cmocka_unit_test_setup(test_named_faults, flush),
		cmocka_unit_test_setup(test_wrong_password, flush),
		cmocka_unit_test_setup(test_absent_server, flush),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
