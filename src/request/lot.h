/*
 * lot: the inside of connection.h: who is parked, in which order, until
 * when. Only connection.c calls these; the caller holds c->lock, but for
 * lot_take and lot_at.
 */
#ifndef SLUICE_LOT_H
#define SLUICE_LOT_H

#include "request/connection.h"

/* A free connection in a new life; NULL: max is reached. */
struct connection *lot_take(struct lot *lot);
void lot_give_back(struct lot *lot, struct connection *c);
struct connection *lot_at(struct lot *lot, uint32_t index);
void lot_enter(struct lot *lot, struct connection *c);
void lot_leave(struct lot *lot, struct connection *c);

#endif
