#include "pure/forwarded.h"

#include <stdbool.h>
#include <string.h>

#define PORT_MAX 65535

static bool
is_port(struct str port)
{
	uint64_t number;

	return str_to_u64(port, PORT_MAX, &number) ||
	    (port.len > 1 && port.p[0] == '_');
}

/* 192.0.2.1, 192.0.2.1:80, 2001:db8::1, [2001:db8::1], [2001:db8::1]:80 */
static bool
parse_node(struct str node, struct address *address)
{
	struct str port = STR_NONE;
	const char *colon =
	    node.len > 0 ? memrchr(node.p, ':', node.len) : NULL;

	if (colon != NULL && colon != node.p &&
	    (colon[-1] == ']' ||
		(node.p[0] != '[' && memchr(node.p, ':', node.len) == colon))) {
		port.p = colon + 1;
		port.len = (size_t)(node.p + node.len - port.p);
		node.len -= port.len + 1;
		if (!is_port(port))
			return false;
	}
	return address_parse(node, address);
}

/* Is the quote at `at` one that a backslash takes the meaning from? */
static bool
is_escaped(struct str s, size_t at)
{
	size_t slashes = 0;

	while (slashes < at && s.p[at - 1 - slashes] == '\\')
		slashes++;
	return slashes % 2 == 1;
}

/*
 * Cuts off what stands behind the last comma that is not quoted; rest->p is
 * NULL when that was all. false: a quote is missing.
 */
static bool
cut_last_element(struct str *rest, struct str *last)
{
	bool quoted = false;

	for (size_t at = rest->len; at > 0; at--) {
		char c = rest->p[at - 1];

		if (c == '"' && !is_escaped(*rest, at - 1)) {
			quoted = !quoted;
		} else if (c == ',' && !quoted) {
			last->p = rest->p + at;
			last->len = rest->len - at;
			rest->len = at - 1;
			return true;
		}
	}
	*last = *rest;
	*rest = STR_NONE;
	return !quoted;
}

/* The end of a value that begins at `at`: behind it, or where `;` is. */
static size_t
value_end(struct str s, size_t at)
{
	bool quoted = at < s.len && s.p[at] == '"';

	if (!quoted) {
		while (at < s.len && s.p[at] != ';')
			at++;
		return at;
	}
	for (at++; at < s.len; at++) {
		if (s.p[at] == '\\')
			at++;
		else if (s.p[at] == '"')
			return at + 1;
	}
	return s.len;
}

/* An address needs no escapes, so a value with one is none. */
static bool
parse_value(struct str value, struct address *hop)
{
	value = str_trim(value);
	if (value.len >= 2 && value.p[0] == '"' &&
	    value.p[value.len - 1] == '"') {
		value.p++;
		value.len -= 2;
	}
	return parse_node(value, hop);
}

/* "for=192.0.2.60;proto=http": exactly one `for`. */
static bool
parse_element(struct str element, struct address *hop)
{
	bool found = false;

	for (size_t at = 0; at < element.len;) {
		struct str rest = { element.p + at, element.len - at };
		struct str name = str_cut(&rest, '=');
		size_t start, end;

		if (rest.p == NULL)
			return false;
		start = (size_t)(rest.p - element.p);
		end = value_end(element, start);
		if (str_eq_nocase(str_trim(name), STR("for"))) {
			struct str value = { rest.p, end - start };

			if (found || !parse_value(value, hop))
				return false;
			found = true;
		}
		if (end < element.len && element.p[end] != ';')
			return false;
		at = end + 1;
	}
	return found;
}

static void
cut_last_item(struct str *rest, struct str *last)
{
	const char *comma =
	    rest->len > 0 ? memrchr(rest->p, ',', rest->len) : NULL;

	*last = *rest;
	if (comma == NULL) {
		*rest = STR_NONE;
		return;
	}
	rest->len = (size_t)(comma - rest->p);
	last->p = comma + 1;
	last->len -= rest->len + 1;
}

static bool
take_hop(enum forwarded_form form, struct str *rest, struct address *hop)
{
	struct str last;

	switch (form) {
	case FORWARDED_LIST:
		cut_last_item(rest, &last);
		return parse_node(str_trim(last), hop);
	case FORWARDED_ELEMENTS:
		return cut_last_element(rest, &last) &&
		    parse_element(str_trim(last), hop);
	}
	return false;
}

static bool
is_trusted(
    const struct address *address, const struct cidr *trusted, size_t n_trusted)
{
	for (size_t i = 0; i < n_trusted; i++)
		if (cidr_contains(&trusted[i], address))
			return true;
	return false;
}

struct address
forwarded_client(enum forwarded_form form, struct str header,
    const struct address *peer, const struct cidr *trusted, size_t n_trusted)
{
	struct address client = *peer;

	for (int hops = 0; hops < FORWARDED_HOPS_MAX && header.p != NULL &&
	     is_trusted(&client, trusted, n_trusted);
	     hops++) {
		struct address hop;

		if (!take_hop(form, &header, &hop))
			break;
		client = hop;
	}
	return client;
}
