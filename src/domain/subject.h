/*
 * subject: what a request says of itself, as limits and backends see it.
 *
 * Made once per request from its params; all text but the params lives in
 * the request's arena, for the params go when an answer is sent. Read-only
 * afterwards.
 */
#ifndef SLUICE_SUBJECT_H
#define SLUICE_SUBJECT_H

#include <stdbool.h>

#include "base/arena.h"
#include "config/config.h"
#include "pure/address.h"
#include "pure/params.h"

struct subject {
	const struct params *params;
	struct str method;
	struct str host;        /* lower case, no port */
	struct str path;        /* canonical, of REQUEST_URI */
	struct str script_path; /* canonical, SCRIPT_NAME + PATH_INFO */
	struct str info_path;   /* canonical, PATH_INFO alone; len 0: none */
	struct str client_text; /* REMOTE_ADDR as it came */
	bool has_client;        /* it parses */
	struct address client;  /* canonical, whole */
	struct address network; /* cut to ipv4_prefix / ipv6_prefix */
	const struct config_backend *backend; /* NULL: none matches */
};

/* false: no memory. The backend is chosen too. */
bool subject_read(struct subject *s, const struct params *params,
    const struct config *config, struct arena *arena);
/* GET includes HEAD. An m of NULL: any. */
bool subject_has_method(const struct subject *s, const struct match *m);
/*
 * For limits: any form of the path (that of PATH_INFO is what an application
 * behind /index.php routes by), and a regex that gives up matches.
 */
bool subject_may_match(const struct subject *s, const struct config_match *m);

#endif
