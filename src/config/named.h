/*
 * named: the section of a configuration that has that name; NULL: there is
 * none.
 */
#ifndef SLUICE_NAMED_H
#define SLUICE_NAMED_H

#include "config/config.h"

struct config_limit *named_limit(const struct config *config, struct str name);
struct config_backend *named_backend(
    const struct config *config, struct str name);

#endif
