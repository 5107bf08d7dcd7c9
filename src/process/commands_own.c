/*
 * set and unset: the commands that write to the store. They connect to it as
 * a gateway does, so that what keeps a gateway out is found here too.
 */
#include "process/commands.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/arena.h"
#include "base/clock.h"
#include "config/config.h"
#include "domain/own.h"
#include "domain/redis_session.h"
#include "process/secret_value.h"

/* At least; a person waits, not a request. */
#define PATIENCE_US 1000000

static void
print_error(void *context, const char *text, bool warning)
{
	(void)context;
	if (!warning)
		fprintf(stderr, "%s\n", text);
}

static int
complain(int code, const char *about, const struct err *err)
{
	fprintf(stderr, "sluice: %s: %s\n", about, err->text);
	return code;
}

static const struct config_limit *
find_limit(const struct config *config, const char *name)
{
	for (size_t i = 0; i < config->n_limits; i++)
		if (strcmp(config->limit[i].name, name) == 0)
			return &config->limit[i];
	return NULL;
}

static int64_t
deadline_us(const struct config *config)
{
	int64_t wait_us = config->store.connect_timeout_us;

	return clock_mono_us() +
	    (wait_us > PATIENCE_US ? wait_us : PATIENCE_US);
}

static struct redis_link *
connect_store(const struct config *config, struct err *err)
{
	struct redis_session_settings settings = {
		.username = config->store.username,
		.password = config->store.password,
		.prefix = config->store.prefix,
	};
	const struct redis_trouble *trouble;
	struct redis_session *session;
	struct redis_link *link = NULL;
	int64_t until_us = deadline_us(config);

	if (!redis_address_parse(
		str_of(config->store.address), &settings.address, err))
		return NULL;
	session = redis_session_start(&settings, until_us, err);
	if (session == NULL)
		return NULL;
	if (redis_session_step(session, until_us, &link, &trouble, err) !=
	    REDIS_READY)
		link = NULL;
	redis_session_free(session);
	return link;
}

/* Sends one command; 0, or an exit code once that was said. */
static int
send_command(const struct config *config, const struct str *argument, size_t n)
{
	struct redis_reply *reply = NULL;
	struct redis_link *link;
	struct err err = { "out of memory" };
	int code = EX_OK;

	signal(SIGPIPE, SIG_IGN);
	link = connect_store(config, &err);
	if (link == NULL)
		return complain(EX_UNAVAILABLE, config->store.address, &err);
	if (!redis_link_send(link, argument, n) ||
	    redis_link_receive(link, deadline_us(config), &reply, &err) !=
		REDIS_READY) {
		code = complain(EX_UNAVAILABLE, config->store.address, &err);
	} else if (redis_reply_error(reply).p != NULL) {
		err_set(&err, "%.*s", STR_ARG(redis_reply_error(reply)));
		code = complain(1, config->store.address, &err);
	}
	redis_reply_free(reply);
	redis_link_close(link);
	return code;
}

/* What both commands need to know; 0, or an exit code once that was said. */
static int
find_name(const struct config *config, const struct commands_own *own,
    struct str key, struct arena *arena, struct str *name)
{
	const struct config_limit *limit = find_limit(config, own->limit);
	struct err err;

	if (limit == NULL) {
		err_set(&err, "there is no such limit");
		return complain(1, own->limit, &err);
	}
	if (!own_possible(&config->store, limit, &err) ||
	    !own_name_of(config, limit, key, arena, name, &err) ||
	    (own->counts != NULL &&
		!own_counts_good(limit, str_of(own->counts), &err)))
		return complain(1, limit->name, &err);
	return EX_OK;
}

static int
write_counts(const struct config *config, const struct commands_own *own,
    struct str name)
{
	struct str set[5] = { STR("SET"), name, str_of(own->counts),
		STR("PX") };
	const struct str unset[2] = { STR("DEL"), name };
	char milliseconds[32];

	if (own->counts == NULL)
		return send_command(config, unset, 2);
	snprintf(milliseconds, sizeof(milliseconds), "%lld",
	    (long long)(own->for_us / 1000));
	set[4] = str_of(milliseconds);
	return send_command(config, set, own->for_us > 0 ? 5 : 3);
}

int
commands_own(const char *config_file, const struct commands_own *own)
{
	struct config *config = config_load(config_file, print_error, NULL);
	struct arena arena;
	struct buf room;
	struct str key = STR_NONE;
	struct str name = STR_NONE;
	int code = EX_USAGE;

	if (config == NULL)
		return EX_CONFIG;
	if (own->counts != NULL &&
	    own->counts[strspn(own->counts, "0123456789,")] != '\0') {
		fprintf(stderr, "sluice: %s: a count is a whole number\n",
		    own->counts);
		config_unref(config);
		return EX_USAGE;
	}
	arena_init(&arena);
	buf_init(&room);
	if (secret_value(own->key, &room, &key))
		code = find_name(config, own, key, &arena, &name);
	if (code == EX_OK)
		code = write_counts(config, own, name);
	secret_value_release(&room);
	arena_release(&arena);
	config_unref(config);
	return code;
}
