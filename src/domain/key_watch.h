/*
 * key_watch: does the key of a limit ever come?
 *
 * A web server that does not pass a header on (Apache keeps Authorization
 * for itself without CGIPassAuth) leaves a limit without a key, and the
 * limit counts nobody or refuses everybody. If none of its first requests
 * has one, that is logged once (event=key_always_missing). Any thread.
 */
#ifndef SLUICE_KEY_WATCH_H
#define SLUICE_KEY_WATCH_H

#include "config/config.h"

#define KEY_WATCH_REQUESTS 100

void key_watch_there(const struct config_limit *limit);
void key_watch_missing(const struct config_limit *limit);

#endif
