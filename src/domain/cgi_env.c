/*
 * Names are set once, so the order of the steps is who stands before whom.
 */
#include "domain/cgi_env.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_PATH STR("/usr/local/bin:/usr/bin:/bin")
/* What set_settled and set_passed_on add themselves, and the NULL. */
#define OWN_MAX 7

struct environment {
	struct arena *arena;
	char **at;
	size_t n;
	bool failed;
};

/*
 * A name the script's loader, shell or interpreter would obey, or that no
 * environment can hold.
 */
static bool
is_unfit(struct str name)
{
	static const struct str families[] = { { "LD_", 3 }, { "MALLOC_", 7 },
		{ "GLIBC_", 6 }, { "BASH", 4 }, { "PYTHON", 6 }, { "PERL", 4 },
		{ "RUBY", 4 }, { "NODE_", 5 } };
	static const char *const obeyed[] = { "PATH", "IFS", "ENV", "CDPATH",
		"SHELLOPTS", "PS4", "GCONV_PATH", "LOCPATH", "NLSPATH",
		"TMPDIR" };

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (str_starts(name, families[i]))
			return true;
	for (size_t i = 0; i < sizeof(obeyed) / sizeof(obeyed[0]); i++)
		if (str_eq(name, str_of(obeyed[i])))
			return true;
	for (size_t i = 0; i < name.len; i++) {
		char c = name.p[i];

		if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
			c == '_' || (i > 0 && c >= '0' && c <= '9')))
			return true;
	}
	return false;
}

static bool
is_set(const struct environment *e, struct str name)
{
	for (size_t i = 0; i < e->n; i++)
		if (strncmp(e->at[i], name.p, name.len) == 0 &&
		    e->at[i][name.len] == '=')
			return true;
	return false;
}

static void
set(struct environment *e, struct str name, struct str value)
{
	char *text;

	if (is_set(e, name))
		return;
	text = arena_alloc(e->arena, name.len + value.len + 2);
	if (text == NULL) {
		e->failed = true;
		return;
	}
	memcpy(text, name.p, name.len);
	text[name.len] = '=';
	if (value.len > 0)
		memcpy(text + name.len + 1, value.p, value.len);
	e->at[e->n++] = text;
}

/* What finding the script has settled, whatever came. */
static void
set_settled(struct environment *e, const struct script *script)
{
	set(e, STR("SCRIPT_FILENAME"), str_of(script->path));
	if (!script->split)
		return;
	set(e, STR("SCRIPT_NAME"), script->script_name);
	if (script->path_info.len > 0)
		set(e, STR("PATH_INFO"), script->path_info);
	if (script->path_translated.len > 0)
		set(e, STR("PATH_TRANSLATED"), script->path_translated);
}

static void
set_passed_on(struct environment *e, const struct config_list *names)
{
	for (size_t i = 0; i < names->n; i++) {
		const char *value = getenv(names->at[i]);

		if (value != NULL)
			set(e, str_of(names->at[i]), str_of(value));
	}
	set(e, STR("PATH"), DEFAULT_PATH);
}

/* Of a path that was split anew, what the web server made of it is wrong. */
static bool
is_outdated(struct str name, const struct script *script)
{
	return script->split &&
	    (str_eq(name, STR("PATH_INFO")) ||
		str_eq(name, STR("PATH_TRANSLATED")));
}

/* passed_on NULL: all is. */
static char **
make(const struct params *params, const struct config_list *passed_on,
    const struct script *script, struct arena *arena)
{
	struct environment e = { .arena = arena };
	size_t n = params->n + (passed_on == NULL ? 0 : passed_on->n);

	e.at = arena_alloc(arena, (n + OWN_MAX) * sizeof(*e.at));
	if (e.at == NULL)
		return NULL;
	set_settled(&e, script);
	if (passed_on != NULL)
		set_passed_on(&e, passed_on);
	if (params_get(params, STR("GATEWAY_INTERFACE")).len == 0)
		set(&e, STR("GATEWAY_INTERFACE"), STR("CGI/1.1"));
	for (size_t i = 0; i < params->n; i++) {
		struct str name = params->at[i].name;

		if ((passed_on == NULL || !is_unfit(name)) &&
		    !is_outdated(name, script))
			set(&e, name, params->at[i].value);
	}
	return e.failed ? NULL : e.at;
}

char **
cgi_env_make(const struct params *params, const struct config_list *passed_on,
    const struct script *script, struct arena *arena)
{
	return make(params, passed_on, script, arena);
}

char **
cgi_env_keep(const struct params *params, const struct script *script,
    struct arena *arena)
{
	return make(params, NULL, script, arena);
}
