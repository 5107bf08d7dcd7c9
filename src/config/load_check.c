#include "config/load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "config/file.h"
#include "config/named.h"
#include "config/places.h"
#include "config/roles.h"
#include "config/secret.h"

bool
load_has(const struct source_section *section, const char *key)
{
	return source_entry(section, key) != NULL;
}

struct place
load_place(const struct source_section *section, const char *key)
{
	const struct source_entry *e = source_entry(section, key);
	struct place place = section->place;

	place.key = key;
	return e != NULL ? e->place : place;
}

struct place
load_place_in(const struct load *l, enum option_section kind, const char *key)
{
	static const char *const labels[] = {
		[OPTION_gateway] = "[gateway]",
		[OPTION_store] = "[store]",
		[OPTION_response] = "[response]",
		[OPTION_log] = "[log]",
	};
	const struct source_section *section =
	    source_find(&l->source, kind, STR(""));

	if (section != NULL)
		return load_place(section, key);
	return (struct place){
		.file = l->source.file->path,
		.section = labels[kind],
		.key = key,
	};
}

static void
check_spool_directory(struct load *l)
{
	const char *path = l->config->gateway.spool_directory;
	struct place place =
	    load_place_in(l, OPTION_gateway, "spool_directory");
	struct stat info;

	if (path == NULL)
		return;
	if (stat(path, &info) != 0)
		finding_error(
		    &l->findings, &place, "%s: %s", path, strerror(errno));
	else if (!S_ISDIR(info.st_mode))
		finding_error(
		    &l->findings, &place, "%s is not a directory", path);
	else if (faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) != 0)
		finding_error(
		    &l->findings, &place, "%s can not be written to", path);
}

/* Without them a client's own header would say who it is. */
static void
check_proxies(struct load *l)
{
	const struct config_gateway *gateway = &l->config->gateway;
	struct place place = load_place_in(l, OPTION_gateway, "client_address");

	if (gateway->client_address.param[0] != '\0' &&
	    gateway->trusted_proxies.n == 0)
		finding_error(&l->findings, &place,
		    "needs trusted_proxies: without them every client could "
		    "say who it is");
	place = load_place_in(l, OPTION_gateway, "trusted_proxies");
	for (size_t i = 0; i < gateway->trusted_proxies.n; i++)
		if (gateway->trusted_proxies.at[i].bits == 0)
			finding_warning(&l->findings, &place,
			    "trusts every address: a client that is connected "
			    "directly can say who it is");
}

/* The secret of two options, one of which names a file that holds it. */
static void
resolve_secret(struct load *l, const char *key, const char *file_key,
    const char *path, char **secret)
{
	const struct source_section *store =
	    source_find(&l->source, OPTION_store, STR(""));
	struct place place = load_place_in(l, OPTION_store, file_key);
	const struct source_entry *e = source_entry(store, file_key);
	bool is_public = false;
	struct err err;

	if (path == NULL)
		return;
	if (load_has(store, key)) {
		finding_error(&l->findings, &place,
		    "%s is given too: one of the two", key);
		return;
	}
	path = file_path(&l->config->arena, e->file->directory, str_of(path));
	if (path == NULL) {
		l->findings.failed = true;
		return;
	}
	*secret = secret_read(path, &l->config->arena, &is_public, &err);
	if (*secret == NULL)
		finding_error(&l->findings, &place, "%s: %s", path, err.text);
	else if (is_public)
		finding_warning(
		    &l->findings, &place, "%s can be read by everyone", path);
}

static void
set_store_kind(struct config_store *store)
{
	if (store->address == NULL)
		store->kind = CONFIG_STORE_NONE;
	else if (strcmp(store->address, "memory:") == 0)
		store->kind = CONFIG_STORE_MEMORY;
	else
		store->kind = CONFIG_STORE_REDIS;
}

static void
check_store(struct load *l)
{
	struct config_store *store = &l->config->store;
	struct place place = load_place_in(l, OPTION_store, "key_secret");
	struct err err;

	set_store_kind(store);
	resolve_secret(l, "password", "password_file", store->password_file,
	    &store->password);
	resolve_secret(l, "key_secret", "key_secret_file",
	    store->key_secret_file, &store->key_secret);
	store->hasher = key_hasher_new(str_of(store->key_secret), &err);
	if (store->hasher == NULL)
		finding_error(&l->findings, &place, "%s", err.text);
}

/* A shared limit without a store, said once, at the first. */
static void
check_shared(struct load *l)
{
	const struct source_section *store =
	    source_find(&l->source, OPTION_store, STR(""));

	if (load_has(store, "address"))
		return;
	for (size_t i = 0; i < l->config->n_limits; i++) {
		struct place place = load_place(l->limit[i], "scope");

		if (l->config->limit[i].scope != CONFIG_SCOPE_SHARED)
			continue;
		finding_error(&l->findings, &place,
		    "a shared limit needs address in [store]");
		return;
	}
}

