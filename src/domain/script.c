#include "domain/script.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * "proxy:fcgi://host:port/path": what Apache's default leaves in front, and
 * some releases of it a query behind.
 */
static struct str
without_proxy(struct str name)
{
	static const struct str mark = { "://", 3 };

	if (!str_starts(name, STR("proxy:")))
		return name;
	for (size_t i = 0; i + mark.len < name.len; i++) {
		const char *slash;

		if (memcmp(name.p + i, mark.p, mark.len) != 0)
			continue;
		i += mark.len;
		slash = memchr(name.p + i, '/', name.len - i);
		if (slash == NULL)
			break;
		name.len -= (size_t)(slash - name.p);
		name.p = slash;
		return str_cut(&name, '?');
	}
	return STR_NONE;
}

static struct str
join3(struct arena *arena, struct str a, struct str b, struct str c)
{
	char *text = arena_alloc(arena, a.len + b.len + c.len + 1);
	size_t at = 0;
	const struct str part[] = { a, b, c };

	if (text == NULL)
		return STR_NONE;
	for (size_t i = 0; i < 3; i++) {
		if (part[i].len > 0)
			memcpy(text + at, part[i].p, part[i].len);
		at += part[i].len;
	}
	return (struct str){ text, at };
}

size_t
script_cut(char *path, size_t len)
{
	struct stat st;

	while (len > 1) {
		path[len] = '\0';
		if (stat(path, &st) == 0)
			return S_ISDIR(st.st_mode) ? 0 : len;
		if (errno == EACCES)
			return len;
		if (errno != ENOTDIR && errno != ENOENT)
			return 0;
		while (len > 1 && path[len - 1] != '/')
			len--;
		len--;
	}
	return 0;
}

static bool
is_inside(const char *root, const char *path)
{
	size_t len = strlen(root);

	while (len > 0 && root[len - 1] == '/')
		len--;
	return strncmp(root, path, len) == 0 && path[len] == '/';
}

static const char *
find_interpreter(
    const struct config_backend *backend, const char *path, struct arena *arena)
{
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; dot != NULL && i < backend->interpreter.n; i++) {
		struct str rest = str_of(backend->interpreter.at[i]);
		struct str suffix = str_cut(&rest, '=');

		if (str_eq(suffix, str_of(dot)))
			return arena_copy(arena, rest).p;
	}
	return NULL;
}

static enum script_status
admit(const struct config_backend *backend, const char *path,
    struct arena *arena, struct script *script, struct err *err)
{
	char real[PATH_MAX];
	struct stat st;
	struct str directory;

	if (realpath(path, real) == NULL) {
		err_set(err, "%.300s: %s", path, strerror(errno));
		return errno == EACCES ? SCRIPT_FORBIDDEN : SCRIPT_NOT_FOUND;
	}
	script->path = arena_copy(arena, str_of(real)).p;
	directory = (struct str){ real, (size_t)(strrchr(real, '/') - real) };
	if (directory.len == 0)
		directory.len = 1;
	script->directory = arena_copy(arena, directory).p;
	if (script->path == NULL || script->directory == NULL)
		return SCRIPT_NO_MEMORY;
	script->interpreter = find_interpreter(backend, real, arena);
	if (!is_inside(backend->root, real))
		err_set(err, "%.300s is outside root", real);
	else if (stat(real, &st) < 0 || !S_ISREG(st.st_mode))
		err_set(err, "%.300s is no regular file", real);
	else if (faccessat(AT_FDCWD, real,
		     script->interpreter != NULL ? R_OK : X_OK, AT_EACCESS) < 0)
		err_set(err, "%.300s: may not be run", real);
	else
		return SCRIPT_OK;
	return SCRIPT_FORBIDDEN;
}

