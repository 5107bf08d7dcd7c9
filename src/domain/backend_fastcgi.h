/*
 * backend_fastcgi: a FastCGI application as a backend. See backend.h.
 *
 * The first request on a connection has the FastCGI request id 1, and each
 * later one (keep_alive) the next, after 65535 again 1. So what an
 * application still sends of a response after its END can not be taken for
 * the response to the request that comes next: a record of any other id than
 * the request's is a broken response, also one of id 0, for nothing here asks
 * an application about itself. That is for what is sent by accident. An
 * application can write any id it likes, as it can any response.
 */
#ifndef SLUICE_BACKEND_FASTCGI_H
#define SLUICE_BACKEND_FASTCGI_H

#include "domain/exchange.h"

enum exchange_end backend_fastcgi_run(struct exchange *x);

#endif
