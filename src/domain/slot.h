/*
 * slot: the name of a request among those that hold slots of a concurrency
 * limit. Any thread.
 */
#ifndef SLUICE_SLOT_H
#define SLUICE_SLOT_H

#include "base/arena.h"
#include "base/str.h"

/* Unlike any other of any gateway. p NULL: no memory, or no randomness. */
struct str slot_new(struct arena *arena);

#endif
