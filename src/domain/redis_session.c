/*
 * All commands go out at once when the connection stands; the replies are
 * then read in order, and the first that matters is the attempt's failure.
 */
#include "domain/redis_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "domain/redis_script.h"

#define COMMANDS_MAX 11

enum weight {
	VITAL,
	ACCESS, /* a refused AUTH, whatever its words */
	OPTIONAL
};

struct redis_session {
	struct redis_link *link;
	int64_t deadline_us;
	bool connected;
	struct {
		char database[16];
		char probe[300];
		char *username;
		char *password;
	} text;
	bool untried;
	struct drift *drift;
	bool drifts;
	size_t drift_at; /* its reply, if it drifts */
	size_t n;
	size_t read;
	enum weight weight[COMMANDS_MAX];
	const char *what[COMMANDS_MAX];
};

static bool
copy_text(char **to, const char *from)
{
	*to = from != NULL ? strdup(from) : NULL;
	return from == NULL || *to != NULL;
}

struct redis_session *
redis_session_start(const struct redis_session_settings *settings,
    int64_t deadline_us, struct err *err)
{
	struct redis_session *s = calloc(1, sizeof(*s));

	if (s == NULL || !copy_text(&s->text.username, settings->username) ||
	    !copy_text(&s->text.password, settings->password)) {
		err_set(err, "out of memory");
		redis_session_free(s);
		return NULL;
	}
	s->deadline_us = deadline_us;
	s->drift = settings->drift;
	s->untried = settings->untried;
	snprintf(s->text.database, sizeof(s->text.database), "%u",
	    settings->address.database);
	if (settings->prefix != NULL)
		snprintf(s->text.probe, sizeof(s->text.probe), "%s:probe",
		    settings->prefix);
	s->link = redis_link_open(&settings->address, deadline_us, err);
	if (s->link == NULL) {
		redis_session_free(s);
		return NULL;
	}
	return s;
}

void
redis_session_free(struct redis_session *s)
{
	if (s == NULL)
		return;
	redis_link_close(s->link);
	free(s->text.username);
	if (s->text.password != NULL)
		explicit_bzero(s->text.password, strlen(s->text.password));
	free(s->text.password);
	free(s);
}

static void
expect(struct redis_session *s, enum weight weight, const char *what)
{
	s->weight[s->n] = weight;
	s->what[s->n] = what;
	s->n++;
}

static bool
queue(struct redis_session *s, enum weight weight, const struct str *argument,
    size_t n)
{
	expect(s, weight, argument[0].p);
	return redis_link_send(s->link, argument, n);
}

static bool
queue_drift(struct redis_session *s)
{
	if (s->drift == NULL)
		return true;
	if (!drift_send(s->drift, s->link, &s->drifts))
		return false;
	s->drift_at = s->n;
	if (s->drifts)
		expect(s, OPTIONAL, "fingerprint");
	return true;
}

static bool
queue_auth(struct redis_session *s)
{
	struct str argument[3] = { STR("AUTH") };
	size_t n = 1;

	if (s->text.password == NULL)
		return true;
	if (s->text.username != NULL)
		argument[n++] = str_of(s->text.username);
	argument[n++] = str_of(s->text.password);
	return queue(s, ACCESS, argument, n);
}

static bool
queue_load(struct redis_session *s, enum redis_script_name name)
{
	const struct str argument[] = { STR("SCRIPT"), STR("LOAD"),
		redis_script(name)->text };

	return queue(s, VITAL, argument, 3);
}

/* What a check needs, tried before there is one. */
static bool
queue_trial(struct redis_session *s)
{
	const struct str ping[] = { STR("PING") };
	const struct str name[] = { STR("CLIENT"), STR("SETNAME"),
		STR("sluice") };
	const struct str run[] = { STR("EVALSHA"),
		redis_script(REDIS_SCRIPT_CHECK)->sha1, STR("0"), STR("") };
	const struct str probe[] = { STR("SET"), str_of(s->text.probe),
		STR("1"), STR("PX"), STR("1") };

	return queue(s, VITAL, ping, 1) && queue(s, OPTIONAL, name, 3) &&
	    queue_load(s, REDIS_SCRIPT_CHECK) &&
	    queue_load(s, REDIS_SCRIPT_SETTLE) &&
	    queue_load(s, REDIS_SCRIPT_RENEW) && queue(s, VITAL, run, 4) &&
	    (s->text.probe[0] == '\0' || queue(s, VITAL, probe, 5)) &&
	    queue_drift(s);
}

static bool
queue_all(struct redis_session *s)
{
	const struct str database[] = { STR("SELECT"),
		str_of(s->text.database) };

	return queue_auth(s) && queue(s, VITAL, database, 2) &&
	    (s->untried || queue_trial(s));
}

/* NULL: this reply is as it should be. */
static const struct redis_trouble *
judge(const struct redis_session *s, size_t i, const struct redis_reply *reply,
    struct err *err)
{
	struct str error = redis_reply_error(reply);

	if (error.p == NULL || s->weight[i] == OPTIONAL)
		return NULL;
	if (s->weight[i] == ACCESS) {
		/* Its words may quote the password. */
		err_set(err, "AUTH was refused");
		return &redis_trouble_password;
	}
	err_set(err, "%s: %.*s", s->what[i], STR_ARG(error));
	return redis_trouble_of(error);
}

static enum redis_progress
read_replies(struct redis_session *s, int64_t until_us,
    const struct redis_trouble **trouble, struct err *err)
{
	while (s->read < s->n) {
		struct redis_reply *reply = NULL;
		enum redis_progress progress =
		    redis_link_receive(s->link, until_us, &reply, err);

		if (progress != REDIS_READY)
			return progress;
		if (s->drifts && s->read == s->drift_at)
			drift_judge(s->drift, reply);
		*trouble = judge(s, s->read++, reply, err);
		redis_reply_free(reply);
		if (*trouble != NULL)
			return REDIS_BROKEN;
	}
	return REDIS_READY;
}

static enum redis_progress
connect_step(struct redis_session *s, int64_t until_us, struct err *err)
{
	enum redis_progress progress;

	if (s->connected)
		return REDIS_READY;
	progress = redis_link_wait(s->link, until_us, err);
	if (progress != REDIS_READY)
		return progress;
	s->connected = true;
	if (queue_all(s))
		return REDIS_READY;
	err_set(err, "out of memory");
	return REDIS_BROKEN;
}

enum redis_progress
redis_session_step(struct redis_session *s, int64_t until_us,
    struct redis_link **link, const struct redis_trouble **trouble,
    struct err *err)
{
	int64_t step_us = until_us < s->deadline_us ? until_us : s->deadline_us;
	enum redis_progress progress;

	*trouble = &redis_trouble_unreachable;
	progress = connect_step(s, step_us, err);
	if (progress == REDIS_READY)
		progress = read_replies(s, step_us, trouble, err);
	if (progress == REDIS_READY) {
		*link = s->link;
		s->link = NULL;
		return REDIS_READY;
	}
	if (progress == REDIS_NOT_YET && clock_mono_us() >= s->deadline_us) {
		err_set(err, "no answer within connect_timeout");
		*trouble = &redis_trouble_unreachable;
		progress = REDIS_BROKEN;
	}
	if (progress == REDIS_BROKEN && *trouble == NULL)
		*trouble = &redis_trouble_unreachable;
	return progress;
}
