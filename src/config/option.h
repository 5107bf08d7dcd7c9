/*
 * option: the table of all options (options.def). Any thread.
 */
#ifndef SLUICE_OPTION_H
#define SLUICE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

enum option_section {
	OPTION_gateway,
	OPTION_store,
	OPTION_limit,
	OPTION_tier,
	OPTION_response,
	OPTION_backend,
	OPTION_log,
	OPTION_SECTIONS
};

/* What a value is, and the type of the field it is read into. */
enum option_kind {
	OPTION_COUNT,        /* uint64_t */
	OPTION_SIZE,         /* uint64_t, bytes */
	OPTION_DURATION,     /* int64_t, microseconds */
	OPTION_PERCENT,      /* uint64_t */
	OPTION_LEASE,        /* uint64_t, or CONFIG_LEASE_AUTO */
	OPTION_MODE,         /* uint64_t, octal */
	OPTION_WORD,         /* uint64_t, of an enum */
	OPTION_WORDS,        /* uint64_t, a bit each; `none`: no bit */
	OPTION_TEXT,         /* char * */
	OPTION_PREFIX,       /* char *, what a key's name begins with */
	OPTION_NAME,         /* char *, of a backend */
	OPTION_PATH,         /* char *, absolute */
	OPTION_USER,         /* char *, one that exists */
	OPTION_GROUP,        /* char *, one that exists */
	OPTION_TARGET,       /* char *, of the log */
	OPTION_SECRET,       /* char *, never quoted */
	OPTION_SECRET_FILE,  /* char *, its path */
	OPTION_FILE,         /* char *, its path */
	OPTION_VALUES_FILE,  /* char *, a list of @PATH */
	OPTION_STORE,        /* char * */
	OPTION_INCLUDE,      /* char *, a list that source.c follows */
	OPTION_USERS,        /* struct config_list */
	OPTION_VARIABLES,    /* struct config_list */
	OPTION_INTERPRETERS, /* struct config_list */
	OPTION_ORIGINS,      /* struct config_list, or "*" alone */
	OPTION_LINES,        /* struct config_list, of NAME: VALUE */
	OPTION_ADDRESSES,    /* struct config_addresses */
	OPTION_CIDRS,        /* struct config_cidrs */
	OPTION_MATCH,        /* struct match * */
	OPTION_HOSTS,        /* struct match *, whatever the case */
	OPTION_HEADERS,      /* struct config_pairs */
	OPTION_FIELDS,       /* struct config_pairs */
	OPTION_CLIENT,       /* struct config_client_address */
	OPTION_KEY,          /* struct key */
	OPTION_RATES,        /* struct rates */
	OPTION_COST,         /* struct cost */
	OPTION_ZONE,         /* struct zone *, NULL: UTC */
	OPTION_STATUSES,     /* struct statuses */
	OPTION_WHEN,         /* struct config_when */
	OPTION_TIER_RATES,   /* of a tier, for the limit it is named after */
};

struct option {
	enum option_section section;
	const char *key;
	enum option_kind kind;
	size_t offset; /* of its field in the section's struct; TIER_RATES:
			  it has none */
	int64_t low;   /* bounds of a number; WORD: value of the first */
	int64_t high;
	const char *words;   /* WORD, WORDS: separated by blanks */
	const char *preset;  /* the default; NULL: none */
	const char *example; /* where there is no default */
	bool required;       /* the example stands uncommented */
	bool restart;        /* a change takes one */
	const char *sentence;
};

extern const struct option option_table[];
extern const size_t option_count;

const char *option_section_name(enum option_section section);
/* limit, tier, backend: there may be any number, each with a name. */
bool option_section_is_named(enum option_section section);
/* OPTION_SECTIONS: none. */
enum option_section option_section_find(struct str name);
const struct option *option_find(enum option_section section, struct str key);
/* What is said in a section under the names of limits; NULL: nothing is. */
const struct option *option_of_limits(enum option_section section);
/* The option or the section nearest to a mistyped name; NULL: none is. */
const char *option_nearest(enum option_section section, struct str key);
const char *option_section_nearest(struct str name);

const char *option_kind_name(enum option_kind kind);
/* A number of a COUNT, SIZE, DURATION, PERCENT or MODE as a person has it. */
void option_print_number(
    struct buf *out, enum option_kind kind, int64_t number);
/* "1 to 1024", the words, or nothing. */
void option_print_bounds(struct buf *out, const struct option *option);

#endif
