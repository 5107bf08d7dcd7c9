/*
 * SPEC [backend], `address`: least busy first, a failing one rests. Drawn
 * steps are held against a model that is told the same.
 */
#include "domain/upstreams.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "draw.h"

#define SECOND INT64_C(1000000)
#define MOST   5
#define VISITS 40

static struct config_address where[MOST] = {
	{ CONFIG_UNIX, (char *)"/a", 0, (char *)"unix:/a" },
	{ CONFIG_UNIX, (char *)"/b", 0, (char *)"unix:/b" },
	{ CONFIG_UNIX, (char *)"/c", 0, (char *)"unix:/c" },
	{ CONFIG_TCP, (char *)"127.0.0.1", 9000, (char *)"127.0.0.1:9000" },
	{ CONFIG_TCP, (char *)"::1", 9000, (char *)"[::1]:9000" },
};

static struct upstreams_set *
open_set(struct upstreams *all, const char *name, size_t n)
{
	struct config_backend backend = { .address = { n, where } };
	struct upstreams_set *set;

	snprintf(backend.name, sizeof(backend.name), "%s", name);
	set = upstreams_open(all, &backend);
	assert_non_null(set);
	assert_int_equal(set->n, n);
	return set;
}

static struct upstreams_visit
choose(struct upstreams_set *set, int64_t now_us)
{
	struct upstreams_visit visit;

	assert_true(upstreams_choose(set, NULL, now_us, &visit));
	assert_ptr_equal(visit.at, set->at[visit.index]);
	return visit;
}

/* Chosen, tried and left again. */
static bool
fail_one(struct upstreams_set *set, int64_t now_us)
{
	struct upstreams_visit visit = choose(set, now_us);

	upstreams_refused(&visit, now_us, "a test");
	upstreams_leave(&visit);
	return visit.is_probe;
}

/* ---- the law ----------------------------------------------------- */

struct model {
	size_t n;
	size_t inflight[MOST];
	int64_t due_us[MOST]; /* 0: awake */
	int64_t pause_us[MOST];
	int64_t changed_us[MOST];
};

struct trial {
	unsigned seed;
	int64_t now_us;
	struct model model;
	struct upstreams_set *set;
	size_t n_visits;
	struct upstreams_visit visit[VISITS];
};

static bool
is_ready(const struct model *m, size_t i, int64_t now_us)
{
	return m->due_us[i] <= now_us;
}

/* Is a what the model would take rather than b? */
static bool
is_better(const struct model *m, size_t a, size_t b, int64_t now_us)
{
	if (is_ready(m, a, now_us) != is_ready(m, b, now_us))
		return is_ready(m, a, now_us);
	if (is_ready(m, a, now_us))
		return m->inflight[a] < m->inflight[b];
	return m->due_us[a] < m->due_us[b];
}

static void
step_choose(struct trial *t)
{
	struct model *m = &t->model;
	struct upstreams_visit *v = &t->visit[t->n_visits];
	bool tried[MOST];
	size_t left = 0;

	for (size_t i = 0; i < m->n; i++) {
		tried[i] = draw_below(&t->seed, 3) == 0;
		left += !tried[i];
	}
	if (!upstreams_choose(t->set, tried, t->now_us, v)) {
		assert_int_equal(left, 0);
		return;
	}
	assert_true(left > 0 && !tried[v->index]);
	for (size_t i = 0; i < m->n; i++)
		assert_false(!tried[i] && is_better(m, i, v->index, t->now_us));
	assert_int_equal(v->is_probe,
	    m->due_us[v->index] != 0 && is_ready(m, v->index, t->now_us));
	if (v->is_probe)
		m->due_us[v->index] = t->now_us + m->pause_us[v->index];
	m->inflight[v->index]++;
	t->n_visits++;
}

static void
model_refused(struct model *m, const struct upstreams_visit *v, int64_t now_us)
{
	size_t i = v->index;

	if (m->due_us[i] != 0) {
		if (!v->is_probe)
			return;
		m->pause_us[i] = m->pause_us[i] * 2 < 10 * SECOND
		    ? m->pause_us[i] * 2
		    : 10 * SECOND;
	} else {
		if (v->began_us < m->changed_us[i])
			return;
		m->pause_us[i] = SECOND;
		m->changed_us[i] = now_us;
	}
	m->due_us[i] = now_us + m->pause_us[i];
}

