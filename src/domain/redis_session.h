/*
 * redis_session: one attempt to get a link that may carry checks.
 *
 * Connects, authenticates, selects the database, loads the scripts, runs
 * one on nothing, and writes a key that is gone a millisecond later: what a
 * check needs, so that a replica, a full or a forbidden server is found
 * here and not by requests. Used by the one thread that connects.
 */
#ifndef SLUICE_REDIS_SESSION_H
#define SLUICE_REDIS_SESSION_H

#include "base/err.h"
#include "domain/drift.h"
#include "domain/redis_trouble.h"
#include "io/redis_link.h"

struct redis_session;

/* NULL strings: none. All is copied or used before this returns. */
struct redis_session_settings {
	struct redis_address address;
	const char *username;
	const char *password;
	const char *prefix;  /* of the key that is written; NULL: no key */
	struct drift *drift; /* outlives the session; NULL: none */
	/* No more than AUTH and SELECT: what else there is a check meets. */
	bool untried;
};

/* NULL and err, the attempt has failed. deadline_us: clock_mono_us. */
struct redis_session *redis_session_start(
    const struct redis_session_settings *settings, int64_t deadline_us,
    struct err *err);
void redis_session_free(struct redis_session *session);

/*
 * Goes on for at most until_us. REDIS_READY: *link is the caller's.
 * REDIS_BROKEN: *trouble and err say why, a missed deadline included.
 */
enum redis_progress redis_session_step(struct redis_session *session,
    int64_t until_us, struct redis_link **link,
    const struct redis_trouble **trouble, struct err *err);

#endif
