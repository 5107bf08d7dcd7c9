/*
 * A table of fixed size: a peer has the place its hash says, and takes it
 * from whoever was there. What is seen is kept as hashes. A request that
 * finds the table in use goes on: there will be another.
 */
#include "domain/proxy_watch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/log.h"
#include "pure/siphash.h"

#define PEERS 256

struct peer {
	uint64_t address;
	size_t n;
	uint64_t value[PROXY_WATCH_MANY]; /* those seen, n of them */
};

static const uint64_t no_secret[2]; /* the table is watched, not relied on */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct peer peers[PEERS];
static atomic_bool told;

/* Is it the last of many? */
static bool
add(uint64_t address, uint64_t value)
{
	struct peer *p = &peers[address % PEERS];

	if (p->address != address)
		*p = (struct peer){ .address = address };
	for (size_t i = 0; i < p->n; i++)
		if (p->value[i] == value)
			return false;
	p->value[p->n++] = value;
	return p->n == PROXY_WATCH_MANY;
}

static void
tell(struct str peer)
{
	struct log_line line;

	log_begin(&line, LOG_LEVEL_WARN, "proxy_not_trusted");
	log_str(&line, "remote_addr", peer);
	log_text(&line, "msg",
	    "this address forwards for many others, which all count as one "
	    "client: if it is a proxy of yours, name it in trusted_proxies "
	    "and set client_address");
	log_end(&line);
}

void
proxy_watch(const struct params *params)
{
	struct str peer = params_get(params, STR("REMOTE_ADDR"));
	struct str value = params_get(params, STR("HTTP_X_FORWARDED_FOR"));
	bool many;

	if (value.len == 0)
		value = params_get(params, STR("HTTP_FORWARDED"));
	if (value.len == 0 || peer.len == 0 || atomic_load(&told) ||
	    pthread_mutex_trylock(&lock) != 0)
		return;
	many = !atomic_load(&told) &&
	    add(siphash(no_secret, peer), siphash(no_secret, value));
	if (many)
		atomic_store(&told, true);
	pthread_mutex_unlock(&lock);
	if (many)
		tell(peer);
}
