#include "config/value_limit.h"

#include <string.h>

#include "config/file.h"
#include "config/items.h"

#define ZONES          "/usr/share/zoneinfo"
#define ZONE_BYTES_MAX ((size_t)1 << 20)

static bool
no_memory(struct err *err)
{
	return err_set(err, "out of memory");
}

static bool
is_list(struct str text)
{
	return memchr(text.p, '=', text.len) != NULL ||
	    memchr(text.p, ',', text.len) != NULL || text.p[0] == '@';
}

static bool
check_reached(const struct cost *cost, const struct items *items, size_t at,
    struct err *err)
{
	for (size_t i = 0; i < at; i++)
		if (cost_covers(&cost->pattern[i], &cost->pattern[at]))
			return err_set(err,
			    "`%.*s` can match nothing: `%.*s` before it "
			    "always does first",
			    STR_ARG(items->at[at]), STR_ARG(items->at[i]));
	return true;
}

bool
value_limit_cost(struct str text, const struct value_room *room,
    struct cost *field, struct err *err)
{
	struct cost cost = { .kind = COST_PATTERNS };
	struct items items;

	if (!is_list(text))
		return cost_parse_single(text, field, err);
	if (!items_parse(text, room->directory, room->arena, &items, err))
		return false;
	cost.n = items.n;
	cost.pattern =
	    arena_alloc(room->arena, items.n * sizeof(*cost.pattern));
	if (cost.pattern == NULL)
		return no_memory(err);
	for (size_t i = 0; i < items.n; i++)
		if (!cost_parse_pattern(items.at[i], &cost.pattern[i], err) ||
		    !check_reached(&cost, &items, i, err))
			return false;
	*field = cost;
	return true;
}

bool
value_limit_statuses(struct str text, const struct value_room *room,
    struct statuses *field, struct err *err)
{
	struct statuses statuses = { 0 };
	struct items items;

	if (!str_eq(text, STR("all"))) {
		if (!items_parse(
			text, room->directory, room->arena, &items, err))
			return false;
		for (size_t i = 0; i < items.n; i++)
			if (!statuses_add(&statuses, items.at[i], err))
				return false;
	}
	*field = statuses;
	return true;
}

/* "Europe/Berlin": nothing that leads out of the database. */
static bool
is_zone_name(struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		char c = text.p[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
		    !(c >= '0' && c <= '9') && strchr("_+-/", c) == NULL)
			return false;
	}
	return text.p[0] != '/';
}

static bool
read_zone(
    struct str text, struct arena *arena, struct zone **zone, struct err *err)
{
	const char *path = file_path(arena, ZONES, text);
	struct stat info;
	struct buf tzif;
	struct err why;

	if (path == NULL)
		return no_memory(err);
	buf_init(&tzif);
	*zone = NULL;
	if (file_read(path, ZONE_BYTES_MAX, &tzif, &info, &why))
		*zone = zone_parse(buf_str(&tzif), arena, &why);
	buf_release(&tzif);
	return *zone != NULL || err_set(err, "%s: %s", path, why.text);
}

bool
value_limit_zone(struct str text, const struct value_room *room,
    struct zone **field, struct err *err)
{
	struct zone *zone = NULL;

	if (!is_zone_name(text))
		return err_set(err,
		    "`%.*s` is no name of a time zone, such as Europe/Berlin",
		    STR_ARG(text));
	if (!str_eq(text, STR("UTC")) &&
	    !read_zone(text, room->arena, &zone, err))
		return false;
	*field = zone;
	return true;
}

/* What stands behind `prefix`; p NULL: that is not there. */
static struct str
behind(struct str text, struct str prefix)
{
	if (!str_starts(text, prefix))
		return STR_NONE;
	return (struct str){ text.p + prefix.len, text.len - prefix.len };
}

/* As in a key: the same header is the same param. */
static bool
set_header(struct str name, struct arena *arena, struct config_condition *c,
    struct err *err)
{
	char text[KEY_NAME_MAX + sizeof("header:")];
	struct key key;

	if (name.len >= KEY_NAME_MAX)
		return err_set(err, "`%.*s`: the header's name is too long",
		    STR_ARG(name));
	snprintf(text, sizeof(text), "header:%.*s", STR_ARG(name));
	if (!key_parse(str_of(text), &key, err))
		return false;
	if (key.n != 1 || key.part[0].n != 1)
		return err_set(
		    err, "`%.*s` is no header's name", STR_ARG(name));
	c->kind = CONFIG_WHEN_HEADER;
	c->param =
	    (char *)arena_copy(arena, str_of(key.part[0].alternative[0].name))
		.p;
	return c->param != NULL || no_memory(err);
}

static bool
set_param(struct str item, struct str name, struct arena *arena,
    struct config_condition *c, struct err *err)
{
	if (name.len == 0)
		return err_set(
		    err, "`%.*s`: the param's name is missing", STR_ARG(item));
	c->kind = CONFIG_WHEN_PARAM;
	c->param = (char *)arena_copy(arena, name).p;
	return c->param != NULL || no_memory(err);
}

static bool
set_wanted(struct str item, struct str value, const struct value_room *room,
    struct config_condition *c, struct err *err)
{
	if (value.len == 0)
		return err_set(
		    err, "`%.*s`: the value is missing", STR_ARG(item));
	if (value.p[0] != '@') {
		c->value = value;
		return true;
	}
	c->file = file_path(room->arena, room->directory,
	    (struct str){ value.p + 1, value.len - 1 });
	return c->file != NULL || no_memory(err);
}

static bool
set_condition(struct str item, const struct value_room *room,
    struct config_condition *c, struct err *err)
{
	struct str value = item;
	struct str name = str_trim(str_cut(&value, '='));
	bool is_client = str_eq(name, STR("client"));
	struct str param = behind(name, STR("param:"));
	struct str header = behind(name, STR("header:"));

	*c = (struct config_condition){ .kind = CONFIG_WHEN_CLIENT };
	if (value.p == NULL ||
	    (param.p == NULL && header.p == NULL && !is_client))
		return err_set(err,
		    "`%.*s` is none of client=CIDR, header:NAME=VALUE, "
		    "header:NAME=@FILE, param:NAME=VALUE",
		    STR_ARG(item));
	value = str_trim(value);
	if (param.p != NULL)
		return set_param(item, param, room->arena, c, err) &&
		    set_wanted(item, value, room, c, err);
	if (header.p != NULL)
		return set_header(header, room->arena, c, err) &&
		    set_wanted(item, value, room, c, err);
	return cidr_parse(value, &c->client, err);
}

bool
value_limit_when(struct str text, const struct value_room *room,
    struct config_when *field, struct err *err)
{
	struct config_condition *at;
	struct items items;

	if (!items_parse(text, room->directory, room->arena, &items, err))
		return false;
	at = arena_alloc(room->arena, items.n * sizeof(*at));
	if (at == NULL)
		return no_memory(err);
	for (size_t i = 0; i < items.n; i++)
		if (!set_condition(items.at[i], room, &at[i], err))
			return false;
	*field = (struct config_when){ items.n, at };
	return true;
}
