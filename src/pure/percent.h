/*
 * percent: percent-encoded bytes (RFC 3986, 2.1), one by one. Pure; any
 * thread.
 */
#ifndef SLUICE_PERCENT_H
#define SLUICE_PERCENT_H

#include "base/str.h"

/*
 * The byte that s has at `at`, %XX decoded; a `%` without two hex digits
 * stands for itself. Returns how many bytes of s it took: 1 or 3.
 */
size_t percent_byte(struct str s, size_t at, char *byte);

#endif
