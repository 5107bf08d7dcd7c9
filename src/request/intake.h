/*
 * intake: what comes in from a web server, read as far as it is there.
 */
#ifndef SLUICE_INTAKE_H
#define SLUICE_INTAKE_H

#include <stdbool.h>

#include "request/answer.h"
#include "request/body.h"
#include "request/connection.h"

/* Of the next head: its bounds, its deadline, the roles it may ask for. */
void intake_expect(struct connection *c, const struct config_gateway *gateway);
/* Feeds the guard and sends its answers; *gone: the peer went away. */
enum guard_verdict intake_head(struct connection *c, bool *gone);
/* Feeds the request's body; BODY_ABORTED also where the peer went away. */
enum body_verdict intake_body(struct connection *c);
/*
 * What the client of a whole request that waits has said since. Reads no
 * further than the header of one record: what comes for the next request
 * stays where it is.
 */
enum intake_news {
	INTAKE_SILENT,
	INTAKE_NEXT,   /* of what comes next: to be read after this request */
	INTAKE_LEFT,   /* it has gone, or takes the request back */
	INTAKE_BROKEN, /* no FastCGI: close */
};
enum intake_news intake_listen(struct connection *c);
/* Throws away what comes; false: that is the end of it. */
bool intake_drain(struct connection *c);
/* Answers a body that can not be taken (neither MORE nor WHOLE). */
enum next intake_refuse(struct connection *c, enum body_verdict verdict);

#endif
