/* RFC 9110, 12.4.2 and 12.5.1: which body is for whom (B56). */
#include "pure/accept.h"

#include "draw.h"
#include "wire.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define TEXT         ACCEPT_TEXT
#define JSON         ACCEPT_JSON
#define HTML         ACCEPT_HTML

struct row {
	const char *accept;
	enum accept_type type;
};

static void
expect_rows(const struct row *table, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		enum accept_type got = accept_choose(str_of(table[i].accept));

		if (got != table[i].type)
			print_message("row %zu: %s\n", i, table[i].accept);
		assert_int_equal(got, table[i].type);
	}
}

static void
test_clients(void **state)
{
	static const struct row table[] = {
		{ NULL, TEXT },
		{ "", TEXT },
		/* curl, wget, Python's requests */
		{ "*/*", TEXT },
		/* Firefox, Chrome */
		{ "text/html,application/xhtml+xml,application/xml;q=0.9,"
		  "image/avif,image/webp,image/png,image/svg+xml,*/*;q=0.8",
		    HTML },
		{ "text/html,application/xhtml+xml,application/xml;q=0.9,"
		  "image/avif,image/webp,image/apng,*/*;q=0.8,"
		  "application/signed-exchange;v=b3;q=0.7",
		    HTML },
		/* axios, jQuery's getJSON */
		{ "application/json, text/plain, */*", JSON },
		{ "application/json, text/javascript, */*; q=0.01", JSON },
		/* APIs */
		{ "application/json", JSON },
		{ "application/problem+json", JSON },
		{ "application/vnd.github+json", JSON },
		{ "application/vnd.api+json; ext=\"a,b;q=0\"", JSON },
		{ "application/json;charset=utf-8", JSON },
		{ "application/ld+json;q=0.5, text/html;q=0.4", JSON },
		/* an image in a page, a style sheet, an event stream */
		{ "image/avif,image/webp,*/*", TEXT },
		{ "text/css,*/*;q=0.1", TEXT },
		{ "text/event-stream", TEXT },
	};

	(void)state;
	expect_rows(table, COUNT(table));
}

static void
test_rules(void **state)
{
	static const struct row table[] = {
		/* The highest q. */
		{ "text/plain;q=0.5, text/html;q=0.501", HTML },
		{ "text/html;q=0.999, application/json", JSON },
		{ "text/html; q=0.3 , application/json;Q=0.4", JSON },
		{ "*/*;q=0.1, text/html;q=0.2", HTML },
		/* Of ranges that cover a type the most exact one tells q. */
		{ "text/*, text/plain;q=0.1", HTML },
		{ "text/*;q=0.1, */*", JSON },
		{ "*/*, text/plain;q=0", JSON },
		{ "*/*, text/plain;q=0, application/json;q=0", HTML },
		{ "text/html;q=0, */*;q=0.5", TEXT },
		{ "application/json;q=0.1, application/problem+json", JSON },
		{ "application/problem+json, application/json;q=0.1,"
		  "text/html;q=0.9",
		    JSON },
		/* Then the more exact, then the first. */
		{ "*/*, text/html", HTML },
		{ "text/*, application/json", JSON },
		{ "text/html, application/json", HTML },
		{ "application/json, text/html", JSON },
		{ "application/*, text/html;q=0.9", JSON },
		{ "text/*", TEXT },
		{ "application/*", JSON },
		/* Case, blanks, empty elements. */
		{ "TEXT/HTML", HTML },
		{ " , ,\ttext/html\t;\tq=1 ,, ", HTML },
		/* Nothing of ours: text all the same. */
		{ "image/png", TEXT },
		{ "*/*;q=0", TEXT },
		{ "text/html;q=0", TEXT },
	};

	(void)state;
	expect_rows(table, COUNT(table));
}

