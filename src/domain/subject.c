#include "domain/subject.h"

#include <string.h>

#include "domain/proxy_watch.h"
#include "pure/path.h"

static struct str
canonical(struct str uri, struct arena *arena)
{
	char *out = arena_alloc(arena, uri.len + 2);

	if (out == NULL)
		return STR_NONE;
	return (struct str){ out, path_canonical(uri, out) };
}

static struct str
normalised(struct str path, struct arena *arena)
{
	char *out = arena_alloc(arena, path.len + 2);

	if (out == NULL)
		return STR_NONE;
	return (struct str){ out, path_normalise(path, out) };
}

/* SCRIPT_NAME and PATH_INFO come decoded from the web server. */
static bool
read_script_path(struct subject *s, struct arena *arena)
{
	struct str script = params_get(s->params, STR("SCRIPT_NAME"));
	struct str info = params_get(s->params, STR("PATH_INFO"));
	size_t len = script.len + info.len;
	char *joined = arena_alloc(arena, len + 1);

	if (joined == NULL)
		return false;
	if (script.len > 0)
		memcpy(joined, script.p, script.len);
	if (info.len > 0)
		memcpy(joined + script.len, info.p, info.len);
	s->script_path = normalised((struct str){ joined, len }, arena);
	if (info.len > 0)
		s->info_path = normalised(info, arena);
	return s->script_path.p != NULL &&
	    (info.len == 0 || s->info_path.p != NULL);
}

/*
 * An authorizer is told neither SCRIPT_NAME nor PATH_INFO (FastCGI 1.0, 6.3):
 * what was asked for is the only path there is.
 */
static bool
knows_no_script(const struct subject *s)
{
	return s->role == CONFIG_ROLE_AUTHORIZER &&
	    params_get(s->params, STR("SCRIPT_NAME")).len == 0 &&
	    params_get(s->params, STR("PATH_INFO")).len == 0;
}

static size_t
host_length(struct str host)
{
	size_t len = host.len;

	if (len > 0 && host.p[0] == '[') {
		const char *end = memchr(host.p, ']', len);

		return end == NULL ? len : (size_t)(end - host.p) + 1;
	}
	for (size_t i = 0; i < len; i++)
		if (host.p[i] == ':')
			return i;
	return len;
}

static struct str
read_host(const struct params *params, struct arena *arena)
{
	struct str host = params_get(params, STR("HTTP_HOST"));
	struct str copy;
	char *at;

	host.len = host_length(host);
	/* "example.org." is the same host. */
	if (host.len > 1 && host.p[host.len - 1] == '.')
		host.len--;
	copy = arena_copy(arena, host);
	if (copy.p == NULL)
		return copy;
	at = (char *)(uintptr_t)copy.p;
	for (size_t i = 0; i < copy.len; i++)
		if (at[i] >= 'A' && at[i] <= 'Z')
			at[i] = (char)(at[i] + 'a' - 'A');
	return copy;
}

/*
 * A header of a trusted proxy that came twice (X_Forwarded_For beside
 * X-Forwarded-For): who knows which of them the proxy wrote.
 */
static bool
is_forwarded_twice(
    const struct subject *s, const struct config_gateway *gateway)
{
	struct str param = str_of(gateway->client_address.param);
	bool is_trusted = false;

	if (param.len == 0 || params_count(s->params, param) < 2)
		return false;
	for (size_t i = 0; i < gateway->trusted_proxies.n; i++)
		is_trusted |=
		    cidr_contains(&gateway->trusted_proxies.at[i], &s->peer);
	return is_trusted;
}

/* Whom the peer forwards for, if it is trusted. */
static struct address
forwarded_address(const struct subject *s, const struct config_gateway *gateway)
{
	struct str param = str_of(gateway->client_address.param);

	if (param.len == 0 || params_count(s->params, param) != 1)
		return s->peer;
	return forwarded_client(gateway->client_address.form,
	    params_get(s->params, param), &s->peer, gateway->trusted_proxies.at,
	    gateway->trusted_proxies.n);
}

static bool
read_client(struct subject *s, const struct config_gateway *gateway,
    struct arena *arena)
{
	char text[ADDRESS_TEXT_MAX];

	s->client_text =
	    arena_copy(arena, params_get(s->params, STR("REMOTE_ADDR")));
	s->has_peer = address_parse(s->client_text, &s->peer);
	/*
	 * Nor is the proxy itself the client then: what is allowed to it is
	 * not to be had by writing a header. All such count as one.
	 */
	s->has_client = s->has_peer && !is_forwarded_twice(s, gateway);
	if (!s->has_client)
		return s->client_text.p != NULL;
	s->client = forwarded_address(s, gateway);
	if (!address_eq(&s->client, &s->peer)) {
		address_format(&s->client, text);
		s->client_text = arena_copy(arena, str_of(text));
	}
	s->network = s->client;
	address_cut(&s->network, (unsigned)gateway->ipv4_prefix,
	    (unsigned)gateway->ipv6_prefix);
	return s->client_text.p != NULL;
}

/* GET includes HEAD. */
bool
subject_has_method(const struct subject *s, const struct match *m)
{
	return match_test(m, s->method) ||
	    (str_eq(s->method, STR("HEAD")) && match_test(m, STR("GET")));
}

bool
subject_may_match(const struct subject *s, const struct config_match *m)
{
	return match_may(m->host, s->host) &&
	    subject_has_method(s, m->method) &&
	    (match_may(m->path, s->path) ||
		match_may(m->path, s->script_path) ||
		(s->info_path.len > 0 && match_may(m->path, s->info_path)));
}

struct str
subject_header(const struct subject *s, struct str param)
{
	struct str value = params_get(s->params, param);

	if (value.len == 0 && str_eq(param, STR("HTTP_AUTHORIZATION")))
		return params_get(
		    s->params, STR("REDIRECT_HTTP_AUTHORIZATION"));
	return value;
}

bool
subject_is_only_asked(const struct subject *s)
{
	return s->backend != NULL && s->backend->type == CONFIG_BACKEND_ANSWER;
}

/* Backends are chosen by the REQUEST_URI form alone. */
static const struct config_backend *
choose_backend(const struct subject *s, const struct config *config)
{
	for (size_t i = 0; i < config->n_backends; i++) {
		const struct config_backend *b = &config->backend[i];

		if (match_test(b->match.host, s->host) &&
		    subject_has_method(s, b->match.method) &&
		    match_test(b->match.path, s->path))
			return b;
	}
	return NULL;
}

bool
subject_read(struct subject *s, enum config_role role,
    const struct params *params, const struct config *config,
    struct arena *arena)
{
	struct str uri = params_get(params, STR("REQUEST_URI"));

	*s = (struct subject){
		.role = role,
		.params = params,
		.arena = arena,
	};
	s->method =
	    arena_copy(arena, params_get(params, STR("REQUEST_METHOD")));
	s->host = read_host(params, arena);
	if (!read_script_path(s, arena))
		return false;
	s->path = uri.len == 0 ? s->script_path : canonical(uri, arena);
	if (s->method.p == NULL || s->host.p == NULL || s->path.p == NULL)
		return false;
	if (knows_no_script(s))
		s->script_path = s->path;
	if (!read_client(s, &config->gateway, arena))
		return false;
	if (config->gateway.trusted_proxies.n == 0)
		proxy_watch(params);
	if (role != CONFIG_ROLE_AUTHORIZER)
		s->backend = choose_backend(s, config);
	return true;
}
