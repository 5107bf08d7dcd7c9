/*
 * proxy_watch: is there a proxy that the configuration does not know of?
 *
 * Behind one, all clients count as one, and nothing says so. A peer that
 * sends many different X-Forwarded-For, or Forwarded, is likely to be one;
 * the process logs that once (event=proxy_not_trusted) and looks no more.
 * Any thread; never waits.
 */
#ifndef SLUICE_PROXY_WATCH_H
#define SLUICE_PROXY_WATCH_H

#include "pure/params.h"

#define PROXY_WATCH_MANY 20

/* A request under a configuration without trusted_proxies. */
void proxy_watch(const struct params *params);

#endif
