#include "pure/address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define TEXT(s)                    \
	{                          \
		(s), sizeof(s) - 1 \
	}

/* Parses from a block of exact size, so that a byte too far is caught. */
static bool
parse(struct str text, struct address *a)
{
	char *exact = malloc(text.len > 0 ? text.len : 1);
	bool parsed;

	memcpy(exact, text.p, text.len);
	parsed = address_parse((struct str){ exact, text.len }, a);
	free(exact);
	return parsed;
}

static void
test_parse(void **state)
{
	static const struct {
		struct str text;
		uint8_t family;
		const char *canonical;
	} table[] = {
		{ TEXT("1.2.3.4"), 4, "1.2.3.4" },
		{ TEXT("255.255.255.255"), 4, "255.255.255.255" },
		{ TEXT("0.0.0.0"), 4, "0.0.0.0" },
		{ TEXT("::"), 6, "::" },
		{ TEXT("::1"), 6, "::1" },
		{ TEXT("2001:DB8:0:0:0:0:0:1"), 6, "2001:db8::1" },
		{ TEXT("2001:db8::0001"), 6, "2001:db8::1" },
		{ TEXT("[2001:db8::1]"), 6, "2001:db8::1" },
		{ TEXT("fe80::1%eth0"), 6, "fe80::1" },
		{ TEXT("[fe80::1%eth0.1]"), 6, "fe80::1" },
		{ TEXT("::ffff:1.2.3.4"), 4, "1.2.3.4" },
		{ TEXT("::FFFF:0102:0304"), 4, "1.2.3.4" },
		{ TEXT("0:0:0:0:0:ffff:1.2.3.4"), 4, "1.2.3.4" },
		{ TEXT("[::ffff:1.2.3.4]"), 4, "1.2.3.4" },
		{ TEXT("::ffff:1.2.3.4%lo"), 4, "1.2.3.4" },
		{ TEXT("64:ff9b::1.2.3.4"), 6, "64:ff9b::102:304" },
		{ TEXT("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255"), 6,
		    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		char text[ADDRESS_TEXT_MAX];
		struct address again;
		struct address a;

		memset(&a, 0xaa, sizeof(a));
		if (!parse(table[i].text, &a))
			fail_msg("`%s` refused", table[i].text.p);
		assert_int_equal(a.family, table[i].family);
		assert_int_equal(
		    address_format(&a, text), strlen(table[i].canonical));
		assert_string_equal(text, table[i].canonical);
		assert_true(parse(str_of(text), &again));
		assert_true(address_eq(&a, &again));
		assert_memory_equal(&a, &again, sizeof(a));
	}
}

static void
test_parse_refuses(void **state)
{
	static const struct str table[] = {
		TEXT(""),
		TEXT(" "),
		TEXT("1.2.3"),
		TEXT("1.2.3.4.5"),
		TEXT("1.2.3.256"),
		TEXT("01.2.3.4"),
		TEXT("0x1.2.3.4"),
		TEXT("16909060"),
		TEXT("1.2.3.4 "),
		TEXT(" 1.2.3.4"),
		TEXT("1.2.3.4:80"),
		TEXT("1.2.3.4%eth0"),
		TEXT("[1.2.3.4]"),
		TEXT("1.2.3.4\0"),
		TEXT("1.2.3.4\0x"),
		TEXT("\0"),
		TEXT("[::1"),
		TEXT("::1]"),
		TEXT("[]"),
		TEXT("["),
		TEXT("]"),
		TEXT("[[::1]]"),
		TEXT("[::1]:80"),
		TEXT("::1%"),
		TEXT("[::1%]"),
		TEXT("::1%a b"),
		TEXT("::1%a%b"),
		TEXT("::1%a]"),
		TEXT("%eth0"),
		TEXT(":::"),
		TEXT("1::2::3"),
		TEXT("::12345"),
		TEXT("::ffff:1.2.3"),
		TEXT("unknown"),
		TEXT("10.0.0.0/8"),
		TEXT("unix:"),
		TEXT("0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000"),
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct address a = { .family = 9 };

		if (parse(table[i], &a))
			fail_msg("`%s` accepted", table[i].p);
		assert_int_equal(a.family, 9);
	}
}

static void
test_no_address_is_empty(void **state)
{
	struct address none = { 0 };
	char text[ADDRESS_TEXT_MAX] = "x";

	(void)state;
	assert_int_equal(address_format(&none, text), 0);
	assert_string_equal(text, "");
	address_cut(&none, 8, 8);
	assert_int_equal(none.family, 0);
}

/* The bit of an address, counted from its front: a second opinion. */
static int
bit(const struct address *a, unsigned i)
{
	return a->bytes[i / 8] >> (7 - i % 8) & 1;
}

static void
test_cut(void **state)
{
	static const char *const texts[] = { "255.255.255.255",
		"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "173.91.7.201",
		"2001:db8:a5a5:5a5a:1234:5678:9abc:def1" };

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct address whole;
		unsigned bits;

		assert_true(parse(str_of(texts[i]), &whole));
		bits = whole.family == 4 ? 32 : 128;
		for (unsigned prefix = 0; prefix <= bits; prefix++) {
			struct address cut = whole;

			address_cut(&cut, bits == 32 ? prefix : 7,
			    bits == 128 ? prefix : 7);
			assert_int_equal(cut.family, whole.family);
			for (unsigned b = 0; b < 128; b++)
				assert_int_equal(bit(&cut, b),
				    b < prefix ? bit(&whole, b) : 0);
		}
	}
}

