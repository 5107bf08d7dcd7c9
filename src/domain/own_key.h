/*
 * own_key: a key of a limit as a person writes it: the value of its part, or
 * of all, joined by `+`. Of alternatives an address means `client`, anything
 * else the first other one. What no request can have is none.
 *
 *	client          an address, which is cut as those of requests are; with
 *	                /BITS, if it is cut to so many; unix:, which web servers
 *	                say of a client of a socket
 *	path            as requests have it (pure/path.h)
 *	host            without its port; in any case
 *	global          global
 *	hash:DIGITS     for the value of a key's only part: its hash, as in a
 *	                list of known values (pure/known.h)
 *
 * No message tells what was written: it may be a secret.
 */
#ifndef SLUICE_OWN_KEY_H
#define SLUICE_OWN_KEY_H

#include "base/arena.h"
#include "base/err.h"
#include "config/config.h"

enum own_key {
	OWN_KEY_IS,
	OWN_KEY_WRONG, /* err says what is expected */
	OWN_KEY_FAILED /* no memory, or libcrypto; err says which */
};

/* Its tag, as requests have it. */
enum own_key own_key_tag(const struct config *config,
    const struct config_limit *limit, struct str key, struct arena *arena,
    char tag[KEY_TAG_MAX], struct err *err);

#endif
