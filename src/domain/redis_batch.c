/*
 * EVALSHA first; a server that does not know the script (restarted, failed
 * over, flushed) gets its text once, within the same deadline. Nothing else
 * is ever sent twice, as it may have counted.
 */
#include "domain/redis_batch.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/counter.h"
#include "domain/unsettled.h"

static const enum redis_script_name order[] = { REDIS_SCRIPT_SETTLE,
	REDIS_SCRIPT_CHECK, REDIS_SCRIPT_RENEW };

struct redis_batch {
	size_t n;
	struct redis_batch_item *item[REDIS_BATCH_MAX];
	int64_t cut[REDIS_BATCH_MAX * STORE_CHECKS_MAX];
	struct buf joined; /* arguments of all questions */
	struct str *argument;
	size_t room; /* of them */
	char number[24];
};

bool
redis_batch_item_fill(struct redis_batch_item *item,
    enum redis_script_name name, const struct store_question *q)
{
	item->name = name;
	item->n = name == REDIS_SCRIPT_RENEW ? 0 : q->n;
	buf_reset(&item->keys);
	buf_reset(&item->argument);
	item->n_keys = redis_script_put(&item->argument, &item->keys, name, q);
	if (name == REDIS_SCRIPT_CHECK)
		for (size_t i = 0; i < q->n; i++)
			item->bounds[i] =
			    redis_script_bounds_of(&q->check[i].check);
	item->own = 0;
	for (size_t i = 0; i < item->n; i++)
		if (q->check[i].own_key.p != NULL)
			item->own |= UINT32_C(1) << i;
	return !item->keys.failed && !item->argument.failed;
}

void
redis_batch_item_release(struct redis_batch_item *item)
{
	buf_release(&item->keys);
	buf_release(&item->argument);
}

struct redis_batch *
redis_batch_new(void)
{
	return calloc(1, sizeof(struct redis_batch));
}

void
redis_batch_free(struct redis_batch *batch)
{
	buf_release(&batch->joined);
	free(batch->argument);
	free(batch);
}

void
redis_batch_reset(struct redis_batch *batch)
{
	batch->n = 0;
}

bool
redis_batch_add(struct redis_batch *batch, struct redis_batch_item *item)
{
	if (batch->n == REDIS_BATCH_MAX)
		return false;
	batch->item[batch->n++] = item;
	return true;
}

size_t
redis_batch_count(const struct redis_batch *batch)
{
	return batch->n;
}

struct redis_batch_item *
redis_batch_at(const struct redis_batch *batch, size_t i)
{
	return batch->item[i];
}

static bool
has(const struct redis_batch *batch, enum redis_script_name name)
{
	for (size_t i = 0; i < batch->n; i++)
		if (batch->item[i]->name == name)
			return true;
	return false;
}

/*
 * Name of the command, script, number of keys, keys, argument. False: no
 * memory for so many.
 */
static bool
make_room(struct redis_batch *batch, size_t keys)
{
	size_t room = 3 + keys + 1;
	struct str *argument;

	if (room <= batch->room)
		return true;
	argument = reallocarray(batch->argument, room, sizeof(*argument));
	if (argument == NULL)
		return false;
	batch->argument = argument;
	batch->room = room;
	return true;
}

/* Queues the call of one script for all its questions; false: no memory. */
static bool
send_call(struct redis_batch *batch, struct redis_link *link,
    enum redis_script_name name, bool as_text)
{
	const struct redis_script *script = redis_script(name);
	struct str *argument;
	size_t keys = 0, checks = 0;

	buf_reset(&batch->joined);
	for (size_t i = 0; i < batch->n; i++)
		if (batch->item[i]->name == name)
			keys += batch->item[i]->n_keys;
	if (!make_room(batch, keys))
		return false;
	argument = batch->argument;
	keys = 0;
	for (size_t i = 0; i < batch->n; i++) {
		const struct redis_batch_item *item = batch->item[i];
		struct str left = buf_str(&item->keys);

		if (item->name != name)
			continue;
		checks += item->n;
		for (size_t k = 0; k < item->n_keys; k++)
			argument[3 + keys++] = redis_script_next_key(&left);
		buf_add_str(&batch->joined, buf_str(&item->argument));
	}
	argument[0] = as_text ? STR("EVAL") : STR("EVALSHA");
	argument[1] = as_text ? script->text : script->sha1;
	snprintf(batch->number, sizeof(batch->number), "%zu", keys);
	argument[2] = str_of(batch->number);
	argument[3 + keys] = buf_str(&batch->joined);
	if (!as_text && name == REDIS_SCRIPT_CHECK)
		counter_add(COUNTER_checks, checks);
	return !batch->joined.failed &&
	    redis_link_send(link, argument, 3 + keys + 1);
}

static const struct redis_trouble *
receive(
    struct redis_link *link, int64_t deadline_us, struct redis_reply **reply)
{
	struct err err;

	switch (redis_link_receive(link, deadline_us, reply, &err)) {
	case REDIS_READY:
		return NULL;
	case REDIS_NOT_YET:
		return &redis_trouble_timeout;
	case REDIS_BROKEN:
		break;
	}
	return &redis_trouble_broken;
}

