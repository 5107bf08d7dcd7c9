/*
 * backend: an application, of whatever type.
 *
 * Runs an exchange in blocking code, on the calling worker: it streams the
 * response to the front as it comes and ends it there with END_REQUEST.
 * What ends it otherwise is returned; before EXCHANGE_DONE and EXCHANGE_CUT
 * nothing has been sent to the front, so the caller can still answer.
 */
#ifndef SLUICE_BACKEND_H
#define SLUICE_BACKEND_H

#include "domain/exchange.h"

enum exchange_end backend_run(struct exchange *x);

#endif
