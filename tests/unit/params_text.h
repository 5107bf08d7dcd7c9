/*
 * params_text: a request's params, written as "NAME=value" lines.
 */
#ifndef SLUICE_TESTS_PARAMS_TEXT_H
#define SLUICE_TESTS_PARAMS_TEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "pure/params.h"

#define PARAMS_TEXT_MAX 32

/* They live in the arena, each value with its NUL. */
static inline struct params
params_of(const char *text, struct arena *arena)
{
	struct params params = {
		arena_alloc(arena, PARAMS_TEXT_MAX * sizeof(struct param)), 0
	};
	struct str rest = str_of(text);

	assert_non_null(params.at);
	while (rest.len > 0) {
		struct str line = str_cut(&rest, '\n');
		struct param *p = &params.at[params.n++];

		assert_in_range(params.n, 1, PARAMS_TEXT_MAX);
		p->name = arena_copy(arena, str_cut(&line, '='));
		p->value = arena_copy(arena, line);
	}
	return params;
}

#endif
