/*
 * value_limit: the options of limits and tiers that are more than a word or
 * a number, read into their fields. See value.h.
 */
#ifndef SLUICE_VALUE_LIMIT_H
#define SLUICE_VALUE_LIMIT_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "config/value.h"

/* The text stays, and what is kept of it points into it or the arena. */
bool value_limit_cost(struct str text, const struct value_room *room,
    struct cost *field, struct err *err);
bool value_limit_statuses(struct str text, const struct value_room *room,
    struct statuses *field, struct err *err);
/* From the system's tz database; UTC is NULL and needs none. */
bool value_limit_zone(struct str text, const struct value_room *room,
    struct zone **field, struct err *err);
/* Values in files are not read yet: see load_tiers. */
bool value_limit_when(struct str text, const struct value_room *room,
    struct config_when *field, struct err *err);

#endif
