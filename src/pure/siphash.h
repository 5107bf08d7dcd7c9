/*
 * siphash: SipHash-1-3 (Aumasson and Bernstein, 2012) of some bytes, for
 * hash tables whose keys a stranger can choose. Pure; any thread.
 */
#ifndef SLUICE_SIPHASH_H
#define SLUICE_SIPHASH_H

#include <stdint.h>

#include "base/str.h"

uint64_t siphash(const uint64_t secret[2], struct str s);

#endif
