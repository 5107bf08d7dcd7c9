/*
 * secret_value: a client's value on a command line. "-" stands for standard
 * input, less a newline at its end, so that it stands in no process list.
 */
#ifndef SLUICE_SECRET_VALUE_H
#define SLUICE_SECRET_VALUE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

/*
 * The value, which lives as long as `argument` and `room` (empty before).
 * False once it was said on standard error that it can not be read.
 */
bool secret_value(const char *argument, struct buf *room, struct str *value);
/* Wipes it. */
void secret_value_release(struct buf *room);

#endif
