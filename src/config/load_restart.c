/*
 * The source is gone when two configurations are compared. What will be said
 * then needs a place.
 */
#include "config/load.h"

#include <stdio.h>

/* A secret may stand in a file of its own, which another option names. */
static struct place
place_of(const struct load *l, const struct option *o)
{
	const struct source_section *section =
	    source_find(&l->source, o->section, STR(""));
	char in_file[40];

	snprintf(in_file, sizeof(in_file), "%s_file", o->key);
	if (o->kind == OPTION_SECRET && load_has(section, in_file))
		return load_place(section, in_file);
	return load_place_in(l, o->section, o->key);
}

static const char *
keep(struct load *l, const char *text)
{
	const char *kept = arena_copy(&l->config->arena, str_of(text)).p;

	if (kept == NULL)
		l->findings.failed = true;
	return kept;
}

void
load_restarts(struct load *l)
{
	struct place *place =
	    arena_alloc(&l->config->arena, option_count * sizeof(*place));

	if (place == NULL) {
		l->findings.failed = true;
		return;
	}
	l->config->restart_place = place;
	for (size_t i = 0; i < option_count; i++) {
		const struct option *o = &option_table[i];

		if (!o->restart || option_section_is_named(o->section))
			continue;
		place[i] = place_of(l, o);
		place[i].file = keep(l, place[i].file);
		place[i].section = keep(l, place[i].section);
		place[i].key = keep(l, place[i].key);
	}
}
