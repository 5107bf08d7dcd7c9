/*
 * The main thread opens everything, starts the others, and then only takes
 * signals: TERM and INT end, HUP reads the configuration anew, USR1 opens
 * the log anew. They are blocked in all threads, and from the very start.
 */
#include "process/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/log.h"
#include "base/version.h"
#include "config/config.h"
#include "config/places.h"
#include "domain/store_memory.h"
#include "io/net.h"
#include "io/spawn.h"
#include "process/control.h"
#include "process/identity.h"
#include "process/listener.h"
#include "process/maintenance.h"
#include "process/notify.h"
#include "process/reload.h"
#include "process/stores.h"
#include "process/worker.h"
#include "request/front.h"
#include "request/gateway.h"

#define EXIT_CONFIG      78
#define EXIT_SOFTWARE    70
#define HALF_HEADS_BYTES ((uint64_t)16 * 1024 * 1024)
#define STOP_POLL_NS     5000000
/* Beside connections: log, memfds, pipes of scripts, the store. */
#define DESCRIPTORS_PER_THREAD 8
#define DESCRIPTORS_FIXED      64

struct server {
	const char *file;
	const struct config *started; /* the configuration of the start */
	struct gateway gateway;
	struct listeners *listeners;
	struct workers *workers;
	struct maintenance *maintenance;
	struct control *control;
};

/* Descriptors 0 to 2 are there, or what is opened next would become one. */
static bool
open_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static void
print_finding(void *context, const char *text, bool warning)
{
	(void)context;
	(void)warning;
	fprintf(stderr, "sluice: %s\n", text);
}

static uint64_t
kept_to_backends(const struct config *config)
{
	uint64_t kept = 0;

	for (size_t i = 0; i < config->n_backends; i++)
		kept += config->backend[i].keep_alive *
		    config->backend[i].address.n;
	return kept;
}

/* One descriptor a connection, one more for its backend. */
static size_t
connections_allowed(const struct config *config)
{
	const struct config_gateway *gateway = &config->gateway;
	struct rlimit limit = { 0, 0 };
	uint64_t reserve = DESCRIPTORS_FIXED +
	    DESCRIPTORS_PER_THREAD * gateway->threads +
	    kept_to_backends(config);
	uint64_t most;

	spawn_keep_limit();
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	getrlimit(RLIMIT_NOFILE, &limit);
	most = limit.rlim_cur > reserve + 16 ? limit.rlim_cur - reserve : 16;
	if (most >= gateway->max_connections)
		return (size_t)gateway->max_connections;
	log_event(LOG_LEVEL_WARN, "few_descriptors",
	    "RLIMIT_NOFILE is %llu: max_connections is %llu, not %llu",
	    (unsigned long long)limit.rlim_cur, (unsigned long long)most,
	    (unsigned long long)gateway->max_connections);
	return (size_t)most;
}

static void
end_at_once(int number)
{
	(void)number;
	_exit(0);
}

/* What has come is pending, and is served by take_signals. */
static void
block_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, set, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* Ignored by a parent, scripts would be reaped behind our back. */
	signal(SIGCHLD, SIG_DFL);
}

/*
 * It may take seconds, and nothing is there yet that had to be removed: TERM
 * and INT end it. They are blocked again before libfcgi comes, which handles
 * TERM and forgets it.
 */
static struct config *
load_interruptibly(const char *file)
{
	struct config *config;
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	signal(SIGTERM, end_at_once);
	signal(SIGINT, end_at_once);
	pthread_sigmask(SIG_UNBLOCK, &ends, NULL);
	config = config_load(file, print_finding, NULL);
	pthread_sigmask(SIG_BLOCK, &ends, NULL);
	return config;
}

static bool
open_gateway(struct gateway *g, struct config *config, struct err *err)
{
	struct generation *generation;

	pthread_mutex_init(&g->lock, NULL);
	g->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	g->bulkhead = bulkhead_new((size_t)places_may_block(&config->gateway));
	g->upstreams = upstreams_new();
	g->lot = lot_new(connections_allowed(config), HALF_HEADS_BYTES, err);
	if (g->lot == NULL)
		return false;
	if (g->stop < 0 || g->bulkhead == NULL || g->upstreams == NULL)
		return err_set(err, "out of memory or descriptors");
	if (!stores_open(&g->stores, config, err))
		return false;
	generation = generation_new(config, g->bulkhead, g->upstreams);
	if (generation == NULL)
		return err_set(err, "out of memory");
	config_ref(config);
	gateway_swap(g, generation);
	return true;
}

static void
close_gateway(struct gateway *g)
{
	gateway_swap(g, NULL);
	stores_close(&g->stores);
	if (g->lot != NULL)
		lot_free(g->lot);
	upstreams_free(g->upstreams);
	bulkhead_free(g->bulkhead);
	if (g->stop >= 0)
		close(g->stop);
	pthread_mutex_destroy(&g->lock);
}

static bool
start(struct server *s, const struct config *config, struct err *err)
{
	if (!listeners_watch(s->listeners, s->gateway.lot, err) ||
	    !identity_drop(&config->gateway, err))
		return false;
	s->maintenance = maintenance_start(
	    &s->gateway.stores, s->gateway.upstreams, s->listeners, err);
	if (s->maintenance == NULL ||
	    !control_start(s->control, &s->gateway, err))
		return false;
	s->workers = workers_start(
	    &s->gateway, s->listeners, (size_t)config->gateway.threads, err);
	return s->workers != NULL;
}

/* However far it got: nobody is served, and no path is left behind. */
static void
give_up(struct server *s)
{
	control_close(s->control);
	if (s->maintenance != NULL)
		maintenance_stop(s->maintenance);
	if (s->listeners != NULL)
		listeners_close(s->listeners);
}

