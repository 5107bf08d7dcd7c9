/*
 * Threads that ask only look for a lane that is up. All that makes one up
 * (resolving, connecting, the breaker's probe) is a step of redis_maintain,
 * one attempt at a time, a slice at a time.
 *
 * `edge` is held while the breaker changes and the change is told, so that
 * an outage's end is never told before its beginning.
 */
#include "domain/store_redis.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/counter.h"
#include "domain/breaker.h"
#include "domain/outage.h"
#include "domain/redis_lanes.h"
#include "domain/redis_login.h"
#include "domain/redis_session.h"
#include "domain/redis_trouble.h"
#include "domain/held_slots.h"
#include "domain/unsettled.h"

/* What one call of redis_maintain may wait for the server. */
#define SLICE_US 50000
/* How often links that nobody uses are looked at. */
#define LOOK_US 250000
/* How often slots that are held are renewed, and tried again if it failed. */
#define RENEW_US    5000000
#define RENEW_AT_US 500000
/* So many in one call: about as long as it keeps the server busy, in us. */
#define RENEW_MAX 1000

/* What is left of `timeout` is enough to ask with. */
#define LEAST_PART 4

struct store_redis {
	struct store store;
	struct redis_login login;
	struct breaker breaker;
	struct outage outage;
	pthread_mutex_t edge;
	_Atomic(const char *) reason; /* of the last trip */

	pthread_mutex_t lock; /* of `settled` */
	pthread_cond_t settled;
	atomic_bool starting; /* no link yet, no attempt failed yet */
	bool alone;
	_Atomic int64_t timeout_us;

	struct held_slots slots;
	int64_t renew_us; /* when next */

	struct redis_session *session; /* the attempt under way */
	struct redis_lane *attempted;  /* and whose it is */

	struct redis_lanes lanes;
};

static struct store_redis *
redis_of(struct store *store)
{
	return (struct store_redis *)store;
}

static void
start_is_over(struct store_redis *s)
{
	if (!atomic_load(&s->starting))
		return;
	pthread_mutex_lock(&s->lock);
	atomic_store(&s->starting, false);
	pthread_cond_broadcast(&s->settled);
	pthread_mutex_unlock(&s->lock);
}

static void
trip(struct store_redis *s, const struct redis_trouble *trouble,
    const char *detail)
{
	pthread_mutex_lock(&s->edge);
	atomic_store(&s->reason, trouble->reason);
	if (breaker_trip(&s->breaker, trouble->trip, clock_mono_us()))
		outage_begin(&s->outage, trouble->reason, detail);
	else if (breaker_is_open(&s->breaker))
		outage_goes_on(&s->outage, trouble->reason, detail);
	pthread_mutex_unlock(&s->edge);
}

static void
on_answered(void *context)
{
	struct store_redis *s = context;

	breaker_answered(&s->breaker);
}

static void
on_tripped(void *context, const struct redis_trouble *trouble)
{
	struct store_redis *s = context;

	trip(s, trouble, NULL);
	if (s->store.wake != NULL)
		s->store.wake(s->store.wake_context);
}

/* NULL: the store is out. */
static struct redis_lane *
pick(struct store_redis *s)
{
	return breaker_is_open(&s->breaker) ? NULL
					    : redis_lanes_pick(&s->lanes);
}

static void
await_start(struct store_redis *s, int64_t deadline_us)
{
	struct timespec at = { deadline_us / 1000000,
		deadline_us % 1000000 * 1000 };

	pthread_mutex_lock(&s->lock);
	while (atomic_load(&s->starting))
		if (pthread_cond_timedwait(&s->settled, &s->lock, &at) != 0)
			break;
	pthread_mutex_unlock(&s->lock);
}

static void
end_attempt(struct store_redis *s)
{
	redis_session_free(s->session);
	s->session = NULL;
	start_is_over(s);
}

static void
attempt_failed(struct store_redis *s, const struct redis_trouble *trouble,
    const struct err *err)
{
	counter_add(COUNTER_store_connect_failures, 1);
	trip(s, trouble, err->text);
	end_attempt(s);
}

static void
attempt_succeeded(struct store_redis *s, struct redis_link *link)
{
	counter_add(COUNTER_store_connects, 1);
	redis_lane_give(s->attempted, link);
	pthread_mutex_lock(&s->edge);
	if (breaker_close(&s->breaker))
		outage_end(&s->outage);
	pthread_mutex_unlock(&s->edge);
	end_attempt(s);
}

static void
go_on(struct store_redis *s, int64_t until_us)
{
	const struct redis_trouble *trouble;
	struct redis_link *link;
	struct err err;

	switch (
	    redis_session_step(s->session, until_us, &link, &trouble, &err)) {
	case REDIS_READY:
		attempt_succeeded(s, link);
		break;
	case REDIS_BROKEN:
		attempt_failed(s, trouble, &err);
		break;
	case REDIS_NOT_YET:
		break;
	}
}

