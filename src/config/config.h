/*
 * config: the configuration file, read strictly.
 *
 * config_load reads FILE (and what it includes), reports every error and
 * warning it finds to the caller, and gives a generation: immutable, shared
 * by threads, freed when its last reference goes. All that a generation
 * points to belongs to it.
 *
 * Every option is a row of options.def; reading, defaults, bounds,
 * `sluice options` and conf/sluice.ini come from that table.
 */
#ifndef SLUICE_CONFIG_H
#define SLUICE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "pure/address.h"
#include "pure/algorithm.h"
#include "pure/calendar.h"
#include "pure/cost.h"
#include "pure/forwarded.h"
#include "pure/key.h"
#include "pure/known.h"
#include "pure/match.h"
#include "pure/rate.h"
#include "pure/reply.h"
#include "pure/statuses.h"

#define CONFIG_NAME_MAX  32
#define CONFIG_RATES_MAX 32 /* rates one request can come under, at most */

/* A list of strings, in file order. */
struct config_list {
	size_t n;
	char **at;
};

struct config_cidrs {
	size_t n;
	struct cidr *at;
};

/* host, path and method of a limit or a backend; NULL: all. */
struct config_match {
	struct match *host;
	struct match *path;
	struct match *method;
};

/* A header or a field of the query, and what it is held against. */
struct config_pair {
	char name[KEY_NAME_MAX]; /* a header's: of its param */
	struct match *value;     /* NULL: missing or empty */
};

struct config_pairs {
	size_t n;
	struct config_pair *at;
};

/* Whom a request comes from, if a trusted proxy says so. */
struct config_client_address {
	char param[KEY_NAME_MAX]; /* that holds it; "": REMOTE_ADDR alone */
	enum forwarded_form form;
};

/* Where a socket is, listened on or connected to. */
struct config_address {
	enum { CONFIG_UNIX, CONFIG_TCP } kind;
	char *host; /* the path, or the address without brackets */
	uint16_t port;
	char *text; /* as written, for messages */
};

struct config_addresses {
	size_t n;
	struct config_address *at;
};

/* What a web server asks of Sluice; of a limit ANY is all of them. */
enum config_role {
	CONFIG_ROLE_ANY,
	CONFIG_ROLE_RESPONDER,
	CONFIG_ROLE_AUTHORIZER,
	CONFIG_ROLE_CGI
};

struct config_gateway {
	struct config_addresses listen;
	uint64_t socket_mode; /* octal in the file */
	char *socket_user;    /* NULL: not given */
	char *socket_group;
	struct config_list peer_uids; /* numbers or user names */
	char *user;
	char *group;
	uint64_t roles; /* a bit each: see roles_has */
	uint64_t threads;
	uint64_t max_connections;
	struct config_client_address client_address;
	struct config_cidrs trusted_proxies;
	uint64_t ipv4_prefix;
	uint64_t ipv6_prefix;
	int64_t head_timeout_us;
	int64_t body_timeout_us;
	uint64_t max_head_bytes;
	uint64_t max_body_bytes;
	uint64_t spool_memory_bytes;
	uint64_t spool_total_bytes;
	char *spool_directory;
	int64_t shutdown_timeout_us;
	char *control; /* NULL: off */
	char *include; /* as written; has been followed */
};

enum config_store_kind {
	CONFIG_STORE_NONE,
	CONFIG_STORE_MEMORY,
	CONFIG_STORE_REDIS
};

struct config_store {
	enum config_store_kind kind; /* from address */
	char *address;               /* as written; NULL: not given */
	char *username;
	char *password; /* from password or password_file */
	char *password_file;
	char *prefix;
	int64_t timeout_us;
	int64_t connect_timeout_us;
	uint64_t connections;
	uint64_t breaker_failures;
	int64_t breaker_cooldown_us;
	char *alert_command;
	char *key_secret; /* from key_secret or key_secret_file */
	char *key_secret_file;
	uint64_t max_keys;
	uint64_t deny_cache; /* entries; 0: none */
	int64_t deny_cache_ttl_us;
	struct key_hasher *hasher;
};

/* Of a limit's lease: `auto`. */
#define CONFIG_LEASE_AUTO UINT64_MAX

enum config_missing_key {
	CONFIG_MISSING_UNSET,
	CONFIG_MISSING_SKIP,
	CONFIG_MISSING_DENY
};
enum config_scope { CONFIG_SCOPE_SHARED, CONFIG_SCOPE_LOCAL };
enum config_on_outage {
	CONFIG_OUTAGE_ALLOW,
	CONFIG_OUTAGE_DENY,
	CONFIG_OUTAGE_LOCAL
};
enum config_mode { CONFIG_MODE_ENFORCE, CONFIG_MODE_OBSERVE };
enum config_status { CONFIG_STATUS_429, CONFIG_STATUS_503 };
enum config_preflight { CONFIG_PREFLIGHT_FREE, CONFIG_PREFLIGHT_COUNTED };

/* Who belongs to a tier: one of these. */
struct config_condition {
	enum { CONFIG_WHEN_CLIENT, CONFIG_WHEN_PARAM, CONFIG_WHEN_HEADER } kind;
	struct cidr client;
	char *param;      /* its name, as in params: HTTP_X_API_KEY */
	struct str value; /* that it has; p NULL: one of known */
	char *file;       /* known's, as it was found */
	struct known *known;
};

