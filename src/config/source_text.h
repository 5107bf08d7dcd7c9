/*
 * source_text: the text of one configuration file, read with inih.
 */
#ifndef SLUICE_SOURCE_TEXT_H
#define SLUICE_SOURCE_TEXT_H

#include "base/str.h"
#include "config/source.h"

/* Adds what it says to the source; what is wrong, to the findings. */
void source_text_read(
    struct source *s, struct source_file *file, struct str text);

#endif
