/*
 * control: the socket by which commands reach the running process.
 *
 * Whoever connects sends one line, a verb and its arguments with a blank
 * between them, at most CONTROL_LINE_MAX bytes and its newline. The answer
 * ends with the connection; its first line is `ok`, or `error` and why.
 *
 *	reset LIMIT TAG    forgets what this process counts or knows of a key:
 *	                   counts in memory, refusals that are remembered,
 *	                   units taken ahead
 *	forget LIMIT TAG   the refusals alone: its counts have changed
 *
 * TAG is what stands for the key in the names of counts (pure/key.h).
 *
 * One thread of its own serves CONTROL_PEERS at a time, for
 * CONTROL_PATIENCE_US each; nothing that they do takes more memory.
 */
#ifndef SLUICE_CONTROL_H
#define SLUICE_CONTROL_H

#include "base/buf.h"
#include "base/err.h"
#include "request/gateway.h"

#define CONTROL_LINE_MAX    4096
#define CONTROL_PEERS       4
#define CONTROL_PATIENCE_US 500000

struct control;

/* Listens. *control is NULL where there is no path. False and err: can not. */
bool control_open(struct control **control, const char *path, struct err *err);
/* Serves, until control_close. The gateway must outlive that. */
bool control_start(
    struct control *control, struct gateway *gateway, struct err *err);
/* Ends what is served and removes the path. NULL: does nothing. */
void control_close(struct control *control);

/* For control.c: does what a line says, and adds the answer. */
void control_verb(struct gateway *gateway, struct str line, struct buf *answer);

#endif
