/* RFC 7239, sections 4 to 6; X-Forwarded-For; and B59. */
#include "pure/forwarded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "draw.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define LIST         FORWARDED_LIST
#define ELEMENTS     FORWARDED_ELEMENTS

/* 10.0.0.0/8 and fd00::/8 are trusted. */
static const char *
walk(enum forwarded_form form, struct str header, const char *peer_text)
{
	static char text[ADDRESS_TEXT_MAX];
	static struct cidr trusted[2];
	/* Of its very size, for a sanitizer to see what is beyond. */
	char *exact = malloc(header.len > 0 ? header.len : 1);
	struct address peer, client;
	struct err err;

	assert_non_null(exact);
	if (header.len > 0)
		memcpy(exact, header.p, header.len);
	assert_true(cidr_parse(STR("10.0.0.0/8"), &trusted[0], &err));
	assert_true(cidr_parse(STR("fd00::/8"), &trusted[1], &err));
	assert_true(address_parse(str_of(peer_text), &peer));
	client = forwarded_client(form, (struct str){ exact, header.len },
	    &peer, trusted, COUNT(trusted));
	address_format(&client, text);
	free(exact);
	return text;
}

struct row {
	const char *header;
	const char *client; /* behind 10.0.0.1 */
};

static void
expect(enum forwarded_form form, const struct row *table, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct str header = str_of(table[i].header);
		const char *got = walk(form, header, "10.0.0.1");

		if (strcmp(got, table[i].client) != 0)
			fail_msg("`%s` gave %s, not %s", table[i].header, got,
			    table[i].client);
		/* Who is not trusted is not asked. */
		assert_string_equal(
		    walk(form, header, "192.0.2.9"), "192.0.2.9");
	}
}

static void
test_list(void **state)
{
	static const struct row table[] = {
		{ "", "10.0.0.1" },
		{ "192.0.2.1", "192.0.2.1" },
		{ "198.51.100.7, 192.0.2.1", "192.0.2.1" },
		{ "198.51.100.7,192.0.2.1 ", "192.0.2.1" },
		{ "198.51.100.7, 10.9.9.9", "198.51.100.7" },
		{ "198.51.100.7, 10.9.9.9, fd00::1, 10.2.3.4", "198.51.100.7" },
		{ "10.0.0.3, 10.0.0.2", "10.0.0.3" },
		/* It stops at what does not parse. */
		{ "unknown", "10.0.0.1" },
		{ "192.0.2.1, unknown", "10.0.0.1" },
		{ "192.0.2.1, unknown, 10.0.0.2", "10.0.0.2" },
		{ "192.0.2.1,", "10.0.0.1" },
		{ "192.0.2.1, , 10.0.0.2", "10.0.0.2" },
		{ "192.0.2.1 10.0.0.2", "10.0.0.1" },
		{ "192.0.2.1; 10.0.0.2", "10.0.0.1" },
		{ "\"192.0.2.1\"", "10.0.0.1" },
		{ "192.0.2.256", "10.0.0.1" },
		{ "192.0.2", "10.0.0.1" },
		{ "localhost", "10.0.0.1" },
		{ "192.0.2.1/32", "10.0.0.1" },
		/* Ports. */
		{ "192.0.2.1:8080", "192.0.2.1" },
		{ "192.0.2.1:", "10.0.0.1" },
		{ "192.0.2.1:http", "10.0.0.1" },
		{ "192.0.2.1:65536", "10.0.0.1" },
		{ "[2001:db8::1]", "2001:db8::1" },
		{ "[2001:db8::1]:443", "2001:db8::1" },
		{ "[2001:db8::1]443", "10.0.0.1" },
		{ "[2001:db8::1]:x", "10.0.0.1" },
		{ "[2001:db8::1", "10.0.0.1" },
		{ ":80", "10.0.0.1" },
		{ "2001:db8::1", "2001:db8::1" },
		{ "2001:DB8:0:0::1", "2001:db8::1" },
		{ "192.0.2.1, ::ffff:10.0.0.2", "192.0.2.1" },
		{ "::ffff:192.0.2.1", "192.0.2.1" },
	};

	(void)state;
	expect(LIST, table, COUNT(table));
}

