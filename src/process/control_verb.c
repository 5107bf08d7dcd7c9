#include "process/control.h"

#include <string.h>

#include "base/arena.h"
#include "config/named.h"
#include "domain/denied.h"
#include "domain/lease.h"
#include "domain/limit.h"
#include "domain/store_memory.h"
#include "pure/key.h"

#define WORDS_MAX 2 /* behind a verb */

/* What a verb works on. */
struct errand {
	const struct stores *stores;
	const struct config *config;
	struct arena arena;
	struct str word[WORDS_MAX];
	struct buf *answer;
};

static void
clear_in(struct store *store, const struct limit_names *names)
{
	if (store == NULL || store->may_block) /* no counts of this process */
		return;
	for (size_t i = 0; i < names->n; i++)
		store_memory_clear(store, names->at[i]);
}

/* Slots are held by requests that run: those are not over. */
static void
clear_counts(const struct errand *e, const struct config_limit *limit,
    const struct limit_names *names, const struct limit_names *instead)
{
	if (limit->algorithm == ALGORITHM_CONCURRENCY)
		return;
	clear_in(limit->scope == CONFIG_SCOPE_LOCAL ? e->stores->local
						    : e->stores->shared,
	    names);
	clear_in(e->stores->local, instead);
	for (size_t i = 0; e->stores->leases != NULL && i < names->n; i++)
		leases_drop(e->stores->leases, names->at[i]);
}

static void
forget_key(struct errand *e, bool counts_too)
{
	const struct config_limit *limit = named_limit(e->config, e->word[0]);
	struct limit_names names, instead;
	char tag[KEY_TAG_MAX];

	if (limit == NULL) {
		/* Nothing of it is known, then. */
		buf_addf(e->answer,
		    counts_too ? "error no such limit runs\n" : "ok\n");
		return;
	}
	if (e->word[1].len >= sizeof(tag)) {
		buf_addf(e->answer, "error no key has such a tag\n");
		return;
	}
	memcpy(tag, e->word[1].p, e->word[1].len);
	tag[e->word[1].len] = '\0';
	if (!limit_names(
		limit, e->stores->naming, tag, false, &e->arena, &names) ||
	    !limit_names(
		limit, e->stores->naming, tag, true, &e->arena, &instead)) {
		buf_addf(e->answer, "error out of memory\n");
		return;
	}
	if (counts_too)
		clear_counts(e, limit, &names, &instead);
	denied_forget_keys(e->stores->denied, names.at, names.n);
	buf_addf(e->answer, "ok\n");
}

static void
run_reset(struct errand *e)
{
	forget_key(e, true);
}

static void
run_forget(struct errand *e)
{
	forget_key(e, false);
}

static const struct {
	const char *name;
	size_t words;
	void (*run)(struct errand *errand);
} verbs[] = {
	{ "reset", 2, run_reset },
	{ "forget", 2, run_forget },
};

/* The words behind the verb; WORDS_MAX + 1: too many. */
static size_t
read_words(struct str rest, struct str word[WORDS_MAX])
{
	size_t n = 0;

	while (rest.p != NULL) {
		struct str next = str_cut(&rest, ' ');

		if (n == WORDS_MAX || next.len == 0)
			return WORDS_MAX + 1;
		word[n++] = next;
	}
	return n;
}

void
control_verb(struct gateway *gateway, struct str line, struct buf *answer)
{
	struct str name = str_cut(&line, ' ');
	struct errand e = { .stores = &gateway->stores, .answer = answer };
	size_t n = read_words(line, e.word);
	struct generation *g;

	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (!str_eq(name, str_of(verbs[i].name)) || n != verbs[i].words)
			continue;
		g = gateway_generation(gateway);
		e.config = g->config;
		arena_init(&e.arena);
		verbs[i].run(&e);
		arena_release(&e.arena);
		generation_unref(g);
		return;
	}
	buf_addf(
	    answer, "error there is no such verb, or it is used wrongly\n");
}
