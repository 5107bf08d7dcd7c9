/*
 * reply_body: the bodies of the answers that are Sluice's own. Pure.
 */
#ifndef SLUICE_REPLY_BODY_H
#define SLUICE_REPLY_BODY_H

#include "pure/reply.h"

/* retry_seconds: as its Retry-After says; used where it has_retry. */
void reply_body_write(struct buf *out, const struct reply *reply,
    enum accept_type type, int64_t retry_seconds);

#endif
