/*
 * reload: a configuration takes the place of the one in use.
 */
#ifndef SLUICE_RELOAD_H
#define SLUICE_RELOAD_H

#include <stdbool.h>

#include "base/err.h"
#include "config/config.h"
#include "request/gateway.h"

/* Opens the log that a configuration asks for. */
bool reload_log(const struct config_log *log, struct err *err);
/*
 * Reads the file and swaps it in, or says in the log why not: then nothing
 * has changed, and it is false. What takes a restart is told, held against `started`, the
 * configuration the process began with. The main thread's.
 */
bool reload(
    const char *file, struct gateway *gateway, const struct config *started);

#endif
