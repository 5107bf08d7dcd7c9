#include "process/store_command.h"

#include <signal.h>
#include <stdio.h>
#include <sysexits.h>

#include "base/clock.h"
#include "domain/redis_session.h"

/* At least; a person waits, not a request. */
#define PATIENCE_US 1000000

int
store_command_complain(int code, const char *about, const struct err *err)
{
	fprintf(stderr, "sluice: %s: %s\n", about, err->text);
	return code;
}

int64_t
store_command_deadline_us(const struct config *config)
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
	int64_t until_us = store_command_deadline_us(config);

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

int
store_command(const struct config *config, const struct str *argument, size_t n)
{
	struct redis_reply *reply = NULL;
	struct redis_link *link;
	struct err err = { "out of memory" };
	int code = EX_OK;

	signal(SIGPIPE, SIG_IGN);
	link = connect_store(config, &err);
	if (link == NULL)
		return store_command_complain(
		    EX_UNAVAILABLE, config->store.address, &err);
	if (!redis_link_send(link, argument, n) ||
	    redis_link_receive(link, store_command_deadline_us(config), &reply,
		&err) != REDIS_READY) {
		code = store_command_complain(
		    EX_UNAVAILABLE, config->store.address, &err);
	} else if (redis_reply_error(reply).p != NULL) {
		err_set(&err, "%.*s", STR_ARG(redis_reply_error(reply)));
		code = store_command_complain(1, config->store.address, &err);
	}
	redis_reply_free(reply);
	redis_link_close(link);
	return code;
}
