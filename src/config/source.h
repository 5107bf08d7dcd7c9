/*
 * source: a configuration as it is written: sections and their entries.
 *
 * source_load fills it from a file and all it includes, and puts whatever is
 * wrong with the text, with a section's or an option's name, or given twice,
 * into the findings. What the values mean is not its concern, but for
 * ${NAME}, which is the environment's, and `include`.
 *
 * A section of a fixed name may stand once in each file; they are one. A
 * limit, a tier or a backend stands once in all.
 */
#ifndef SLUICE_SOURCE_H
#define SLUICE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/str.h"
#include "config/config.h"
#include "config/finding.h"
#include "config/option.h"

struct source_file {
	struct source_file *next;
	const char *path;
	const char *directory;
	unsigned order;
	dev_t device;
	ino_t inode;
	struct place included; /* where; file NULL: the first one */
};

struct source_entry {
	struct source_entry *next; /* in the order of reading */
	const struct option *option;
	struct place place;
	struct str value; /* ${NAME} replaced, a NUL follows; p NULL: could
	                     not be, an error was found */
	const struct source_file *file;
};

struct source_section {
	struct source_section *next;
	enum option_section kind;
	char
	    name[CONFIG_NAME_MAX + 1]; /* where there can be several, else "" */
	struct place place;            /* where it stands first */
	const struct source_file *file; /* where it stood last */
	struct source_entry *entry;
	struct source_entry **end;
};

struct source {
	struct arena arena; /* of all this */
	struct findings *findings;
	struct source_file *file; /* in the order of reading */
	struct source_section *section;
};

void source_init(struct source *s, struct findings *findings);
void source_release(struct source *s);

/* NULL: not there. */
struct source_section *source_find(
    const struct source *s, enum option_section kind, struct str name);
const struct source_entry *source_entry(
    const struct source_section *section, const char *key);

#endif
