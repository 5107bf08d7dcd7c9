/*
 * inih splits lines into names and values, but does not say what it could
 * not read, cuts what is too long and goes on after an error in the wrong
 * section. So it gets its lines from next_line, which looks at each first:
 * what is wrong becomes a finding, and inih sees an empty line instead.
 * It never meets a line it could misread, and all errors are found.
 *
 * How it reads lines is fixed when it is built; Debian's build has
 * variables for that. They are weak here: absent, lines are shorter, and
 * a value that inih would cut is an error (take_option).
 */
#include "config/source_text.h"

#include <ini.h>
#include <string.h>

#include "base/buf.h"
#include "config/source_line.h"

extern int ini_max_line __attribute__((weak));
extern bool ini_allow_multiline __attribute__((weak));
extern bool ini_allow_inline_comments __attribute__((weak));
extern bool ini_use_stack __attribute__((weak));
extern bool ini_stop_on_first_error __attribute__((weak));
extern bool ini_allow_no_value __attribute__((weak));

/* What next_line and take_option share: inih calls them in turn. */
struct reading {
	struct source *source;
	struct source_file *file;
	struct str rest; /* what was not read yet */
	unsigned line;
	bool in_section;                /* a section line was seen */
	struct source_section *section; /* NULL: none, or a bad one */
	struct str name, value;         /* what inih is to find */
};

static struct place
here(const struct reading *r)
{
	return (struct place){
		.file = r->file->path,
		.order = r->file->order,
		.line = r->line,
		.section =
		    r->section != NULL ? r->section->place.section : NULL,
	};
}

/* Before a name of this kind was understood. */
static void
report_name(struct reading *r, enum option_section kind, struct str name)
{
	struct findings *f = r->source->findings;
	struct place place = here(r);

	if (option_section_is_named(kind) && name.p == NULL)
		finding_error(f, &place, "[%s] needs a name: [%s NAME]",
		    option_section_name(kind), option_section_name(kind));
	else if (option_section_is_named(kind))
		finding_error(f, &place,
		    "a name has 1 to %d of a-z 0-9 _ -: [%s NAME]",
		    CONFIG_NAME_MAX, option_section_name(kind));
	else
		finding_error(f, &place, "[%s] has no name of its own",
		    option_section_name(kind));
}

static bool
is_name(struct str name)
{
	if (name.len == 0 || name.len > CONFIG_NAME_MAX)
		return false;
	for (size_t i = 0; i < name.len; i++) {
		char c = name.p[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') &&
		    c != '_' && c != '-')
			return false;
	}
	return true;
}

static void
report_unknown_section(struct reading *r, struct str text)
{
	struct findings *f = r->source->findings;
	struct str rest = str_trim(text);
	const char *nearest = option_section_nearest(str_cut(&rest, ' '));
	struct place place = here(r);

	if (nearest != NULL)
		finding_error(f, &place,
		    "unknown section [%.*s]; did you mean [%s]?", STR_ARG(text),
		    nearest);
	else
		finding_error(
		    f, &place, "unknown section [%.*s]", STR_ARG(text));
}

static const char *
section_label(struct arena *arena, enum option_section kind, struct str name)
{
	struct buf label;
	struct str copy;

	buf_init(&label);
	buf_addf(&label, "[%s%s%.*s]", option_section_name(kind),
	    name.len > 0 ? " " : "", STR_ARG(name));
	copy = arena_copy(arena, buf_str(&label));
	buf_release(&label);
	return copy.p;
}

static struct source_section *
section_add(struct reading *r, enum option_section kind, struct str name)
{
	struct source_section **end = &r->source->section;
	struct source_section *section =
	    arena_alloc(&r->source->arena, sizeof(*section));

	if (section == NULL) {
		r->source->findings->failed = true;
		return NULL;
	}
	while (*end != NULL)
		end = &(*end)->next;
	*end = section;
	section->kind = kind;
	snprintf(section->name, sizeof(section->name), "%.*s", STR_ARG(name));
	section->place = here(r);
	section->place.section = section_label(&r->source->arena, kind, name);
	if (section->place.section == NULL)
		r->source->findings->failed = true;
	section->file = r->file;
	section->end = &section->entry;
	return section;
}

