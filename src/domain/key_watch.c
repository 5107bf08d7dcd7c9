#include "domain/key_watch.h"

#include <limits.h>
#include <stdatomic.h>

#include "base/log.h"

/* Of limit->keys_missed: it has come, or was told of. */
#define SETTLED UINT_MAX

/* The first alternative that can be missing; NULL: none can. */
static const struct key_alternative *
first_that_can_be_missing(const struct key *key)
{
	for (size_t i = 0; i < key->n; i++)
		for (size_t k = 0; k < key->part[i].n; k++) {
			const struct key_alternative *a =
			    &key->part[i].alternative[k];

			if (a->name[0] != '\0')
				return a;
		}
	return NULL;
}

static void
tell(const struct config_limit *limit)
{
	const struct key_alternative *a =
	    first_that_can_be_missing(&limit->key);
	struct str name = a != NULL ? str_of(a->name) : STR("REMOTE_ADDR");
	struct log_line line;

	log_begin(&line, LOG_LEVEL_WARN, "key_always_missing");
	log_text(&line, "limit", limit->name);
	log_str(&line, "name", name);
	log_number(&line, "requests", KEY_WATCH_REQUESTS);
	log_text(&line, "msg",
	    str_eq(name, STR("HTTP_AUTHORIZATION"))
		? "none of its first requests had a key: Apache passes "
		  "Authorization on with `CGIPassAuth On` alone"
		: "none of its first requests had a key: does the web server "
		  "pass it on?");
	log_end(&line);
}

void
key_watch_there(const struct config_limit *limit)
{
	if (atomic_load_explicit(limit->keys_missed, memory_order_relaxed) !=
	    SETTLED)
		atomic_store(limit->keys_missed, SETTLED);
}

void
key_watch_missing(const struct config_limit *limit)
{
	unsigned missed = atomic_load(limit->keys_missed);
	unsigned next = missed + 1 == KEY_WATCH_REQUESTS ? SETTLED : missed + 1;

	/* Of two at a time one is not counted; that matters to nobody. */
	if (missed != SETTLED &&
	    atomic_compare_exchange_strong(limit->keys_missed, &missed, next) &&
	    next == SETTLED)
		tell(limit);
}
