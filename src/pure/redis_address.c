#include "pure/redis_address.h"

#include <stdio.h>
#include <string.h>

#define PORT_DEFAULT 6379
#define DATABASE_MAX 1000000
#define PATH_MAX_LEN 107 /* sockaddr_un's sun_path, less its NUL */

static bool
copy_host(struct str host, struct redis_address *a)
{
	if (host.len >= sizeof(a->host))
		return false;
	memcpy(a->host, host.p, host.len);
	a->host[host.len] = '\0';
	return true;
}

static bool
parse_unix(struct str path, struct redis_address *a, struct err *err)
{
	if (path.len < 2 || path.p[0] != '/')
		return err_set(err, "unix: takes an absolute path");
	if (path.len > PATH_MAX_LEN || !copy_host(path, a))
		return err_set(err, "the path of a socket has at most %d bytes",
		    PATH_MAX_LEN);
	a->transport = REDIS_UNIX;
	return true;
}

static bool
is_host_byte(char c, bool is_ipv6)
{
	if (c >= '0' && c <= '9')
		return true;
	if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
		return true;
	return c == '.' || c == '-' || (is_ipv6 ? c == ':' : c == '_');
}

static bool
parse_host(struct str host, bool is_ipv6, struct redis_address *a)
{
	if (host.len == 0)
		return false;
	for (size_t i = 0; i < host.len; i++)
		if (!is_host_byte(host.p[i], is_ipv6))
			return false;
	return copy_host(host, a);
}

/* HOST, HOST:PORT, [IPv6] or [IPv6]:PORT. */
static bool
parse_place(struct str place, struct redis_address *a, struct err *err)
{
	bool is_ipv6 = place.len > 0 && place.p[0] == '[';
	struct str port = place;
	struct str host;
	uint64_t number;

	if (is_ipv6) {
		port.p++;
		port.len--;
	}
	host = str_cut(&port, is_ipv6 ? ']' : ':');
	if (is_ipv6 && port.p == NULL)
		return err_set(err, "an IPv6 address stands in [ and ]");
	if (!parse_host(host, is_ipv6, a))
		return err_set(err, "redis:// takes HOST[:PORT][/DATABASE]");
	if (is_ipv6 && port.len == 0)
		return true;
	if (is_ipv6 && str_cut(&port, ':').len != 0)
		return err_set(err, "what follows ] is not :PORT");
	if (port.p == NULL)
		return true;
	if (!str_to_u64(port, UINT16_MAX, &number) || number == 0)
		return err_set(err, "the port is 1 to 65535");
	a->port = (uint16_t)number;
	return true;
}

static bool
parse_tcp(struct str rest, struct redis_address *a, struct err *err)
{
	struct str place = str_cut(&rest, '/');
	uint64_t number = 0;

	if (rest.len > 0 && !str_to_u64(rest, DATABASE_MAX, &number))
		return err_set(err, "the database is a number");
	a->transport = REDIS_TCP;
	a->port = PORT_DEFAULT;
	a->database = (unsigned)number;
	return parse_place(place, a, err);
}

/* A scheme that is known but not served; NULL: none of those. */
static const char *
later_scheme(struct str text)
{
	static const char *const later[] = {
		"rediss://",
		"sentinel://",
		"cluster://",
	};

	for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++)
		if (str_starts(text, str_of(later[i])))
			return later[i];
	return NULL;
}

bool
redis_address_parse(
    struct str text, struct redis_address *address, struct err *err)
{
	const char *later = later_scheme(text);

	*address = (struct redis_address){ 0 };
	if (later != NULL)
		return err_set(
		    err, "%s is not supported by this version", later);
	if (str_starts(text, STR("unix:")))
		return parse_unix(
		    (struct str){ text.p + 5, text.len - 5 }, address, err);
	if (!str_starts(text, STR("redis://")))
		return err_set(err,
		    "neither unix:/PATH nor redis://HOST[:PORT][/DATABASE]");
	if (memchr(text.p, '@', text.len) != NULL)
		return err_set(err,
		    "user and password do not belong here: use the options "
		    "username and password (or password_file)");
	return parse_tcp(
	    (struct str){ text.p + 8, text.len - 8 }, address, err);
}

void
redis_address_print(
    const struct redis_address *a, char text[REDIS_ADDRESS_TEXT_MAX])
{
	if (a->transport == REDIS_UNIX)
		snprintf(text, REDIS_ADDRESS_TEXT_MAX, "unix:%s", a->host);
	else
		snprintf(text, REDIS_ADDRESS_TEXT_MAX,
		    strchr(a->host, ':') != NULL ? "redis://[%s]:%u/%u"
						 : "redis://%s:%u/%u",
		    a->host, (unsigned)a->port, a->database);
}