static void
test_malformed(void **state)
{
	static const struct row table[] = {
		{ "text/html;q=1.001", TEXT },
		{ "text/html;q=1.1, application/json;q=0.1", JSON },
		{ "text/html;q=2", TEXT },
		{ "text/html;q=-1", TEXT },
		{ "text/html;q=", TEXT },
		{ "text/html;q", TEXT },
		{ "text/html;q=.5", TEXT },
		{ "text/html;q=0.", TEXT }, /* is 0 */
		{ "text/html;q=0.1234", TEXT },
		{ "text/html;q=0,5", TEXT },
		{ "text/html;q=\"1\"", TEXT },
		{ "text/html;q=1.", HTML },
		{ "html", TEXT },
		{ "/html", TEXT },
		{ "text/", TEXT },
		{ "text/html/x", TEXT },
		{ "te xt/html", TEXT },
		{ "*/html", TEXT },
		{ "text/html;level=\"", HTML },
		{ "text/plain;q=0, text/html;x=\"a, application/json", HTML },
		{ "application/json;x=\"\\\", text/html;q=0.9\"", JSON },
		{ "text/html;;;", HTML },
		{ "+json", TEXT },
		{ "application/+json", TEXT },
	};

	(void)state;
	expect_rows(table, COUNT(table));
	/* A NUL is as bad as any other control character. */
	assert_int_equal(accept_choose(STR("text/html\0")), TEXT);
}

/* The rules on drawn lists, by a model that works them out anew. */
static const char *const range_text[] = { "*/*", "text/*", "application/*",
	"text/plain", "application/json", "text/html" };
static const int covers[6][3] = { { 1, 1, 1 }, { 2, 0, 2 }, { 0, 2, 0 },
	{ 3, 0, 0 }, { 0, 3, 0 }, { 0, 0, 3 } };

static void
model(const int *range, const unsigned *q, size_t n, int type, unsigned *best_q,
    int *best_exact, size_t *best_at)
{
	*best_q = 0;
	*best_exact = 0;
	*best_at = 0;
	for (size_t i = 0; i < n; i++) {
		int exact = covers[range[i]][type];

		if (exact == 0 || exact < *best_exact ||
		    (exact == *best_exact && q[i] <= *best_q))
			continue;
		*best_exact = exact;
		*best_q = q[i];
		*best_at = i;
	}
}

static void
test_drawn(void **state)
{
	unsigned seed = draw_seed();

	(void)state;
	for (int round = 0; round < 20000; round++) {
		size_t n = 1 + draw_below(&seed, 5);
		int range[5];
		unsigned q[5];
		struct buf text;
		int best = 0;
		unsigned top_q;
		int top_exact;
		size_t top_at;

		buf_init(&text);
		for (size_t i = 0; i < n; i++) {
			range[i] = (int)draw_below(&seed, 6);
			q[i] = (unsigned)draw_below(&seed, 4) * 250;
			buf_addf(&text, "%s%s;q=%u.%03u", i == 0 ? "" : ", ",
			    range_text[range[i]], q[i] / 1000, q[i] % 1000);
		}
		model(range, q, n, 0, &top_q, &top_exact, &top_at);
		for (int type = 1; type < ACCEPT_TYPES; type++) {
			unsigned its_q;
			int exact;
			size_t at;

			model(range, q, n, type, &its_q, &exact, &at);
			if (its_q > top_q ||
			    (its_q == top_q &&
				(exact > top_exact ||
				    (exact == top_exact && at < top_at)))) {
				best = type;
				top_q = its_q;
				top_exact = exact;
				top_at = at;
			}
		}
		if (top_q == 0)
			best = ACCEPT_TEXT;
		if ((int)accept_choose(buf_str(&text)) != best)
			print_message("%.*s\n", STR_ARG(buf_str(&text)));
		assert_int_equal(accept_choose(buf_str(&text)), best);
		buf_release(&text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clients),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_drawn),
	};

	return cmocka_run_group_tests_name("accept", tests, NULL, NULL);
}