static void
model_connected(
    struct model *m, const struct upstreams_visit *v, int64_t now_us)
{
	if (m->due_us[v->index] == 0 || v->began_us < m->changed_us[v->index])
		return;
	m->due_us[v->index] = 0;
	m->changed_us[v->index] = now_us;
}

static void
step_end(struct trial *t)
{
	size_t at = draw_below(&t->seed, t->n_visits);
	struct upstreams_visit v = t->visit[at];

	switch (draw_below(&t->seed, 3)) {
	case 0:
		upstreams_refused(&v, t->now_us, "drawn");
		model_refused(&t->model, &v, t->now_us);
		break;
	case 1:
		upstreams_connected(&v, t->now_us);
		model_connected(&t->model, &v, t->now_us);
		break;
	default:
		break; /* left as it is */
	}
	upstreams_leave(&v);
	t->model.inflight[v.index]--;
	t->visit[at] = t->visit[--t->n_visits];
}

static void
run_trial(struct trial *t)
{
	struct upstreams *all = upstreams_new();

	t->model.n = 1 + draw_below(&t->seed, MOST);
	t->set = open_set(all, "drawn", t->model.n);
	for (int i = 0; i < 500; i++) {
		if (t->n_visits < VISITS && draw_below(&t->seed, 2) == 0)
			step_choose(t);
		else if (t->n_visits > 0)
			step_end(t);
		t->now_us += (int64_t)draw_size(&t->seed, 4 * SECOND);
	}
	while (t->n_visits > 0)
		step_end(t);
	upstreams_close(all, t->set);
	upstreams_free(all);
}

static void
test_law(void **state)
{
	unsigned seed = draw_seed();

	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		struct trial t = { .seed = seed + i, .now_us = 5 * SECOND };

		run_trial(&t);
	}
}

/* ---- by example -------------------------------------------------- */

static void
test_equals_in_turn(void **state)
{
	struct upstreams *all = upstreams_new();
	struct upstreams_set *set = open_set(all, "a", 3);
	size_t times[3] = { 0, 0, 0 };

	(void)state;
	for (int i = 0; i < 300; i++) {
		struct upstreams_visit visit = choose(set, 1);

		times[visit.index]++;
		upstreams_leave(&visit);
	}
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(times[i], 100);
	upstreams_close(all, set);
	upstreams_free(all);
}

static void
test_rest_doubles_up_to_a_bound(void **state)
{
	static const int64_t seconds[] = { 1, 2, 4, 8, 10, 10 };
	struct upstreams *all = upstreams_new();
	struct upstreams_set *set = open_set(all, "a", 1);
	struct upstreams_visit visit;
	int64_t now_us = 100 * SECOND;

	(void)state;
	assert_false(fail_one(set, now_us));
	for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
		now_us += seconds[i] * SECOND;
		/* Alone it is tried before, too, which changes nothing. */
		assert_false(fail_one(set, now_us - 1));
		assert_true(fail_one(set, now_us));
	}
	now_us += 10 * SECOND;
	visit = choose(set, now_us);
	assert_true(visit.is_probe);
	upstreams_connected(&visit, now_us);
	upstreams_leave(&visit);
	assert_false(fail_one(set, now_us)); /* begins again with a second */
	assert_true(fail_one(set, now_us + SECOND));
	upstreams_close(all, set);
	upstreams_free(all);
}

/* What began before it rested, or came back, does not change that. */
static void
test_late_news(void **state)
{
	struct upstreams *all = upstreams_new();
	struct upstreams_set *set = open_set(all, "a", 2);
	struct upstreams_visit early[4];
	struct upstreams_visit probe;
	size_t down;

	(void)state;
	for (int i = 0; i < 4; i++)
		early[i] = choose(set, SECOND);
	down = early[0].index;
	upstreams_refused(&early[0], 2 * SECOND, "down");
	assert_int_equal(early[2].index, down);
	upstreams_connected(&early[2], 2 * SECOND + 1);
	for (int i = 0; i < 10; i++) {
		struct upstreams_visit v = choose(set, 3 * SECOND - 1);

		assert_int_not_equal(v.index, down);
		upstreams_leave(&v);
	}
	upstreams_leave(&early[0]);
	probe = choose(set, 3 * SECOND);
	assert_int_equal(probe.index, down);
	assert_true(probe.is_probe);
	upstreams_connected(&probe, 3 * SECOND);
	upstreams_leave(&probe);
	upstreams_refused(&early[2], 3 * SECOND + 1, "late");
	upstreams_leave(&early[2]);
	probe = choose(set, 3 * SECOND + 1);
	assert_int_equal(probe.index, down);
	assert_false(probe.is_probe);
	upstreams_leave(&probe);
	upstreams_leave(&early[1]);
	upstreams_leave(&early[3]);
	upstreams_close(all, set);
	upstreams_free(all);
}