struct config_when {
	size_t n;
	struct config_condition *at;
};

struct config_tier {
	char name[CONFIG_NAME_MAX + 1];
	const char *file;
	unsigned line;
	struct config_when when;
};

/* What a tier says of a limit. */
struct config_tier_rates {
	const struct config_tier *tier;
	struct rates rates;
};

struct config_limit {
	char name[CONFIG_NAME_MAX + 1];
	const char *file; /* where its section stands */
	unsigned line;
	struct str definition; /* its options as text, to be compared */
	struct config_match match;
	struct config_cidrs client; /* n 0: all */
	struct config_pairs header; /* n 0: all */
	struct config_pairs query;  /* n 0: all */
	struct match *except_path;
	struct match *except_method;
	struct config_cidrs except_client;
	char *backend; /* NULL: any */
	uint64_t role; /* enum config_role */
	struct key key;
	char *known_keys;     /* as written; NULL: any value counts */
	struct known *known;  /* what it names */
	uint64_t missing_key; /* enum config_missing_key */
	/* key_watch's; of this generation, shared by threads. */
	_Atomic unsigned *keys_missed;
	struct rates rates;
	size_t n_tiers;
	struct config_tier_rates *tier; /* in the tiers' file order */
	uint64_t algorithm;             /* enum algorithm */
	uint64_t align;                 /* enum align */
	struct zone *zone;              /* of ALIGN_CALENDAR; NULL: UTC */
	struct calendar *calendar;      /* shared by all requests; else NULL */
	struct cost cost;
	struct statuses count;     /* whose units stay taken */
	uint64_t mode;             /* enum config_mode */
	uint64_t scope;            /* enum config_scope */
	uint64_t lease;            /* units at the most; 0: none */
	uint64_t on_outage;        /* enum config_on_outage */
	struct rates outage_rates; /* of CONFIG_OUTAGE_LOCAL */
	int64_t penalty_us;        /* 0: none */
	int64_t delay_max_us;      /* leaky_bucket */
	uint64_t preflight;        /* enum config_preflight */
	uint64_t status;           /* enum config_status */
	char *message;             /* NULL: none */
};

enum config_headers_on { CONFIG_HEADERS_ON_ALL, CONFIG_HEADERS_ON_DENIED };

/* What answers carry. */
struct config_response {
	uint64_t headers_on; /* enum config_headers_on */
	char *body_html;     /* paths; NULL: not given */
	char *body_json;
	char *body_text;
	struct config_list cors_origin;
	struct config_list add_header; /* "NAME: VALUE" */
	struct reply_style reply;      /* made of all of them */
};

enum config_backend_type {
	CONFIG_BACKEND_FASTCGI,
	CONFIG_BACKEND_CGI,
	CONFIG_BACKEND_ANSWER
};
enum config_denial { CONFIG_DENIAL_429, CONFIG_DENIAL_403 };

struct config_backend {
	char name[CONFIG_NAME_MAX + 1];
	const char *file;
	unsigned line;
	struct config_match match;
	uint64_t type;   /* enum config_backend_type */
	uint64_t denial; /* answer: enum config_denial */
	struct config_addresses address;
	uint64_t keep_alive; /* idle connections an address */
	int64_t connect_timeout_us;
	int64_t send_timeout_us;
	int64_t first_byte_timeout_us;
	int64_t idle_timeout_us;
	uint64_t max_inflight; /* 0 in the file's absence: see gateway */
	uint64_t queue;
	int64_t queue_timeout_us;
	char *root; /* cgi: its real path */
	int64_t run_timeout_us;
	struct config_list env;         /* names passed on */
	struct config_list interpreter; /* ".py=/usr/bin/python3" */
};

enum config_access {
	CONFIG_ACCESS_OFF,
	CONFIG_ACCESS_DENIED,
	CONFIG_ACCESS_ALL
};

struct config_log {
	uint64_t level;  /* enum log_level */
	uint64_t format; /* enum log_format */
	uint64_t access; /* enum config_access */
	char *target;
};

struct place;

struct config {
	_Atomic unsigned references;
	uint64_t serial;    /* no other of this process has the same */
	struct arena arena; /* what the generation points to */
	char *file;
	/* Where options stand that take a restart; in the table's order. */
	const struct place *restart_place;
	struct config_gateway gateway;
	struct config_store store;
	struct config_response response;
	struct config_log log;
	size_t n_limits;
	struct config_limit *limit; /* file order */
	size_t n_tiers;
	struct config_tier *tier; /* file order */
	size_t n_backends;
	struct config_backend *backend; /* file order, `default` last */
};

/*
 * Gets each finding as it will be printed, without a newline:
 * "FILE:LINE: [section] key: text", and whether it is only a warning.
 */
typedef void config_report(void *context, const char *text, bool warning);

/* NULL after at least one error was reported. References: 1. */
struct config *config_load(
    const char *file, config_report *report, void *context);
struct config *config_ref(struct config *config);
void config_unref(struct config *config);

/*
 * Reports to `report`, as warnings, each option that differs between the
 * two and takes a restart to change ("listen", "threads", ...).
 */
void config_report_restarts(const struct config *running,
    const struct config *wanted, config_report *report, void *context);

/* `sluice options`: a line a row; or a commented INI file. */
void config_print_options(FILE *out);
void config_print_ini(FILE *out);

#endif
