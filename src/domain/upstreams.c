#include "domain/upstreams.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/counter.h"
#include "base/log.h"

struct upstream {
	char *backend;
	char *text;
	struct net_address address;
	_Atomic size_t inflight;
	_Atomic int64_t due_us; /* 0: it does not rest */

	pthread_mutex_t lock; /* guards changes of due_us, and the rest */
	int64_t pause_us;
	int64_t changed_us; /* it began to rest or came back */

	struct idle idle;

	unsigned references; /* under the list's lock */
	struct upstream *next;
};

struct upstreams {
	pthread_mutex_t lock;
	struct upstream *first;
};

/* ---- those of the process ---------------------------------------- */

struct upstreams *
upstreams_new(void)
{
	struct upstreams *all = calloc(1, sizeof(*all));

	if (all != NULL)
		pthread_mutex_init(&all->lock, NULL);
	return all;
}

void
upstreams_free(struct upstreams *all)
{
	if (all == NULL)
		return;
	pthread_mutex_destroy(&all->lock);
	free(all);
}

static void
free_one(struct upstream *u)
{
	idle_release(&u->idle);
	pthread_mutex_destroy(&u->lock);
	free(u->backend);
	free(u->text);
	free(u);
}

static struct upstream *
find(const struct upstreams *all, const char *backend, const char *text)
{
	struct upstream *u = all->first;

	while (u != NULL &&
	    (strcmp(u->backend, backend) != 0 || strcmp(u->text, text) != 0))
		u = u->next;
	return u;
}

static struct upstream *
add(struct upstreams *all, const char *backend,
    const struct config_address *where)
{
	struct upstream *u = calloc(1, sizeof(*u));
	struct err err;

	if (u == NULL)
		return NULL;
	pthread_mutex_init(&u->lock, NULL);
	idle_init(&u->idle);
	u->backend = strdup(backend);
	u->text = strdup(where->text);
	/* The configuration has no address that is not one. */
	if (u->backend == NULL || u->text == NULL ||
	    !(where->kind == CONFIG_UNIX
		    ? net_address_unix(where->host, &u->address, &err)
		    : net_address_tcp(
			  where->host, where->port, &u->address, &err))) {
		free_one(u);
		return NULL;
	}
	u->next = all->first;
	all->first = u;
	return u;
}

static struct upstream *
open_one(struct upstreams *all, const char *backend,
    const struct config_address *where)
{
	struct upstream *u;

	pthread_mutex_lock(&all->lock);
	u = find(all, backend, where->text);
	if (u == NULL)
		u = add(all, backend, where);
	if (u != NULL)
		u->references++;
	pthread_mutex_unlock(&all->lock);
	return u;
}

static void
close_one(struct upstreams *all, struct upstream *u)
{
	struct upstream **at = &all->first;
	bool last;

	pthread_mutex_lock(&all->lock);
	last = --u->references == 0;
	while (last && *at != u)
		at = &(*at)->next;
	if (last)
		*at = u->next;
	pthread_mutex_unlock(&all->lock);
	if (last)
		free_one(u);
}

struct upstreams_set *
upstreams_open(struct upstreams *all, const struct config_backend *backend)
{
	size_t n = backend->address.n;
	struct upstreams_set *set =
	    calloc(1, sizeof(*set) + n * sizeof(struct upstream *));

	for (size_t i = 0; set != NULL && i < n; i++) {
		set->at[i] =
		    open_one(all, backend->name, &backend->address.at[i]);
		if (set->at[i] != NULL)
			set->n++;
		if (set->at[i] == NULL ||
		    !idle_set_max(
			&set->at[i]->idle, (size_t)backend->keep_alive)) {
			upstreams_close(all, set);
			return NULL;
		}
	}
	return set;
}

void
upstreams_close(struct upstreams *all, struct upstreams_set *set)
{
	for (size_t i = 0; i < set->n; i++)
		close_one(all, set->at[i]);
	free(set);
}

void
upstreams_tend(struct upstreams *all, int64_t now_us)
{
	pthread_mutex_lock(&all->lock);
	for (struct upstream *u = all->first; u != NULL; u = u->next)
		idle_expire(&u->idle, now_us);
	pthread_mutex_unlock(&all->lock);
}

/* ---- choice ------------------------------------------------------ */

static int64_t
due_of(const struct upstream *u)
{
	return atomic_load_explicit(&u->due_us, memory_order_relaxed);
}

