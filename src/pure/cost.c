#include "pure/cost.h"

#include <string.h>

#include "pure/match.h"

#define RESPONSE_PREFIX STR("response:")
#define HEADER_MAX      128

static bool
is_token(struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.p[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
		    !(c >= '0' && c <= '9') && strchr("-_.", c) == NULL)
			return false;
	}
	return name.len > 0 && name.len <= HEADER_MAX;
}

/* What the response is made of, and what web servers and browsers do by it. */
static bool
is_needed(struct str name)
{
	static const char *const needed[] = { "Accept-Ranges", "Age", "Allow",
		"Cache-Control", "Connection", "Date", "ETag", "Expires",
		"Keep-Alive", "Last-Modified", "Link", "Location", "Pragma",
		"Proxy-Authenticate", "Refresh", "Retry-After", "Server",
		"Set-Cookie", "Status", "Strict-Transport-Security", "Trailer",
		"Transfer-Encoding", "Upgrade", "Vary", "Via", "Warning",
		"WWW-Authenticate", "X-Accel-Redirect", "X-Frame-Options",
		"X-LIGHTTPD-send-file", "X-Sendfile", "X-Sendfile2" };
	static const char *const begins[] = { "Access-Control-", "Content-" };

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (str_eq_nocase(name, str_of(needed[i])))
			return true;
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		struct str start = str_of(begins[i]);

		if (name.len >= start.len &&
		    str_eq_nocase((struct str){ name.p, start.len }, start))
			return true;
	}
	return false;
}

static bool
check_header(struct str text, struct str name, struct err *err)
{
	if (!is_token(name))
		return err_set(err,
		    "`%.*s`: a response header's name is missing or none, "
		    "such as response:X-Cost",
		    STR_ARG(text));
	if (is_needed(name))
		return err_set(err,
		    "`%.*s`: the response needs that header, and a cost's is "
		    "taken out; give it one of its own, such as "
		    "response:X-Cost",
		    STR_ARG(text));
	return true;
}

static bool
parse_units(struct str item, struct str text, int64_t *units, struct err *err)
{
	uint64_t n;

	if (!str_to_u64(text, COST_MAX, &n))
		return err_set(err,
		    "`%.*s`: `%.*s` is no cost; it is a whole number up to "
		    "10^12",
		    STR_ARG(item), STR_ARG(text));
	*units = (int64_t)n;
	return true;
}

static bool
cannot_match(struct str item, const char *why, struct err *err)
{
	return err_set(err, "`%.*s` can match nothing: %s", STR_ARG(item), why);
}

/* Methods are compared as they are, each with each. */
static bool
check_method(struct str item, struct str method, struct err *err)
{
	for (size_t i = 0; i < method.len; i++) {
		if (method.p[i] >= 'a' && method.p[i] <= 'z')
			return cannot_match(
			    item, "methods are upper case", err);
		if (method.p[i] == '*')
			return cannot_match(item,
			    "a method is written out, or left out for all",
			    err);
	}
	return true;
}

bool
cost_parse_pattern(
    struct str item, struct cost_pattern *pattern, struct err *err)
{
	const char *equals = memrchr(item.p, '=', item.len);
	struct str left, units;
	const char *blank;

	if (equals == NULL)
		return err_set(err,
		    "`%.*s` is none of PATTERN=N; a cost is a whole number, a "
		    "list such as /search*=10, *=1, or response:NAME",
		    STR_ARG(item));
	left = str_trim((struct str){ item.p, (size_t)(equals - item.p) });
	units = (struct str){ equals + 1,
		(size_t)(item.p + item.len - equals - 1) };
	pattern->method = STR_NONE;
	pattern->glob = left;
	blank = left.len > 0 ? memchr(left.p, ' ', left.len) : NULL;
	if (blank != NULL) {
		pattern->method = str_cut(&left, ' ');
		pattern->glob = str_trim(left);
	}
	if (pattern->glob.len == 0 ||
	    (pattern->glob.p[0] != '/' && pattern->glob.p[0] != '*'))
		return cannot_match(item, "a path begins with /", err);
	if (!check_method(item, pattern->method, err))
		return false;
	return parse_units(item, str_trim(units), &pattern->units, err);
}

bool
cost_parse_single(struct str text, struct cost *cost, struct err *err)
{
	struct cost parsed = { .kind = COST_FIXED };

	if (str_starts(text, RESPONSE_PREFIX)) {
		parsed.kind = COST_RESPONSE;
		parsed.header = (struct str){ text.p + RESPONSE_PREFIX.len,
			text.len - RESPONSE_PREFIX.len };
		if (!check_header(text, parsed.header, err))
			return false;
	} else if (!parse_units(text, text, &parsed.units, err)) {
		return false;
	}
	*cost = parsed;
	return true;
}

static bool
method_matches(struct str pattern, struct str method)
{
	return pattern.len == 0 || str_eq(pattern, method) ||
	    (str_eq(pattern, STR("GET")) && str_eq(method, STR("HEAD")));
}

static const struct cost_pattern *
first_match(const struct cost *cost, struct str method, struct str path)
{
	for (size_t i = 0; cost->kind == COST_PATTERNS && i < cost->n; i++) {
		const struct cost_pattern *p = &cost->pattern[i];

		if (method_matches(p->method, method) &&
		    match_glob(p->glob, path))
			return p;
	}
	return NULL;
}

int64_t
cost_of(const struct cost *cost, struct str method, struct str path)
{
	const struct cost_pattern *p;

	if (cost->kind == COST_FIXED)
		return cost->units;
	p = first_match(cost, method, path);
	return p == NULL ? 1 : p->units;
}

/* All paths begin with a slash. */
static bool
is_of_all_paths(struct str glob)
{
	size_t at = glob.p[0] == '/' ? 1 : 0;

	if (at == glob.len)
		return false;
	while (at < glob.len && glob.p[at] == '*')
		at++;
	return at == glob.len;
}

/* What matches a glob's own text, has a `*` wherever that has one. */
bool
cost_covers(
    const struct cost_pattern *before, const struct cost_pattern *pattern)
{
	return method_matches(before->method, pattern->method) &&
	    (is_of_all_paths(before->glob) ||
		match_glob(before->glob, pattern->glob));
}

int64_t
cost_of_some(const struct cost *cost, struct str method, struct str path)
{
	const struct cost_pattern *p = first_match(cost, method, path);

	return p == NULL || is_of_all_paths(p->glob) ? 0 : p->units;
}

int64_t
cost_most(const struct cost *cost)
{
	int64_t most = cost->kind == COST_FIXED ? cost->units : 1;

	for (size_t i = 0; cost->kind == COST_PATTERNS && i < cost->n; i++)
		if (cost->pattern[i].units > most)
			most = cost->pattern[i].units;
	return most;
}

int64_t
cost_least(const struct cost *cost)
{
	int64_t least = INT64_MAX;

	if (cost->kind == COST_FIXED)
		return cost->units > 0 ? cost->units : 1;
	for (size_t i = 0; cost->kind == COST_PATTERNS && i < cost->n; i++) {
		const struct cost_pattern *p = &cost->pattern[i];

		if (p->units > 0 && p->units < least)
			least = p->units;
		if (p->method.len == 0 && is_of_all_paths(p->glob))
			return least < INT64_MAX ? least : 1;
	}
	return 1;
}
