#include "config/items.h"

#include <string.h>

#include "config/file.h"

#define FILE_BYTES_MAX ((size_t)16 << 20)

/* What a list is read with; `cap` of items->at. */
struct reading {
	const char *directory;
	struct arena *arena;
	struct items *items;
	size_t cap;
	struct item_place here;
};

/* Grows by copying: the arena's old block is given back with the rest. */
static bool
has_room(struct reading *r)
{
	size_t cap = r->cap == 0 ? 8 : r->cap * 2;
	struct items grown = { .n = r->items->n };

	if (r->items->n < r->cap)
		return true;
	grown.at = arena_alloc(r->arena, cap * sizeof(*grown.at));
	grown.place = arena_alloc(r->arena, cap * sizeof(*grown.place));
	if (grown.at == NULL || grown.place == NULL)
		return false;
	if (grown.n > 0) {
		memcpy(grown.at, r->items->at, grown.n * sizeof(*grown.at));
		memcpy(grown.place, r->items->place,
		    grown.n * sizeof(*grown.place));
	}
	*r->items = grown;
	r->cap = cap;
	return true;
}

static bool
add(struct reading *r, struct str item, struct err *err)
{
	struct str copy;

	if (memchr(item.p, '\0', item.len) != NULL)
		return err_set(err, "an item holds a NUL byte");
	copy = arena_copy(r->arena, item);
	if (copy.p == NULL || !has_room(r))
		return err_set(err, "out of memory");
	r->items->at[r->items->n] = copy;
	r->items->place[r->items->n] = r->here;
	r->items->n++;
	return true;
}

static bool
add_lines(struct reading *r, struct str text, struct err *err)
{
	while (text.p != NULL) {
		struct str line = str_cut(&text, '\n');

		r->here.line++;
		if (line.len > 0 && line.p[line.len - 1] == '\r')
			line.len--;
		line = str_trim(line);
		if (line.len == 0 || line.p[0] == '#')
			continue;
		if (!add(r, line, err))
			return false;
	}
	return true;
}

static bool
add_file(struct reading *r, struct str name, struct err *err)
{
	char *path = file_path(r->arena, r->directory, name);
	size_t before = r->items->n;
	struct stat info;
	struct buf text;
	struct err why;
	bool ok;

	if (path == NULL)
		return err_set(err, "out of memory");
	buf_init(&text);
	r->here = (struct item_place){ .file = path };
	ok = file_read(path, FILE_BYTES_MAX, &text, &info, &why) &&
	    add_lines(r, buf_str(&text), &why);
	buf_release(&text);
	r->here = (struct item_place){ 0 };
	if (!ok)
		return err_set(err, "%s: %s", path, why.text);
	if (r->items->n == before)
		return err_set(err, "%s: has no items", path);
	return true;
}

bool
items_parse(struct str text, const char *directory, struct arena *arena,
    struct items *items, struct err *err)
{
	struct reading r = {
		.directory = directory,
		.arena = arena,
		.items = items,
	};

	*items = (struct items){ 0 };
	do {
		struct str item = str_trim(str_cut(&text, ','));
		bool ok;

		if (item.len == 0)
			return err_set(err, "an item of the list is empty");
		if (item.p[0] == '@')
			ok = add_file(
			    &r, (struct str){ item.p + 1, item.len - 1 }, err);
		else
			ok = add(&r, item, err);
		if (!ok)
			return false;
	} while (text.p != NULL);
	return true;
}
