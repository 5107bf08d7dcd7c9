/*
 * The store has a hash: a field for each limit and one for the secret. Each
 * gateway overwrites what is its own, so that after a change has been rolled
 * out nothing differs any more.
 *
 * A fingerprint is made with the secret too; where that differs all would,
 * so then it alone is told.
 */
#include "domain/drift.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/counter.h"
#include "base/log.h"

#define DAY_MS "86400000"
/* No limit can have this name. */
#define SECRET_FIELD "/key_secret"

struct drift_field {
	char name[CONFIG_NAME_MAX + 1]; /* the first one: SECRET_FIELD */
	char ours[KEY_TAG_MAX];
	char told[KEY_TAG_MAX]; /* the last other one that was logged */
};

void
drift_init(struct drift *d)
{
	*d = (struct drift){ .generation = 1 };
	pthread_mutex_init(&d->lock, NULL);
}

void
drift_release(struct drift *d)
{
	free(d->name);
	free(d->field);
	pthread_mutex_destroy(&d->lock);
}

static bool
fill(struct drift_field *field, const char *name, struct str definition,
    const struct key_hasher *hasher)
{
	snprintf(field->name, sizeof(field->name), "%s", name);
	return key_tag(hasher, &definition, 1, false, field->ours) > 0;
}

/* What was told of a limit stays told. */
static void
keep_told(const struct drift *d, struct drift_field *field)
{
	for (size_t i = 0; i < d->n; i++)
		if (strcmp(d->field[i].name, field->name) == 0)
			memcpy(
			    field->told, d->field[i].told, sizeof(field->told));
}

static char *
hash_name(const struct config_store *naming)
{
	struct buf name;

	buf_init(&name);
	buf_addf(&name, "%s:fingerprint", naming->prefix);
	buf_add_char(&name, '\0');
	if (!name.failed)
		return name.p;
	buf_release(&name);
	return NULL;
}

bool
drift_set(struct drift *d, const struct config *config,
    const struct config_store *naming)
{
	struct drift_field *field =
	    calloc(config->n_limits + 1, sizeof(*field));
	char *name = hash_name(naming);
	bool ok = field != NULL && name != NULL &&
	    fill(&field[0], SECRET_FIELD, STR("key_secret"), naming->hasher);
	size_t n = 1;

	for (size_t i = 0; ok && i < config->n_limits; i++) {
		const struct config_limit *limit = &config->limit[i];

		if (limit->scope == CONFIG_SCOPE_SHARED)
			ok = fill(&field[n++], limit->name, limit->definition,
			    naming->hasher);
	}
	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; ok && i < n; i++)
		keep_told(d, &field[i]);
	free(d->name);
	free(d->field);
	d->name = name;
	d->field = field;
	d->n = ok ? n : 0;
	d->generation++;
	pthread_mutex_unlock(&d->lock);
	return ok;
}

/* HMGET, HSET and PEXPIRE; called with the lock, `argument` has the room. */
static bool
send_all(const struct drift *d, struct redis_link *link, struct str *argument)
{
	const struct str expire[] = { STR("PEXPIRE"), str_of(d->name),
		STR(DAY_MS) };

	argument[0] = STR("HMGET");
	argument[1] = str_of(d->name);
	for (size_t i = 0; i < d->n; i++)
		argument[2 + i] = str_of(d->field[i].name);
	if (!redis_link_send(link, argument, 2 + d->n))
		return false;
	argument[0] = STR("HSET");
	for (size_t i = 0; i < d->n; i++) {
		argument[2 + 2 * i] = str_of(d->field[i].name);
		argument[3 + 2 * i] = str_of(d->field[i].ours);
	}
	return redis_link_send(link, argument, 2 + 2 * d->n) &&
	    redis_link_send(link, expire, 3);
}

bool
drift_send(struct drift *d, struct redis_link *link, size_t *replies)
{
	struct str *argument;
	bool ok;

	pthread_mutex_lock(&d->lock);
	argument = calloc(2 + 2 * d->n, sizeof(*argument));
	ok = argument != NULL && (d->n == 0 || send_all(d, link, argument));
	*replies = d->n > 0 ? DRIFT_REPLIES : 0;
	d->sent = d->generation;
	free(argument);
	pthread_mutex_unlock(&d->lock);
	return ok;
}

static void
tell(struct drift_field *field, struct str other)
{
	struct log_line line;
	bool is_secret = strcmp(field->name, SECRET_FIELD) == 0;

	if (str_eq(other, str_of(field->told)) || other.len >= KEY_TAG_MAX)
		return;
	memcpy(field->told, other.p, other.len);
	field->told[other.len] = '\0';
	counter_add(COUNTER_drifts, 1);
	log_begin(&line, LOG_LEVEL_WARN, "drift");
	if (!is_secret)
		log_text(&line, "limit", field->name);
	log_text(&line, "msg",
	    is_secret ? "the last gateway to connect has another key_secret: "
			"while both run they count apart"
		      : "the last gateway to connect has another definition "
			"of this limit: while both run they count apart");
	log_end(&line);
}

void
drift_compare(struct drift *d, const struct redis_reply *reply)
{
	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; d->sent == d->generation &&
	     redis_reply_count(reply) == d->n && i < d->n;
	     i++) {
		struct drift_field *field = &d->field[i];
		struct str other = redis_reply_string(redis_reply_at(reply, i));

		if (other.p == NULL || str_eq(other, str_of(field->ours)))
			continue;
		tell(field, other);
		if (i == 0)
			break;
	}
	pthread_mutex_unlock(&d->lock);
}
