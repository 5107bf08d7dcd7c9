/*
 * address: IP addresses and prefixes, as values. Pure; any thread.
 *
 * Canonical form: an IPv4-mapped IPv6 address (::ffff:1.2.3.4) is the IPv4
 * address it maps (RFC 4291, 2.5.5.2).
 */
#ifndef SLUICE_ADDRESS_H
#define SLUICE_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define ADDRESS_TEXT_MAX 48

struct address {
	uint8_t family;    /* 4, 6, or 0: none */
	uint8_t bytes[16]; /* network order; 4 of them for IPv4, rest 0 */
};

/* A prefix, its host bits zero. */
struct cidr {
	struct address base;
	unsigned bits;
};

/*
 * Accepts 1.2.3.4, an IPv6 address, and the latter in brackets or with a
 * zone (%eth0, dropped). Nothing else: no port, no blank, no shorthand.
 */
bool address_parse(struct str text, struct address *address);
/* Zeroes what lies beyond the prefix of its family. */
void address_cut(
    struct address *address, unsigned ipv4_prefix, unsigned ipv6_prefix);
/* Writes text and a NUL; returns its length. */
size_t address_format(
    const struct address *address, char text[ADDRESS_TEXT_MAX]);
bool address_eq(const struct address *a, const struct address *b);

/*
 * "10.0.0.0/8" or a single address; set host bits are an error. A prefix of
 * mapped addresses (::ffff:10.0.0.0/104) is the IPv4 prefix it maps.
 */
bool cidr_parse(struct str text, struct cidr *cidr, struct err *err);
/* A prefix holds addresses of its own family alone, ::/0 no IPv4. */
bool cidr_contains(const struct cidr *cidr, const struct address *address);

#endif
