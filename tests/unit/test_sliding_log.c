#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "draw.h"
#include "pure/sliding_log.h"

#define MODEL 300

/* What the log is to hold: a plain array. */
struct model {
	struct sliding_log_entry entry[MODEL];
	size_t n;
};

static void
model_add(struct model *m, int64_t at_us, int64_t units)
{
	size_t i = m->n++;

	for (; i > 0 && m->entry[i - 1].at_us > at_us; i--)
		m->entry[i] = m->entry[i - 1];
	m->entry[i] = (struct sliding_log_entry){ at_us, units };
}

static void
model_remove(struct model *m, size_t i, size_t n)
{
	memmove(&m->entry[i], &m->entry[i + n],
	    (m->n - i - n) * sizeof(m->entry[0]));
	m->n -= n;
}

static void
compare(const struct sliding_log *log, const struct model *m)
{
	assert_int_equal(sliding_log_count(log), m->n);
	for (size_t i = 0; i < m->n; i++) {
		const struct sliding_log_entry *e = sliding_log_at(log, i);

		assert_int_equal(e->at_us, m->entry[i].at_us);
		assert_int_equal(e->units, m->entry[i].units);
	}
}

static void
change(struct sliding_log **log, struct model *m, unsigned *seed, int step)
{
	size_t i;

	if (m->n < MODEL && draw_below(seed, 5) > 0) {
		int64_t at_us = step - (int64_t)draw_below(seed, 9) / 7 * 20;

		assert_true(sliding_log_add(log, at_us, step));
		model_add(m, at_us, step);
	} else if (m->n > 0 && draw_below(seed, 2) == 0) {
		i = draw_below(seed, m->n);
		sliding_log_remove(*log, i);
		model_remove(m, i, 1);
	} else {
		i = draw_size(seed, m->n);
		sliding_log_drop(*log, i);
		model_remove(m, 0, i);
	}
}

static void
test_as_an_array(void **context)
{
	unsigned seed = draw_seed();

	(void)context;
	for (int round = 0; round < 50; round++) {
		struct sliding_log *log = NULL;
		struct model m = { .n = 0 };

		for (int step = 0; step < 400; step++) {
			change(&log, &m, &seed, step);
			if (step % 7 == 0)
				compare(log, &m);
		}
		compare(log, &m);
		sliding_log_free(log);
	}
}

static void
test_none(void **context)
{
	(void)context;
	assert_int_equal(sliding_log_count(NULL), 0);
	sliding_log_drop(NULL, 0);
	sliding_log_free(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_an_array),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
