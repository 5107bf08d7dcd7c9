#include "config/value.h"

#include <string.h>

#include "config/config.h"
#include "config/items.h"
#include "config/option_test.h"
#include "config/value_client.h"
#include "config/value_pairs.h"
#include "config/value_limit.h"
#include "config/value_number.h"

#define SOCKET_PATH_MAX 107 /* sockaddr_un's sun_path, less its NUL */

static bool
no_memory(struct err *err)
{
	return err_set(err, "out of memory");
}

static bool
set_text(struct str text, struct arena *arena, char **field, struct err *err)
{
	struct str copy = arena_copy(arena, text);

	if (copy.p == NULL)
		return no_memory(err);
	*field = (char *)copy.p;
	return true;
}

static bool
set_list(option_test *test, const struct items *items, struct arena *arena,
    struct config_list *field, struct err *err)
{
	char **at = arena_alloc(arena, items->n * sizeof(*at));

	if (at == NULL)
		return no_memory(err);
	for (size_t i = 0; i < items->n; i++) {
		if (!test(items->at[i], err))
			return false;
		at[i] = (char *)items->at[i].p;
	}
	*field = (struct config_list){ items->n, at };
	return true;
}

static bool
parse_unix(struct str text, struct config_address *a, struct err *err)
{
	if (text.len < 2 || text.p[0] != '/' || text.len > SOCKET_PATH_MAX)
		return err_set(err,
		    "unix: takes an absolute path of at most %d bytes",
		    SOCKET_PATH_MAX);
	a->kind = CONFIG_UNIX;
	a->host = (char *)text.p;
	return true;
}

/* ADDRESS:PORT or [IPV6]:PORT; no name, nothing is resolved at run time. */
static bool
parse_tcp(struct str text, struct arena *arena, struct config_address *a,
    struct err *err)
{
	const char *colon = memrchr(text.p, ':', text.len);
	struct address ip = { 0 };
	struct str host = text, port = STR_NONE;
	uint64_t number = 0;
	char shown[ADDRESS_TEXT_MAX];

	if (colon != NULL) {
		host.len = (size_t)(colon - text.p);
		port.p = colon + 1;
		port.len = text.len - host.len - 1;
	}
	if (!str_to_u64(port, UINT16_MAX, &number) || number == 0 ||
	    !address_parse(host, &ip) ||
	    (host.p[0] == '[') != (memchr(host.p, ':', host.len) != NULL))
		return err_set(err,
		    "`%.*s` is none of unix:/PATH, ADDRESS:PORT, "
		    "[IPV6]:PORT",
		    STR_ARG(text));
	a->kind = CONFIG_TCP;
	a->port = (uint16_t)number;
	address_format(&ip, shown);
	return set_text(str_of(shown), arena, &a->host, err);
}

static bool
set_addresses(const struct items *items, struct arena *arena,
    struct config_addresses *field, struct err *err)
{
	struct config_address *at = arena_alloc(arena, items->n * sizeof(*at));

	if (at == NULL)
		return no_memory(err);
	for (size_t i = 0; i < items->n; i++) {
		struct str text = items->at[i];

		at[i].text = (char *)text.p;
		if (str_starts(text, STR("unix:"))
			? !parse_unix((struct str){ text.p + 5, text.len - 5 },
			      &at[i], err)
			: !parse_tcp(text, arena, &at[i], err))
			return false;
	}
	*field = (struct config_addresses){ items->n, at };
	return true;
}

static bool
set_cidrs(const struct items *items, struct arena *arena,
    struct config_cidrs *field, struct err *err)
{
	struct cidr *at = arena_alloc(arena, items->n * sizeof(*at));

	if (at == NULL)
		return no_memory(err);
	for (size_t i = 0; i < items->n; i++)
		if (!cidr_parse(items->at[i], &at[i], err))
			return false;
	*field = (struct config_cidrs){ items->n, at };
	return true;
}

/* The items as one text again, for files have been read into them. */
static bool
join(const struct items *items, struct buf *out, struct err *err)
{
	for (size_t i = 0; i < items->n; i++) {
		struct str item = items->at[i];

		if (memchr(item.p, ',', item.len) != NULL)
			return err_set(err,
			    "`%.*s`: a glob can not hold a comma",
			    STR_ARG(item));
		if (i > 0)
			buf_add_char(out, ',');
		buf_add_str(out, item);
	}
	return out->failed ? no_memory(err) : true;
}