/* An address is one in all configurations that have it, in one backend. */
static void
test_it_outlives_a_configuration(void **state)
{
	struct upstreams *all = upstreams_new();
	struct upstreams_set *old = open_set(all, "a", 1);
	struct upstreams_set *new = open_set(all, "a", 2);
	struct upstreams_set *other = open_set(all, "b", 1);
	struct upstreams_visit busy = choose(old, 1);
	struct upstreams_visit v;

	(void)state;
	assert_ptr_equal(old->at[0], new->at[0]);
	assert_ptr_not_equal(old->at[0], other->at[0]);
	upstreams_close(all, old); /* the visit keeps what `new` has */
	for (int i = 0; i < 10; i++) {
		v = choose(new, 1);
		assert_int_equal(v.index, 1);
		upstreams_leave(&v);
	}
	upstreams_refused(&busy, 2, "down");
	upstreams_leave(&busy);
	v = choose(new, 3);
	assert_int_equal(v.index, 1);
	upstreams_leave(&v);
	upstreams_close(all, new);
	new = open_set(all, "a", 1); /* nobody had it: it is new */
	v = choose(new, 2 * SECOND);
	assert_false(v.is_probe);
	upstreams_leave(&v);
	upstreams_close(all, new);
	upstreams_close(all, other);
	upstreams_free(all);
}

static void
test_where_they_are(void **state)
{
	struct upstreams *all = upstreams_new();
	struct upstreams_set *set = open_set(all, "a", MOST);

	(void)state;
	for (size_t i = 0; i < MOST; i++) {
		assert_string_equal(upstreams_text(set->at[i]), where[i].text);
		assert_int_not_equal(upstreams_address(set->at[i])->len, 0);
	}
	upstreams_close(all, set);
	upstreams_free(all);
}

/* ---- many at once ------------------------------------------------ */

#define THREADS 4

struct race {
	pthread_barrier_t start;
	struct upstreams_set *set;
	atomic_int probes;
	int64_t now_us;
};

static void *
race_to_probe(void *context)
{
	struct race *race = context;

	for (int round = 1; round <= 200; round++) {
		pthread_barrier_wait(&race->start);
		for (int i = 0; i < 5; i++) {
			struct upstreams_visit v = choose(
			    race->set, race->now_us + round * 20 * SECOND);

			atomic_fetch_add(&race->probes, v.is_probe);
			upstreams_leave(&v);
		}
		pthread_barrier_wait(&race->start);
	}
	return NULL;
}

/* However many find that a rest is over, one request tries it. */
static void
test_one_probe(void **state)
{
	struct upstreams *all = upstreams_new();
	struct race race = { .set = open_set(all, "a", 2), .now_us = SECOND };
	pthread_t thread[THREADS];

	(void)state;
	fail_one(race.set, race.now_us);
	pthread_barrier_init(&race.start, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(
		    pthread_create(&thread[i], NULL, race_to_probe, &race), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&race.start);
	assert_int_equal(atomic_load(&race.probes), 200);
	upstreams_close(all, race.set);
	upstreams_free(all);
}

int
main(void)
{
	struct err err;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_law),
		cmocka_unit_test(test_equals_in_turn),
		cmocka_unit_test(test_rest_doubles_up_to_a_bound),
		cmocka_unit_test(test_late_news),
		cmocka_unit_test(test_it_outlives_a_configuration),
		cmocka_unit_test(test_where_they_are),
		cmocka_unit_test(test_one_probe),
	};

	/* What rests by the thousand is not worth reading. */
	if (!log_open("stderr", LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT, &err))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
