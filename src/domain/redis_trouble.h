/*
 * redis_trouble: what an error reply means for the store. Any thread.
 */
#ifndef SLUICE_REDIS_TROUBLE_H
#define SLUICE_REDIS_TROUBLE_H

#include "base/str.h"
#include "domain/breaker.h"

struct redis_trouble {
	const char *code;   /* "OOM": stands in the error as a word */
	const char *reason; /* a sentence for a person, static */
	enum breaker_trip trip;
};

/* Never NULL: an error nobody knows has a reason that says so. */
const struct redis_trouble *redis_trouble_of(struct str error);

extern const struct redis_trouble redis_trouble_timeout;
extern const struct redis_trouble redis_trouble_broken;
extern const struct redis_trouble redis_trouble_unreachable;
extern const struct redis_trouble redis_trouble_password;

#endif