/* Again: right for a section of a fixed name that stands in another file. */
static void
section_again(struct reading *r, struct source_section *section)
{
	struct place place = here(r);

	place.section = NULL;
	if (section->file == r->file || option_section_is_named(section->kind))
		finding_error(r->source->findings, &place,
		    "duplicate section %s, first at %s:%u",
		    section->place.section, section->place.file,
		    section->place.line);
	section->file = r->file;
}

static void
open_section(struct reading *r, struct str text)
{
	struct str name = text;
	struct str word = str_cut(&name, ' ');
	enum option_section kind = option_section_find(word);

	if (kind == OPTION_SECTIONS) {
		report_unknown_section(r, text);
		return;
	}
	if (option_section_is_named(kind) ? !is_name(name) : name.p != NULL) {
		report_name(r, kind, name);
		return;
	}
	r->section = source_find(r->source, kind, name);
	if (r->section == NULL)
		r->section = section_add(r, kind, name);
	else
		section_again(r, r->section);
}

/* True when inih is to see the line. */
static bool
accept_line(struct reading *r, struct str line)
{
	struct str name = STR_NONE, value = STR_NONE;
	struct place place;
	struct err err;
	enum source_line kind = source_line_read(line, &name, &value, &err);

	if (str_starts(str_trim(line), STR("["))) {
		/* What follows a bad one belongs to none. */
		r->in_section = true;
		r->section = NULL;
	}
	place = here(r);
	switch (kind) {
	case SOURCE_BLANK:
		return false;
	case SOURCE_BAD:
		finding_error(r->source->findings, &place, "%s", err.text);
		return false;
	case SOURCE_SECTION:
		open_section(r, name);
		return r->section != NULL;
	case SOURCE_OPTION:
		break;
	}
	if (!r->in_section)
		finding_error(r->source->findings, &place,
		    "an option before the first section");
	r->name = name;
	r->value = value;
	return r->section != NULL;
}

/* ini_reader: like fgets, from memory. */
static char *
next_line(char *buffer, int size, void *stream)
{
	struct reading *r = stream;
	struct place place;
	struct str line;

	if (r->rest.len == 0)
		return NULL;
	line = str_cut(&r->rest, '\n');
	if (line.len > 0 && line.p[line.len - 1] == '\r')
		line.len--;
	r->line++;
	if (!accept_line(r, line))
		line.len = 0;
	if (line.len + 2 > (size_t)size) {
		place = here(r);
		finding_error(r->source->findings, &place,
		    "the inih library in use can not read lines longer than "
		    "%d bytes",
		    size - 2);
		line.len = 0;
	}
	if (line.len > 0)
		memcpy(buffer, line.p, line.len);
	memcpy(buffer + line.len, "\n", 2);
	return buffer;
}

static void
report_unknown_option(struct reading *r, const struct place *place)
{
	struct findings *f = r->source->findings;
	const char *nearest = option_nearest(r->section->kind, r->name);

	for (int s = 0; s < OPTION_SECTIONS; s++) {
		if (option_find((enum option_section)s, r->name) == NULL)
			continue;
		finding_error(f, place, "unknown option; it belongs to [%s]",
		    option_section_name((enum option_section)s));
		return;
	}
	if (nearest != NULL)
		finding_error(
		    f, place, "unknown option; did you mean %s?", nearest);
	else
		finding_error(f, place, "unknown option");
}

