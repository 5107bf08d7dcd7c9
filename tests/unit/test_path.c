#include "pure/path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define ROW(uri, path)                           \
	{                                        \
		{ (uri), sizeof(uri) - 1 },      \
		{                                \
			(path), sizeof(path) - 1 \
		}                                \
	}

struct row {
	struct str uri;
	struct str path;
};

static const struct row canonical[] = {
	ROW("", "/"),
	ROW("/", "/"),
	ROW("/login", "/login"),
	ROW("//login", "/login"),
	ROW("///a////b///", "/a/b/"),
	ROW("/%6cogin", "/login"),
	ROW("/%6Cogin", "/login"),
	ROW("/x/../login", "/login"),
	ROW("/x/./../login", "/login"),
	ROW("/x//../login", "/login"),
	ROW("/%2e%2e/login", "/login"),
	ROW("%2e%2e/", "/"),
	ROW("/a/%2e%2E/b", "/b"),
	ROW("/a/.%2e/b", "/b"),
	ROW("/a/%2fb", "/a/b"),
	ROW("/a%2fb", "/a/b"),
	ROW("/a%2f..%2fb", "/b"),
	ROW("%2flogin", "/login"),
	ROW("/../../..", "/"),
	ROW("/../a", "/a"),
	ROW("/a/b/../../../c", "/c"),
	ROW("/a/.", "/a/"),
	ROW("/a/./", "/a/"),
	ROW("/a/b/..", "/a/"),
	ROW("/a/b/../", "/a/"),
	ROW("/a/..", "/"),
	ROW("/a/...", "/a/..."),
	ROW("/a./b..", "/a./b.."),
	ROW("/.a/..b", "/.a/..b"),
	ROW("/login.", "/login."),
	ROW("/login/", "/login/"),
	ROW("/.", "/"),
	ROW("/..", "/"),
	ROW("/%zz", "/%zz"),
	ROW("/%", "/%"),
	ROW("/%4", "/%4"),
	ROW("/%4g%41", "/%4gA"),
	ROW("/%%41", "/%A"),
	ROW("/%25%34%31", "/%41"),
	ROW("/%2541", "/%41"),
	ROW("/%252e%252e/a", "/%2e%2e/a"),
	ROW("/a%00b", "/a\0b"),
	ROW("/a%ff", "/a\xff"),
	ROW("/a?b=/../c", "/a"),
	ROW("/a?", "/a"),
	ROW("?", "/"),
	ROW("?a=b", "/"),
	ROW("/a?b?c", "/a"),
	ROW("/a%3fb", "/a?b"),
	ROW("/a#b", "/a"),
	ROW("/a#b?c", "/a"),
	ROW("/a?c#b", "/a"),
	ROW("/a%23b", "/a#b"),
	ROW("/a;x=1/b", "/a;x=1/b"),
	ROW("/a+b", "/a+b"),
	ROW("/a\\..\\b", "/a\\..\\b"),
	ROW("http://host/login", "/login"),
	ROW("http://host:80//login?x", "/login"),
	ROW("HTTPS://user@host/a/../login", "/login"),
	ROW("a.b+c-1://host/x", "/x"),
	ROW("http://host", "/"),
	ROW("http://host?a=/b", "/"),
	ROW("http://host/", "/"),
	ROW("http:///login", "/login"),
	ROW("http:/login", "/http:/login"),
	ROW("/http://host/a", "/http:/host/a"),
	ROW("//host/login", "/host/login"),
	ROW("1http://host/a", "/1http:/host/a"),
	ROW("://host/a", "/:/host/a"),
	ROW("login", "/login"),
	ROW("*", "/*"),
};

static const struct row normalised[] = {
	ROW("", "/"),
	ROW("/index.php/login", "/index.php/login"),
	ROW("/index.php//a/../b/", "/index.php/b/"),
	ROW("/a%2fb", "/a%2fb"),
	ROW("/%2e%2e/a", "/%2e%2e/a"),
	ROW("/a?b", "/a?b"),
	ROW("/a#b", "/a#b"),
	ROW("http://host/a", "/http:/host/a"),
	ROW("index.php", "/index.php"),
};

/* Runs on blocks of exact size, so that a byte too far is caught. */
static void
run(const struct row *row, size_t (*function)(struct str, char *))
{
	char *uri = malloc(row->uri.len + 1);
	char *out = malloc(row->uri.len + 1);
	char *exact = realloc(uri, row->uri.len > 0 ? row->uri.len : 1);
	size_t n;

	assert_non_null(exact);
	memcpy(exact, row->uri.p, row->uri.len);
	n = function((struct str){ exact, row->uri.len }, out);
	if (!str_eq((struct str){ out, n }, row->path))
		fail_msg("`%s` gave `%.*s`, not `%s`", row->uri.p, (int)n, out,
		    row->path.p);
	free(exact);
	free(out);
}

static void
test_canonical(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(canonical) / sizeof(canonical[0]); i++)
		run(&canonical[i], path_canonical);
}

static void
test_normalise(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(normalised) / sizeof(normalised[0]); i++)
		run(&normalised[i], path_normalise);
}

/* A second, slow opinion: a list of segments, joined at its end. */
static size_t
model(struct str path, char *out)
{
	struct str kept[64];
	struct str rest = path;
	size_t n = 0;
	size_t len = 0;
	bool slash = true;

	while (rest.p != NULL) {
		struct str s = str_cut(&rest, '/');

		slash =
		    s.len == 0 || str_eq(s, STR(".")) || str_eq(s, STR(".."));
		if (str_eq(s, STR("..")))
			n -= n > 0 ? 1 : 0;
		else if (!slash)
			kept[n++] = s;
	}
	out[len++] = '/';
	for (size_t i = 0; i < n; i++) {
		memcpy(out + len, kept[i].p, kept[i].len);
		len += kept[i].len;
		if (i + 1 < n || slash)
			out[len++] = '/';
	}
	return len;
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

/* Laws on drawn paths: as the model says; once more changes nothing. */
static void
test_drawn(void **state)
{
	static const char alphabet[] = "/././/.a";
	unsigned seed = draw_seed();

	(void)state;
	for (int round = 0; round < 20000; round++) {
		size_t len = (size_t)(rand_r(&seed) % 24);
		char path[24];
		char out[25];
		char again[26];
		char expected[64];
		size_t n;
		size_t m;

		for (size_t i = 0; i < len; i++)
			path[i] = alphabet[rand_r(&seed) % 8];
		n = path_canonical((struct str){ path, len }, out);
		assert_true(n <= len + 1);
		m = model((struct str){ path, len }, expected);
		if (!str_eq(
			(struct str){ out, n }, (struct str){ expected, m }))
			fail_msg("`%.*s` gave `%.*s`, not `%.*s`", (int)len,
			    path, (int)n, out, (int)m, expected);
		m = path_normalise((struct str){ out, n }, again);
		assert_true(
		    str_eq((struct str){ out, n }, (struct str){ again, m }));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_canonical),
		cmocka_unit_test(test_normalise),
		cmocka_unit_test(test_drawn),
	};

	return cmocka_run_group_tests_name("path", tests, NULL, NULL);
}
