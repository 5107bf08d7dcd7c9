/*
 * config_load in one paragraph: the source is read (sections, entries),
 * each section becomes its struct, option by option from the table, then
 * what spans options is checked. Nothing stops at the first error; the
 * findings are reported at the end, in the order of the file's lines.
 */
#include "config/config.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "config/load.h"
#include "config/option.h"
#include "config/value.h"
#include "config/value_pairs.h"
#include "config/source_load.h"

/* One option: what the file says, else its default. */
static void
read_option(struct load *l, const struct option *option,
    const struct source_section *section, void *base)
{
	const struct source_entry *e = source_entry(section, option->key);
	struct value_room room = { &l->config->arena, "." };
	struct str text = str_of(option->preset);
	struct place place;
	struct err err;

	if (e != NULL) {
		room.directory = e->file->directory;
		text = e->value;
	}
	if (text.p == NULL || value_set(option, text, &room, base, &err))
		return;
	place = section != NULL
	    ? load_place(section, option->key)
	    : load_place_in(l, option->section, option->key);
	finding_error(&l->findings, &place, "%s", err.text);
}

static void
read_section(struct load *l, enum option_section kind,
    const struct source_section *section, void *base)
{
	for (size_t i = 0; i < option_count; i++)
		if (option_table[i].section == kind &&
		    option_table[i].kind != OPTION_TIER_RATES)
			read_option(l, &option_table[i], section, base);
}

static size_t
count_sections(const struct source *source, enum option_section kind)
{
	size_t n = 0;

	for (const struct source_section *s = source->section; s != NULL;
	     s = s->next)
		n += s->kind == kind;
	return n;
}

/* All sections of a kind, in file order; [backend default] comes last. */
static const struct source_section **
list_sections(struct load *l, enum option_section kind, size_t n)
{
	struct arena *arena = &l->config->arena;
	const struct source_section **list =
	    arena_alloc(arena, n * sizeof(struct source_section *));
	size_t at = 0;

	if (list == NULL)
		return NULL;
	for (const struct source_section *s = l->source.section; s != NULL;
	     s = s->next) {
		if (s->kind != kind)
			continue;
		if (kind == OPTION_backend && strcmp(s->name, "default") == 0)
			list[n - 1] = s;
		else
			list[at++] = s;
	}
	return list;
}

static bool
read_limits(struct load *l)
{
	struct config *c = l->config;
	size_t n = count_sections(&l->source, OPTION_limit);

	c->limit = arena_alloc(&c->arena, n * sizeof(*c->limit));
	l->limit = list_sections(l, OPTION_limit, n);
	if (c->limit == NULL || l->limit == NULL)
		return false;
	c->n_limits = n;
	for (size_t i = 0; i < n; i++) {
		const struct source_section *s = l->limit[i];
		struct config_limit *limit = &c->limit[i];

		memcpy(limit->name, s->name, sizeof(limit->name));
		limit->line = s->place.line;
		limit->file = arena_copy(&c->arena, str_of(s->place.file)).p;
		limit->keys_missed =
		    arena_alloc(&c->arena, sizeof(*limit->keys_missed));
		if (limit->keys_missed == NULL)
			return false;
		read_section(l, OPTION_limit, s, limit);
	}
	return true;
}

/* What they say of limits is load_tiers' concern. */
static bool
read_tiers(struct load *l)
{
	struct config *c = l->config;
	size_t n = count_sections(&l->source, OPTION_tier);

	c->tier = arena_alloc(&c->arena, n * sizeof(*c->tier));
	l->tier = list_sections(l, OPTION_tier, n);
	if (c->tier == NULL || l->tier == NULL)
		return false;
	c->n_tiers = n;
	for (size_t i = 0; i < n; i++) {
		const struct source_section *s = l->tier[i];
		struct config_tier *tier = &c->tier[i];

		memcpy(tier->name, s->name, sizeof(tier->name));
		tier->line = s->place.line;
		tier->file = arena_copy(&c->arena, str_of(s->place.file)).p;
		read_section(l, OPTION_tier, s, tier);
	}
	return true;
}

