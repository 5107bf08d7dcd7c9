/*
 * store_command: one command to the store, for a person who waits. Connects
 * as a gateway does, so that what keeps a gateway out is found here too.
 */
#ifndef SLUICE_STORE_COMMAND_H
#define SLUICE_STORE_COMMAND_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "config/config.h"

/* The time until which it is waited for whoever is to answer. */
int64_t store_command_deadline_us(const struct config *config);
/* Prints what is wrong about something; returns the code. */
int store_command_complain(int code, const char *about, const struct err *err);
/* 0, or an exit code once that was said: 69, or 1 where the store says no. */
int store_command(
    const struct config *config, const struct str *argument, size_t n);

#endif