static size_t
least_busy(struct upstreams_set *set, const bool *tried, int64_t now_us)
{
	size_t turn = set->n == 1
	    ? 0
	    : atomic_fetch_add_explicit(&set->turn, 1, memory_order_relaxed);
	size_t found = set->n;
	size_t least = SIZE_MAX;

	for (size_t k = 0; k < set->n; k++) {
		size_t i = (turn + k) % set->n;
		size_t inflight = atomic_load_explicit(
		    &set->at[i]->inflight, memory_order_relaxed);

		if ((tried != NULL && tried[i]) || due_of(set->at[i]) > now_us)
			continue;
		if (inflight < least) {
			found = i;
			least = inflight;
		}
	}
	return found;
}

static size_t
first_due(const struct upstreams_set *set, const bool *tried)
{
	size_t found = set->n;

	for (size_t i = 0; i < set->n; i++)
		if ((tried == NULL || !tried[i]) &&
		    (found == set->n ||
			due_of(set->at[i]) < due_of(set->at[found])))
			found = i;
	return found;
}

/* Of all who see that its rest is over, one gets to try it. */
static bool
claim_probe(struct upstream *u, int64_t now_us)
{
	int64_t due_us;

	pthread_mutex_lock(&u->lock);
	due_us = due_of(u);
	if (due_us != 0 && due_us <= now_us)
		atomic_store(&u->due_us, now_us + u->pause_us);
	pthread_mutex_unlock(&u->lock);
	return due_us != 0 && due_us <= now_us;
}

static bool
choose_awake(struct upstreams_set *set, const bool *tried, int64_t now_us,
    struct upstreams_visit *visit)
{
	for (;;) {
		size_t i = least_busy(set, tried, now_us);

		if (i == set->n)
			return false;
		visit->index = i;
		visit->is_probe = false;
		if (due_of(set->at[i]) == 0)
			return true;
		visit->is_probe = claim_probe(set->at[i], now_us);
		if (visit->is_probe)
			return true;
	}
}

bool
upstreams_choose(struct upstreams_set *set, const bool *tried, int64_t now_us,
    struct upstreams_visit *visit)
{
	*visit = (struct upstreams_visit){ .began_us = now_us };
	if (!choose_awake(set, tried, now_us, visit)) {
		visit->index = first_due(set, tried);
		visit->is_probe = false;
	}
	if (visit->index == set->n)
		return false;
	visit->at = set->at[visit->index];
	atomic_fetch_add_explicit(
	    &visit->at->inflight, 1, memory_order_relaxed);
	return true;
}

void
upstreams_leave(const struct upstreams_visit *visit)
{
	atomic_fetch_sub_explicit(
	    &visit->at->inflight, 1, memory_order_relaxed);
}

/* ---- rest -------------------------------------------------------- */

static void
log_change(const struct upstream *u, enum log_level level, const char *event,
    const char *why)
{
	struct log_line line;

	log_begin(&line, level, event);
	log_text(&line, "backend", u->backend);
	log_text(&line, "address", u->text);
	if (why != NULL)
		log_text(&line, "msg", why);
	log_end(&line);
}

/* What began before the last change says nothing of what is now. */
void
upstreams_refused(
    const struct upstreams_visit *visit, int64_t now_us, const char *why)
{
	struct upstream *u = visit->at;
	bool begins;

	counter_add(COUNTER_backend_connect_failures, 1);
	pthread_mutex_lock(&u->lock);
	begins = due_of(u) == 0 && visit->began_us >= u->changed_us;
	if (begins) {
		u->pause_us = UPSTREAMS_REST_US;
		u->changed_us = now_us;
	} else if (visit->is_probe && due_of(u) != 0) {
		u->pause_us *= 2;
		if (u->pause_us > UPSTREAMS_REST_MAX_US)
			u->pause_us = UPSTREAMS_REST_MAX_US;
	}
	if (begins || (visit->is_probe && due_of(u) != 0))
		atomic_store(&u->due_us, now_us + u->pause_us);
	pthread_mutex_unlock(&u->lock);
	if (!begins)
		return;
	counter_add(COUNTER_backend_rests, 1);
	log_change(u, LOG_LEVEL_WARN, "backend_rests", why);
}

void
upstreams_connected(const struct upstreams_visit *visit, int64_t now_us)
{
	struct upstream *u = visit->at;
	bool is_back;

	if (due_of(u) == 0)
		return;
	pthread_mutex_lock(&u->lock);
	is_back = due_of(u) != 0 && visit->began_us >= u->changed_us;
	if (is_back) {
		atomic_store(&u->due_us, 0);
		u->changed_us = now_us;
	}
	pthread_mutex_unlock(&u->lock);
	if (is_back)
		log_change(u, LOG_LEVEL_INFO, "backend_back", NULL);
}

const struct net_address *
upstreams_address(const struct upstream *u)
{
	return &u->address;
}

struct idle *
upstreams_idle(struct upstream *u)
{
	return &u->idle;
}

const char *
upstreams_text(const struct upstream *u)
{
	return u->text;
}
