/* SPEC.md section 3, "What is matched". */
#include "domain/subject.h"

#include "config_text.h"
#include "params_text.h"
#include "wire.h"

#define CONFIG STORE "[limit a]\nrate = 5/1m\n"

static struct arena arena;

static struct subject
read_as(enum config_role role, const struct config *config, const char *text)
{
	struct params *params = arena_alloc(&arena, sizeof(*params));
	struct subject s;

	*params = params_of(text, &arena);
	assert_true(subject_read(&s, role, params, config, &arena));
	assert_ptr_equal(s.params, params);
	assert_int_equal(s.role, role);
	return s;
}

static struct subject
read_with(const struct config *config, const char *text)
{
	return read_as(CONFIG_ROLE_RESPONDER, config, text);
}

static int
setup(void **state)
{
	(void)state;
	arena_init(&arena);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

static void
test_text(void **state)
{
	static const struct {
		const char *params;
		const char *method;
		const char *host;
		const char *path;
		const char *script_path;
	} table[] = {
		{ "", "", "", "/", "/" },
		{ "REQUEST_METHOD=GET\nHTTP_HOST=Example.ORG:8080\n"
		  "REQUEST_URI=/a?b=c\nSCRIPT_NAME=/s\n",
		    "GET", "example.org", "/a", "/s" },
		/* Methods are what they are. */
		{ "REQUEST_METHOD=get\n", "get", "", "/", "/" },
		{ "HTTP_HOST=example.org.\n", "", "example.org", "/", "/" },
		{ "HTTP_HOST=EXAMPLE.org.:80\n", "", "example.org", "/", "/" },
		{ "HTTP_HOST=AZ@[`az\n", "", "az@[`az", "/", "/" },
		{ "HTTP_HOST=.\n", "", ".", "/", "/" },
		{ "HTTP_HOST=:80\n", "", "", "/", "/" },
		{ "HTTP_HOST=[2001:DB8::1]:8080\n", "", "[2001:db8::1]", "/",
		    "/" },
		{ "HTTP_HOST=[::1]\n", "", "[::1]", "/", "/" },
		{ "HTTP_HOST=\xc3\x84\n", "", "\xc3\x84", "/", "/" },
		/* Of several the first. */
		{ "HTTP_HOST=a\nHTTP_HOST=b\nREQUEST_URI=/1\nREQUEST_URI=/2\n",
		    "", "a", "/1", "/" },
		/* One path, however it is written. */
		{ "REQUEST_URI=//login\n", "", "", "/login", "/" },
		{ "REQUEST_URI=/%6cogin\n", "", "", "/login", "/" },
		{ "REQUEST_URI=/x/../login\n", "", "", "/login", "/" },
		{ "REQUEST_URI=/x/%2e%2E/login?a\n", "", "", "/login", "/" },
		{ "REQUEST_URI=/%256cogin\n", "", "", "/%6cogin", "/" },
		{ "REQUEST_URI=http://host/login\n", "", "", "/login", "/" },
		{ "REQUEST_URI=/a?b/../c\n", "", "", "/a", "/" },
		/* What came decoded is not decoded again. */
		{ "REQUEST_URI=/x\nSCRIPT_NAME=/index.php\n"
		  "PATH_INFO=//a/./%6c/../b\n",
		    "", "", "/x", "/index.php/a/b" },
		{ "REQUEST_URI=/x\nSCRIPT_NAME=/index.php\n", "", "", "/x",
		    "/index.php" },
		{ "REQUEST_URI=/x\nPATH_INFO=/a\n", "", "", "/x", "/a" },
		/* Without a REQUEST_URI the script's stands for it. */
		{ "SCRIPT_NAME=/s//t\nPATH_INFO=/p\n", "", "", "/s/t/p",
		    "/s/t/p" },
		{ "REQUEST_URI=\nSCRIPT_NAME=/s\n", "", "", "/s", "/s" },
		{ "REQUEST_URI=?a=b\nSCRIPT_NAME=/s\n", "", "", "/", "/s" },
	};
	struct config *config = load_good(CONFIG BACKEND);

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct subject s = read_with(config, table[i].params);

		expect_str(s.method, str_of(table[i].method));
		expect_str(s.host, str_of(table[i].host));
		expect_str(s.path, str_of(table[i].path));
		expect_str(s.script_path, str_of(table[i].script_path));
		assert_false(s.has_client);
		assert_string_equal(s.backend->name, "default");
	}
	config_unref(config);
}

