#include "config/option.h"

#include <inttypes.h>
#include <string.h>

#include "config/config.h"

#define KIB    INT64_C(1024)
#define MIB    (1024 * KIB)
#define GIB    (1024 * MIB)
#define TIB    (1024 * GIB)
#define MS     INT64_C(1000)
#define SECOND (1000 * MS)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

#define BOUNDED(of, from, to) .kind = (of), .low = (from), .high = (to)
#define COUNT(from, to)       BOUNDED(OPTION_COUNT, from, to)
#define SIZE(from, to)        BOUNDED(OPTION_SIZE, from, to)
#define DURATION(from, to)    BOUNDED(OPTION_DURATION, from, to)
#define PERCENT(from, to)     BOUNDED(OPTION_PERCENT, from, to)
#define LEASE(from, to)       BOUNDED(OPTION_LEASE, from, to)
#define MODE(to)              BOUNDED(OPTION_MODE, 0, to)
#define WORD(list, first)     .kind = OPTION_WORD, .words = (list), .low = (first)
#define WORDS(list)           .kind = OPTION_WORDS, .words = (list)
#define TEXT                  .kind = OPTION_TEXT
#define PREFIX                .kind = OPTION_PREFIX
#define NAME                  .kind = OPTION_NAME
#define PATH                  .kind = OPTION_PATH
#define USER                  .kind = OPTION_USER
#define GROUP                 .kind = OPTION_GROUP
#define TARGET                .kind = OPTION_TARGET
#define SECRET                .kind = OPTION_SECRET
#define SECRET_FILE           .kind = OPTION_SECRET_FILE
#define FILE_PATH             .kind = OPTION_FILE
#define VALUES_FILE           .kind = OPTION_VALUES_FILE
#define STORE                 .kind = OPTION_STORE
#define INCLUDE               .kind = OPTION_INCLUDE
#define USERS                 .kind = OPTION_USERS
#define VARIABLES             .kind = OPTION_VARIABLES
#define INTERPRETERS          .kind = OPTION_INTERPRETERS
#define ORIGINS               .kind = OPTION_ORIGINS
#define LINES                 .kind = OPTION_LINES
#define ADDRESSES             .kind = OPTION_ADDRESSES
#define CIDRS                 .kind = OPTION_CIDRS
#define MATCH                 .kind = OPTION_MATCH
#define HOSTS                 .kind = OPTION_HOSTS
#define HEADERS               .kind = OPTION_HEADERS
#define FIELDS                .kind = OPTION_FIELDS
#define CLIENT                .kind = OPTION_CLIENT
#define KEY                   .kind = OPTION_KEY
#define RATES                 .kind = OPTION_RATES
#define COST                  .kind = OPTION_COST
#define ZONE                  .kind = OPTION_ZONE
#define STATUSES              .kind = OPTION_STATUSES
#define WHEN                  .kind = OPTION_WHEN
#define TIER_RATES            .kind = OPTION_TIER_RATES
#define DEFAULT(text)         .preset = (text)
#define EXAMPLE(text)         .example = (text)
#define REQUIRED(text)        .example = (text), .required = true
#define RELOAD                .restart = false
#define RESTART               .restart = true