static void
check_limit(struct load *l, size_t at)
{
	const struct source_section *section = l->limit[at];
	const struct config_limit *limit = &l->config->limit[at];
	struct findings *f = &l->findings;
	struct place place = load_place(section, "rate");

	if (!load_has(section, "rate"))
		finding_error(f, &place, "is required");
	place = load_place(section, "missing_key");
	if (!load_has(section, "missing_key") && limit->key.n > 0 &&
	    !key_always_there(&limit->key))
		finding_error(f, &place,
		    "is required (skip or deny), since a request may have "
		    "no such key");
	place = load_place(section, "align");
	if (load_has(section, "align") &&
	    limit->algorithm != ALGORITHM_FIXED_WINDOW)
		finding_error(f, &place, "belongs to algorithm = fixed_window");
	place = load_place(section, "backend");
	if (limit->backend != NULL &&
	    named_backend(l->config, str_of(limit->backend)) == NULL)
		finding_error(
		    f, &place, "there is no [backend %s]", limit->backend);
}

static void
resolve_root(struct load *l, const struct source_section *section,
    struct config_backend *backend)
{
	struct place place = load_place(section, "root");
	struct stat info;
	char *real;

	if (!load_has(section, "root")) {
		finding_error(
		    &l->findings, &place, "is required with type = cgi");
		return;
	}
	if (backend->root == NULL)
		return;
	real = realpath(backend->root, NULL);
	if (real == NULL || stat(real, &info) != 0) {
		finding_error(&l->findings, &place, "%s: %s", backend->root,
		    strerror(errno));
	} else if (!S_ISDIR(info.st_mode)) {
		finding_error(&l->findings, &place, "%s is not a directory",
		    backend->root);
	} else {
		backend->root =
		    (char *)arena_copy(&l->config->arena, str_of(real)).p;
		l->findings.failed |= backend->root == NULL;
	}
	free(real);
}

/* What is for some types of backends alone; in the order of the table. */
#define OF_FASTCGI (1u << CONFIG_BACKEND_FASTCGI)
#define OF_CGI     (1u << CONFIG_BACKEND_CGI)
#define OF_ANSWER  (1u << CONFIG_BACKEND_ANSWER)

static const struct {
	const char *key;
	unsigned types;
	const char *wrong;
} of_types[] = {
	{ "denial", OF_ANSWER, "belongs to type = answer" },
	{ "address", OF_FASTCGI, "belongs to type = fastcgi" },
	{ "keep_alive", OF_FASTCGI, "belongs to type = fastcgi" },
	{ "connect_timeout", OF_FASTCGI, "belongs to type = fastcgi" },
	{ "send_timeout", OF_FASTCGI, "belongs to type = fastcgi" },
	{ "first_byte_timeout", OF_FASTCGI, "belongs to type = fastcgi" },
	{ "idle_timeout", OF_FASTCGI | OF_CGI, "needs an application" },
	{ "max_inflight", OF_FASTCGI | OF_CGI, "needs an application" },
	{ "queue", OF_FASTCGI | OF_CGI, "needs an application" },
	{ "queue_timeout", OF_FASTCGI | OF_CGI, "needs an application" },
	{ "root", OF_CGI, "belongs to type = cgi" },
	{ "run_timeout", OF_CGI, "belongs to type = cgi" },
	{ "env", OF_CGI, "belongs to type = cgi" },
	{ "interpreter", OF_CGI, "belongs to type = cgi" },
};

static void
check_type(struct load *l, const struct source_section *section,
    struct config_backend *backend)
{
	struct place place;

	for (size_t i = 0; i < sizeof(of_types) / sizeof(of_types[0]); i++) {
		if (!load_has(section, of_types[i].key) ||
		    (of_types[i].types >> backend->type & 1) != 0)
			continue;
		place = load_place(section, of_types[i].key);
		finding_error(&l->findings, &place, "%s", of_types[i].wrong);
	}
	place = load_place(section, "address");
	if (backend->type == CONFIG_BACKEND_CGI)
		resolve_root(l, section, backend);
	else if (backend->type == CONFIG_BACKEND_FASTCGI &&
	    !load_has(section, "address"))
		finding_error(
		    &l->findings, &place, "is required with type = fastcgi");
}

static void
check_backend(struct load *l, size_t at)
{
	const struct source_section *section = l->backend[at];
	struct config_backend *backend = &l->config->backend[at];

	if (strcmp(backend->name, "default") != 0 &&
	    l->config->n_backends > 1 && !load_has(section, "host") &&
	    !load_has(section, "path") && !load_has(section, "method"))
		finding_error(&l->findings, &section->place,
		    "takes every request, and hides the backends after it: "
		    "give it host, path or method, or name it default");
	check_type(l, section, backend);
	if (!load_has(section, "max_inflight"))
		backend->max_inflight = places_of_backend(&l->config->gateway);
}

void
load_check(struct load *l)
{
	struct place file = { .file = l->source.file->path };

	check_spool_directory(l);
	check_proxies(l);
	check_store(l);
	check_shared(l);
	for (size_t i = 0; i < l->config->n_limits; i++)
		check_limit(l, i);
	if (l->config->n_backends == 0 &&
	    roles_has(&l->config->gateway, CONFIG_ROLE_RESPONDER))
		finding_error(&l->findings, &file,
		    "there is no [backend NAME] to pass requests to");
	for (size_t i = 0; i < l->config->n_backends; i++)
		check_backend(l, i);
}
