/*
 * Of the keys of limits: which values count (known_keys), and whether a
 * client that invents them is stopped by nothing.
 */
#include "config/load.h"

#include <string.h>

#include "config/known_file.h"

static bool
has_names(const struct key *key)
{
	return key_uses(key, KEY_HEADER) || key_uses(key, KEY_COOKIE) ||
	    key_uses(key, KEY_QUERY) || key_uses(key, KEY_FORM) ||
	    key_uses(key, KEY_PARAM);
}

static void
read_known(struct load *l, size_t at)
{
	struct config_limit *limit = &l->config->limit[at];
	const struct source_entry *e = source_entry(l->limit[at], "known_keys");
	struct err err;

	if (limit->known_keys == NULL || limit->key.n == 0)
		return;
	if (!has_names(&limit->key)) {
		finding_error(&l->findings, &e->place,
		    "the key has no header, cookie, query, form or param "
		    "whose values these could be");
		return;
	}
	if (l->config->store.hasher == NULL)
		return;
	limit->known =
	    known_file_read(str_of(limit->known_keys), e->file->directory,
		l->config->store.hasher, &l->config->arena, &err);
	if (limit->known == NULL)
		finding_error(&l->findings, &e->place, "%s", err.text);
}

static bool
can_be_invented(const struct key_alternative *a)
{
	switch (a->source) {
	case KEY_HEADER:
	case KEY_COOKIE:
	case KEY_QUERY:
	case KEY_FORM:
		return true;
	case KEY_PARAM:
		return str_starts(str_of(a->name), STR("HTTP_"));
	case KEY_CLIENT:
	case KEY_HOST:
	case KEY_PATH:
	case KEY_METHOD:
	case KEY_GLOBAL:
		break;
	}
	return false;
}

/* Is it always what the web server knows of the client? */
static bool
is_of_web_server(const struct key_part *part)
{
	for (size_t i = 0; i < part->n; i++) {
		const struct key_alternative *a = &part->alternative[i];

		if (a->source != KEY_CLIENT &&
		    (a->source != KEY_PARAM || can_be_invented(a)))
			return false;
	}
	return true;
}

static bool
has_invented(const struct key_part *part)
{
	for (size_t i = 0; i < part->n; i++)
		if (can_be_invented(&part->alternative[i]))
			return true;
	return false;
}

static bool
is_fixed(const struct key_part *part)
{
	for (size_t i = 0; i < part->n; i++)
		if (part->alternative[i].source != KEY_GLOBAL &&
		    part->alternative[i].source != KEY_METHOD)
			return false;
	return true;
}

/* Does it stop a client whatever that sends? */
static bool
binds_clients(const struct config_limit *limit)
{
	if (limit->rates.n == 0 || limit->n_tiers > 0 ||
	    limit->mode != CONFIG_MODE_ENFORCE)
		return false;
	for (size_t i = 0; i < limit->key.n; i++)
		if (!is_of_web_server(&limit->key.part[i]) &&
		    !is_fixed(&limit->key.part[i]))
			return false;
	return limit->key.n > 0;
}

/* Is there another limit that a client who invents keys runs into? */
static bool
is_backed(const struct load *l, size_t at)
{
	for (size_t i = 0; i < l->config->n_limits; i++)
		if (i != at && binds_clients(&l->config->limit[i]) &&
		    !load_has(l->limit[i], "count") &&
		    load_is_wider(l->limit[i], l->limit[at]))
			return true;
	return false;
}

/* Is all of it what a client can send as it likes? */
static bool
is_invented(const struct key *key)
{
	bool invented = false;

	for (size_t i = 0; i < key->n; i++) {
		if (is_of_web_server(&key->part[i]))
			return false;
		invented |= has_invented(&key->part[i]);
	}
	return invented;
}

static void
judge_key(struct load *l, size_t at)
{
	const struct config_limit *limit = &l->config->limit[at];
	struct place place = load_place(l->limit[at], "key");

	if (load_has(l->limit[at], "known_keys") ||
	    (limit->rates.n == 0 && limit->n_tiers == 0) ||
	    !is_invented(&limit->key) || is_backed(l, at))
		return;
	finding_warning(&l->findings, &place,
	    "a client can invent values for it, each of which begins a count "
	    "of its own: say in known_keys which count, or let a limit by "
	    "client apply too");
}

void
load_keys(struct load *l)
{
	for (size_t i = 0; i < l->config->n_limits; i++) {
		read_known(l, i);
		judge_key(l, i);
	}
}
