/*
 * stores: the two stores that a configuration asks for.
 */
#ifndef SLUICE_STORES_H
#define SLUICE_STORES_H

#include <stdbool.h>

#include "base/err.h"
#include "config/config.h"
#include "domain/decision.h"

/* The config of the start, which must outlive the stores. */
bool stores_open(
    struct stores *stores, const struct config *config, struct err *err);
/*
 * For the one request of a process: no threads, no memory of the store, and
 * a single link, made when it is first needed.
 */
bool stores_open_once(
    struct stores *stores, const struct config *config, struct err *err);
void stores_close(struct stores *stores);
/*
 * Gives back what was taken ahead, for a moment; asks the store. What is left
 * then the maintenance thread gives back.
 */
void stores_return_leases(struct stores *stores);
/* The same once nobody asks any more: for a second, and the rest is lost. */
void stores_end_leases(struct stores *stores);
/* false and err: the new one needs a store that this process has not. */
bool stores_can_reload(
    const struct stores *stores, const struct config *next, struct err *err);
/* Takes over what may change while running. false and err: no memory. */
bool stores_reload(struct stores *stores, const struct config *started,
    const struct config *next, struct err *err);

#endif