const struct option option_table[] = {
#define OPTION(of, name, field, kind, value, change, text)     \
	{ .section = OPTION_##of,                              \
		.key = #name,                                  \
		.offset = offsetof(struct config_##of, field), \
		kind,                                          \
		value,                                         \
		change,                                        \
		.sentence = (text) },
#include "config/options.def"
#undef OPTION
};

const size_t option_count = sizeof(option_table) / sizeof(option_table[0]);

static const char *const section_names[OPTION_SECTIONS] = {
	[OPTION_gateway] = "gateway",
	[OPTION_store] = "store",
	[OPTION_limit] = "limit",
	[OPTION_response] = "response",
	[OPTION_tier] = "tier",
	[OPTION_backend] = "backend",
	[OPTION_log] = "log",
};

static const char *const kind_names[] = {
	[OPTION_COUNT] = "count",
	[OPTION_SIZE] = "size",
	[OPTION_DURATION] = "duration",
	[OPTION_PERCENT] = "share",
	[OPTION_LEASE] = "auto or count",
	[OPTION_MODE] = "octal mode",
	[OPTION_WORD] = "word",
	[OPTION_WORDS] = "list of",
	[OPTION_TEXT] = "text",
	[OPTION_PREFIX] = "text",
	[OPTION_NAME] = "name",
	[OPTION_PATH] = "path",
	[OPTION_USER] = "user",
	[OPTION_GROUP] = "group",
	[OPTION_TARGET] = "log target",
	[OPTION_SECRET] = "secret",
	[OPTION_SECRET_FILE] = "path",
	[OPTION_FILE] = "path",
	[OPTION_VALUES_FILE] = "@path",
	[OPTION_STORE] = "store address",
	[OPTION_INCLUDE] = "list of paths",
	[OPTION_USERS] = "list of users",
	[OPTION_VARIABLES] = "list of names",
	[OPTION_INTERPRETERS] = "list of .END=PATH",
	[OPTION_ORIGINS] = "list of origins, or *",
	[OPTION_LINES] = "list of NAME: VALUE",
	[OPTION_ADDRESSES] = "list of addresses",
	[OPTION_CIDRS] = "list of networks",
	[OPTION_MATCH] = "list of globs, or ~regex",
	[OPTION_HOSTS] = "list of globs, or ~regex",
	[OPTION_HEADERS] = "list of NAME=glob",
	[OPTION_FIELDS] = "list of NAME=glob",
	[OPTION_CLIENT] = "client address",
	[OPTION_KEY] = "key",
	[OPTION_RATES] = "rates",
	[OPTION_COST] = "cost",
	[OPTION_ZONE] = "time zone",
	[OPTION_STATUSES] = "list of statuses",
	[OPTION_WHEN] = "list of conditions",
	[OPTION_TIER_RATES] = "rates",
};

const char *
option_section_name(enum option_section section)
{
	return section_names[section];
}

bool
option_section_is_named(enum option_section section)
{
	return section == OPTION_limit || section == OPTION_tier ||
	    section == OPTION_backend;
}

enum option_section
option_section_find(struct str name)
{
	for (int s = 0; s < OPTION_SECTIONS; s++)
		if (str_eq(name, str_of(section_names[s])))
			return (enum option_section)s;
	return OPTION_SECTIONS;
}

const struct option *
option_find(enum option_section section, struct str key)
{
	for (size_t i = 0; i < option_count; i++)
		if (option_table[i].section == section &&
		    str_eq(key, str_of(option_table[i].key)))
			return &option_table[i];
	return NULL;
}

const struct option *
option_of_limits(enum option_section section)
{
	for (size_t i = 0; i < option_count; i++)
		if (option_table[i].section == section &&
		    option_table[i].kind == OPTION_TIER_RATES)
			return &option_table[i];
	return NULL;
}

#define NEAREST_MAX 32 /* longer names are near to nothing */

/*
 * Edits that make one of the other: insert, delete, replace, swap two
 * neighbours (optimal string alignment). Both at most NEAREST_MAX long.
 */
static size_t
distance(struct str a, struct str b)
{
	size_t d[NEAREST_MAX + 1][NEAREST_MAX + 1];

	for (size_t i = 0; i <= a.len; i++)
		d[i][0] = i;
	for (size_t j = 0; j <= b.len; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= a.len; i++) {
		for (size_t j = 1; j <= b.len; j++) {
			size_t least = d[i - 1][j - 1] +
			    (a.p[i - 1] != b.p[j - 1] ? 1 : 0);

			if (d[i - 1][j] + 1 < least)
				least = d[i - 1][j] + 1;
			if (d[i][j - 1] + 1 < least)
				least = d[i][j - 1] + 1;
			if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] &&
			    a.p[i - 2] == b.p[j - 1] &&
			    d[i - 2][j - 2] + 1 < least)
				least = d[i - 2][j - 2] + 1;
			d[i][j] = least;
		}
	}
	return d[a.len][b.len];
}

/* Keeps the candidate if it is nearer than *best edits. */
static void
consider(
    struct str name, const char *candidate, size_t *best, const char **nearest)
{
	size_t edits;

	if (name.len > NEAREST_MAX || strlen(candidate) > NEAREST_MAX)
		return;
	edits = distance(name, str_of(candidate));
	if (edits >= *best)
		return;
	*best = edits;
	*nearest = candidate;
}

/* One edit more than what is still taken for a slip: a third of it. */
static size_t
too_many_edits(struct str name)
{
	return name.len < 3 ? 1 : name.len / 3 + 1;
}

const char *
option_nearest(enum option_section section, struct str key)
{
	size_t best = too_many_edits(key);
	const char *nearest = NULL;

	for (size_t i = 0; i < option_count; i++)
		if (option_table[i].section == section)
			consider(key, option_table[i].key, &best, &nearest);
	return nearest;
}

const char *
option_section_nearest(struct str name)
{
	size_t best = too_many_edits(name);
	const char *nearest = NULL;

	for (int s = 0; s < OPTION_SECTIONS; s++)
		consider(name, section_names[s], &best, &nearest);
	return nearest;
}

const char *
option_kind_name(enum option_kind kind)
{
	return kind_names[kind];
}

struct unit {
	int64_t size;
	const char *text;
};

static void
print_in_units(struct buf *out, int64_t number, const struct unit *units)
{
	while (number == 0 || number % units->size != 0)
		if ((++units)->size == 1)
			break;
	buf_addf(out, "%" PRId64 "%s", number / units->size, units->text);
}

void
option_print_number(struct buf *out, enum option_kind kind, int64_t number)
{
	static const struct unit sizes[] = { { TIB, "t" }, { GIB, "g" },
		{ MIB, "m" }, { KIB, "k" }, { 1, "" } };
	static const struct unit durations[] = { { DAY, "d" }, { HOUR, "h" },
		{ MINUTE, "m" }, { SECOND, "s" }, { MS, "ms" }, { 1, "" } };

	if (kind == OPTION_SIZE)
		print_in_units(out, number, sizes);
	else if (kind == OPTION_DURATION)
		print_in_units(out, number, durations);
	else if (kind == OPTION_PERCENT)
		buf_addf(out, "%" PRId64 "%%", number);
	else if (kind == OPTION_MODE)
		buf_addf(out, "%04" PRIo64, (uint64_t)number);
	else
		buf_addf(out, "%" PRId64, number);
}

void
option_print_bounds(struct buf *out, const struct option *option)
{
	struct str rest = str_of(option->words);

	if (option->words != NULL) {
		buf_add_str(out, str_cut(&rest, ' '));
		while (rest.p != NULL) {
			buf_add(out, ", ", 2);
			buf_add_str(out, str_cut(&rest, ' '));
		}
	} else if (option->high > 0) {
		option_print_number(out, option->kind, option->low);
		buf_add(out, " to ", 4);
		option_print_number(out, option->kind, option->high);
	}
}