/* Case B62: a client that owns a /64 is one client. */
static void
test_ipv6_host_is_one_client(void **state)
{
	struct address a;
	struct address b;
	struct address c;

	(void)state;
	assert_true(parse(str_of("2001:db8:1:2::1"), &a));
	assert_true(parse(str_of("2001:db8:1:2:ffff:ffff:ffff:fffe"), &b));
	assert_true(parse(str_of("2001:db8:1:3::1"), &c));
	address_cut(&a, 32, 64);
	address_cut(&b, 32, 64);
	address_cut(&c, 32, 64);
	assert_true(address_eq(&a, &b));
	assert_false(address_eq(&a, &c));
}

static void
test_families_differ(void **state)
{
	struct address four;
	struct address six;

	(void)state;
	assert_true(parse(str_of("1.2.3.4"), &four));
	assert_true(parse(str_of("102:304::"), &six));
	assert_memory_equal(four.bytes, six.bytes, sizeof(four.bytes));
	assert_false(address_eq(&four, &six));
}

static void
test_cidr_parse(void **state)
{
	static const struct {
		const char *text;
		const char *base;
		unsigned bits;
	} table[] = {
		{ "10.0.0.0/8", "10.0.0.0", 8 },
		{ "0.0.0.0/0", "0.0.0.0", 0 },
		{ "1.2.3.4", "1.2.3.4", 32 },
		{ "1.2.3.4/32", "1.2.3.4", 32 },
		{ "1.2.3.254/31", "1.2.3.254", 31 },
		{ "::/0", "::", 0 },
		{ "2001:db8::/32", "2001:db8::", 32 },
		{ "::1", "::1", 128 },
		{ "::1/128", "::1", 128 },
		{ "::ffff:10.0.0.0/104", "10.0.0.0", 8 },
		{ "::ffff:0:0/96", "0.0.0.0", 0 },
		{ "::ffff:1.2.3.4", "1.2.3.4", 32 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		char text[ADDRESS_TEXT_MAX];
		struct err err = { "" };
		struct cidr c;

		if (!cidr_parse(str_of(table[i].text), &c, &err))
			fail_msg("%s", err.text);
		address_format(&c.base, text);
		assert_string_equal(text, table[i].base);
		assert_int_equal(c.bits, table[i].bits);
	}
}

static void
test_cidr_refuses(void **state)
{
	static const struct {
		const char *text;
		const char *error;
	} table[] = {
		{ "", "``: no address" },
		{ "host", "`host`: no address" },
		{ "/8", "`/8`: no address" },
		{ "10/8", "`10/8`: no address" },
		{ "[::1]/64", "no address" },
		{ "fe80::%eth0/64", "no address" },
		{ "10.0.0.0/", "`` is no prefix length; it is 0 to 32 here" },
		{ "10.0.0.0/33", "`33` is no prefix length; it is 0 to 32" },
		{ "10.0.0.0/-1", "`-1` is no prefix length" },
		{ "10.0.0.0/8/8", "`8/8` is no prefix length" },
		{ "10.0.0.0/255.0.0.0", "is no prefix length" },
		{ "::/129", "`129` is no prefix length; it is 0 to 128 here" },
		{ "::ffff:10.0.0.0/8", "it is 96 to 128 here" },
		{ "10.1.0.0/8", "the network is 10.0.0.0/8" },
		{ "1.2.3.5/31", "the network is 1.2.3.4/31" },
		{ "2001:db8::1/64", "the network is 2001:db8::/64" },
		{ "1.2.3.4/0", "the network is 0.0.0.0/0" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct err err = { "" };
		struct cidr c = { .bits = 777 };

		if (cidr_parse(str_of(table[i].text), &c, &err))
			fail_msg("`%s` accepted", table[i].text);
		if (strstr(err.text, table[i].error) == NULL)
			fail_msg("`%s`, not `%s`", err.text, table[i].error);
		assert_int_equal(c.bits, 777);
	}
}

static bool
contains_by_bits(const struct cidr *c, const struct address *a)
{
	if (a->family != c->base.family)
		return false;
	for (unsigned i = 0; i < c->bits; i++)
		if (bit(a, i) != bit(&c->base, i))
			return false;
	return true;
}

static void
test_contains(void **state)
{
	static const struct {
		const char *cidr;
		const char *address;
		bool contains;
	} table[] = {
		{ "10.0.0.0/8", "10.255.255.255", true },
		{ "10.0.0.0/8", "11.0.0.0", false },
		{ "10.0.0.0/8", "::ffff:10.1.1.1", true },
		{ "::ffff:10.0.0.0/104", "10.1.1.1", true },
		{ "10.0.0.0/8", "a00::", false },
		{ "0.0.0.0/0", "1.2.3.4", true },
		{ "0.0.0.0/0", "::", false },
		{ "::/0", "1.2.3.4", false },
		{ "::/0", "::1", true },
		{ "2001:db8::/33", "32.1.13.184", false },
		{ "2001:db8::/33", "2001:db8:7fff::", true },
		{ "2001:db8::/33", "2001:db8:8000::", false },
		{ "1.2.3.4", "1.2.3.4", true },
		{ "1.2.3.4", "1.2.3.5", false },
	};
	struct address none = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct err err;
		struct address a;
		struct cidr c;

		assert_true(cidr_parse(str_of(table[i].cidr), &c, &err));
		assert_true(parse(str_of(table[i].address), &a));
		assert_int_equal(cidr_contains(&c, &a), table[i].contains);
		assert_false(cidr_contains(&c, &none));
	}
}

/* SEED=N runs the same draws again. */
static unsigned
draw_seed(void)
{
	const char *text = getenv("SEED");
	unsigned seed = text != NULL ? (unsigned)strtoul(text, NULL, 10)
				     : (unsigned)time(NULL);

	print_message("seed %u\n", seed);
	return seed;
}

static void
test_contains_drawn(void **state)
{
	unsigned seed = draw_seed();

	(void)state;
	for (int round = 0; round < 20000; round++) {
		struct address a = { .family = rand_r(&seed) % 2 ? 4 : 6 };
		unsigned top = a.family == 4 ? 32 : 128;
		struct cidr c;
		unsigned flip;

		for (unsigned i = 0; i < top / 8; i++)
			a.bytes[i] = (uint8_t)rand_r(&seed);
		c.bits = (unsigned)rand_r(&seed) % (top + 1);
		c.base = a;
		address_cut(&c.base, a.family == 4 ? c.bits : 0,
		    a.family == 6 ? c.bits : 0);
		assert_true(cidr_contains(&c, &a));
		flip = (unsigned)rand_r(&seed) % top;
		a.bytes[flip / 8] ^= (uint8_t)(0x80 >> flip % 8);
		assert_int_equal(
		    cidr_contains(&c, &a), contains_by_bits(&c, &a));
		assert_int_equal(cidr_contains(&c, &a), flip >= c.bits);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_parse_refuses),
		cmocka_unit_test(test_no_address_is_empty),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_ipv6_host_is_one_client),
		cmocka_unit_test(test_families_differ),
		cmocka_unit_test(test_cidr_parse),
		cmocka_unit_test(test_cidr_refuses),
		cmocka_unit_test(test_contains),
		cmocka_unit_test(test_contains_drawn),
	};

	return cmocka_run_group_tests_name("address", tests, NULL, NULL);
}
