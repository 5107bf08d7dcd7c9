/*
 * gateway_own: between the files of the story. gateway.c calls
 * gateway_wait.c, both call gateway_settle.c, and none calls back: what
 * becomes of a connection is returned by who owned it, up to who settles it.
 */
#ifndef SLUICE_GATEWAY_OWN_H
#define SLUICE_GATEWAY_OWN_H

#include <stdint.h>

#include "request/answer.h"
#include "request/gateway.h"

/* gateway_settle.c */

/* The end of a turn: the connection is kept, drained or closed. */
void gateway_settle(struct gateway *g, struct connection *c, enum next next);
/* As connection_park; without it, that is the end of its request. */
enum next gateway_park(struct gateway *g, struct connection *c,
    enum parked reason, uint32_t events, int64_t deadline_us);
/* For a head, or for the rest of one. */
enum next gateway_await_head(struct gateway *g, struct connection *c);
/* For one whose first bytes are there to be read. */
enum next gateway_hear_head(struct gateway *g, struct connection *c);
/* Throws away what came. */
enum next gateway_drain(struct gateway *g, struct connection *c);
/* This worker is about to wait for somebody; another goes on watch for it. */
void gateway_about_to_block(struct gateway *g);
/* Whatever decides a request, or ends it, may wait for the store. */
void gateway_about_to_ask(struct gateway *g);

/* gateway_wait.c; all may block */

/* A whole request goes on: is held back, waits, or is relayed. */
enum next gateway_carry_on(struct gateway *g, struct connection *c);
/*
 * The client of one that waits (PARKED_DELAY, PARKED_QUEUE) has gone, or
 * says something.
 */
enum next gateway_hear(
    struct gateway *g, struct connection *c, enum parked reason);
/* The time of one that waits is over. */
enum next gateway_waited(
    struct gateway *g, struct connection *c, enum parked reason);

#endif