static void
log_ready(const struct server *s, const struct config *config)
{
	struct log_line line;

	log_begin(&line, LOG_LEVEL_INFO, "ready");
	log_text(&line, "version", SLUICE_VERSION);
	log_text(&line, "listen", listeners_text(s->listeners));
	log_text(&line, "store",
	    config->store.address == NULL ? "none" : config->store.address);
	log_number(&line, "limits", (int64_t)config->n_limits);
	log_number(&line, "backends", (int64_t)config->n_backends);
	log_end(&line);
	if (config->store.kind != CONFIG_STORE_MEMORY)
		return;
	if (net_is_listening(STDIN_FILENO))
		log_event(LOG_LEVEL_INFO, "store_memory",
		    "memory: counts live in this process alone; where a web "
		    "server starts several (mod_fcgid, lighttpd's bin-path), "
		    "each counts for itself");
	else
		log_event(LOG_LEVEL_INFO, "store_memory",
		    "memory: counts live in this process alone");
}

static void
tell_ready(struct gateway *g, const char *how)
{
	struct generation *current = gateway_generation(g);
	const struct config *config = current->config;

	notify_ready("%s: %zu limits, %zu backends, counts in %.200s", how,
	    config->n_limits, config->n_backends,
	    config->store.address == NULL ? "no store" : config->store.address);
	generation_unref(current);
}

static void
reopen_log(void)
{
	struct err err;

	if (!log_reopen(&err))
		log_event(LOG_LEVEL_ERROR, "log", "%s", err.text);
}

/* ---- stop -------------------------------------------------------- */

static void
log_counters(void)
{
	struct log_line line;

	log_begin(&line, LOG_LEVEL_INFO, "counters");
	for (int i = 0; i < COUNTER_MAX; i++)
		log_number(&line, counter_name((enum counter)i),
		    (int64_t)counter_get((enum counter)i));
	log_end(&line);
}

/* Waits for what runs; another TERM or INT ends the patience. */
static void
drain(struct server *s, const sigset_t *signals, int64_t timeout_us)
{
	const struct timespec tick = { 0, STOP_POLL_NS };
	int64_t deadline_us = clock_mono_us() + timeout_us;

	for (;;) {
		int signal_number;

		gateway_close_idle(&s->gateway);
		if (lot_open_count(s->gateway.lot) == 0 ||
		    clock_mono_us() >= deadline_us)
			return;
		signal_number = sigtimedwait(signals, NULL, &tick);
		if (signal_number == SIGTERM || signal_number == SIGINT)
			return;
	}
}

static void
stop(struct server *s, const sigset_t *signals)
{
	struct generation *current = gateway_generation(&s->gateway);
	int64_t timeout_us = current->config->gateway.shutdown_timeout_us;

	generation_unref(current);
	notify_stopping(timeout_us);
	log_event(LOG_LEVEL_INFO, "stopping", "%zu connections are open",
	    lot_open_count(s->gateway.lot));
	atomic_store(&s->gateway.stopping, true);
	listeners_stop(s->listeners);
	drain(s, signals, timeout_us);
	gateway_give_up(&s->gateway);
	workers_join(s->workers);
	gateway_abandon(&s->gateway);
	give_up(s);
	stores_end_leases(&s->gateway.stores);
	close_gateway(&s->gateway);
	log_counters();
	log_event(LOG_LEVEL_INFO, "stopped", "every request has ended");
}

static void
reload_and_tell(struct server *s)
{
	bool done;

	notify_reloading();
	done = reload(s->file, &s->gateway, s->started);
	tell_ready(&s->gateway,
	    done ? "Serving"
		 : "The reload failed (see the log), serving as before");
}

static void
take_signals(struct server *s, const sigset_t *signals)
{
	for (;;) {
		switch (sigwaitinfo(signals, NULL)) {
		case SIGTERM:
		case SIGINT:
			stop(s, signals);
			return;
		case SIGHUP:
			reload_and_tell(s);
			break;
		case SIGUSR1:
			reopen_log();
			break;
		default:
			break;
		}
	}
}

static int
fail(struct server *s, const struct err *err, int code)
{
	fprintf(stderr, "sluice: %s\n", err->text);
	give_up(s);
	return code;
}

static int
run(struct server *s, struct config *config, const sigset_t *signals)
{
	struct err err;

	s->listeners = listeners_open(&config->gateway, &err);
	if (s->listeners == NULL)
		return fail(s, &err, EXIT_CONFIG);
	if (listeners_count(s->listeners) == 0) {
		err_set(&err,
		    "nothing to listen on: descriptor 0 is no listening "
		    "socket, systemd has passed none, and [gateway] listen is "
		    "not set in %s",
		    s->file);
		return fail(s, &err, EXIT_CONFIG);
	}
	if (!control_open(&s->control, config->gateway.control, &err) ||
	    !reload_log(&config->log, &err) || !front_init(&err))
		return fail(s, &err, EXIT_CONFIG);
	if (!open_gateway(&s->gateway, config, &err) || !start(s, config, &err))
		return fail(s, &err, EXIT_SOFTWARE);
	log_ready(s, config);
	tell_ready(&s->gateway, "Serving");
	take_signals(s, signals);
	return 0;
}

int
serve(const char *config_file)
{
	static struct server server = { .gateway.stop = -1 };
	struct config *config;
	sigset_t signals;
	int code;

	block_signals(&signals);
	if (!open_standard_descriptors())
		return EXIT_SOFTWARE;
	notify_init();
	server.file = config_file;
	config = load_interruptibly(config_file);
	if (config == NULL)
		return EXIT_CONFIG;
	server.started = config;
	code = run(&server, config, &signals);
	config_unref(config);
	return code;
}
