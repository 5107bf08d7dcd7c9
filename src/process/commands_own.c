/*
 * set, unset and reset: what is done about one key. The store comes first,
 * then the process that control leads to: what that knows of the key is no
 * longer so.
 */
#include "process/commands.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/arena.h"
#include "config/config.h"
#include "config/named.h"
#include "domain/limit.h"
#include "domain/own.h"
#include "domain/own_key.h"
#include "process/control_ask.h"
#include "process/secret_value.h"
#include "process/store_command.h"
#include "pure/key.h"

/* The key that is meant. */
struct target {
	const struct config *config;
	const struct config_limit *limit;
	struct arena arena;
	char tag[KEY_TAG_MAX];
};

static void
print_error(void *context, const char *text, bool warning)
{
	(void)context;
	if (!warning)
		fprintf(stderr, "%s\n", text);
}

static int
refuse(const struct target *t, const struct err *err)
{
	return store_command_complain(1, t->limit->name, err);
}

/*
 * Where nobody is there is nothing to be forgotten; that is an error only
 * where nothing else was done.
 */
static int
tell_process(const struct target *t, const char *verb, bool is_all)
{
	const char *path = t->config->gateway.control;
	char line[sizeof("forget ") + CONFIG_NAME_MAX + 1 + KEY_TAG_MAX];
	char about[256];
	struct err err;
	int len;

	if (path == NULL)
		return EX_OK;
	len = snprintf(
	    line, sizeof(line), "%s %s %s", verb, t->limit->name, t->tag);
	snprintf(about, sizeof(about), "[gateway] control = %s", path);
	switch (control_ask(path, (struct str){ line, (size_t)len },
	    store_command_deadline_us(t->config), &err)) {
	case CONTROL_OK:
		return EX_OK;
	case CONTROL_NOBODY:
		if (is_all)
			return store_command_complain(
			    EX_UNAVAILABLE, about, &err);
		return EX_OK;
	case CONTROL_REFUSED:
		break;
	}
	return store_command_complain(1, about, &err);
}

/* ---- set, unset -------------------------------------------------- */

static int
write_counts(
    const struct target *t, const struct commands_own *own, struct str name)
{
	struct str set[5] = { STR("SET"), name, str_of(own->counts),
		STR("PX") };
	const struct str unset[2] = { STR("DEL"), name };
	char milliseconds[32];

	if (own->counts == NULL)
		return store_command(t->config, unset, 2);
	snprintf(milliseconds, sizeof(milliseconds), "%lld",
	    (long long)(own->for_us / 1000));
	set[4] = str_of(milliseconds);
	return store_command(t->config, set, own->for_us > 0 ? 5 : 3);
}

static int
run_own(struct target *t, const void *context)
{
	const struct commands_own *own = context;
	struct str name;
	struct err err;
	int code;

	if (!own_possible(&t->config->store, t->limit, &err) ||
	    (own->counts != NULL &&
		!own_counts_good(t->limit, str_of(own->counts), &err)))
		return refuse(t, &err);
	name = own_name(&t->config->store, t->limit, t->tag, &t->arena);
	if (name.p == NULL) {
		err_set(&err, "out of memory");
		return refuse(t, &err);
	}
	code = write_counts(t, own, name);
	return code == EX_OK ? tell_process(t, "forget", false) : code;
}

/* ---- reset ------------------------------------------------------- */

/* Each count and its penalty, whether there is one or not. */
static int
delete_counts(struct target *t)
{
	struct limit_names names;
	struct str *argument = NULL;
	struct err err;
	size_t n = 1;

	if (limit_names(
		t->limit, &t->config->store, t->tag, false, &t->arena, &names))
		argument = arena_alloc(
		    &t->arena, (1 + 2 * names.n) * sizeof(*argument));
	if (argument == NULL) {
		err_set(&err, "out of memory");
		return refuse(t, &err);
	}
	argument[0] = STR("DEL");
	for (size_t i = 0; i < names.n; i++) {
		struct buf penalty;

		buf_init(&penalty);
		buf_addf(&penalty, "%.*s:p", STR_ARG(names.at[i]));
		argument[n++] = names.at[i];
		argument[n++] = arena_copy(&t->arena, buf_str(&penalty));
		buf_release(&penalty);
	}
	return n > 1 ? store_command(t->config, argument, n) : EX_OK;
}

static int
run_reset(struct target *t, const void *context)
{
	bool is_stored = t->limit->scope == CONFIG_SCOPE_SHARED &&
	    t->config->store.kind == CONFIG_STORE_REDIS;
	struct err err;
	int code = EX_OK;

	(void)context;
	if (is_stored) {
		code = delete_counts(t);
	} else if (t->config->gateway.control == NULL) {
		err_set(&err,
		    "its counts are in the running process alone, which is "
		    "reached through [gateway] control");
		return refuse(t, &err);
	}
	return code == EX_OK ? tell_process(t, "reset", !is_stored) : code;
}

/* ---- all of them ------------------------------------------------- */

static int
with_key(struct target *t, const char *limit, struct str key,
    int (*run)(struct target *, const void *), const void *context)
{
	struct err err;

	t->limit = named_limit(t->config, str_of(limit));
	if (t->limit == NULL) {
		err_set(&err, "there is no such limit");
		return store_command_complain(1, limit, &err);
	}
	switch (
	    own_key_tag(t->config, t->limit, key, &t->arena, t->tag, &err)) {
	case OWN_KEY_IS:
		return run(t, context);
	case OWN_KEY_WRONG:
		return store_command_complain(EX_USAGE, limit, &err);
	case OWN_KEY_FAILED:
		break;
	}
	return store_command_complain(EX_SOFTWARE, limit, &err);
}

static int
with_config(const char *config_file, const char *limit, const char *key,
    int (*run)(struct target *, const void *), const void *context)
{
	struct config *config = config_load(config_file, print_error, NULL);
	struct target target = { .config = config };
	struct str value = STR_NONE;
	struct buf room;
	int code = EX_USAGE;

	if (config == NULL)
		return EX_CONFIG;
	arena_init(&target.arena);
	buf_init(&room);
	if (secret_value(key, &room, &value))
		code = with_key(&target, limit, value, run, context);
	secret_value_release(&room);
	arena_release(&target.arena);
	config_unref(config);
	return code;
}

int
commands_own(const char *config_file, const struct commands_own *own)
{
	if (own->counts != NULL &&
	    own->counts[strspn(own->counts, "0123456789,")] != '\0') {
		fprintf(stderr, "sluice: %s: a count is a whole number\n",
		    own->counts);
		return EX_USAGE;
	}
	return with_config(config_file, own->limit, own->key, run_own, own);
}

int
commands_reset(const char *config_file, const char *limit, const char *key)
{
	return with_config(config_file, limit, key, run_reset, NULL);
}
