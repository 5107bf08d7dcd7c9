/*
 * outage: tells of the store's outages: a log line for each edge, a
 * counter, and alert_command.
 *
 * Any thread may tell of an edge; the command is run by outage_maintain, on
 * one thread. It gets SLUICE_EVENT (outage or recovery) and SLUICE_STORE,
 * is killed after 10 s, and runs for one pair of edges a minute at most: an
 * outage that begins earlier is told of when the minute is over and it
 * still lasts.
 */
#ifndef SLUICE_OUTAGE_H
#define SLUICE_OUTAGE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct outage {
	pthread_mutex_t lock;
	char *store;   /* its address, without secrets */
	char *command; /* NULL: none */
	bool out;
	int64_t since_us;
	const char *reason; /* told last */
	int64_t reason_us;  /* when */
	bool told;          /* alert_command knows of an outage */
	int64_t pair_us;    /* when it was told last of a beginning; 0: never */
	pid_t pid;          /* running; 0: none */
	int64_t kill_us;
};

bool outage_init(
    struct outage *o, const char *store, const char *command, struct err *err);
/* Kills a command that runs, and reaps it. */
void outage_release(struct outage *o);
bool outage_set_command(struct outage *o, const char *command, struct err *err);

/* detail: what is known beyond the reason; NULL: nothing. */
void outage_begin(struct outage *o, const char *reason, const char *detail);
/* During an outage: another reason than told last, at most twice a minute. */
void outage_goes_on(struct outage *o, const char *reason, const char *detail);
void outage_end(struct outage *o);

/* Returns when it wants to be called again (clock_mono_us). */
int64_t outage_maintain(struct outage *o);

#endif