/* `include` is every file's own, and each limit's name one of a tier's. */
static bool
is_given_by(const struct reading *r, const struct option *option,
    const struct source_entry *e)
{
	if (e->option != option)
		return false;
	if (option->kind == OPTION_INCLUDE)
		return e->file == r->file;
	return option->kind != OPTION_TIER_RATES ||
	    str_eq(str_of(e->place.key), r->name);
}

static const struct source_entry *
given_before(const struct reading *r, const struct option *option)
{
	const struct source_entry *e = r->section->entry;

	while (e != NULL && !is_given_by(r, option, e))
		e = e->next;
	return e;
}

/* In a tier, what is no option is the name of a limit. */
static const struct option *
find_option(const struct reading *r)
{
	const struct option *option = option_find(r->section->kind, r->name);

	return option != NULL || !is_name(r->name)
	    ? option
	    : option_of_limits(r->section->kind);
}

static bool
add_entry(struct reading *r, const struct option *option,
    const struct place *place, struct str value)
{
	struct source_entry *e = arena_alloc(&r->source->arena, sizeof(*e));

	if (e == NULL)
		return false;
	e->option = option;
	e->place = *place;
	e->file = r->file;
	*r->section->end = e;
	r->section->end = &e->next;
	if (value.p == NULL)
		return true;
	e->value = arena_copy(&r->source->arena, value);
	return e->value.p != NULL;
}

static void
expand_and_add(
    struct reading *r, const struct option *option, const struct place *place)
{
	struct buf value;
	struct err err;
	bool ok;

	buf_init(&value);
	if (source_line_expand(r->value, &value, &err)) {
		ok = add_entry(r, option, place,
		    value.len > 0 ? buf_str(&value) : STR(""));
	} else {
		finding_error(r->source->findings, place, "%s", err.text);
		ok = add_entry(r, option, place, STR_NONE);
	}
	if (!ok)
		r->source->findings->failed = true;
	buf_release(&value);
}

/* ini_handler. Always 1: what is wrong is a finding. */
static int
take_option(
    void *user, const char *section, const char *name, const char *value)
{
	struct reading *r = user;
	const struct option *option = find_option(r);
	const struct source_entry *first;
	struct place place = here(r);

	(void)section;
	place.key = arena_copy(&r->source->arena, r->name).p;
	if (option == NULL) {
		report_unknown_option(r, &place);
		return 1;
	}
	if (!str_eq(r->name, str_of(name)) ||
	    !str_eq(r->value, str_of(value))) {
		finding_error(r->source->findings, &place,
		    "the inih library in use can not read this line whole");
		return 1;
	}
	first = given_before(r, option);
	if (first != NULL)
		finding_error(r->source->findings, &place,
		    "duplicate option, first at %s:%u", first->place.file,
		    first->place.line);
	else
		expand_and_add(r, option, &place);
	return 1;
}

static void
set_up_inih(void)
{
	if (&ini_max_line != NULL)
		ini_max_line = SOURCE_LINE_MAX + 3;
	if (&ini_allow_multiline != NULL)
		ini_allow_multiline = false;
	if (&ini_allow_inline_comments != NULL)
		ini_allow_inline_comments = false;
	if (&ini_use_stack != NULL)
		ini_use_stack = true;
	if (&ini_stop_on_first_error != NULL)
		ini_stop_on_first_error = false;
	if (&ini_allow_no_value != NULL)
		ini_allow_no_value = false;
}

void
source_text_read(struct source *s, struct source_file *file, struct str text)
{
	struct reading r = { .source = s, .file = file, .rest = text };
	struct place place;

	if (text.len > 0 && memchr(text.p, '\r', text.len) != NULL &&
	    memchr(text.p, '\n', text.len) == NULL) {
		r.line = 1;
		place = here(&r);
		finding_error(s->findings, &place,
		    "the lines end in CR alone; they have to end in LF or "
		    "CRLF");
		return;
	}
	set_up_inih();
	if (ini_parse_stream(next_line, &r, take_option, &r) != 0)
		s->findings->failed = true;
}
