/*
 * control_ask: what a command has to tell the running process (control.h).
 */
#ifndef SLUICE_CONTROL_ASK_H
#define SLUICE_CONTROL_ASK_H

#include "base/err.h"
#include "base/str.h"

enum control_answer {
	CONTROL_OK,
	CONTROL_NOBODY, /* no process is there; err says so too */
	CONTROL_REFUSED /* it could not, or did not answer in time: err */
};

/* A line, without its newline. Waits at most until deadline_us. */
enum control_answer control_ask(
    const char *path, struct str line, int64_t deadline_us, struct err *err);

#endif
