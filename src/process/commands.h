/*
 * commands: what the command line does besides serving.
 *
 * Each returns its exit code: 0, or one of sysexits.h (64 usage, 70 a
 * library failed, 78 configuration). Answers go to standard output,
 * complaints to standard error.
 */
#ifndef SLUICE_COMMANDS_H
#define SLUICE_COMMANDS_H

#include <stdbool.h>
#include <stdint.h>

/* Prints every error and warning, then "FILE: ok" or how many. */
int commands_check(const char *config_file);
/* Every option, a line each; or, as_ini, as a commented sluice.ini. */
int commands_options(bool as_ini);
/*
 * The form in which the store knows a client value, as the only part of a
 * key, under the key_secret of the configuration. "-": the value is read
 * from standard input, less a newline at its end, so that it stands in no
 * process list.
 */
int commands_hash(const char *config_file, const char *value);
int commands_version(void);

/* `sluice set` and `sluice unset`: a key's own counts (domain/own.h). */
struct commands_own {
	const char *limit;
	const char *key;    /* "-": as for commands_hash */
	const char *counts; /* NULL: taken back */
	int64_t for_us;     /* how long they stand; 0: for ever */
};

/* 69: the store can not be reached; 1: the limit, or the store, says no. */
int commands_own(const char *config_file, const struct commands_own *own);
/*
 * `sluice reset`: all counts of a key, its penalties and its slots, but not
 * its own counts; in the store, and in the process that [gateway] control
 * leads to. Exit codes as above; 69 too where counts are in that process and
 * it is not there.
 */
int commands_reset(const char *config_file, const char *limit, const char *key);

#endif
