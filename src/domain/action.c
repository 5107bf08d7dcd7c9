#include "domain/action.h"

#include <stdint.h>
#include <sys/stat.h>

#include "domain/script.h"

#define THIS_PROGRAM "/proc/self/exe"

/* By whatever name. */
static bool
is_this_program(struct str path)
{
	struct stat named, running;

	return path.len > 0 && stat(path.p, &named) == 0 &&
	    stat(THIS_PROGRAM, &running) == 0 &&
	    named.st_dev == running.st_dev && named.st_ino == running.st_ino;
}

static void
take_out(struct params *params, struct str name)
{
	size_t n = 0;

	for (size_t i = 0; i < params->n; i++)
		if (!str_eq(params->at[i].name, name))
			params->at[n++] = params->at[i];
	params->n = n;
}

/* One is there. */
static void
replace(struct params *params, struct str name, struct str value)
{
	for (size_t i = 0; i < params->n; i++)
		if (str_eq(params->at[i].name, name))
			params->at[i].value = value;
}

/* What is left in front of it, or all, should it not end so. */
static struct str
without_end(struct str text, struct str end)
{
	if (text.len >= end.len &&
	    str_eq((struct str){ text.p + text.len - end.len, end.len }, end))
		text.len -= end.len;
	return text;
}

/* What follows the script; there need be nothing. */
static bool
set_info(struct params *params, struct str info, struct arena *arena)
{
	struct str parts[] = { params_get(params, STR("DOCUMENT_ROOT")), info };
	struct str translated;

	if (info.len == 0) {
		take_out(params, STR("PATH_INFO"));
		take_out(params, STR("PATH_TRANSLATED"));
		return true;
	}
	translated = arena_join(arena, parts, 2);
	replace(params, STR("PATH_INFO"), info);
	replace(params, STR("PATH_TRANSLATED"), translated);
	return translated.p != NULL;
}

/* Values have a NUL behind them, also those that are cut short. */
static bool
set_script(struct params *params, struct str file, struct str name,
    struct arena *arena)
{
	struct str own_file = arena_copy(arena, file);
	struct str own_name = arena_copy(arena, name);

	replace(params, STR("SCRIPT_FILENAME"), own_file);
	if (params_count(params, STR("SCRIPT_NAME")) > 0)
		replace(params, STR("SCRIPT_NAME"), own_name);
	return own_file.p != NULL && own_name.p != NULL;
}

enum action
action_resolve(struct params *params, struct arena *arena)
{
	struct str file = params_get(params, STR("PATH_TRANSLATED"));
	struct str info = params_get(params, STR("PATH_INFO"));
	struct str copy, tail;
	size_t len;

	if (!is_this_program(params_get(params, STR("SCRIPT_FILENAME"))))
		return ACTION_NONE;
	if (file.len == 0 || file.p[0] != '/' || info.len == 0 ||
	    params_get(params, STR("REDIRECT_STATUS")).len == 0)
		return ACTION_DIRECT;
	copy = arena_copy(arena, file);
	if (copy.p == NULL)
		return ACTION_NO_MEMORY;
	len = script_cut((char *)(uintptr_t)copy.p, copy.len);
	if (len == 0) /* no such script: it will not be found either */
		len = file.len;
	tail = arena_copy(arena, (struct str){ file.p + len, file.len - len });
	if (tail.p == NULL ||
	    !set_script(params, (struct str){ file.p, len },
		without_end(info, tail), arena) ||
	    !set_info(params, tail, arena))
		return ACTION_NO_MEMORY;
	return ACTION_RESOLVED;
}
