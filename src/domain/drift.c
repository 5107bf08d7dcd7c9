/*
 * The store has a hash: a field for each limit and one for the secret. Each
 * gateway overwrites what is its own, so that after a change has been rolled
 * out nothing differs any more. A script does it in one step, so that a hash
 * without a lifetime never stays behind.
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
#include "domain/redis_script.h"

#define DAY_MS "86400000"
/* Of EVAL: the script's text, how many keys, the key, its lifetime. */
#define ARGUMENTS 5
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

/* Called with the lock; `argument` has the room. */
static bool
send_all(const struct drift *d, struct redis_link *link, struct str *argument)
{
	argument[0] = STR("EVAL");
	argument[1] = redis_script_fingerprint()->text;
	argument[2] = STR("1");
	argument[3] = str_of(d->name);
	argument[4] = STR(DAY_MS);
	for (size_t i = 0; i < d->n; i++) {
		argument[ARGUMENTS + 2 * i] = str_of(d->field[i].name);
		argument[ARGUMENTS + 2 * i + 1] = str_of(d->field[i].ours);
	}
	return redis_link_send(link, argument, ARGUMENTS + 2 * d->n);
}

bool
drift_send(struct drift *d, struct redis_link *link, bool *sent)
{
	struct str *argument;
	bool ok;

	pthread_mutex_lock(&d->lock);
	argument = calloc(ARGUMENTS + 2 * d->n, sizeof(*argument));
	ok = argument != NULL && (d->n == 0 || send_all(d, link, argument));
	*sent = d->n > 0;
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

/* Once, until one was good again. */
static void
tell_failure(struct drift *d, struct str error)
{
	struct log_line line;

	if (d->failed)
		return;
	d->failed = true;
	log_begin(&line, LOG_LEVEL_WARN, "fingerprint_failed");
	log_text(&line, "msg",
	    "whether other gateways have the same limits can not be told");
	log_str(&line, "detail", error);
	log_end(&line);
}

static void
compare_all(struct drift *d, const struct redis_reply *reply)
{
	for (size_t i = 0; i < d->n; i++) {
		struct drift_field *field = &d->field[i];
		struct str other = redis_reply_string(redis_reply_at(reply, i));

		if (other.p == NULL || str_eq(other, str_of(field->ours)))
			continue;
		tell(field, other);
		if (i == 0)
			break;
	}
}

void
drift_judge(struct drift *d, const struct redis_reply *reply)
{
	struct str error = redis_reply_error(reply);

	pthread_mutex_lock(&d->lock);
	if (error.p != NULL) {
		tell_failure(d, error);
	} else if (d->sent == d->generation &&
	    redis_reply_count(reply) == d->n) {
		d->failed = false;
		compare_all(d, reply);
	}
	pthread_mutex_unlock(&d->lock);
}