static int64_t
connect_lanes(struct store_redis *s, int64_t until_us)
{
	/* Only a new link is a probe. */
	struct redis_lane *down =
	    redis_lanes_tidy(&s->lanes, breaker_is_open(&s->breaker));
	int64_t next_us = breaker_next_us(&s->breaker);
	struct err err;

	if (s->session == NULL && down == NULL)
		return clock_mono_us() + LOOK_US;
	if (s->session == NULL) {
		if (clock_mono_us() < next_us)
			return next_us;
		s->attempted = down;
		s->session = redis_login_start(&s->login, &err);
	}
	if (s->session == NULL)
		attempt_failed(s, &redis_trouble_unreachable, &err);
	else
		go_on(s, until_us);
	return clock_mono_us();
}

/* The only attempt there will be: by until_us it has succeeded or failed. */
static void
connect_now(struct store_redis *s, int64_t until_us)
{
	const struct err late = { "no link within timeout" };

	while (atomic_load(&s->starting) && clock_mono_us() < until_us)
		connect_lanes(s, until_us);
	if (atomic_load(&s->starting))
		attempt_failed(s, &redis_trouble_unreachable, &late);
}

/* In time for nothing: a check is one without an answer all the same. */
static void
leave_unsent(enum redis_script_name name, struct store_answer *answer)
{
	answer->reason = redis_trouble_timeout.reason;
	if (name == REDIS_SCRIPT_CHECK)
		counter_add(COUNTER_check_timeouts, 1);
}

static void
ask_script(struct store_redis *s, enum redis_script_name name,
    const struct store_question *q, struct store_answer *answer)
{
	int64_t asked_us = clock_mono_us();
	int64_t timeout_us = atomic_load(&s->timeout_us);
	int64_t deadline_us = asked_us + timeout_us;
	struct redis_lane *lane = pick(s);
	int64_t now_us;

	if (q->until_us != 0 && q->until_us < deadline_us)
		deadline_us = q->until_us;
	answer->status = STORE_OUT;
	answer->taken_us = 0;
	if (lane == NULL && atomic_load(&s->starting)) {
		if (s->alone)
			connect_now(s, deadline_us);
		else
			await_start(s, deadline_us);
		lane = pick(s);
	}
	/* A trip too short to be answered would only end the link of others. */
	if (deadline_us - asked_us < timeout_us / LEAST_PART)
		leave_unsent(name, answer);
	else if (lane != NULL)
		redis_lane_ask(lane, name, q, deadline_us, answer);
	else
		answer->reason = atomic_load(&s->reason);
	now_us = clock_mono_us();
	answer->wait_us = now_us - asked_us;
	answer->retry_us = 0;
	if (answer->status == STORE_OUT) {
		int64_t next_us = breaker_next_us(&s->breaker);

		answer->retry_us = next_us > now_us ? next_us - now_us : 0;
	}
}

static void
redis_ask(struct store *store, const struct store_question *q,
    struct store_answer *answer)
{
	struct store_redis *s = redis_of(store);

	ask_script(s, REDIS_SCRIPT_CHECK, q, answer);
	if (answer->status == STORE_ANSWERED)
		held_slots_hold_taken(&s->slots, q, answer);
}

/* Each check's cost: charged, or given back where it is below 0. */
static void
settle(struct store_redis *s, const struct store_question *q)
{
	struct store_answer answer;

	ask_script(s, REDIS_SCRIPT_SETTLE, q, &answer);
	if (answer.status == STORE_OUT)
		unsettled_lost(q->n);
}

static void
redis_refund(
    struct store *store, const struct store_question *q, int64_t taken_us)
{
	struct store_redis *s = redis_of(store);
	UNINITIALIZED struct store_check check[STORE_CHECKS_MAX];
	struct store_question back = { .check = check, .n = 0 };

	for (size_t i = 0; i < q->n; i++) {
		const struct store_check *c = &q->check[i];

		if (c->check.algorithm == ALGORITHM_CONCURRENCY &&
		    !held_slots_drop(&s->slots, c->slot))
			continue;
		check[back.n] = *c;
		check[back.n].taken_us = taken_us;
		check[back.n++].check.cost = -c->check.cost;
	}
	if (back.n > 0)
		settle(s, &back);
}

static void
redis_release(struct store *store, const struct store_check *check, size_t n)
{
	UNINITIALIZED struct store_check slot[STORE_CHECKS_MAX];
	struct store_question q = { .check = slot, .n = 0 };

	for (size_t i = 0; i < n && q.n < STORE_CHECKS_MAX; i++)
		if (check[i].check.algorithm == ALGORITHM_CONCURRENCY)
			slot[q.n++] = check[i];
	if (q.n > 0)
		redis_refund(store, &q, 0);
}

/* As many in one call as it holds. */
static void
redis_settle(struct store *store, const struct store_settlement *s, size_t n)
{
	UNINITIALIZED struct store_check check[STORE_CHECKS_MAX];
	struct store_question q = { .check = check, .n = 0 };

	for (size_t i = 0; i < n; i++) {
		if (s[i].check.check.algorithm == ALGORITHM_CONCURRENCY)
			continue;
		if (q.n == STORE_CHECKS_MAX) {
			settle(redis_of(store), &q);
			q.n = 0;
		}
		check[q.n] = s[i].check;
		check[q.n].taken_us = s[i].taken_us;
		check[q.n++].check.cost = s[i].delta;
	}
	if (q.n > 0)
		settle(redis_of(store), &q);
}

