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
	enum config_role role; /* never ANY */
	const struct params *params;
	struct arena *arena; /* the request's */
	struct str method;
	struct str host;        /* lower case, no port */
	struct str path;        /* canonical, of REQUEST_URI */
	struct str script_path; /* the same of SCRIPT_NAME + PATH_INFO */
	struct str info_path;   /* canonical, PATH_INFO alone; len 0: none */
	bool has_peer;
	struct address peer;    /* REMOTE_ADDR */
	struct str client_text; /* as it came; an address if not the peer's */
	bool has_client;        /* it parses */
	struct address client;  /* by client_address; canonical, whole */
	struct address network; /* cut to ipv4_prefix / ipv6_prefix */
	/*
	 * The whole body of a form, once it is spooled; p NULL: there is none,
	 * or it is larger than what is read into memory. Set by its owner.
	 */
	struct str form_body;
	const struct config_backend *backend; /* NULL: none matches */
};

/* false: no memory. Unless an authorizer is asked its backend is chosen. */
bool subject_read(struct subject *s, enum config_role role,
    const struct params *params, const struct config *config,
    struct arena *arena);
/* Is its backend one that relays nothing (type = answer)? */
bool subject_is_only_asked(const struct subject *s);
/* GET includes HEAD. An m of NULL: any. */
bool subject_has_method(const struct subject *s, const struct match *m);
/*
 * The value of a header, by its param's name; Apache hands Authorization on
 * under another name after a redirect (REDIRECT_HTTP_AUTHORIZATION).
 */
struct str subject_header(const struct subject *s, struct str param);
/*
 * For limits: any form of the path (that of PATH_INFO is what an application
 * behind /index.php routes by), and a regex that gives up matches.
 */
bool subject_may_match(const struct subject *s, const struct config_match *m);

#endif
