/*
 * backend_cgi: CGI scripts as a backend. See backend.h.
 */
#ifndef SLUICE_BACKEND_CGI_H
#define SLUICE_BACKEND_CGI_H

#include "domain/exchange.h"

enum exchange_end backend_cgi_run(struct exchange *x);

#endif
