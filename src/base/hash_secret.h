/*
 * hash_secret: what a keyed hash is keyed with, so that a stranger can not
 * choose what meets in a table.
 */
#ifndef SLUICE_HASH_SECRET_H
#define SLUICE_HASH_SECRET_H

#include <stddef.h>
#include <stdint.h>

/*
 * Draws n words, at most 32. Never fails and never waits: where the system
 * has no random bytes yet (early at boot) or gives none, the clock and
 * addresses have to do. Those differ from each other, but might be guessed by
 * who knows the machine well: better than not to serve.
 */
void hash_secret_draw(uint64_t *word, size_t n);

#endif
