/*
 * libc reads and writes the text (inet_pton and inet_ntop, which refuse
 * shorthand and leading zeros); what is ours is the brackets, the zone and
 * the mapped form.
 */
#include "pure/address.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

#define IPV4_BYTES  4
#define IPV6_BYTES  16
#define IPV4_BITS   32
#define IPV6_BITS   128
#define MAPPED_BITS (IPV6_BITS - IPV4_BITS)

static const uint8_t mapped_prefix[MAPPED_BITS / 8] = { 0, 0, 0, 0, 0, 0, 0, 0,
	0, 0, 0xff, 0xff };

static size_t
address_bytes(const struct address *a)
{
	return a->family == 4 ? IPV4_BYTES : IPV6_BYTES;
}

static bool
has_byte(struct str s, char c)
{
	return s.len > 0 && memchr(s.p, c, s.len) != NULL;
}

/* Takes "[...]" off; false when only one of the two stands. */
static bool
take_brackets(struct str *text, bool *bracketed)
{
	bool opened = text->len > 0 && text->p[0] == '[';
	bool closed = text->len > 0 && text->p[text->len - 1] == ']';

	*bracketed = opened && closed && text->len > 1;
	if (*bracketed) {
		text->p++;
		text->len -= 2;
	}
	return opened == closed;
}

/* A zone names an interface: printable, at least one character. */
static bool
is_zone(struct str zone)
{
	for (size_t i = 0; i < zone.len; i++) {
		unsigned char c = (unsigned char)zone.p[i];

		if (c <= ' ' || c >= 127 || c == '[' || c == ']' || c == '%')
			return false;
	}
	return zone.len > 0;
}

/* Into a block with a NUL behind it, as inet_pton wants it. */
static bool
to_text(struct str s, char text[ADDRESS_TEXT_MAX])
{
	if (s.len == 0 || s.len >= ADDRESS_TEXT_MAX || has_byte(s, '\0'))
		return false;
	memcpy(text, s.p, s.len);
	text[s.len] = '\0';
	return true;
}

static void
unmap(struct address *a)
{
	if (memcmp(a->bytes, mapped_prefix, sizeof(mapped_prefix)) != 0)
		return;
	a->family = 4;
	memcpy(a->bytes, a->bytes + sizeof(mapped_prefix), IPV4_BYTES);
	memset(a->bytes + IPV4_BYTES, 0, IPV6_BYTES - IPV4_BYTES);
}

bool
address_parse(struct str text, struct address *address)
{
	struct address a = { 0 };
	char buffer[ADDRESS_TEXT_MAX];
	bool bracketed;
	struct str zone;

	if (!take_brackets(&text, &bracketed))
		return false;
	zone = text;
	text = str_cut(&zone, '%');
	if (zone.p != NULL && !is_zone(zone))
		return false;
	if (!to_text(text, buffer))
		return false;
	if (inet_pton(AF_INET6, buffer, a.bytes) == 1) {
		a.family = 6;
		unmap(&a);
	} else if (!bracketed && zone.p == NULL &&
	    inet_pton(AF_INET, buffer, a.bytes) == 1) {
		a.family = 4;
	} else {
		return false;
	}
	*address = a;
	return true;
}

static void
cut_to(struct address *address, unsigned bits)
{
	size_t whole = bits / 8;
	size_t bytes = address_bytes(address);

	assert(bits <= bytes * 8);
	if (whole == bytes)
		return;
	address->bytes[whole] &= (uint8_t)(0xff00 >> bits % 8);
	memset(address->bytes + whole + 1, 0, bytes - whole - 1);
}

void
address_cut(struct address *address, unsigned ipv4_prefix, unsigned ipv6_prefix)
{
	if (address->family != 0)
		cut_to(
		    address, address->family == 4 ? ipv4_prefix : ipv6_prefix);
}

/* For each request: inet_ntop prints it by way of sprintf. */
static size_t
format_ipv4(const uint8_t bytes[4], char text[ADDRESS_TEXT_MAX])
{
	size_t len = 0;

	for (size_t i = 0; i < 4; i++) {
		char digits[STR_DIGITS_MAX];
		struct str octet = str_of_u64(bytes[i], digits);

		if (i > 0)
			text[len++] = '.';
		memcpy(text + len, octet.p, octet.len);
		len += octet.len;
	}
	text[len] = '\0';
	return len;
}

size_t
address_format(const struct address *address, char text[ADDRESS_TEXT_MAX])
{
	text[0] = '\0';
	if (address->family == 0)
		return 0;
	if (address->family == 4)
		return format_ipv4(address->bytes, text);
	inet_ntop(AF_INET6, address->bytes, text, ADDRESS_TEXT_MAX);
	return strlen(text);
}

bool
address_eq(const struct address *a, const struct address *b)
{
	return a->family == b->family &&
	    memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

static bool
parse_bits(struct str text, struct str bits, struct cidr *cidr, struct err *err)
{
	bool is_mapped = cidr->base.family == 4 && has_byte(text, ':');
	unsigned top =
	    cidr->base.family == 4 && !is_mapped ? IPV4_BITS : IPV6_BITS;
	unsigned low = is_mapped ? MAPPED_BITS : 0;
	uint64_t value;

	if (!str_to_u64(bits, top, &value) || value < low)
		return err_set(err,
		    "`%.*s`: `%.*s` is no prefix length; it is %u to %u here",
		    STR_ARG(text), STR_ARG(bits), low, top);
	cidr->bits = (unsigned)value - low;
	return true;
}

static bool
check_host_bits(struct str text, const struct cidr *cidr, struct err *err)
{
	struct address cut = cidr->base;
	char right[ADDRESS_TEXT_MAX];

	cut_to(&cut, cidr->bits);
	if (address_eq(&cut, &cidr->base))
		return true;
	address_format(&cut, right);
	return err_set(err,
	    "`%.*s`: bits behind the prefix are set; the network is %s/%u",
	    STR_ARG(text), right, cidr->bits);
}

bool
cidr_parse(struct str text, struct cidr *cidr, struct err *err)
{
	struct str bits = text;
	struct str base = str_cut(&bits, '/');
	struct cidr parsed;

	if (has_byte(base, '[') || has_byte(base, '%') ||
	    !address_parse(base, &parsed.base))
		return err_set(err,
		    "`%.*s`: no address; it is written 10.0.0.0/8, "
		    "2001:db8::/32"
		    " or as a single address",
		    STR_ARG(text));
	parsed.bits = parsed.base.family == 4 ? IPV4_BITS : IPV6_BITS;
	if (bits.p != NULL &&
	    (!parse_bits(text, bits, &parsed, err) ||
		!check_host_bits(text, &parsed, err)))
		return false;
	*cidr = parsed;
	return true;
}

bool
cidr_contains(const struct cidr *cidr, const struct address *address)
{
	struct address cut = *address;

	if (address->family == 0 || address->family != cidr->base.family)
		return false;
	cut_to(&cut, cidr->bits);
	return address_eq(&cut, &cidr->base);
}