static void
test_elements(void **state)
{
	static const struct row table[] = {
		{ "", "10.0.0.1" },
		{ "for=192.0.2.1", "192.0.2.1" },
		{ "For=192.0.2.1;proto=http;by=203.0.113.43", "192.0.2.1" },
		{ "by=203.0.113.43;FOR=192.0.2.1", "192.0.2.1" },
		{ "for=192.0.2.1; proto=http", "192.0.2.1" },
		{ "for=198.51.100.7, for=192.0.2.1", "192.0.2.1" },
		{ "for=198.51.100.7,for=10.0.0.2;by=_x", "198.51.100.7" },
		{ "for=\"[2001:db8:cafe::17]:4711\"", "2001:db8:cafe::17" },
		{ "for=\"[2001:db8:cafe::17]\"", "2001:db8:cafe::17" },
		{ "for=\"192.0.2.43:47011\"", "192.0.2.43" },
		{ "for=\"192.0.2.43:_port\"", "192.0.2.43" },
		{ "for=192.0.2.43:_", "10.0.0.1" },
		{ "for=192.0.2.1;ext=\"a,b;for=x\"", "192.0.2.1" },
		{ "for=192.0.2.1;ext=\"a\\\",for=10.0.0.9\"", "192.0.2.1" },
		{ "for=192.0.2.1;ext=\"a\\\\\"", "192.0.2.1" },
		/* It stops at what is no address. */
		{ "for=unknown", "10.0.0.1" },
		{ "for=_hidden", "10.0.0.1" },
		{ "for=\"_gazonk\", for=10.0.0.2", "10.0.0.2" },
		{ "proto=http", "10.0.0.1" },
		{ "for=192.0.2.1, proto=http", "10.0.0.1" },
		{ "for=192.0.2.1;for=192.0.2.2", "10.0.0.1" },
		{ "for=\"\"", "10.0.0.1" },
		{ "for=", "10.0.0.1" },
		{ "for", "10.0.0.1" },
		{ "192.0.2.1", "10.0.0.1" },
		{ "for=192.0.2.1;", "192.0.2.1" },
		{ "for=\"192.0.2.1", "10.0.0.1" },
		{ "for=\"192.0.2.1\"x", "10.0.0.1" },
		{ "for=\"192.0.2.\\1\"", "10.0.0.1" },
		{ "for=192.0.2.1,", "10.0.0.1" },
		{ "x-for=192.0.2.1", "10.0.0.1" },
		/* A quote that a client opens swallows nothing. */
		{ "for=\", for=192.0.2.1", "192.0.2.1" },
		{ "for=\"x\\, for=\"[2001:db8::1]\"", "2001:db8::1" },
		{ "\",,\";;==, for=192.0.2.1, for=10.0.0.2", "192.0.2.1" },
	};

	(void)state;
	expect(ELEMENTS, table, COUNT(table));
}

/* As many hops as are looked at, and one more. */
static void
test_many_hops(void **state)
{
	struct buf header;

	(void)state;
	buf_init(&header);
	buf_addf(&header, "192.0.2.1");
	for (int i = 1; i < FORWARDED_HOPS_MAX; i++)
		buf_addf(&header, ",10.0.1.%d", i);
	assert_string_equal(
	    walk(LIST, buf_str(&header), "10.0.0.1"), "192.0.2.1");
	buf_addf(&header, ",10.0.0.2");
	assert_string_equal(
	    walk(LIST, buf_str(&header), "10.0.0.1"), "10.0.1.1");
	buf_release(&header);
}

struct hop {
	const char *text;
	const char *canonical; /* NULL: no address */
	bool trusted;
};

static const struct hop hops[] = {
	{ "10.1.2.3", "10.1.2.3", true },
	{ "::ffff:10.4.5.6", "10.4.5.6", true },
	{ "fd00::7", "fd00::7", true },
	{ "10.1.2.3:99", "10.1.2.3", true },
	{ "192.0.2.1", "192.0.2.1", false },
	{ "[2001:db8::2]:1", "2001:db8::2", false },
	{ "2001:DB8::3", "2001:db8::3", false },
	{ "unknown", NULL, false },
	{ "11.0.0.256", NULL, false },
};

/* The definition, over the hops that were drawn. */
static const char *
believed(const struct hop *const *chain, size_t n)
{
	const char *client = "10.0.0.1";

	while (n-- > 0) {
		if (chain[n]->canonical == NULL)
			break;
		client = chain[n]->canonical;
		if (!chain[n]->trusted)
			break;
	}
	return client;
}

static void
write_hop(
    unsigned *seed, enum forwarded_form form, const char *text, struct buf *out)
{
	static const char *const before[] = { "", "proto=http;", "by=_a;" };
	static const char *const behind[] = { "", ";proto=https",
		";x=\"a,b\\\"\"", ";by=\"[::1]:1\"" };

	if (form == LIST) {
		buf_addf(out, "%s", text);
		return;
	}
	buf_addf(out, "%sfor=\"%s\"%s", before[draw_below(seed, 3)], text,
	    behind[draw_below(seed, 4)]);
}

static void
test_drawn(void **state)
{
	static const char junk[] = "\",;=\\for=10.0.0.1 x[]:";
	unsigned seed = draw_seed();

	(void)state;
	for (int round = 0; round < 20000; round++) {
		enum forwarded_form form =
		    draw_below(&seed, 2) == 0 ? LIST : ELEMENTS;
		const struct hop *chain[6];
		size_t n = 1 + draw_below(&seed, COUNT(chain));
		struct buf header;

		buf_init(&header);
		for (size_t i = 0; i < n; i++) {
			chain[i] = &hops[draw_below(&seed, COUNT(hops))];
			if (i > 0)
				buf_addf(&header, "%s",
				    draw_below(&seed, 2) ? ", " : ",");
			write_hop(&seed, form, chain[i]->text, &header);
		}
		assert_string_equal(walk(form, buf_str(&header), "10.0.0.1"),
		    believed(chain, n));
		buf_release(&header);

		/* Whatever a client writes before it changes nothing. */
		buf_init(&header);
		for (size_t i = draw_below(&seed, 20); i > 0; i--)
			buf_add_char(
			    &header, junk[draw_below(&seed, sizeof(junk) - 1)]);
		buf_add_char(&header, ',');
		write_hop(&seed, form, "192.0.2.77", &header);
		buf_add_char(&header, ',');
		write_hop(&seed, form, "10.3.3.3", &header);
		assert_string_equal(
		    walk(form, buf_str(&header), "10.0.0.1"), "192.0.2.77");
		/* And cut anywhere it is read within its bounds. */
		walk(form,
		    (struct str){ header.p, draw_below(&seed, header.len) },
		    "10.0.0.1");
		buf_release(&header);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_elements),
		cmocka_unit_test(test_many_hops),
		cmocka_unit_test(test_drawn),
	};

	return cmocka_run_group_tests_name("forwarded", tests, NULL, NULL);
}
