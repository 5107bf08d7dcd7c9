#include "process/reload.h"

#include "base/counter.h"
#include "base/log.h"
#include "config/named.h"
#include "domain/limit.h"
#include "process/stores.h"

bool
reload_log(const struct config_log *log, struct err *err)
{
	return log_open(log->target, (enum log_level)log->level,
	    (enum log_format)log->format, err);
}

static void
log_finding(void *context, const char *text, bool warning)
{
	(void)context;
	log_event(warning ? LOG_LEVEL_WARN : LOG_LEVEL_ERROR,
	    warning ? "config_warning" : "config_error", "%s", text);
}

static void
log_new_counts(const struct config *running, const struct config *next)
{
	for (size_t i = 0; i < next->n_limits; i++) {
		const struct config_limit *l = &next->limit[i];
		const struct config_limit *old =
		    named_limit(running, str_of(l->name));

		if (old != NULL && limit_counts_anew(old, l))
			log_event(LOG_LEVEL_INFO, "limit_counts_anew",
			    "%s:%u: [limit %s]: its key, scope, algorithm or "
			    "a period has changed: a new count starts",
			    l->file, l->line, l->name);
	}
}

/* NULL and err: it does not stand, or this process can not serve it. */
static struct generation *
next_generation(const char *file, struct gateway *gateway,
    const struct config *started, struct err *err)
{
	struct config *next = config_load(file, log_finding, NULL);
	struct generation *generation = NULL;

	err_set(err, "see the lines above");
	if (next == NULL)
		return NULL;
	if (!stores_can_reload(&gateway->stores, next, err)) {
		config_unref(next);
		return NULL;
	}
	generation =
	    generation_new(next, gateway->bulkhead, gateway->upstreams);
	if (generation == NULL) {
		err_set(err, "out of memory");
		return NULL;
	}
	/* The log comes first: it may fail, and then nothing has changed. */
	if (reload_log(&next->log, err) &&
	    stores_reload(&gateway->stores, started, next, err))
		return generation;
	generation_unref(generation);
	return NULL;
}

bool
reload(const char *file, struct gateway *gateway, const struct config *started)
{
	struct err err;
	struct generation *running;
	struct generation *next = next_generation(file, gateway, started, &err);

	if (next == NULL) {
		counter_add(COUNTER_reload_failures, 1);
		log_event(LOG_LEVEL_ERROR, "reload_failed",
		    "%s: the old configuration stays: %s", file, err.text);
		return false;
	}
	config_report_restarts(started, next->config, log_finding, NULL);
	running = gateway_generation(gateway);
	log_new_counts(running->config, next->config);
	generation_unref(running);
	gateway_swap(gateway, next);
	stores_return_leases(&gateway->stores);
	lot_kick(gateway->lot);
	counter_add(COUNTER_reloads, 1);
	log_event(LOG_LEVEL_INFO, "reloaded", "%s", file);
	return true;
}
