/*
 * finding: what is wrong in a configuration, collected while it is read.
 *
 * The caller owns the struct; findings_release frees it. Findings come in
 * any order and are reported by file (in the order of reading) and line.
 * One thread.
 */
#ifndef SLUICE_FINDING_H
#define SLUICE_FINDING_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

/* Where something stands. Borrowed text. */
struct place {
	const char *file;
	unsigned order;      /* of the file: 0 for the first one read */
	unsigned line;       /* 0: the file as a whole */
	const char *section; /* "[limit a]"; NULL: none */
	const char *key;     /* NULL: none */
};

struct finding;

struct findings {
	struct finding *at;
	size_t n;
	size_t cap;
	size_t errors;
	bool failed; /* memory ran out: something is missing */
};

void findings_init(struct findings *f);
void findings_release(struct findings *f);
void finding_error(struct findings *f, const struct place *place,
    const char *format, ...) __attribute__((format(printf, 3, 4)));
void finding_warning(struct findings *f, const struct place *place,
    const char *format, ...) __attribute__((format(printf, 3, 4)));
/* In order. */
void findings_report(struct findings *f, config_report *report, void *context);

#endif
