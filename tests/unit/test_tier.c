#include "domain/tier.h"

#include "config_text.h"
#include "params_text.h"
#include "pure/key.h"
#include "pure/known.h"

static struct arena arena;

#define IP  "REMOTE_ADDR=10.1.2.3\n"
#define HEX "0123456789abcdef0123456789abcdef"

/* The N of the rate that a request comes under; 0: unlimited; -1: deny. */
static int64_t
count_for(const struct config *config, size_t limit, const char *text)
{
	struct params params = params_of(text, &arena);
	const struct rates *rates;
	struct subject subject;

	assert_true(subject_read(
	    &subject, CONFIG_ROLE_RESPONDER, &params, config, &arena));
	rates = tier_rates(&config->limit[limit], &subject);
	if (rates->kind == RATES_UNLIMITED)
		return 0;
	return rates->kind == RATES_DENY ? -1 : rates->rate[0].count;
}

static const struct {
	const char *when;
	const char *params;
	bool met;
} table[] = {
	{ "client=10.0.0.0/8", IP, true },
	{ "client=10.1.2.3", IP, true },
	{ "client=11.0.0.0/8", IP, false },
	{ "client=10.0.0.0/8", "", false },
	/* The whole address, not what the count is for. */
	{ "client=2001:db8::7", "REMOTE_ADDR=2001:db8::7", true },
	{ "client=2001:db8::7", "REMOTE_ADDR=2001:db8::8", false },
	{ "client=11.0.0.0/8, client=10.0.0.0/8", IP, true },
	{ "param:REMOTE_USER=eve", IP "REMOTE_USER=eve", true },
	{ "param:REMOTE_USER=eve", IP "REMOTE_USER=Eve", false },
	{ "param:REMOTE_USER=eve", IP "REMOTE_USER=", false },
	{ "param:REMOTE_USER=eve", IP, false },
	{ "param:REMOTE_USER=a=b", IP "REMOTE_USER=a=b", true },
	{ "header:X-Key=@keys", IP "HTTP_X_KEY=one", true },
	{ "header:x_key=@keys", IP "HTTP_X_KEY=one", true },
	{ "header:X-Key=@keys", IP "HTTP_X_KEY=three", false },
	{ "header:X-Key=@keys", IP "HTTP_X_KEY=", false },
	{ "header:X-Key=@keys", IP, false },
	/* The hash of `two`, which stands in the file. */
	{ "header:X-Key=@hashes", IP "HTTP_X_KEY=two", true },
	{ "header:X-Key=@hashes", IP "HTTP_X_KEY=one", false },
	{ "header:X-Key=@keys", IP "HTTP_X_KEY=" HEX, true },
	/* Two values: nobody knows which one the application takes. */
	{ "header:X-Key=@keys", IP "HTTP_X_KEY=one\nHTTP_X_KEY=three", false },
	{ "header:X-Key=@keys", IP "HTTP_X_KEY=one\nHTTP_X_KEY=one", true },
	{ "header:Authorization=@keys", IP "HTTP_AUTHORIZATION=one", true },
	{ "header:Authorization=@keys", IP "REDIRECT_HTTP_AUTHORIZATION=one",
	    true },
	{ "client=11.0.0.0/8, header:X-Key=@keys, param:A=b",
	    IP "HTTP_X_KEY=one", true },
	{ "client=11.0.0.0/8, header:X-Key=@keys, param:A=b", IP "A=b", true },
	{ "client=11.0.0.0/8, header:X-Key=@keys, param:A=b", IP "A=c", false },
};

static void
test_when(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct config *config;
		struct buf text;

		buf_init(&text);
		buf_addf(&text,
		    BACKEND STORE
		    "[limit a]\nrate = 1/1s\n[tier t]\na = 2/1s\nwhen = %s\n",
		    table[i].when);
		buf_add_char(&text, '\0');
		config = load_good(text.p);
		if (count_for(config, 0, table[i].params) !=
		    (table[i].met ? 2 : 1))
			fail_msg("%s\n%s", table[i].when, table[i].params);
		config_unref(config);
		buf_release(&text);
	}
}

/* The first that matches and speaks of the limit, in file order. */
static void
test_precedence(void **state)
{
	struct config *c = load_good(BACKEND STORE
	    "[limit a]\nrate = 1/1s\n[limit b]\nrate = 2/1s\n"
	    "[tier bad]\nwhen = client=10.6.6.6\na = deny\nb = deny\n"
	    "[tier staff]\nwhen = client=10.0.0.0/8\na = unlimited\n"
	    "[tier users]\nwhen = param:USER=u\na = 3/1s\nb = 4/1s\n");

	(void)state;
	assert_int_equal(count_for(c, 0, "REMOTE_ADDR=192.0.2.1"), 1);
	assert_int_equal(count_for(c, 1, "REMOTE_ADDR=192.0.2.1"), 2);
	assert_int_equal(count_for(c, 0, IP), 0);
	assert_int_equal(count_for(c, 1, IP), 2);
	assert_int_equal(count_for(c, 0, IP "USER=u"), 0);
	assert_int_equal(count_for(c, 1, IP "USER=u"), 4);
	assert_int_equal(count_for(c, 0, "REMOTE_ADDR=10.6.6.6\nUSER=u"), -1);
	assert_int_equal(count_for(c, 1, "REMOTE_ADDR=10.6.6.6\nUSER=u"), -1);
	assert_int_equal(count_for(c, 0, "USER=u"), 3);
	config_unref(c);
}

static void
write_hashes(void)
{
	struct err err;
	struct key_hasher *hasher = key_hasher_new(STR_NONE, &err);
	struct str value = STR("two");
	char item[sizeof(KNOWN_HASH) + KEY_TAG_MAX] = KNOWN_HASH;

	assert_int_equal(
	    key_tag(hasher, &value, 1, false, item + strlen(KNOWN_HASH)), 32);
	write_file("hashes", str_of(item));
	key_hasher_free(hasher);
}

static int
setup(void **state)
{
	int failed = enter_directory(state);

	arena_init(&arena);
	write_file("keys", STR("one\ntwo\n" HEX "\n"));
	write_hashes();
	return failed;
}

static int
teardown(void **state)
{
	arena_release(&arena);
	return leave_directory(state);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_when),
		cmocka_unit_test(test_precedence),
	};

	return cmocka_run_group_tests_name("tier", tests, setup, teardown);
}
