#include "domain/outage.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/log.h"
#include "io/spawn.h"

#define RUN_US    10000000
#define MINUTE_US 60000000
/* How often a running command is looked after. */
#define LOOK_US  50000
#define NEVER_US INT64_MAX

static char *
copy_text(const char *text)
{
	return text != NULL && text[0] != '\0' ? strdup(text) : NULL;
}

bool
outage_init(
    struct outage *o, const char *store, const char *command, struct err *err)
{
	*o = (struct outage){ .store = strdup(store) };
	pthread_mutex_init(&o->lock, NULL);
	if (o->store == NULL)
		return err_set(err, "out of memory");
	return outage_set_command(o, command, err);
}

static void
finish_command(struct outage *o)
{
	int status = spawn_reap(o->pid);

	o->pid = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
		log_event(LOG_LEVEL_WARN, "alert_failed",
		    "alert_command ended with %d", WEXITSTATUS(status));
	else if (WIFSIGNALED(status))
		log_event(LOG_LEVEL_WARN, "alert_failed",
		    "alert_command was ended by signal %d", WTERMSIG(status));
}

void
outage_release(struct outage *o)
{
	if (o->pid != 0) {
		spawn_signal(o->pid, SIGKILL);
		finish_command(o);
	}
	free(o->store);
	free(o->command);
	pthread_mutex_destroy(&o->lock);
}

bool
outage_set_command(struct outage *o, const char *command, struct err *err)
{
	char *copy = copy_text(command);
	char *old;

	if (copy == NULL && command != NULL && command[0] != '\0')
		return err_set(err, "out of memory");
	pthread_mutex_lock(&o->lock);
	old = o->command;
	o->command = copy;
	pthread_mutex_unlock(&o->lock);
	free(old);
	return true;
}

static void
tell(const struct outage *o, const char *event, const char *reason,
    const char *detail)
{
	struct log_line line;

	log_begin(&line, LOG_LEVEL_ERROR, event);
	log_text(&line, "store", o->store);
	log_text(&line, "msg", reason);
	if (detail != NULL)
		log_text(&line, "detail", detail);
	log_end(&line);
}

void
outage_begin(struct outage *o, const char *reason, const char *detail)
{
	pthread_mutex_lock(&o->lock);
	o->out = true;
	o->since_us = clock_mono_us();
	o->reason = reason;
	o->reason_us = o->since_us;
	pthread_mutex_unlock(&o->lock);
	counter_add(COUNTER_store_outages, 1);
	tell(o, "store_outage", reason, detail);
}

void
outage_goes_on(struct outage *o, const char *reason, const char *detail)
{
	int64_t now_us = clock_mono_us();
	bool news;

	pthread_mutex_lock(&o->lock);
	news = o->out && o->reason != reason &&
	    now_us - o->reason_us >= MINUTE_US / 2;
	if (news) {
		o->reason = reason;
		o->reason_us = now_us;
	}
	pthread_mutex_unlock(&o->lock);
	if (news)
		tell(o, "store_outage_goes_on", reason, detail);
}

void
outage_end(struct outage *o)
{
	struct log_line line;
	int64_t lasted_us;

	pthread_mutex_lock(&o->lock);
	lasted_us = clock_mono_us() - o->since_us;
	o->out = false;
	pthread_mutex_unlock(&o->lock);
	log_begin(&line, LOG_LEVEL_WARN, "store_recovered");
	log_text(&line, "store", o->store);
	log_number(&line, "lasted_ms", lasted_us / 1000);
	log_end(&line);
}

/* The environment of this process and two more; NULL: no memory. */
static char **
build_environment(char *event, char *store)
{
	size_t n = 0;
	char **envp;

	while (environ[n] != NULL)
		n++;
	envp = malloc((n + 3) * sizeof(char *));
	if (envp == NULL)
		return NULL;
	memcpy(envp, environ, n * sizeof(char *));
	envp[n++] = event;
	envp[n++] = store;
	envp[n] = NULL;
	return envp;
}

static void
start_command(struct outage *o, const char *event, char *command)
{
	char shell[] = "/bin/sh", option[] = "-c";
	char *argv[] = { shell, option, command, NULL };
	char event_text[32], store_text[512];
	struct spawn s = { .path = shell, .argv = argv, .fd = { -1, -1, 2 } };
	struct err err = { "out of memory" };
	char **envp;
	pid_t pid = -1;

	snprintf(event_text, sizeof(event_text), "SLUICE_EVENT=%s", event);
	snprintf(store_text, sizeof(store_text), "SLUICE_STORE=%s", o->store);
	envp = build_environment(event_text, store_text);
	if (envp != NULL) {
		s.envp = envp;
		pid = spawn_start(&s, &err);
	}
	free(envp);
	if (pid < 0) {
		log_event(LOG_LEVEL_WARN, "alert_failed", "%s", err.text);
		return;
	}
	o->pid = pid;
	o->kill_us = clock_mono_us() + RUN_US;
}

/* True while it runs. */
static bool
look_after(struct outage *o)
{
	if (o->pid == 0)
		return false;
	if (spawn_wait(o->pid, 0)) {
		finish_command(o);
		return false;
	}
	/* Dead soon after, and seen to be by the next look. */
	if (clock_mono_us() >= o->kill_us)
		spawn_signal(o->pid, SIGKILL);
	return true;
}

/* What alert_command is to be told now; NULL: nothing. The lock is held. */
static const char *
next_event(struct outage *o, int64_t now_us, int64_t *again_us)
{
	if (o->out == o->told)
		return NULL;
	if (o->told) {
		o->told = false;
		return "recovery";
	}
	if (o->pair_us != 0 && now_us < o->pair_us + MINUTE_US) {
		*again_us = o->pair_us + MINUTE_US;
		return NULL;
	}
	o->told = true;
	o->pair_us = now_us;
	return "outage";
}

int64_t
outage_maintain(struct outage *o)
{
	int64_t again_us = NEVER_US;
	const char *event;
	char *command;

	if (look_after(o))
		return clock_mono_us() + LOOK_US;
	pthread_mutex_lock(&o->lock);
	event = next_event(o, clock_mono_us(), &again_us);
	command =
	    event != NULL && o->command != NULL ? strdup(o->command) : NULL;
	pthread_mutex_unlock(&o->lock);
	if (command != NULL)
		start_command(o, event, command);
	free(command);
	return event != NULL ? clock_mono_us() : again_us;
}
