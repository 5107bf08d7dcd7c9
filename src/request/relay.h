/*
 * relay: the chapter in which a request is with its backend.
 */
#ifndef SLUICE_RELAY_H
#define SLUICE_RELAY_H

#include "request/answer.h"
#include "request/connection.h"

/*
 * Carries the request there and its response back, and ends it. Blocks. The
 * connection holds a place in the backend. stop: see struct exchange.
 */
enum next relay_run(struct connection *c, int stop);

#endif
