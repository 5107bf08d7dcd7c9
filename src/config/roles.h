/*
 * roles: which roles are served. Pure; any thread.
 */
#ifndef SLUICE_ROLES_H
#define SLUICE_ROLES_H

#include "config/config.h"

/* Is that role (not ANY) among them? */
bool roles_has(const struct config_gateway *gateway, enum config_role role);

#endif
