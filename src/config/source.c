#include "config/source.h"

#include <string.h>

void
source_init(struct source *s, struct findings *findings)
{
	*s = (struct source){ .findings = findings };
	arena_init(&s->arena);
}

void
source_release(struct source *s)
{
	arena_release(&s->arena);
}

struct source_section *
source_find(const struct source *s, enum option_section kind, struct str name)
{
	struct source_section *at = s->section;

	while (
	    at != NULL && (at->kind != kind || !str_eq(str_of(at->name), name)))
		at = at->next;
	return at;
}

const struct source_entry *
source_entry(const struct source_section *section, const char *key)
{
	const struct source_entry *e = section != NULL ? section->entry : NULL;

	while (e != NULL && strcmp(e->option->key, key) != 0)
		e = e->next;
	return e;
}
