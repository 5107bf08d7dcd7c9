/*
 * file: a whole small file, read at once.
 */
#ifndef SLUICE_FILE_H
#define SLUICE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/*
 * Adds the file's bytes to `out`, without a byte order mark of UTF-8 in
 * front. Only a regular file of at most `max` bytes will do; err says why
 * not, without the path. info: what it is.
 */
bool file_read(const char *path, size_t max, struct buf *out, struct stat *info,
    struct err *err);
/* PATH, or DIRECTORY/PATH where it is not absolute; NULL: no memory. */
char *file_path(struct arena *arena, const char *directory, struct str path);
/* The directory a file stands in, "." for a bare name; NULL: no memory. */
char *file_directory(struct arena *arena, const char *path);

#endif
