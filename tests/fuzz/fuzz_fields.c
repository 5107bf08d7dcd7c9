/*
 * Any bytes as a query, a form, a cookie or a chain of proxies. A value is
 * never longer than its text, and what is put behind it changes nothing; a
 * chain gives its last address, whatever stands before that.
 */
#include "pure/cookie.h"
#include "pure/form.h"
#include "pure/forwarded.h"
#include "pure/query.h"

#include <string.h>

#include "fuzz.h"

typedef bool get_value(
    struct str text, struct str name, struct arena *arena, struct str *value);

static bool
same(struct str a, struct str b)
{
	return (a.p == NULL) == (b.p == NULL) && str_eq(a, b);
}

/* Text and what is behind it, in a block of that size. */
static struct str
join(struct str text, const char *behind)
{
	size_t more = strlen(behind);
	char *all = malloc(text.len + more + 1);

	FUZZ_EXPECT(all != NULL);
	if (text.len > 0)
		memcpy(all, text.p, text.len);
	memcpy(all + text.len, behind, more);
	return (struct str){ all, text.len + more };
}

/* Of one name the first counts. */
static void
try_first(get_value *get, struct str text, const char *second)
{
	struct str both = join(text, second);
	struct str one, two;
	struct arena arena;

	arena_init(&arena);
	FUZZ_EXPECT(get(text, STR("k"), &arena, &one));
	FUZZ_EXPECT(get(both, STR("k"), &arena, &two));
	FUZZ_EXPECT(one.len <= text.len);
	FUZZ_EXPECT(one.p == NULL ? str_eq(two, STR("2")) : same(one, two));
	free((char *)(uintptr_t)both.p);
	arena_release(&arena);
}

/* A value put behind another is noticed. */
static void
try_twice(struct str text)
{
	struct str both = join(text, "&+k=2");
	struct arena arena;
	struct str one;

	arena_init(&arena);
	FUZZ_EXPECT(form_get(text, STR("k"), &arena, &one));
	FUZZ_EXPECT(form_disagrees(both, STR("k")) ==
	    (form_disagrees(text, STR("k")) ||
		(one.p != NULL && !str_eq(one, STR("2")))));
	free((char *)(uintptr_t)both.p);
	arena_release(&arena);
}

static void
try_chain(enum forwarded_form form, struct str text, const char *last)
{
	struct str chain = join(text, last);
	struct address peer, client, expected;
	struct cidr trusted;
	struct err err;

	FUZZ_EXPECT(address_parse(STR("10.0.0.1"), &peer));
	FUZZ_EXPECT(address_parse(STR("192.0.2.1"), &expected));
	FUZZ_EXPECT(cidr_parse(STR("10.0.0.0/8"), &trusted, &err));
	client = forwarded_client(form, chain, &peer, &trusted, 1);
	FUZZ_EXPECT(address_eq(&client, &expected));
	client = forwarded_client(form, text, &peer, &trusted, 1);
	FUZZ_EXPECT(client.family == 4 || client.family == 6);
	free((char *)(uintptr_t)chain.p);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct str text = { (const char *)bytes, len };

	try_first(query_get, text, "&k=2");
	try_first(form_get, text, "&%6b=%32");
	try_first(cookie_get, text, "; k=2");
	try_twice(text);
	try_chain(FORWARDED_LIST, text, ",192.0.2.1");
	try_chain(FORWARDED_LIST, text, ", [::ffff:192.0.2.1]:80, 10.1.1.1");
	try_chain(FORWARDED_ELEMENTS, text, ",for=192.0.2.1;by=\"a,b\"");
	try_chain(
	    FORWARDED_ELEMENTS, text, ", for=\"192.0.2.1:1\", for=10.1.1.1");
	form_is_urlencoded(text);
	return 0;
}
