/*
 * front: the FastCGI request as libfcgi has it. The only user of libfcgi.
 *
 * libfcgi never reads a socket: it parses the guard's rewritten head from a
 * private memfd, and writes our own answers, with their END, to the
 * connection. front_init once before any thread; a front belongs to the
 * one that owns the request; a memfd belongs to one worker.
 */
#ifndef SLUICE_FRONT_H
#define SLUICE_FRONT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "pure/params.h"

struct front; /* heap */

/* Sets libfcgi's signal handlers: install your own after it. */
bool front_init(struct err *err);

/* A worker's private file for heads; -1 and err. The worker closes it. */
int front_open_memfd(struct err *err);

/*
 * Parses `head` (whole, as the guard made it). Writes the params, without
 * libfcgi's own FCGI_ROLE, which live until front_free. *memfd is replaced
 * if libfcgi has closed it. NULL: libfcgi or memory failed.
 */
struct front *front_new(
    int *memfd, struct str head, struct params *params, struct arena *arena);
/*
 * Sends a whole CGI response and END on `fd` and ends the request. Returns
 * false if that failed; *fd is then -1 where libfcgi has closed it.
 */
bool front_answer(struct front *front, int *fd, struct str response);
/* Frees without a byte on the wire. */
void front_free(struct front *front);

#endif
