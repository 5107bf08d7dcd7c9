/*
 * secret: a password or key that stands in a file of its own.
 */
#ifndef SLUICE_SECRET_H
#define SLUICE_SECRET_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"

#define SECRET_BYTES_MAX 4096

/*
 * The file's text in the arena, a newline at its end cut off; NULL: err
 * says why not, without path or content. is_public: everyone may read it.
 */
char *secret_read(
    const char *path, struct arena *arena, bool *is_public, struct err *err);

#endif