/* What an application behind /index.php routes by: a path of its own. */
static void
test_info_path(void **state)
{
	static const char *const table[][2] = {
		{ "SCRIPT_NAME=/index.php\n", "" },
		{ "SCRIPT_NAME=/index.php\nPATH_INFO=\n", "" },
		{ "SCRIPT_NAME=/index.php\nPATH_INFO=/login\n", "/login" },
		{ "SCRIPT_NAME=/index.php\nPATH_INFO=//x/../login\n",
		    "/login" },
		{ "SCRIPT_NAME=/index.php\nPATH_INFO=login\n", "/login" },
		{ "PATH_INFO=/%6cogin\n", "/%6cogin" },
	};
	struct config *config = load_good(CONFIG BACKEND);

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++)
		expect_str(read_with(config, table[i][0]).info_path,
		    str_of(table[i][1]));
	config_unref(config);
}

/* Clients are canonical, and cut to the prefixes of the configuration. */
static void
test_client(void **state)
{
	static const struct {
		const char *text;
		const char *client; /* NULL: none */
		const char *network;
	} table[] = {
		{ "192.0.2.77", "192.0.2.77", "192.0.2.0" },
		{ "::ffff:192.0.2.77", "192.0.2.77", "192.0.2.0" },
		{ "2001:DB8:1:2:3::4", "2001:db8:1:2:3::4", "2001:db8:1::" },
		{ "2001:db8:1:0:0:0:0:1", "2001:db8:1::1", "2001:db8:1::" },
		{ "fe80::1%eth0", "fe80::1", "fe80::" },
		{ "", NULL, NULL },
		{ "unix:", NULL, NULL },
		{ "192.0.2.77:80", NULL, NULL },
		{ "192.0.2.77, 10.0.0.1", NULL, NULL },
		{ "localhost", NULL, NULL },
	};
	struct config *config = load_good(
	    "[gateway]\nipv4_prefix = 24\nipv6_prefix = 48\n" CONFIG BACKEND);

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		char params[256];
		char text[ADDRESS_TEXT_MAX];
		struct subject s;

		/* Nothing that a client sends is looked at: B59, B61. */
		snprintf(params, sizeof(params),
		    "HTTP_X_FORWARDED_FOR=198.51.100.9\nREMOTE_ADDR=%s\n"
		    "HTTP_FORWARDED=for=198.51.100.9\n",
		    table[i].text);
		s = read_with(config, params);
		expect_str(s.client_text, str_of(table[i].text));
		assert_int_equal(s.has_client, table[i].client != NULL);
		if (!s.has_client)
			continue;
		address_format(&s.client, text);
		assert_string_equal(text, table[i].client);
		address_format(&s.network, text);
		assert_string_equal(text, table[i].network);
	}
	config_unref(config);
}

