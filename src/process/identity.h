/*
 * identity: the user and group the process runs as.
 */
#ifndef SLUICE_IDENTITY_H
#define SLUICE_IDENTITY_H

#include <stdbool.h>

#include "base/err.h"
#include "config/config.h"

/* Becomes `user` and `group` for good, where they are given. */
bool identity_drop(const struct config_gateway *gateway, struct err *err);

#endif
