/*
 * forwarded: whom a chain of proxies forwards for. Pure; any thread.
 *
 * Each proxy appends the address it was connected from, so the right end
 * was written by the proxy that is nearest and the left end by anybody.
 * The walk begins with the peer of the web server and goes from the right:
 * an address is believed only if all to the right of it, the peer included,
 * are trusted. It stops at what is no address (`unknown`, an identifier,
 * nothing) and after FORWARDED_HOPS_MAX hops, at the last it believed.
 *
 * What stands on the left can not change how the right is read: quotes
 * are paired from the right too.
 */
#ifndef SLUICE_FORWARDED_H
#define SLUICE_FORWARDED_H

#include "base/str.h"
#include "pure/address.h"

#define FORWARDED_HOPS_MAX 64

enum forwarded_form {
	FORWARDED_LIST,     /* X-Forwarded-For: addresses by commas */
	FORWARDED_ELEMENTS, /* Forwarded: for=ADDRESS;... (RFC 7239) */
};

/* An address may have a port behind it, and brackets then (RFC 7239, 6). */
struct address forwarded_client(enum forwarded_form form, struct str header,
    const struct address *peer, const struct cidr *trusted, size_t n_trusted);

#endif