/* Through proxies that are trusted: who they forward for. */
static void
test_forwarded(void **state)
{
	static const char *const modes[] = { "x-forwarded-for", "forwarded",
		"header:X-Real-IP" };
	static const struct {
		const char *params;
		const char *text[COUNT(modes)]; /* client_text */
		bool has_client, has_peer;
	} table[] = {
		{ "REMOTE_ADDR=10.0.0.1\nHTTP_X_FORWARDED_FOR=192.0.2.1\n"
		  "HTTP_FORWARDED=for=192.0.2.2\nHTTP_X_REAL_IP=192.0.2.3\n",
		    { "192.0.2.1", "192.0.2.2", "192.0.2.3" }, true, true },
		{ "REMOTE_ADDR=10.0.0.1\n",
		    { "10.0.0.1", "10.0.0.1", "10.0.0.1" }, true, true },
		{ "REMOTE_ADDR=::ffff:10.0.0.1\n"
		  "HTTP_X_FORWARDED_FOR=2001:DB8::9\n",
		    { "2001:db8::9", "::ffff:10.0.0.1", "::ffff:10.0.0.1" },
		    true, true },
		{ "REMOTE_ADDR=11.0.0.1\nHTTP_X_FORWARDED_FOR=192.0.2.1\n"
		  "HTTP_FORWARDED=for=192.0.2.2\nHTTP_X_REAL_IP=192.0.2.3\n",
		    { "11.0.0.1", "11.0.0.1", "11.0.0.1" }, true, true },
		/* Given twice it chooses no client, not the proxy either. */
		{ "REMOTE_ADDR=10.0.0.1\nHTTP_X_FORWARDED_FOR=192.0.2.1\n"
		  "HTTP_X_FORWARDED_FOR=192.0.2.1\nHTTP_FORWARDED=for=a\n"
		  "HTTP_FORWARDED=for=192.0.2.2\n"
		  "HTTP_X_REAL_IP=192.0.2.3\nHTTP_X_REAL_IP=192.0.2.4\n",
		    { "10.0.0.1", "10.0.0.1", "10.0.0.1" }, false, true },
		/* Of who is not trusted it is none. */
		{ "REMOTE_ADDR=11.0.0.1\nHTTP_X_FORWARDED_FOR=192.0.2.1\n"
		  "HTTP_X_FORWARDED_FOR=192.0.2.1\nHTTP_FORWARDED=for=a\n"
		  "HTTP_FORWARDED=for=192.0.2.2\n"
		  "HTTP_X_REAL_IP=192.0.2.3\nHTTP_X_REAL_IP=192.0.2.4\n",
		    { "11.0.0.1", "11.0.0.1", "11.0.0.1" }, true, true },
		/* Nobody is connected. */
		{ "REMOTE_ADDR=unix:\nHTTP_X_FORWARDED_FOR=192.0.2.1\n"
		  "HTTP_FORWARDED=for=192.0.2.2\nHTTP_X_REAL_IP=192.0.2.3\n",
		    { "unix:", "unix:", "unix:" }, false, false },
	};

	(void)state;
	for (size_t m = 0; m < COUNT(modes); m++) {
		char text[512];
		struct config *config;

		snprintf(text, sizeof(text),
		    "[gateway]\nclient_address = %s\n"
		    "trusted_proxies = 10.0.0.0/8\n" CONFIG BACKEND,
		    modes[m]);
		config = load_good(text);
		for (size_t i = 0; i < COUNT(table); i++) {
			struct subject s = read_with(config, table[i].params);
			struct address a;

			expect_str(s.client_text, str_of(table[i].text[m]));
			assert_int_equal(s.has_client, table[i].has_client);
			assert_int_equal(s.has_peer, table[i].has_peer);
			if (!s.has_client)
				continue;
			assert_true(address_parse(s.client_text, &a));
			assert_true(address_eq(&s.client, &a));
			assert_true(address_parse(
			    params_get(s.params, STR("REMOTE_ADDR")), &a));
			assert_true(address_eq(&s.peer, &a));
		}
		config_unref(config);
	}
}

