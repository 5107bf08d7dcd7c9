/*
 * script: which program a CGI request means, and may it be run.
 *
 * SCRIPT_FILENAME (less Apache's "proxy:fcgi://host"), or where that names
 * no file DOCUMENT_ROOT + SCRIPT_NAME + PATH_INFO, cut back at slashes until
 * a file is found; the rest is PATH_INFO, and below DOCUMENT_ROOT it is
 * PATH_TRANSLATED. The real path must lie inside the backend's root. Any
 * thread; results live in the arena.
 */
#ifndef SLUICE_SCRIPT_H
#define SLUICE_SCRIPT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "config/config.h"
#include "pure/params.h"

enum script_status {
	SCRIPT_OK,
	SCRIPT_NOT_FOUND,
	SCRIPT_FORBIDDEN,
	SCRIPT_NO_MEMORY,
};

struct script {
	const char *path;        /* real, inside the root */
	const char *directory;   /* where it lies */
	const char *interpreter; /* NULL: run it itself */
	bool split;              /* those below replace what came */
	struct str script_name;
	struct str path_info;       /* empty: there is none */
	struct str path_translated; /* empty: there is none */
};

enum script_status script_find(const struct config_backend *backend,
    const struct params *params, struct arena *arena, struct script *script,
    struct err *err);
/*
 * Cuts `path` back in place, at slashes, until it names something that is
 * no directory on its way, or that may not be looked at. Its length then, a
 * NUL behind it; 0: none.
 */
size_t script_cut(char *path, size_t len);
#define SCRIPT_ARGV 3
/* The program that is to be started, and its arguments, which point there. */
const char *script_command(
    const struct script *script, char *argv[SCRIPT_ARGV]);

#endif