static bool
set_match(bool nocase, struct str text, const struct value_room *room,
    struct match **field, struct err *err)
{
	struct match *match = NULL;
	struct items items = { 0 };
	struct buf globs;

	if (text.p[0] == '~') {
		match = match_new(text, nocase, err);
	} else {
		buf_init(&globs);
		if (items_parse(
			text, room->directory, room->arena, &items, err) &&
		    join(&items, &globs, err))
			match = match_new(buf_str(&globs), nocase, err);
		buf_release(&globs);
	}
	if (match == NULL)
		return false;
	*field = match;
	return true;
}

static bool
set_key(struct str text, struct key *field, struct err *err)
{
	struct key key = { 0 };

	if (!key_parse(text, &key, err))
		return false;
	*field = key;
	return true;
}

static bool
set_rates(struct str text, struct rates *field, struct err *err)
{
	struct rates rates = { 0 };

	if (!rate_parse(text, &rates, err))
		return false;
	*field = rates;
	return true;
}

static bool
set_items(const struct option *o, struct str text,
    const struct value_room *room, void *field, struct err *err)
{
	struct items items = { 0 };

	if (!items_parse(text, room->directory, room->arena, &items, err))
		return false;
	if (o->kind == OPTION_ADDRESSES)
		return set_addresses(&items, room->arena, field, err);
	if (o->kind == OPTION_CIDRS)
		return set_cidrs(&items, room->arena, field, err);
	return set_list(
	    option_test_of(o->kind), &items, room->arena, field, err);
}

/* text is followed by a NUL. */
static bool
set_field(const struct option *o, struct str text,
    const struct value_room *room, void *field, struct err *err)
{
	switch (o->kind) {
	case OPTION_COUNT:
	case OPTION_SIZE:
	case OPTION_DURATION:
	case OPTION_PERCENT:
	case OPTION_LEASE:
	case OPTION_MODE:
	case OPTION_WORD:
	case OPTION_WORDS:
		return value_number(o, text, field, err);
	case OPTION_TEXT:
	case OPTION_PREFIX:
	case OPTION_NAME:
	case OPTION_PATH:
	case OPTION_USER:
	case OPTION_GROUP:
	case OPTION_TARGET:
	case OPTION_SECRET:
	case OPTION_SECRET_FILE:
	case OPTION_FILE:
	case OPTION_VALUES_FILE:
	case OPTION_STORE:
	case OPTION_INCLUDE:
		return option_test_of(o->kind)(text, err) &&
		    set_text(text, room->arena, field, err);
	case OPTION_USERS:
	case OPTION_VARIABLES:
	case OPTION_INTERPRETERS:
	case OPTION_ORIGINS:
	case OPTION_LINES:
	case OPTION_ADDRESSES:
	case OPTION_CIDRS:
		return set_items(o, text, room, field, err);
	case OPTION_MATCH:
	case OPTION_HOSTS:
		return set_match(
		    o->kind == OPTION_HOSTS, text, room, field, err);
	case OPTION_HEADERS:
	case OPTION_FIELDS:
		return value_pairs_set(
		    o->kind == OPTION_HEADERS, text, room, field, err);
	case OPTION_CLIENT:
		return value_set_client(text, field, err);
	case OPTION_KEY:
		return set_key(text, field, err);
	case OPTION_RATES:
	case OPTION_TIER_RATES:
		return set_rates(text, field, err);
	case OPTION_COST:
		return value_limit_cost(text, room, field, err);
	case OPTION_ZONE:
		return value_limit_zone(text, room, field, err);
	case OPTION_STATUSES:
		return value_limit_statuses(text, room, field, err);
	case OPTION_WHEN:
		return value_limit_when(text, room, field, err);
	}
	return err_set(err, "is of an unknown kind");
}

bool
value_set(const struct option *option, struct str text,
    const struct value_room *room, void *base, struct err *err)
{
	struct str copy;

	if (text.len == 0)
		return err_set(err, "has no value");
	copy = arena_copy(room->arena, text);
	if (copy.p == NULL)
		return no_memory(err);
	return set_field(
	    option, copy, room, (char *)base + option->offset, err);
}
