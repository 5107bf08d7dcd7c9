#include "config/value_pairs.h"

#include <string.h>

#include "config/items.h"

static bool
set_name(bool header, struct str item, struct str name,
    char field[KEY_NAME_MAX], struct err *err)
{
	struct err why;

	if (header ? key_header_param(name, field, &why)
		   : key_copy_name(name, field, &why))
		return true;
	return err_set(err, "`%.*s`: %s", STR_ARG(item), why.text);
}

/* One pair; alone: the value may be a regex. */
static bool
set_pair(bool header, struct str item, bool alone, struct config_pair *pair,
    struct err *err)
{
	struct str value = item;
	struct str name = str_trim(str_cut(&value, '='));

	if (value.p == NULL)
		return err_set(err,
		    "`%.*s`: it is written NAME=GLOB or NAME=~REGEX",
		    STR_ARG(item));
	if (!set_name(header, item, name, pair->name, err))
		return false;
	value = str_trim(value);
	if (value.len == 0)
		return true;
	if (value.p[0] == '~' && !alone)
		return err_set(err,
		    "`%.*s`: a regex stands alone, to the end of the line",
		    STR_ARG(item));
	if (value.p[0] != '~' && memchr(value.p, ',', value.len) != NULL)
		return err_set(
		    err, "`%.*s`: a glob can not hold a comma", STR_ARG(item));
	pair->value = match_new(value, false, err);
	return pair->value != NULL;
}

static bool
is_regex(struct str text)
{
	str_cut(&text, '=');
	text = str_trim(text);
	return text.len > 0 && text.p[0] == '~';
}

static bool
read_items(struct str text, const struct value_room *room, struct items *items,
    struct err *err)
{
	if (!is_regex(text))
		return items_parse(
		    text, room->directory, room->arena, items, err);
	items->at = arena_alloc(room->arena, sizeof(*items->at));
	if (items->at == NULL)
		return err_set(err, "out of memory");
	items->at[0] = str_trim(text);
	items->n = 1;
	return true;
}

bool
value_pairs_set(bool headers, struct str text, const struct value_room *room,
    struct config_pairs *field, struct err *err)
{
	struct items items = { 0 };
	struct config_pairs pairs = { 0 };

	if (!read_items(text, room, &items, err))
		return false;
	pairs.at = arena_alloc(room->arena, items.n * sizeof(*pairs.at));
	if (pairs.at == NULL)
		return err_set(err, "out of memory");
	for (size_t i = 0; i < items.n; i++, pairs.n++)
		if (!set_pair(headers, items.at[i], items.n == 1, &pairs.at[i],
			err)) {
			value_pairs_release(&pairs);
			return false;
		}
	*field = pairs;
	return true;
}

void
value_pairs_release(struct config_pairs *pairs)
{
	for (size_t i = 0; i < pairs->n; i++)
		match_free(pairs->at[i].value);
}
