/*
 * option_test: what a text has to look like that is kept as a text.
 */
#ifndef SLUICE_OPTION_TEST_H
#define SLUICE_OPTION_TEST_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "config/option.h"

/* The text is not empty and followed by a NUL. May ask the system. */
typedef bool option_test(struct str text, struct err *err);

/* For a list, the test of its items. Never NULL. */
option_test *option_test_of(enum option_kind kind);

#endif