static void
release_again(void *context, const struct store_check *check)
{
	struct store_check slot = *check;

	slot.check.cost = -1;
	slot.taken_us = 0;
	settle(context, &(struct store_question){ .check = &slot, .n = 1 });
}

/* Returns when to do so again. */
static int64_t
renew_slots(struct store_redis *s)
{
	const struct store_check *check;
	struct store_answer answer = { .status = STORE_ANSWERED };
	size_t n;

	if (clock_mono_us() < s->renew_us)
		return s->renew_us;
	check = held_slots_begin_renewal(&s->slots, &n);
	for (size_t i = 0; i < n && answer.status == STORE_ANSWERED;
	     i += RENEW_MAX) {
		struct store_question q = { .check = check + i, .n = n - i };

		if (q.n > RENEW_MAX)
			q.n = RENEW_MAX;
		ask_script(s, REDIS_SCRIPT_RENEW, &q, &answer);
	}
	held_slots_end_renewal(&s->slots, release_again, s);
	s->renew_us = clock_mono_us() +
	    (answer.status == STORE_ANSWERED ? RENEW_US : RENEW_AT_US);
	return s->renew_us;
}

static int64_t
redis_maintain(struct store *store)
{
	struct store_redis *s = redis_of(store);
	int64_t at_us = connect_lanes(s, clock_mono_us() + SLICE_US);
	int64_t outage_us = outage_maintain(&s->outage);
	int64_t renew_us = renew_slots(s);

	if (outage_us < at_us)
		at_us = outage_us;
	return renew_us < at_us ? renew_us : at_us;
}

static void
redis_free(struct store *store)
{
	struct store_redis *s = redis_of(store);

	redis_session_free(s->session);
	redis_lanes_release(&s->lanes);
	held_slots_release(&s->slots);
	outage_release(&s->outage);
	redis_login_release(&s->login);
	breaker_release(&s->breaker);
	pthread_mutex_destroy(&s->edge);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->settled);
	free(s);
}

static const struct store_ops redis_ops = {
	.ask = redis_ask,
	.refund = redis_refund,
	.release = redis_release,
	.settle = redis_settle,
	.maintain = redis_maintain,
	.free = redis_free,
};

bool
store_redis_configure(struct store *store,
    const struct store_redis_settings *settings, struct err *err)
{
	struct store_redis *s = redis_of(store);
	bool ok = redis_login_configure(&s->login, settings->username,
	    settings->password, settings->prefix, settings->connect_timeout_us);

	if (ok && settings->config != NULL)
		ok = drift_set(
		    &s->login.drift, settings->config, settings->naming);
	if (!ok)
		return err_set(err, "out of memory");
	atomic_store(&s->timeout_us, settings->timeout_us);
	breaker_configure(&s->breaker, settings->breaker_failures,
	    settings->breaker_cooldown_us);
	return outage_set_command(&s->outage, settings->alert_command, err);
}

void
store_redis_hurry(struct store *store, int64_t timeout_us)
{
	struct store_redis *s = redis_of(store);

	if (timeout_us < atomic_load(&s->timeout_us))
		atomic_store(&s->timeout_us, timeout_us);
}

static bool
init(struct store_redis *s, const struct store_redis_settings *settings,
    struct err *err)
{
	const struct redis_lane_events events = { on_answered, on_tripped, s };
	pthread_condattr_t attr;
	char address[REDIS_ADDRESS_TEXT_MAX];

	s->store.ops = &redis_ops;
	s->store.may_block = true;
	s->alone = settings->alone;
	atomic_init(&s->starting, true);
	atomic_init(&s->reason, redis_trouble_unreachable.reason);
	redis_login_init(&s->login, &settings->address);
	s->login.untried = settings->alone;
	held_slots_init(&s->slots);
	pthread_mutex_init(&s->edge, NULL);
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->settled, &attr);
	pthread_condattr_destroy(&attr);
	breaker_init(&s->breaker, settings->breaker_failures,
	    settings->breaker_cooldown_us,
	    (uint64_t)clock_real_us() ^ (uint64_t)(uintptr_t)s);
	redis_address_print(&settings->address, address);
	if (!outage_init(&s->outage, address, NULL, err))
		return false;
	if (!redis_lanes_init(&s->lanes, settings->connections, &events))
		return err_set(err, "out of memory");
	return store_redis_configure(&s->store, settings, err);
}

struct store *
store_redis_new(const struct store_redis_settings *settings, struct err *err)
{
	struct store_redis *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		err_set(err, "out of memory");
		return NULL;
	}
	if (init(s, settings, err))
		return &s->store;
	redis_free(&s->store);
	return NULL;
}

bool
store_redis_is_up(struct store *store)
{
	return pick(redis_of(store)) != NULL;
}