static const struct redis_trouble *
share_checks(struct redis_batch *batch, const struct redis_reply *reply)
{
	struct redis_script_reader reader;
	const struct redis_trouble *trouble = NULL;

	if (!redis_script_read_begin(&reader, reply))
		return &redis_trouble_broken;
	for (size_t i = 0; i < batch->n; i++) {
		struct redis_batch_item *item = batch->item[i];
		const struct redis_trouble *own;
		bool ok;

		if (item->name != REDIS_SCRIPT_CHECK)
			continue;
		own = redis_script_read(
		    &reader, item->bounds, item->n, &item->answer, &ok);
		if (!ok) {
			item->answer.status = STORE_OUT;
			item->answer.reason = redis_trouble_broken.reason;
			return &redis_trouble_broken;
		}
		if (own != NULL)
			trouble = own;
	}
	return trouble;
}

/* cut: of its checks. */
static void
settled(struct redis_batch_item *item, const int64_t *cut)
{
	struct str keys = buf_str(&item->keys);
	size_t lost = 0;

	for (size_t k = 0; k < item->n; k++) {
		struct str key = redis_script_next_key(&keys);

		if (item->own >> k & 1)
			redis_script_next_key(&keys);
		if (cut[k] > 0)
			unsettled_cut(key, cut[k]);
		lost += cut[k] < 0;
	}
	unsettled_lost(lost);
	item->answer.status = STORE_ANSWERED;
}

static const struct redis_trouble *
share_settled(struct redis_batch *batch, const struct redis_reply *reply)
{
	size_t n = 0;

	for (size_t i = 0; i < batch->n; i++)
		if (batch->item[i]->name == REDIS_SCRIPT_SETTLE)
			n += batch->item[i]->n;
	if (!redis_script_read_settled(reply, batch->cut, n))
		return &redis_trouble_broken;
	n = 0;
	for (size_t i = 0; i < batch->n; i++) {
		if (batch->item[i]->name != REDIS_SCRIPT_SETTLE)
			continue;
		settled(batch->item[i], &batch->cut[n]);
		n += batch->item[i]->n;
	}
	return NULL;
}

static void
share_renewed(struct redis_batch *batch)
{
	for (size_t i = 0; i < batch->n; i++)
		if (batch->item[i]->name == REDIS_SCRIPT_RENEW)
			batch->item[i]->answer.status = STORE_ANSWERED;
}

static const struct redis_trouble *
share(struct redis_batch *batch, enum redis_script_name name,
    const struct redis_reply *reply)
{
	struct str error = redis_reply_error(reply);

	if (error.p != NULL)
		return redis_trouble_of(error);
	switch (name) {
	case REDIS_SCRIPT_CHECK:
		return share_checks(batch, reply);
	case REDIS_SCRIPT_SETTLE:
		return share_settled(batch, reply);
	case REDIS_SCRIPT_RENEW:
		break;
	}
	share_renewed(batch);
	return NULL;
}

static bool
is_noscript(const struct redis_reply *reply)
{
	return str_starts(redis_reply_error(reply), STR("NOSCRIPT"));
}

/*
 * One script's reply, asked for once more by its text if it was not known;
 * only on a link that is in step, where the next reply is the one for it.
 */
static const struct redis_trouble *
finish(struct redis_batch *batch, struct redis_link *link,
    enum redis_script_name name, int64_t deadline_us,
    struct redis_reply **reply, bool in_step)
{
	const struct redis_trouble *trouble;

	if (in_step && is_noscript(*reply)) {
		redis_reply_free(*reply);
		*reply = NULL;
		if (!send_call(batch, link, name, true))
			return &redis_trouble_broken;
		trouble = receive(link, deadline_us, reply);
		if (trouble != NULL)
			return trouble;
	}
	return share(batch, name, *reply);
}

static void
set_all_out(struct redis_batch *batch, const char *reason)
{
	for (size_t i = 0; i < batch->n; i++) {
		batch->item[i]->answer.status = STORE_OUT;
		batch->item[i]->answer.reason = reason;
	}
}

/* Who was left without an answer is told why. */
static void
explain(struct redis_batch *batch, const struct redis_trouble *trouble)
{
	for (size_t i = 0; i < batch->n; i++)
		if (batch->item[i]->answer.reason == NULL &&
		    batch->item[i]->answer.status == STORE_OUT)
			batch->item[i]->answer.reason = trouble->reason;
}

/* A reply for each script that has questions, or what went wrong. */
static const struct redis_trouble *
exchange(struct redis_batch *batch, struct redis_link *link,
    int64_t deadline_us, struct redis_reply *reply[REDIS_SCRIPTS])
{
	const struct redis_trouble *trouble = NULL;

	if (!redis_link_is_quiet(link))
		return &redis_trouble_broken;
	for (size_t i = 0; i < REDIS_SCRIPTS; i++)
		if (has(batch, order[i]) &&
		    !send_call(batch, link, order[i], false))
			return &redis_trouble_broken;
	for (size_t i = 0; trouble == NULL && i < REDIS_SCRIPTS; i++)
		if (has(batch, order[i]))
			trouble = receive(link, deadline_us, &reply[i]);
	return trouble;
}

const struct redis_trouble *
redis_batch_run(
    struct redis_batch *batch, struct redis_link *link, int64_t deadline_us)
{
	struct redis_reply *reply[REDIS_SCRIPTS] = { NULL };
	const struct redis_trouble *trouble;

	set_all_out(batch, NULL);
	counter_add(COUNTER_check_trips, 1);
	trouble = exchange(batch, link, deadline_us, reply);
	for (size_t i = 0; i < REDIS_SCRIPTS; i++) {
		const struct redis_trouble *own = NULL;

		if (reply[i] != NULL)
			own = finish(batch, link, order[i], deadline_us,
			    &reply[i], trouble == NULL);
		redis_reply_free(reply[i]);
		if (own != NULL)
			trouble = own;
	}
	if (trouble != NULL)
		explain(batch, trouble);
	return trouble;
}
