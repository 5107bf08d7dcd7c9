/*
 * load: a configuration while it is being made from its source.
 *
 * Shared by config.c, which makes it and owns all of it, and the rooms
 * that look at the whole: load_check and load_overlap.
 */
#ifndef SLUICE_LOAD_H
#define SLUICE_LOAD_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"
#include "config/finding.h"
#include "config/source.h"

struct load {
	struct findings findings;
	struct source source;
	struct config *config;
	/* Where config->limit[i], ->tier[i] and ->backend[i] come from. */
	const struct source_section **limit;
	const struct source_section **tier;
	const struct source_section **backend;
};

/* Was it written, with whatever value? */
bool load_has(const struct source_section *section, const char *key);
/* Where an option stands; one that does not, at its section's line. */
struct place load_place(const struct source_section *section, const char *key);
/* The same for a section of a fixed name, which need not be there. */
struct place load_place_in(
    const struct load *l, enum option_section kind, const char *key);

/*
 * What one option can not know: options that need or exclude each other,
 * files and directories, names that refer. Resolves secrets, root and
 * max_inflight on the way.
 */
void load_check(struct load *l);
/* Limits and backends against the roles that are served. */
void load_roles(struct load *l);
/* Limits against backends that are no application. */
void load_answers(struct load *l);
/*
 * Gives each limit what the tiers say of it, and reads the files of values
 * that tiers name. After load_check, which makes the hasher.
 */
void load_tiers(struct load *l);
/* Reads known_keys, and warns of keys that a client can invent. */
void load_keys(struct load *l);
/* What the options of one limit, and its tiers, may not say together. */
void load_limits(struct load *l);
/* Limits that take units ahead, and what stands beside them. */
void load_leases(struct load *l);
/* Makes config->response.reply of what [response] says; reads the bodies. */
void load_response(struct load *l);
/* What is allowed and does nothing: contradictions and dead patterns. */
void load_sense(struct load *l);
/* Writes down what each limit is (config_limit's definition). */
void load_definitions(struct load *l);
/* Writes down where options stand that take a restart (restart_place). */
void load_restarts(struct load *l);
/* Does limit `a` apply to whatever limit `b` applies to? */
bool load_is_wider(
    const struct source_section *a, const struct source_section *b);
/* Warns of rates that can never refuse, since another one always does. */
void load_overlap(struct load *l);

#endif
