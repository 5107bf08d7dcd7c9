/*
 * path: the canonical form of a request's path. Pure; any thread.
 *
 * So that //login, /%6cogin and /x/../login are all /login: the query is
 * cut, %XX decoded once, runs of slashes merged, dot segments removed
 * (RFC 3986, 5.2.4; `..` above the root is dropped). A `%` without two hex
 * digits stays as it is. A scheme and authority in front (absolute form,
 * http://host/path) are cut, and a fragment, which no client may send but
 * web servers cut too. The result always begins with a slash; an empty path
 * is "/". It may hold any byte, NUL included, and is never longer than its
 * source and that slash.
 */
#ifndef SLUICE_PATH_H
#define SLUICE_PATH_H

#include "base/str.h"

/* out has room for uri.len + 1 bytes; returns the length written. */
size_t path_canonical(struct str uri, char *out);
/* Slashes and dot segments alone, for SCRIPT_NAME+PATH_INFO. */
size_t path_normalise(struct str path, char *out);

#endif
