#include "pure/key.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "draw.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define TEN          "0123456789"
#define HUNDRED      TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

/* A key as text again: parts in brackets, alternatives between bars. */
static void
show(const struct key *key, char *out, size_t size)
{
	static const char *const names[] = { "client", "header", "cookie",
		"query", "form", "param", "host", "path", "method", "global" };
	size_t n = 0;

	for (size_t i = 0; i < key->n; i++) {
		n += (size_t)snprintf(out + n, size - n, "[");
		for (size_t j = 0; j < key->part[i].n; j++) {
			const struct key_alternative *a =
			    &key->part[i].alternative[j];

			n += (size_t)snprintf(out + n, size - n, "%s%s%s%s",
			    j > 0 ? "|" : "", names[a->source],
			    a->name[0] ? "=" : "", a->name);
			if (a->ipv4_prefix > 0)
				n += (size_t)snprintf(out + n, size - n,
				    "/%u,%u", a->ipv4_prefix, a->ipv6_prefix);
		}
		n += (size_t)snprintf(out + n, size - n, "]");
	}
}

static void
test_parse(void **state)
{
	static const struct {
		const char *text;
		const char *shown;
		bool always_there;
	} table[] = {
		{ "client", "[client]", true },
		{ "global", "[global]", true },
		{ "header:X-Api-Key", "[header=HTTP_X_API_KEY]", false },
		{ "header:x_api9", "[header=HTTP_X_API9]", false },
		{ "header:Content-Type", "[header=CONTENT_TYPE]", false },
		{ "header:content-LENGTH", "[header=CONTENT_LENGTH]", false },
		{ "header:Content-Types", "[header=HTTP_CONTENT_TYPES]",
		    false },
		{ "host+path+method", "[host][path][method]", true },
		{ " client + header:A ", "[client][header=HTTP_A]", false },
		{ "header:A|client", "[header=HTTP_A|client]", true },
		{ "header:A | header:B|host",
		    "[header=HTTP_A|header=HTTP_B|host]", true },
		{ "client|header:A", "[client|header=HTTP_A]", false },
		{ "header:A|client+path", "[header=HTTP_A|client][path]",
		    true },
		{ "path+header:A|client", "[path][header=HTTP_A|client]",
		    true },
		{ "path+header:A", "[path][header=HTTP_A]", false },
		{ "header:A+header:B", "[header=HTTP_A][header=HTTP_B]",
		    false },
		{ "client/24,48", "[client/24,48]", true },
		{ "client/32,128 | path", "[client/32,128|path]", true },
		{ "client/1, 1+path", "[client/1,1][path]", true },
		{ "cookie:sid", "[cookie=sid]", false },
		{ "cookie: sid ", "[cookie=sid]", false },
		{ "query:api[key]+form:user.name",
		    "[query=api[key]][form="
		    "user.name]",
		    false },
		{ "param:REMOTE_USER | client", "[param=REMOTE_USER|client]",
		    true },
		{ "client | param:remote_user", "[client|param=remote_user]",
		    false },
		{ "host+host+host+host+host+host+host+host",
		    "[host][host][host][host][host][host][host][host]", true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct err err = { "" };
		char shown[512];
		struct key key;

		if (!key_parse(str_of(table[i].text), &key, &err))
			fail_msg("%s", err.text);
		show(&key, shown, sizeof(shown));
		assert_string_equal(shown, table[i].shown);
		assert_int_equal(key_always_there(&key), table[i].always_there);
	}
}

static void
test_parse_errors(void **state)
{
	static const struct {
		const char *text;
		const char *error;
	} table[] = {
		{ "",
		    "``: unknown in a key; it is client, client/24,48, "
		    "header:NAME, cookie:NAME, query:NAME, form:NAME, "
		    "param:NAME, host, path, method or global" },
		{ "client/", "`client/`: it is written client/24,48" },
		{ "client/24", "`client/24`: it is written client/24,48" },
		{ "client/0,48", "it is written client/24,48" },
		{ "client/33,48", "it is written client/24,48" },
		{ "client/24,0", "it is written client/24,48" },
		{ "client/24,129", "it is written client/24,48" },
		{ "client/24,48,1", "it is written client/24,48" },
		{ "client/24,4x", "it is written client/24,48" },
		{ "client /24,48", "`client /24,48`: unknown in a key" },
		{ "cookie", "`cookie`: unknown in a key" },
		{ "cookie:", "`cookie:`: the name is missing" },
		{ "query:+form:a", "`query:`: the name is missing" },
		{ "form:a b", "`form:a b`: the name has blanks in it" },
		{ "param:" HUNDRED TEN TEN "xyz45678", "the name is too long" },
		{ "client+", "``: unknown in a key" },
		{ "client||path", "``: unknown in a key" },
		{ "clients", "`clients`: unknown in a key" },
		{ "Client", "`Client`: unknown in a key" },
		{ "client path", "`client path`: unknown in a key" },
		{ "client+ip", "`ip`: unknown in a key" },
		{ "client,path", "`client,path`: unknown in a key" },
		{ "header", "`header`: unknown in a key" },
		{ "header:", "`header:`: the header's name is missing" },
		{ "path+header:|client", "`header:`: the header's name is" },
		{ "header:X Api", "`header:X Api`: a header's name has" },
		{ "header:X Y", "a header's name has letters, digits" },
		{ "header:X=1", "a header's name has letters, digits" },
		{ "header:\xc3\xa4", "a header's name has letters" },
		{ "header:" HUNDRED TEN TEN "xyz", "name is too long" },
		{ "host|host|host|host|host", "more than 4 alternatives" },
		{ "host+host+host+host+host+host+host+host+host",
		    "more than 8 parts" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct key key = { .n = 777 };
		struct err err = { "" };

		if (key_parse(str_of(table[i].text), &key, &err))
			fail_msg("`%s` accepted", table[i].text);
		if (strstr(err.text, table[i].error) == NULL)
			fail_msg("`%s`, not `%s`", err.text, table[i].error);
		assert_int_equal(key.n, 777);
	}
}

static void
test_longest_header(void **state)
{
	struct err err;
	struct key key;

	(void)state;
	assert_true(key_parse(STR("header:" HUNDRED TEN TEN "xy"), &key, &err));
	assert_string_equal(
	    key.part[0].alternative[0].name, "HTTP_" HUNDRED TEN TEN "XY");
}

static struct key_hasher *
hasher_of(struct str secret)
{
	struct err err = { "" };
	struct key_hasher *h = key_hasher_new(secret, &err);

	if (h == NULL)
		fail_msg("%s", err.text);
	return h;
}

/*
 * Made with Python: hmac.new(secret, b"".join(struct.pack(">Q", len(v)) + v
 * for v in values), hashlib.sha256).hexdigest()[:32]. The last but one has
 * the key of RFC 4231, case 6: longer than a block.
 */
static void
test_tag_vectors(void **state)
{
	static const char aa[131] = { 0 };
	char secret[131];
	static const struct {
		struct str secret;
		struct str values[2];
		size_t n;
		const char *tag;
	} table[] = {
		{ { "", 0 }, { { "secret-token", 12 } }, 1,
		    "3f674c5623a29a63d19165f5cbdf5050" },
		{ { "key", 3 }, { { "a", 1 }, { "bc", 2 } }, 2,
		    "ba41d3aaace0b4bb31fb49a559ae1df1" },
		{ { "key", 3 }, { { "ab", 2 }, { "c", 1 } }, 2,
		    "6792a685701881d31208bf28ad5cbe35" },
		{ { "key", 3 }, { { NULL, 0 } }, 1,
		    "156c691c91078c7b54a2cc7edb4ca934" },
		{ { "key", 3 }, { { "a\0b", 3 }, { "\xff", 1 } }, 2,
		    "a150628a555d86e701b076bcda3a047e" },
		{ { aa, sizeof(aa) }, { { "Hi There", 8 }, { "/login", 6 } }, 2,
		    "745aa27753f9c4edc1c5fdb9adb35e1e" },
	};

	(void)state;
	memset(secret, 0xaa, sizeof(secret));
	for (size_t i = 0; i < COUNT(table); i++) {
		struct key_hasher *h = hasher_of(table[i].secret.p == aa
			? (struct str){ secret, sizeof(secret) }
			: table[i].secret);
		char tag[KEY_TAG_MAX];

		/* Twice: a tag leaves nothing behind in the hasher. */
		for (int round = 0; round < 2; round++) {
			assert_int_equal(
			    key_tag(h, table[i].values, table[i].n, false, tag),
			    32);
			assert_string_equal(tag, table[i].tag);
		}
		key_hasher_free(h);
	}
	key_hasher_free(NULL);
}

/* Cases B67 and B68: as long as it may be, a tag is short and says nothing. */
static void
test_tag_of_a_long_value(void **state)
{
	static char token[100000];
	struct key_hasher *h = hasher_of(STR("key"));
	struct str value = { token, 300 };
	char other[KEY_TAG_MAX];
	char tag[KEY_TAG_MAX];

	(void)state;
	memset(token, 'x', sizeof(token));
	assert_int_equal(key_tag(h, &value, 1, false, tag), 32);
	assert_string_equal(tag, "6ea4da21c4aae8a6468f7c20669f5a85");
	value.len = sizeof(token);
	assert_int_equal(key_tag(h, &value, 1, false, other), 32);
	assert_string_not_equal(tag, other);
	key_hasher_free(h);
}

static void
test_secret_matters(void **state)
{
	struct key_hasher *one = hasher_of(STR("one"));
	struct key_hasher *two = hasher_of(STR("two"));
	struct str value = STR("token");
	char a[KEY_TAG_MAX];
	char b[KEY_TAG_MAX];

	(void)state;
	key_tag(one, &value, 1, false, a);
	key_tag(two, &value, 1, false, b);
	assert_string_not_equal(a, b);
	key_hasher_free(one);
	key_hasher_free(two);
}

/* Every way to cut one text into three values has a tag of its own. */
static void
test_tuples_do_not_collide(void **state)
{
	static const char text[] = "abcabc";
	struct key_hasher *h = hasher_of(STR_NONE);
	char tags[36][KEY_TAG_MAX];
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i <= 6; i++) {
		for (size_t j = i; j <= 6; j++) {
			struct str values[] = { { text, i },
				{ text + i, j - i }, { text + j, 6 - j } };

			key_tag(h, values, 3, false, tags[n++]);
		}
	}
	for (size_t i = 0; i <= 6; i++) {
		struct str values[] = { { text, i }, { text + i, 6 - i } };

		key_tag(h, values, 2, false, tags[n++]);
	}
	key_tag(h, &(struct str){ text, 6 }, 1, false, tags[n++]);
	assert_int_equal(n, 36);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(tags[i], tags[j]);
	key_hasher_free(h);
}

/* One API key however it is sent, but never another's address. */
static void
test_chosen(void **state)
{
	static const struct {
		const char *part;
		const char *kinds; /* of the alternatives; 0: as the first */
	} table[] = {
		{ "client", "0" },
		{ "header:A|header:B|cookie:C|query:D", "0000" },
		{ "form:A|query:B|client|header:C", "00a0" },
		{ "param:A|param:B|header:C|query:D", "00aa" },
		{ "client|client/24,48|header:A|cookie:B", "00aa" },
		{ "header:A|client|param:B|host", "0abc" },
		{ "header:A|path|method|global", "0abc" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		const char *kinds = table[i].kinds;
		struct err err;
		struct key key;

		assert_true(key_parse(str_of(table[i].part), &key, &err));
		for (size_t a = 0; a < key.part[0].n; a++) {
			uint8_t chosen = key_chosen(&key.part[0], a);

			assert_int_equal(chosen == 0, kinds[a] == '0');
			for (size_t b = 0; b < a; b++)
				assert_int_equal(
				    chosen == key_chosen(&key.part[0], b),
				    kinds[a] == kinds[b]);
		}
	}
}

/* The value of `header:A | client` says which of the two it is. */
static void
test_chosen_alternatives_do_not_collide(void **state)
{
	struct key_hasher *h = hasher_of(STR_NONE);
	struct key_tuple t = { .n = 2, .value = { STR("a"), STR("b") } };
	char tags[16][KEY_TAG_MAX];
	char first[KEY_TAG_MAX];

	(void)state;
	for (size_t i = 0; i < 16; i++) {
		t.chosen[0] = (uint8_t)(i / 4);
		t.chosen[1] = (uint8_t)(i % 4);
		assert_int_equal(key_tuple_tag(h, &t, tags[i]), 32);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(tags[i], tags[k]);
	}
	/* Those that are first all are the tag of the values alone. */
	key_tag(h, t.value, 2, false, first);
	assert_string_equal(tags[0], first);
	key_hasher_free(h);
}

#define TUPLES 3000

/* A tuple as text that is different where the tuple is. */
static void
spell(const struct key_tuple *t, char *out)
{
	for (size_t i = 0; i < t->n; i++) {
		out += sprintf(out, "%d:%zu:", t->chosen[i], t->value[i].len);
		for (size_t k = 0; k < t->value[i].len; k++)
			out += sprintf(
			    out, "%02x", (unsigned char)t->value[i].p[k]);
	}
	*out = '\0';
}

struct spelled {
	char text[256];
	char tag[KEY_TAG_MAX];
};

static int
by_tag(const void *a, const void *b)
{
	const struct spelled *x = a, *y = b;

	return strcmp(x->tag, y->tag);
}

/* Of tuples drawn from few bytes, those that differ differ in the tag. */
static void
test_drawn_tuples_do_not_collide(void **state)
{
	static const char bytes[] = { 0, 1, 2, 8, 'a', 'b', 0, 1 };
	static struct spelled list[TUPLES];
	struct key_hasher *h = hasher_of(STR("key"));
	unsigned seed = draw_seed();

	(void)state;
	for (size_t i = 0; i < TUPLES; i++) {
		struct key_tuple t = { .n = 1 + draw_below(&seed, 8) };

		for (size_t k = 0; k < t.n; k++) {
			size_t at = draw_below(&seed, 4);

			t.value[k] = (struct str){ bytes + at,
				draw_below(&seed, 9 - at) };
			if (draw_below(&seed, 3) == 0)
				t.chosen[k] = (uint8_t)draw_below(&seed, 4);
		}
		spell(&t, list[i].text);
		assert_int_equal(key_tuple_tag(h, &t, list[i].tag), 32);
	}
	qsort(list, TUPLES, sizeof(list[0]), by_tag);
	for (size_t i = 1; i < TUPLES; i++)
		if (strcmp(list[i].tag, list[i - 1].tag) == 0)
			assert_string_equal(list[i].text, list[i - 1].text);
	key_hasher_free(h);
}

static void
test_plain_tag(void **state)
{
	static const char *const texts[] = { "global", "1.2.3.4",
		"2001:db8:ffff:ffff:ffff:ffff:ffff:ffff" };
	struct key_hasher *h = hasher_of(STR_NONE);

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct str value = str_of(texts[i]);
		char tag[KEY_TAG_MAX];

		assert_int_equal(key_tag(h, &value, 1, true, tag), value.len);
		assert_string_equal(tag, texts[i]);
	}
	key_hasher_free(h);
}

/* int.from_bytes(hashlib.sha256(name).digest()[:8], "big") % period */
static void
test_offset(void **state)
{
	static const struct {
		struct str name;
		int64_t period;
		int64_t offset;
	} table[] = {
		{ { NULL, 0 }, 1000000, 261652 },
		{ { "sluice:api:10000000:1.2.3.4", 27 }, 10000000, 3411794 },
		{ { "sluice:api:3600000000:1.2.3.4", 29 }, 3600000000,
		    2113964226 },
		{ { "abc", 3 }, INT64_C(1) << 62,
		    INT64_C(4213142463398924266) },
		{ { "abc", 3 }, 1, 0 },
	};

	struct err err;
	struct key_hasher *h = key_hasher_new(STR_NONE, &err);

	(void)state;
	assert_non_null(h);
	for (size_t i = 0; i < COUNT(table); i++) {
		int64_t offset = -1;

		assert_true(
		    key_offset(h, table[i].name, table[i].period, &offset));
		assert_int_equal(offset, table[i].offset);
	}
	key_hasher_free(h);
}

#define THREADS 8
#define TAGS    2000

static void *
make_tags(void *hasher)
{
	const struct key_hasher *h = hasher;
	struct str values[] = { STR("a"), STR("bc") };
	size_t wrong = 0;

	for (int i = 0; i < TAGS; i++) {
		char tag[KEY_TAG_MAX];

		if (key_tag(h, values, 2, false, tag) != 32 ||
		    strcmp(tag, "ba41d3aaace0b4bb31fb49a559ae1df1") != 0)
			wrong++;
	}
	return wrong > 0 ? hasher : NULL;
}

static void
test_many_threads_share_a_hasher(void **state)
{
	struct key_hasher *h = hasher_of(STR("key"));
	pthread_t threads[THREADS];

	(void)state;
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(
		    pthread_create(&threads[i], NULL, make_tags, h), 0);
	for (size_t i = 0; i < THREADS; i++) {
		void *wrong;

		pthread_join(threads[i], &wrong);
		assert_null(wrong);
	}
	key_hasher_free(h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_parse_errors),
		cmocka_unit_test(test_longest_header),
		cmocka_unit_test(test_tag_vectors),
		cmocka_unit_test(test_tag_of_a_long_value),
		cmocka_unit_test(test_secret_matters),
		cmocka_unit_test(test_tuples_do_not_collide),
		cmocka_unit_test(test_chosen),
		cmocka_unit_test(test_chosen_alternatives_do_not_collide),
		cmocka_unit_test(test_drawn_tuples_do_not_collide),
		cmocka_unit_test(test_plain_tag),
		cmocka_unit_test(test_offset),
		cmocka_unit_test(test_many_threads_share_a_hasher),
	};

	return cmocka_run_group_tests_name("key", tests, NULL, NULL);
}
