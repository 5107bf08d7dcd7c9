/*
 * Workers with events of their own (a semaphore for epoll_wait), against
 * what pace.h promises: few are awake while all are quick, and whoever is
 * held up is stood in for, to the last that there may be.
 */
#include "process/pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "draw.h"

#define BRISK 3
#define MAX   16

struct crew {
	struct pace pace;
	pthread_t thread[MAX];
	sem_t events;
	sem_t held;    /* where events that hold their worker wait */
	sem_t started; /* one for each event that a worker took */
	atomic_int serving;
	atomic_int most; /* that ever served at once */
	atomic_bool holds;
	atomic_bool over;
};

static void
serve(struct crew *crew)
{
	int serving = atomic_fetch_add(&crew->serving, 1) + 1;
	int most = atomic_load(&crew->most);
	bool holds = atomic_load(&crew->holds);

	while (serving > most &&
	    !atomic_compare_exchange_weak(&crew->most, &most, serving))
		;
	sem_post(&crew->started);
	if (holds)
		sem_wait(&crew->held);
	atomic_fetch_sub(&crew->serving, 1);
}

struct member {
	struct crew *crew;
	size_t number;
};

static void *
work(void *context)
{
	struct member self = *(struct member *)context;
	struct crew *crew = self.crew;

	free(context);
	while (!atomic_load(&crew->over)) {
		pace_wait(&crew->pace);
		sem_wait(&crew->events);
		pace_begin(&crew->pace, self.number);
		if (!atomic_load(&crew->over))
			serve(crew);
		pace_end(&crew->pace, self.number);
	}
	return NULL;
}

static bool
start(void *context)
{
	struct member *member = malloc(sizeof(*member));
	struct crew *crew = context;

	assert_non_null(member);
	member->crew = crew;
	member->number = pace_add(&crew->pace);
	assert_in_range(member->number, 0, MAX - 1);
	return pthread_create(
		   &crew->thread[member->number], NULL, work, member) == 0;
}

static void
crew_begin(struct crew *crew, size_t threads)
{
	*crew = (struct crew){ .holds = false };
	sem_init(&crew->events, 0, 0);
	sem_init(&crew->held, 0, 0);
	sem_init(&crew->started, 0, 0);
	assert_true(pace_init(&crew->pace, BRISK, MAX, start, crew));
	for (size_t i = 0; i < threads; i++)
		assert_true(start(crew));
	assert_int_equal(pace_start(&crew->pace), 0);
}

static void
crew_end(struct crew *crew)
{
	atomic_store(&crew->over, true);
	pace_stop(&crew->pace);
	for (size_t i = 0; i < MAX; i++)
		sem_post(&crew->events);
	for (size_t i = 0; i < atomic_load(&crew->pace.threads); i++)
		pthread_join(crew->thread[i], NULL);
	assert_int_equal(crew->serving, 0);
	pace_release(&crew->pace);
	sem_destroy(&crew->events);
	sem_destroy(&crew->held);
	sem_destroy(&crew->started);
}

/* Whoever takes none of these events leaves the test waiting for ever. */
static void
run_events(struct crew *crew, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sem_post(&crew->events);
	for (size_t i = 0; i < n; i++)
		sem_wait(&crew->started);
}

/* As many as there may be are held up, and each of them was stood in for. */
static void
test_held_up(void **state)
{
	struct crew crew;

	(void)state;
	crew_begin(&crew, 1);
	for (int round = 0; round < 20; round++) {
		atomic_store(&crew.holds, true);
		run_events(&crew, MAX);
		assert_int_equal(crew.serving, MAX);
		assert_int_equal(crew.pace.allowed, MAX);
		for (size_t i = 0; i < MAX; i++)
			sem_post(&crew.held);
		atomic_store(&crew.holds, false);
		run_events(&crew, 100);
	}
	assert_int_equal(crew.pace.threads, MAX);
	crew_end(&crew);
	/* None is counted as slow for ever. */
	assert_int_equal(crew.pace.allowed, BRISK);
}

/*
 * Threads there are enough of; but where nobody waits, most come to rest. A
 * worker that the machine held up was stood in for: that takes some events
 * more. With all of them awake for good this has no end.
 */
static void
test_quick(void **state)
{
	struct crew crew;

	(void)state;
	crew_begin(&crew, MAX);
	do
		run_events(&crew, 1000);
	while (atomic_load(&crew.pace.active) > BRISK);
	crew_end(&crew);
}

/* No more than there may be, whatever is held up. */
static void
test_bound(void **state)
{
	struct crew crew;

	(void)state;
	crew_begin(&crew, MAX);
	atomic_store(&crew.holds, true);
	run_events(&crew, MAX);
	for (size_t i = 0; i < 100; i++)
		sem_post(&crew.events);
	for (size_t i = 0; i < 100 + MAX; i++)
		sem_post(&crew.held);
	for (size_t i = 0; i < 100; i++)
		sem_wait(&crew.started);
	assert_in_range(crew.most, 1, MAX);
	assert_int_equal(crew.pace.threads, MAX);
	crew_end(&crew);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_held_up),
		cmocka_unit_test(test_quick),
		cmocka_unit_test(test_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
