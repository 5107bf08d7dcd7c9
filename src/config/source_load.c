#include "config/source_load.h"

#include <glob.h>
#include <string.h>

#include "base/buf.h"
#include "config/file.h"
#include "config/items.h"
#include "config/source_text.h"

#define FILE_BYTES_MAX ((size_t)4 << 20)

static bool
was_read_before(const struct source *s, const struct source_file *file)
{
	const struct source_file *f = s->file;

	while (
	    f != file && (f->device != file->device || f->inode != file->inode))
		f = f->next;
	return f != file;
}

/* What is wrong with an included file stands where it is included. */
static void
report_file(struct source *s, const struct source_file *file, const char *text)
{
	struct place place = { .file = file->path, .order = file->order };

	if (file->included.file == NULL)
		finding_error(s->findings, &place, "%s", text);
	else
		finding_error(
		    s->findings, &file->included, "%s: %s", file->path, text);
}

static void
read_file(struct source *s, struct source_file *file)
{
	struct stat info;
	struct buf text;
	struct err err;

	buf_init(&text);
	if (!file_read(file->path, FILE_BYTES_MAX, &text, &info, &err)) {
		report_file(s, file, err.text);
		buf_release(&text);
		return;
	}
	file->device = info.st_dev;
	file->inode = info.st_ino;
	if (was_read_before(s, file))
		report_file(s, file, "was read before");
	else
		source_text_read(s, file, buf_str(&text));
	buf_release(&text);
}

static void
add_file(struct source *s, const char *path, const struct place *included)
{
	struct source_file **end = &s->file;
	struct source_file *file = arena_alloc(&s->arena, sizeof(*file));
	unsigned order = 0;

	for (; *end != NULL; end = &(*end)->next)
		order++;
	if (file != NULL) {
		file->path = arena_copy(&s->arena, str_of(path)).p;
		file->directory = file_directory(&s->arena, path);
	}
	if (file == NULL || file->path == NULL || file->directory == NULL) {
		s->findings->failed = true;
		return;
	}
	file->order = order;
	if (included != NULL)
		file->included = *included;
	*end = file;
}

/* A pattern without * ? [ names a file that has to be there. */
static void
include(struct source *s, const struct source_entry *e, struct str pattern)
{
	char *path = file_path(&s->arena, e->file->directory, pattern);
	glob_t found = { 0 };
	int failure = GLOB_NOSPACE;

	if (path != NULL)
		failure = glob(path, GLOB_ERR, NULL, &found);
	if (failure == GLOB_NOMATCH && strpbrk(path, "*?[") == NULL)
		add_file(s, path, &e->place);
	else if (failure == GLOB_ABORTED)
		finding_error(s->findings, &e->place,
		    "%s: its directory can not be read", path);
	else if (failure == GLOB_NOSPACE)
		s->findings->failed = true;
	for (size_t i = 0; failure == 0 && i < found.gl_pathc; i++)
		add_file(s, found.gl_pathv[i], &e->place);
	globfree(&found);
}

static void
follow(struct source *s, const struct source_entry *e)
{
	struct items patterns = { 0 };
	struct err err;

	if (e->value.len == 0)
		return;
	if (!items_parse(
		e->value, e->file->directory, &s->arena, &patterns, &err)) {
		finding_error(s->findings, &e->place, "%s", err.text);
		return;
	}
	for (size_t i = 0; i < patterns.n; i++)
		include(s, e, patterns.at[i]);
}

static void
add_included(struct source *s, const struct source_file *file)
{
	const struct source_section *gateway =
	    source_find(s, OPTION_gateway, STR(""));
	const struct source_entry *e = gateway != NULL ? gateway->entry : NULL;

	for (; e != NULL; e = e->next)
		if (e->file == file && e->option->kind == OPTION_INCLUDE)
			follow(s, e);
}

void
source_load(struct source *s, const char *path)
{
	add_file(s, path, NULL);
	for (struct source_file *f = s->file; f != NULL; f = f->next) {
		read_file(s, f);
		add_included(s, f);
	}
}
