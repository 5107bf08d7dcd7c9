/*
 * The end of the story for who still waits in its middle when the gateway
 * has no more time.
 */
#include "request/gateway_own.h"

#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "request/request.h"

/* What giving back may take in all. */
#define GIVE_BACK_US 1000000

void
gateway_give_up(struct gateway *g)
{
	const uint64_t one = 1;

	atomic_store(&g->given_up, true);
	(void)!write(g->stop, &one, sizeof(one));
}

/*
 * Who has just sent a request on a kept connection is served: no web server
 * can know by then that we stop.
 */
void
gateway_close_idle(struct gateway *g)
{
	struct connection *c;

	while ((c = connection_claim_oldest(g->lot, PARKED_IDLE)) != NULL)
		gateway_settle(g, c,
		    connection_has_input(c) ? gateway_hear_head(g, c)
					    : NEXT_CLOSE);
}

/* time: is there some to ask the store? */
static void
abandon(struct gateway *g, struct connection *c, enum parked reason, bool time)
{
	struct request *r = c->request;

	if (reason == PARKED_QUEUE)
		bulkhead_forget(g->bulkhead, &r->waiter);
	if (r != NULL && !time)
		decision_forfeit(&r->decision);
	if (r != NULL)
		answer_out_of_time(c);
	connection_close(g->lot, c);
}

void
gateway_abandon(struct gateway *g)
{
	int64_t until_us = clock_mono_us() + GIVE_BACK_US;
	struct connection *c;

	for (enum parked reason = PARKED_HEAD; reason < PARKED_KINDS; reason++)
		while ((c = connection_claim_oldest(g->lot, reason)) != NULL)
			abandon(g, c, reason, clock_mono_us() < until_us);
}