/* RFC 3875, 4.1.6: what PATH_INFO would be as a path of its own. */
static bool
translate(struct script *script, struct str root, struct arena *arena)
{
	script->path_translated = STR_NONE;
	if (script->path_info.len == 0 || root.len == 0)
		return true;
	if (root.p[root.len - 1] == '/')
		root.len--;
	script->path_translated =
	    join3(arena, root, script->path_info, STR_NONE);
	return script->path_translated.p != NULL;
}

/* What was cut off the file's name is PATH_INFO, and not of the script. */
static bool
split(struct script *script, const struct params *params, struct str tail,
    struct arena *arena)
{
	struct str root = params_get(params, STR("DOCUMENT_ROOT"));
	struct str name = params_get(params, STR("SCRIPT_NAME"));
	struct str info = params_get(params, STR("PATH_INFO"));
	struct str whole = join3(arena, name, info, STR_NONE);

	script->split = true;
	script->path_info = arena_copy(arena, tail);
	script->script_name = whole;
	if (whole.len >= tail.len &&
	    str_eq(
		(struct str){ whole.p + whole.len - tail.len, tail.len }, tail))
		script->script_name.len -= tail.len;
	return whole.p != NULL && script->path_info.p != NULL &&
	    translate(script, root, arena);
}

/* The name has a NUL behind it. */
static bool
is_directory(struct str name)
{
	struct stat st;

	return stat(name.p, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Tries one name; false: it names no file. */
static bool
try_name(const struct config_backend *backend, struct str name,
    bool made_of_parts, const struct params *params, struct arena *arena,
    struct script *script, enum script_status *status, struct err *err)
{
	struct str copy = arena_copy(arena, name);
	char *path = (char *)(uintptr_t)copy.p;
	size_t len;

	if (path == NULL) {
		*status = SCRIPT_NO_MEMORY;
		return true;
	}
	len = script_cut(path, copy.len);
	if (len == 0)
		return false;
	path[len] = '\0';
	*status = admit(backend, path, arena, script, err);
	if (*status == SCRIPT_OK && (made_of_parts || len < name.len) &&
	    !split(script, params, (struct str){ name.p + len, name.len - len },
		arena))
		*status = SCRIPT_NO_MEMORY;
	return true;
}

enum script_status
script_find(const struct config_backend *backend, const struct params *params,
    struct arena *arena, struct script *script, struct err *err)
{
	struct str name = arena_copy(
	    arena, without_proxy(params_get(params, STR("SCRIPT_FILENAME"))));
	struct str root = params_get(params, STR("DOCUMENT_ROOT"));
	enum script_status status = SCRIPT_NOT_FOUND;

	*script = (struct script){ .path = NULL };
	if (name.p == NULL)
		return SCRIPT_NO_MEMORY;
	if (name.len == 0)
		err_set(err, "no SCRIPT_FILENAME");
	else
		err_set(err, "no such script: %.*s",
		    (int)(name.len > 300 ? 300 : name.len), name.p);
	if (name.len > 0 && name.p[0] == '/' &&
	    try_name(backend, name, false, params, arena, script, &status, err))
		return status;
	/* Where the web server left the path to PATH_INFO it is none. */
	if (name.len > 0 && name.p[0] == '/' && is_directory(name) &&
	    params_get(params, STR("PATH_INFO")).len == 0)
		status = SCRIPT_FORBIDDEN;
	if (root.len == 0 || root.p[0] != '/')
		return status;
	name = join3(arena, root, params_get(params, STR("SCRIPT_NAME")),
	    params_get(params, STR("PATH_INFO")));
	if (name.p == NULL)
		return SCRIPT_NO_MEMORY;
	try_name(backend, name, true, params, arena, script, &status, err);
	return status;
}

const char *
script_command(const struct script *script, char *argv[SCRIPT_ARGV])
{
	const char *program =
	    script->interpreter != NULL ? script->interpreter : script->path;
	size_t n = 0;

	argv[n++] = (char *)(uintptr_t)program;
	if (script->interpreter != NULL)
		argv[n++] = (char *)(uintptr_t)script->path;
	argv[n] = NULL;
	return program;
}
