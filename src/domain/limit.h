/*
 * limit: does a limit apply to a request, and what must be asked of a store
 * if so. Any thread; what it makes lives in the request's arena.
 */
#ifndef SLUICE_LIMIT_H
#define SLUICE_LIMIT_H

#include "base/arena.h"
#include "config/config.h"
#include "domain/store.h"
#include "domain/subject.h"

enum limit_state {
	LIMIT_SKIPPED,     /* does not apply, or is unlimited */
	LIMIT_CHECKED,     /* *n checks were written */
	LIMIT_KEY_MISSING, /* and its missing_key says deny */
	LIMIT_KEY_TWICE,   /* a param or field of its key has two values */
	LIMIT_CLOSED,      /* its rate is `deny` */
	LIMIT_FAILED,      /* no memory, or no room */
};

/*
 * Does `next` (of the same name) count under other names than `limit`, so
 * that its counts begin anew?
 */
bool limit_counts_anew(
    const struct config_limit *limit, const struct config_limit *next);

/*
 * Is a field of the body part of its key for this request, so that
 * subject->form_body has to be there before limit_prepare? Not where it does
 * not apply, or the body is no urlencoded form: then the field is missing,
 * whatever comes.
 */
bool limit_awaits_body(
    const struct config_limit *limit, const struct subject *subject);

enum limit_state limit_prepare(const struct config_limit *limit,
    const struct config_store *store, const struct subject *subject,
    struct arena *arena, struct store_check *out, size_t room, size_t *n);
/*
 * For the local table, in the place of checks that the shared store did not
 * answer: by outage_rate, under names of their own.
 */
enum limit_state limit_prepare_instead(const struct config_limit *limit,
    const struct config_store *store, const struct subject *subject,
    struct arena *arena, struct store_check *out, size_t room, size_t *n);

struct limit_names {
	size_t n;
	struct str *at;
};

/*
 * What the counts of a key's tag are called, of all rates that the limit has
 * or a tier gives it; instead: those by outage_rate. False: no memory.
 */
bool limit_names(const struct config_limit *limit,
    const struct config_store *store, const char *tag, bool instead,
    struct arena *arena, struct limit_names *names);

#endif