/* The first that matches, default last; by the REQUEST_URI form alone. */
static void
test_backend(void **state)
{
	static const struct {
		const char *params;
		const char *backend; /* NULL: none */
	} table[] = {
		{ "HTTP_HOST=a.org\nREQUEST_URI=/api/x\n", "first" },
		{ "HTTP_HOST=A.ORG:1\nREQUEST_URI=//api/../api/x\n", "first" },
		{ "HTTP_HOST=b.org\nREQUEST_URI=/api/x\n", "second" },
		{ "REQUEST_URI=/x\nSCRIPT_NAME=/api/x\nREQUEST_METHOD=POST\n",
		    NULL },
		{ "REQUEST_URI=/x\nREQUEST_METHOD=GET\n", "third" },
		{ "REQUEST_URI=/x\nREQUEST_METHOD=HEAD\n", "third" },
		{ "REQUEST_URI=/x\nREQUEST_METHOD=head\n", NULL },
		{ "REQUEST_URI=/x\nREQUEST_METHOD=OPTIONS\n", NULL },
		{ "REQUEST_URI=/x\n", NULL },
	};
	struct config *config = load_good(
	    CONFIG "[backend first]\naddress = 127.0.0.1:1\nhost = a.org\n"
		   "path = /api/*\n"
		   "[backend second]\naddress = 127.0.0.1:1\npath = /api/*\n"
		   "[backend third]\naddress = 127.0.0.1:1\nmethod = GET\n");

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct subject s = read_with(config, table[i].params);

		if (table[i].backend == NULL)
			assert_null(s.backend);
		else
			assert_string_equal(s.backend->name, table[i].backend);
	}
	config_unref(config);
}

/* `default` is last wherever it stands. */
static void
test_default_is_last(void **state)
{
	struct config *config = load_good(CONFIG BACKEND
	    "[backend api]\naddress = 127.0.0.1:1\npath = /api/*\n");

	(void)state;
	assert_string_equal(
	    read_with(config, "REQUEST_URI=/api/x\n").backend->name, "api");
	assert_string_equal(
	    read_with(config, "REQUEST_URI=/x\n").backend->name, "default");
	config_unref(config);
}

/*
 * An authorizer is told neither SCRIPT_NAME nor PATH_INFO: no second form of
 * the path is made up for it, and it has no backend.
 */
static void
test_authorizer(void **state)
{
	static const struct {
		const char *params;
		const char *path;
		const char *script_path;
	} table[] = {
		{ "REQUEST_URI=//a/%62?c\n", "/a/b", "/a/b" },
		{ "REQUEST_URI=/a\nSCRIPT_NAME=\nPATH_INFO=\n", "/a", "/a" },
		{ "", "/", "/" },
		/* One that is told them goes by them. */
		{ "REQUEST_URI=/a/b\nSCRIPT_NAME=/a\n", "/a/b", "/a" },
		{ "REQUEST_URI=/a/b\nPATH_INFO=/b\n", "/a/b", "/b" },
		{ "SCRIPT_NAME=/a\nPATH_INFO=/b\n", "/a/b", "/a/b" },
	};
	struct config *config = load_good(CONFIG BACKEND);

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct subject s =
		    read_as(CONFIG_ROLE_AUTHORIZER, config, table[i].params);

		expect_str(s.path, str_of(table[i].path));
		expect_str(s.script_path, str_of(table[i].script_path));
		assert_null(s.backend);
	}
	config_unref(config);
}

/* A head may be large; the text is the request's own. */
static void
test_own_copies(void **state)
{
	char params[70000];
	size_t at;
	struct config *config = load_good(CONFIG BACKEND);
	struct params p;
	struct subject s;
	struct arena other;

	(void)state;
	strcpy(params,
	    "REQUEST_METHOD=GET\nHTTP_HOST=h\nREMOTE_ADDR=x\n"
	    "SCRIPT_NAME=/s\nREQUEST_URI=/");
	at = strlen(params);
	memset(params + at, 'a', 60000);
	params[at + 60000] = '\0';
	arena_init(&other);
	p = params_of(params, &other);
	assert_true(
	    subject_read(&s, CONFIG_ROLE_RESPONDER, &p, config, &arena));
	arena_release(&other); /* as libfcgi frees its params */
	assert_int_equal(s.path.len, 60001);
	expect_str(s.method, STR("GET"));
	expect_str(s.host, STR("h"));
	expect_str(s.client_text, STR("x"));
	expect_str(s.script_path, STR("/s"));
	config_unref(config);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_text, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    test_info_path, setup, teardown),
		cmocka_unit_test_setup_teardown(test_client, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    test_forwarded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_backend, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    test_default_is_last, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    test_authorizer, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    test_own_copies, setup, teardown),
	};

	return cmocka_run_group_tests_name(
	    "subject", tests, enter_directory, leave_directory);
}
