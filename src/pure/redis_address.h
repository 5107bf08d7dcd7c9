/*
 * redis_address: where a Redis or Valkey is, as the configuration says it.
 * Pure; any thread.
 *
 *	unix:/run/redis/redis-server.sock
 *	redis://HOST[:PORT][/DATABASE]      HOST: a name, IPv4, or [IPv6]
 *
 * A password has no place in it: messages quote addresses.
 */
#ifndef SLUICE_REDIS_ADDRESS_H
#define SLUICE_REDIS_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

enum redis_transport { REDIS_UNIX, REDIS_TCP };

struct redis_address {
	enum redis_transport transport;
	char host[256]; /* or the socket's path */
	uint16_t port;
	unsigned database;
};

/* err never quotes what may be a password. */
bool redis_address_parse(
    struct str text, struct redis_address *address, struct err *err);
/* For people; without what a password could be in. */
#define REDIS_ADDRESS_TEXT_MAX 300
void redis_address_print(
    const struct redis_address *address, char text[REDIS_ADDRESS_TEXT_MAX]);

#endif
