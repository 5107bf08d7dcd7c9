/* SPEC.md section 7: the params a backend gets. */
#include "domain/forward.h"

#include "wire.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

struct row {
	const char *in; /* "NAME=value", ended by "\n" each */
	bool measured;
	uint64_t bytes;
	const char *out;
};

static const struct row table[] = {
	{ "", false, 0, "REDIRECT_STATUS=200\n" },
	/* As it came: order, duplicates, empty values, any bytes. */
	{ "B=2\nA=1\nB=2\nB=3\nEMPTY=\nREDIRECT_STATUS=200\nx=\xff\x01\n",
	    false, 0,
	    "B=2\nA=1\nB=2\nB=3\nEMPTY=\nREDIRECT_STATUS=200\nx=\xff\x01\n" },
	/* An own REDIRECT_STATUS stays, an empty one too. */
	{ "REDIRECT_STATUS=404\n", false, 0, "REDIRECT_STATUS=404\n" },
	{ "REDIRECT_STATUS=\n", false, 0, "REDIRECT_STATUS=\n" },
	{ "REDIRECT_STATUS2=1\n", false, 0,
	    "REDIRECT_STATUS2=1\nREDIRECT_STATUS=200\n" },
	/* httpoxy: B73. */
	{ "HTTP_PROXY=http://evil\nA=1\nHTTP_PROXY=\nhttp_proxy=x\n"
	  "Http_Proxy=y\nHTTP_PROXY_X=z\nHTTP_PROX=w\nXHTTP_PROXY=v\n",
	    false, 0,
	    "A=1\nHTTP_PROXY_X=z\nHTTP_PROX=w\nXHTTP_PROXY=v\n"
	    "REDIRECT_STATUS=200\n" },
	{ "FCGI_ROLE=RESPONDER\nFCGI_ROLE2=1\n", false, 0,
	    "FCGI_ROLE2=1\nREDIRECT_STATUS=200\n" },
	/* The web server knew the length: nothing is touched. */
	{ "CONTENT_LENGTH=5\nHTTP_TRANSFER_ENCODING=chunked\n", false, 5,
	    "CONTENT_LENGTH=5\nHTTP_TRANSFER_ENCODING=chunked\n"
	    "REDIRECT_STATUS=200\n" },
	/* It did not: it was measured. */
	{ "A=1\nHTTP_TRANSFER_ENCODING=chunked\nB=2\n", true, 5,
	    "CONTENT_LENGTH=5\nA=1\nB=2\nREDIRECT_STATUS=200\n" },
	{ "A=1\nHTTP_TRANSFER_ENCODING=chunked\n", true, 0,
	    "CONTENT_LENGTH=0\nA=1\nREDIRECT_STATUS=200\n" },
	{ "A=1\nCONTENT_LENGTH=\n", true, 5,
	    "CONTENT_LENGTH=5\nA=1\nREDIRECT_STATUS=200\n" },
	{ "A=1\n", true, UINT64_MAX,
	    "CONTENT_LENGTH=18446744073709551615\nA=1\nREDIRECT_STATUS=200\n" },
	/* No body at all: none is made up. */
	{ "A=1\n", true, 0, "A=1\nREDIRECT_STATUS=200\n" },
};

static void
test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct param at[16];
		struct params in = { at, 0 };
		struct params out;
		struct str rest = str_of(table[i].in);
		struct arena arena;
		struct buf text;

		while (rest.len > 0) {
			struct str line = str_cut(&rest, '\n');

			at[in.n].name = str_cut(&line, '=');
			at[in.n++].value = line;
		}
		arena_init(&arena);
		assert_true(forward_params(
		    &in, table[i].measured, table[i].bytes, &arena, &out));
		buf_init(&text);
		for (size_t k = 0; k < out.n; k++)
			buf_addf(&text, "%.*s=%.*s\n", STR_ARG(out.at[k].name),
			    STR_ARG(out.at[k].value));
		expect_str(buf_str(&text), str_of(table[i].out));
		buf_release(&text);
		arena_release(&arena);
	}
}

/* Many of them, each once. */
static void
test_many(void **state)
{
	static struct param at[20000];
	const struct params in = { at, COUNT(at) };
	struct params out;
	struct arena arena;

	(void)state;
	for (size_t i = 0; i < COUNT(at); i++)
		at[i] = (struct param){ i % 3 == 0 ? STR("HTTP_PROXY")
						   : STR("NAME"),
			STR("value") };
	arena_init(&arena);
	assert_true(forward_params(&in, true, 1, &arena, &out));
	assert_int_equal(out.n, COUNT(at) - (COUNT(at) + 2) / 3 + 2);
	arena_release(&arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests_name("forward", tests, NULL, NULL);
}
