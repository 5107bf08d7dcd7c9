/*
 * forward: the params that a backend gets, from those that came.
 *
 * As they came, but: HTTP_PROXY never (it would become a setting of the
 * program, CVE-2016-5385); CONTENT_LENGTH as measured where the web server
 * did not know it, then without HTTP_TRANSFER_ENCODING; REDIRECT_STATUS=200
 * where it is absent (php-cgi wants it). Lives in the request's arena.
 */
#ifndef SLUICE_FORWARD_H
#define SLUICE_FORWARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "pure/params.h"

/* false: no memory. measured: body_bytes is what counts. */
bool forward_params(const struct params *in, bool measured, uint64_t body_bytes,
    struct arena *arena, struct params *out);

#endif
