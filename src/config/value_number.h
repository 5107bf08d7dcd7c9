/*
 * value_number: the options that are numbers or words, read into their
 * fields. See value.h.
 */
#ifndef SLUICE_VALUE_NUMBER_H
#define SLUICE_VALUE_NUMBER_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "config/option.h"

/*
 * Of a COUNT, SIZE, DURATION, PERCENT, MODE, WORD or WORDS; the text is not
 * empty. The field is 64 bits, as option.h says.
 */
bool value_number(
    const struct option *o, struct str text, void *field, struct err *err);

#endif
