/*
 * backend_fastcgi: a FastCGI application as a backend. See backend.h.
 */
#ifndef SLUICE_BACKEND_FASTCGI_H
#define SLUICE_BACKEND_FASTCGI_H

#include "domain/exchange.h"

enum exchange_end backend_fastcgi_run(struct exchange *x);

#endif
