/*
 * source_load: a configuration file and all that it includes, into a source.
 */
#ifndef SLUICE_SOURCE_LOAD_H
#define SLUICE_SOURCE_LOAD_H

#include "config/source.h"

/* What is wrong with any of them is among the source's findings. */
void source_load(struct source *s, const char *path);

#endif