static bool
read_backends(struct load *l)
{
	struct config *c = l->config;
	size_t n = count_sections(&l->source, OPTION_backend);

	c->backend = arena_alloc(&c->arena, n * sizeof(*c->backend));
	l->backend = list_sections(l, OPTION_backend, n);
	if (c->backend == NULL || l->backend == NULL)
		return false;
	c->n_backends = n;
	for (size_t i = 0; i < n; i++) {
		const struct source_section *s = l->backend[i];
		struct config_backend *backend = &c->backend[i];

		memcpy(backend->name, s->name, sizeof(backend->name));
		backend->line = s->place.line;
		backend->file = arena_copy(&c->arena, str_of(s->place.file)).p;
		read_section(l, OPTION_backend, s, backend);
	}
	return true;
}

static void
read_single(struct load *l, enum option_section kind, void *base)
{
	read_section(l, kind, source_find(&l->source, kind, STR("")), base);
}

static void
make(struct load *l, const char *file)
{
	struct config *c = l->config;

	c->file = (char *)arena_copy(&c->arena, str_of(file)).p;
	read_single(l, OPTION_gateway, &c->gateway);
	read_single(l, OPTION_store, &c->store);
	read_single(l, OPTION_response, &c->response);
	read_single(l, OPTION_log, &c->log);
	if (c->file == NULL || !read_limits(l) || !read_tiers(l) ||
	    !read_backends(l)) {
		l->findings.failed = true;
		return;
	}
	load_check(l);
	load_roles(l);
	load_answers(l);
	load_tiers(l);
	load_keys(l);
	load_limits(l);
	load_leases(l);
	load_response(l);
	load_sense(l);
	load_overlap(l);
	load_definitions(l);
	load_restarts(l);
}

static struct config *
config_new(void)
{
	static _Atomic uint64_t serial;
	struct config *config = calloc(1, sizeof(*config));

	if (config == NULL)
		return NULL;
	arena_init(&config->arena);
	atomic_init(&config->references, 1);
	config->serial = atomic_fetch_add(&serial, 1);
	return config;
}

struct config *
config_load(const char *file, config_report *report, void *context)
{
	struct load l = { .config = config_new() };
	bool is_good;

	findings_init(&l.findings);
	source_init(&l.source, &l.findings);
	source_load(&l.source, file);
	if (l.config == NULL)
		l.findings.failed = true;
	else if (l.source.section != NULL || l.findings.errors == 0)
		make(&l, file);
	is_good = l.findings.errors == 0 && !l.findings.failed;
	findings_report(&l.findings, report, context);
	source_release(&l.source);
	findings_release(&l.findings);
	if (is_good)
		return l.config;
	config_unref(l.config);
	return NULL;
}

struct config *
config_ref(struct config *config)
{
	atomic_fetch_add_explicit(&config->references, 1, memory_order_relaxed);
	return config;
}

static void
free_match(struct config_match *match)
{
	match_free(match->host);
	match_free(match->path);
	match_free(match->method);
}

static void
wipe(char *secret)
{
	if (secret != NULL)
		explicit_bzero(secret, strlen(secret));
}

void
config_unref(struct config *config)
{
	if (config == NULL ||
	    atomic_fetch_sub_explicit(
		&config->references, 1, memory_order_acq_rel) > 1)
		return;
	for (size_t i = 0; i < config->n_limits; i++) {
		free_match(&config->limit[i].match);
		value_pairs_release(&config->limit[i].header);
		value_pairs_release(&config->limit[i].query);
		match_free(config->limit[i].except_path);
		match_free(config->limit[i].except_method);
	}
	for (size_t i = 0; i < config->n_backends; i++)
		free_match(&config->backend[i].match);
	key_hasher_free(config->store.hasher);
	wipe(config->store.password);
	wipe(config->store.key_secret);
	arena_release(&config->arena);
	free(config);
}
