/*
 * value_client: the text of client_address, read into its field.
 */
#ifndef SLUICE_VALUE_CLIENT_H
#define SLUICE_VALUE_CLIENT_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "config/config.h"

/* remote_addr, x-forwarded-for, forwarded or header:NAME. */
bool value_set_client(
    struct str text, struct config_client_address *field, struct err *err);

#endif
