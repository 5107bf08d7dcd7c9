/*
 * SPEC.md section 3, [limit], and section 4, "Keys": which limits a request
 * comes under, and what the store is asked for them.
 */
#include "domain/limit.h"

#include "config_text.h"
#include "params_text.h"
#include "wire.h"

static struct arena arena;

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

struct outcome {
	enum limit_state state;
	size_t n;
	struct store_check check[STORE_CHECKS_MAX];
};

/* What the first limit of a configuration makes of a request. */
static struct outcome
prepare_as(
    enum config_role role, const struct config *config, const char *params_text)
{
	struct params params = params_of(params_text, &arena);
	struct outcome o = { .n = 99 };
	struct subject subject;

	assert_true(subject_read(&subject, role, &params, config, &arena));
	o.state = limit_prepare(&config->limit[0], &config->store, &subject,
	    &arena, o.check, STORE_CHECKS_MAX, &o.n);
	if (o.state != LIMIT_CHECKED)
		assert_int_equal(o.n, 0);
	return o;
}

static struct outcome
prepare(const struct config *config, const char *params_text)
{
	return prepare_as(CONFIG_ROLE_RESPONDER, config, params_text);
}

/* The same for options of a [limit a]. */
static struct outcome
prepare_for(enum config_role role, const char *options, const char *params)
{
	struct buf text;
	struct config *config;
	struct outcome o;

	buf_init(&text);
	buf_addf(&text,
	    "[gateway]\nroles = responder%s\n" STORE "[limit a]\n%s\n" BACKEND
	    "[backend api]\naddress = 127.0.0.1:1\npath = /api/*\n",
	    role == CONFIG_ROLE_AUTHORIZER ? ", authorizer" : "", options);
	buf_add_char(&text, '\0');
	config = load_warned(text.p);
	o = prepare_as(role, config, params);
	buf_release(&text);
	config_unref(config);
	return o;
}

static struct outcome
prepare_with(const char *options, const char *params)
{
	return prepare_for(CONFIG_ROLE_RESPONDER, options, params);
}

struct row {
	const char *options;
	const char *params;
	enum limit_state state;
};

#define R   "rate = 5/1m\n"
#define YES LIMIT_CHECKED
#define NO  LIMIT_SKIPPED
#define IP  "REMOTE_ADDR=192.0.2.1\n"

static const struct row table[] = {
	{ R, IP, YES },
	{ "rate = unlimited", IP, NO },
	{ "rate = deny", IP, LIMIT_CLOSED },
	{ "rate = deny\npath = /x", IP, NO },

	{ R "host = *.example.org", IP "HTTP_HOST=A.Example.ORG:80", YES },
	{ R "host = *.EXAMPLE.org", IP "HTTP_HOST=a.example.org", YES },
	{ R "host = *.example.org", IP "HTTP_HOST=example.org", NO },
	{ R "host = example.org", IP "HTTP_HOST=example.org.", YES },

	{ R "path = /login", IP "REQUEST_URI=/login?a", YES },
	{ R "path = /login", IP "REQUEST_URI=//login", YES },
	{ R "path = /login", IP "REQUEST_URI=/%6cogin", YES },
	{ R "path = /login", IP "REQUEST_URI=/x/../login", YES },
	{ R "path = /login", IP "REQUEST_URI=/Login", NO },
	{ R "path = /login", IP "REQUEST_URI=/login/", NO },
	/* Either form is enough to come under it. */
	{ R "path = /index.php/login",
	    IP "REQUEST_URI=/login\nSCRIPT_NAME=/index.php\nPATH_INFO=/login",
	    YES },
	{ R "path = /login",
	    IP "REQUEST_URI=/login\nSCRIPT_NAME=/index.php\nPATH_INFO=/login",
	    YES },
	{ R "path = /login", IP "REQUEST_URI=/x\nSCRIPT_NAME=/login", YES },
	/* X-K beside X_K: no application is known to take this one. */
	{ R "key = header:X-K\nmissing_key = skip",
	    IP "HTTP_X_K=one\nHTTP_X_K=two", LIMIT_KEY_TWICE },
	{ R "key = header:X-K\nmissing_key = skip",
	    IP "HTTP_X_K=\nHTTP_X_K=two", LIMIT_KEY_TWICE },
	{ R "key = client+header:X-K|host", IP "HTTP_X_K=one\nHTTP_X_K=two",
	    LIMIT_KEY_TWICE },
	{ R "key = header:X-K\nmissing_key = skip",
	    IP "HTTP_X_K=one\nHTTP_X_K=one", YES },
	{ R "key = host", IP "HTTP_X_K=one\nHTTP_X_K=two", YES },
	/* What an application behind /index.php routes by. */
	{ R "path = /login",
	    IP "REQUEST_URI=/index.php/login\n"
	       "SCRIPT_NAME=/index.php\nPATH_INFO=//login",
	    YES },
	{ R "path = /login",
	    IP "REQUEST_URI=/index.php/x\n"
	       "SCRIPT_NAME=/index.php\nPATH_INFO=/x",
	    NO },
	{ R "path = /login\nexcept_path = /login",
	    IP "REQUEST_URI=/index.php/login\n"
	       "SCRIPT_NAME=/index.php\nPATH_INFO=/login",
	    YES },
	{ R "path = /a, /b*, /c", IP "REQUEST_URI=/bx/y", YES },
	{ R "path = ~^/api/v[0-9]+/", IP "REQUEST_URI=/api/v12/x", YES },
	{ R "path = ~^/api/v[0-9]+/", IP "REQUEST_URI=/x/api/v12/x", NO },

/* B55: a preflight is free, unless counted. */
#define PREFLIGHT                                           \
	IP "REQUEST_METHOD=OPTIONS\nHTTP_ORIGIN=http://a\n" \
	   "HTTP_ACCESS_CONTROL_REQUEST_METHOD=PUT"
	{ R, PREFLIGHT, NO },
	{ "rate = deny", PREFLIGHT, NO },
	{ R "key = header:X-Key\nmissing_key = deny", PREFLIGHT, NO },
	{ R "preflight = free", PREFLIGHT, NO },
	{ R "preflight = counted", PREFLIGHT, YES },
	{ R, IP "REQUEST_METHOD=OPTIONS\nHTTP_ORIGIN=http://a", YES },
	{ R,
	    IP "REQUEST_METHOD=OPTIONS\n"
	       "HTTP_ACCESS_CONTROL_REQUEST_METHOD=PUT",
	    YES },
	{ R,
	    IP "REQUEST_METHOD=POST\nHTTP_ORIGIN=http://a\n"
	       "HTTP_ACCESS_CONTROL_REQUEST_METHOD=PUT",
	    YES },

	{ R "method = POST", IP "REQUEST_METHOD=POST", YES },
	{ R "method = POST", IP "REQUEST_METHOD=GET", NO },
	{ R "method = GET", IP "REQUEST_METHOD=HEAD", YES },
	{ R "method = HEAD", IP "REQUEST_METHOD=GET", NO },
	{ R "method = POST", IP "REQUEST_METHOD=HEAD", NO },
	{ R "method = GET", IP "REQUEST_METHOD=get", NO },

	{ R "client = 192.0.2.0/24", IP, YES },
	{ R "client = 192.0.2.0/24", "REMOTE_ADDR=::ffff:192.0.2.9", YES },
	{ R "client = 198.51.100.0/24, 192.0.2.1", IP, YES },
	{ R "client = 192.0.2.2", IP, NO },
	/* The prefix of the configuration makes keys, not matches. */
	{ R "client = 2001:db8::1", "REMOTE_ADDR=2001:db8::1", YES },
	{ R "client = 2001:db8::1", "REMOTE_ADDR=2001:db8::2", NO },
	{ R "client = 0.0.0.0/0", "REMOTE_ADDR=unix:", NO },
	{ R "client = 192.0.2.0/24\npath = /x", IP "REQUEST_URI=/y", NO },

	{ R "header = X-Plan=free*", IP "HTTP_X_PLAN=free-2", YES },
	{ R "header = X-Plan=free*", IP "HTTP_X_PLAN=paid", NO },
	{ R "header = X-Plan=free*", IP, NO },
	{ R "header = X-Plan=*", IP, NO },
	{ R "header = X-Plan=*", IP "HTTP_X_PLAN=", YES },
	{ R "header = X-Plan=", IP "HTTP_X_PLAN=", YES },
	{ R "header = X-Plan=", IP, YES },
	{ R "header = X-Plan=", IP "HTTP_X_PLAN=x", NO },
	{ R "header = X-Plan=a, Y=b", IP "HTTP_Y=b", YES },
	{ R "header = X-Plan=a, Y=b", IP "HTTP_Y=a", NO },
	{ R "header = X-Plan=a = b", IP "HTTP_X_PLAN=a = b", YES },
	{ R "header = X-Plan=~^(a|b,c)$", IP "HTTP_X_PLAN=b,c", YES },
	{ R "header = X-Plan=~^(a|b,c)$", IP "HTTP_X_PLAN=ab", NO },
	{ R "header = X-Plan=~.", IP, NO },
	{ R "header = Content-Type=application/json*",
	    IP "CONTENT_TYPE=application/json; charset=x", YES },
	{ R "header = Authorization=Bearer *",
	    IP "REDIRECT_HTTP_AUTHORIZATION=Bearer x", YES },
	/* Nobody gets around it with a second one. */
	{ R "header = X-Plan=free", IP "HTTP_X_PLAN=paid\nHTTP_X_PLAN=free",
	    YES },
	{ R "header = X-Plan=free", IP "HTTP_X_PLAN=free\nHTTP_X_PLAN=paid",
	    YES },
	{ R "query = action=search*", IP "QUERY_STRING=action=se%61rch2", YES },
	{ R "query = action=search*", IP "QUERY_STRING=action=x&q=search", NO },
	{ R "query = action=search*", IP "QUERY_STRING=ACTION=search", NO },
	{ R "query = q=*", IP "QUERY_STRING=a=1&q", YES },
	{ R "query = q=*", IP, NO },
	{ R "query = q=", IP, YES },
	{ R "query = q=", IP "QUERY_STRING=q=1", NO },
	{ R "query = q=1", IP "QUERY_STRING=q=1&q=2", YES },
	{ R "query = q=2", IP "QUERY_STRING=q=1&q=2", NO },
	{ R "query = q=~^[0-9]+$", IP "QUERY_STRING=q=12", YES },
	{ R "query = q=1\nheader = X=1", IP "QUERY_STRING=q=1", NO },
	{ R "query = q=1\nheader = X=1", IP "QUERY_STRING=q=1\nHTTP_X=1", YES },

	{ R "except_client = 192.0.2.0/24", IP, NO },
	{ R "except_client = 192.0.2.2", IP, YES },
	{ R "except_client = 0.0.0.0/0", "REMOTE_ADDR=unix:", YES },
	{ R "except_method = OPTIONS, POST", IP "REQUEST_METHOD=POST", NO },
	{ R "except_method = OPTIONS", IP "REQUEST_METHOD=POST", YES },
	/* A path is exempt only if both of its forms are. */
	{ R "except_path = /static/*",
	    IP "REQUEST_URI=/static/x\nSCRIPT_NAME=/static/x", NO },
	{ R "except_path = /static/*",
	    IP "REQUEST_URI=/static/x\nSCRIPT_NAME=/index.php", YES },
	{ R "except_path = /static/*",
	    IP "REQUEST_URI=/index.php\nSCRIPT_NAME=/static/x", YES },
	{ R "except_path = /static/*",
	    IP "REQUEST_URI=/static/../login\nSCRIPT_NAME=/static/x", YES },
	{ R "path = /static/*\nexcept_path = /static/big",
	    IP "REQUEST_URI=/static/big\nSCRIPT_NAME=/static/big", NO },

	{ R "backend = api", IP "REQUEST_URI=/api/x", YES },
	{ R "backend = api", IP "REQUEST_URI=/x", NO },
	{ R "backend = default", IP "REQUEST_URI=/x", YES },

	/* Keys that are missing: B65. */
	{ R "missing_key = skip", "", NO },
	{ R "missing_key = deny", "", LIMIT_KEY_MISSING },
	{ R "missing_key = deny", "REMOTE_ADDR=", LIMIT_KEY_MISSING },
	{ R "key = header:X-Key\nmissing_key = skip", IP, NO },
	{ R "key = header:X-Key\nmissing_key = deny", IP, LIMIT_KEY_MISSING },
	{ R "key = header:X-Key\nmissing_key = deny",
	    IP "HTTP_X_KEY=", LIMIT_KEY_MISSING },
	{ R "key = header:X-Key\nmissing_key = deny", IP "HTTP_X_KEY=1", YES },
	{ R "key = header:X-Key+path\nmissing_key = deny", IP,
	    LIMIT_KEY_MISSING },
	{ R "key = path+header:X-Key\nmissing_key = skip", IP, NO },
	{ R "key = header:X-Key|client\nmissing_key = deny", IP, YES },
	{ R "key = header:X-Key|header:Y\nmissing_key = deny", IP "HTTP_Y=1",
	    YES },
	{ R "key = host+method+path+global", "", YES },
	{ R "key = query:k\nmissing_key = skip", IP "QUERY_STRING=k=1", YES },
	{ R "key = query:k\nmissing_key = skip", IP "QUERY_STRING=k=&k=1", NO },
	{ R "key = query:k\nmissing_key = skip", IP "QUERY_STRING=K=1", NO },
	{ R "key = query:k\nmissing_key = skip", IP, NO },
	{ R "key = query:k\nmissing_key = skip",
	    IP "QUERY_STRING=k=1\nQUERY_STRING=k=2", LIMIT_KEY_TWICE },
	{ R "key = cookie:k\nmissing_key = skip", IP "HTTP_COOKIE=a=1; k=1",
	    YES },
	{ R "key = cookie:k\nmissing_key = skip", IP "HTTP_COOKIE=k", NO },
	{ R "key = cookie:k\nmissing_key = deny",
	    IP "HTTP_COOKIE=k=1\nHTTP_COOKIE=k=2", LIMIT_KEY_TWICE },
	{ R "key = param:REMOTE_USER\nmissing_key = deny", IP "REMOTE_USER=joe",
	    YES },
	{ R "key = param:REMOTE_USER\nmissing_key = deny",
	    IP "HTTP_REMOTE_USER=joe", LIMIT_KEY_MISSING },
	{ R "key = param:X\nmissing_key = deny", IP "X=1\nX=2",
	    LIMIT_KEY_TWICE },
	{ R "key = header:Authorization\nmissing_key = deny",
	    IP "REDIRECT_HTTP_AUTHORIZATION=Bearer x", YES },
	/* Without a body of its kind a field is missing. */
	{ R "key = form:k\nmissing_key = deny", IP, LIMIT_KEY_MISSING },
	{ R "key = client/24,48\nmissing_key = deny", IP, YES },
	/* Whoever it does not concern is not asked for a key. */
	{ R "key = header:X-Key\nmissing_key = deny\npath = /x",
	    "REQUEST_URI=/y", NO },
	{ "rate = deny\nkey = header:X-Key\nmissing_key = skip", IP, NO },
	{ "rate = deny\nkey = header:X-Key\nmissing_key = deny", IP,
	    LIMIT_KEY_MISSING },
	{ "rate = unlimited\nkey = header:X-Key\nmissing_key = deny", IP, NO },
};

static void
test_applies(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct outcome o =
		    prepare_with(table[i].options, table[i].params);

		if (o.state != table[i].state)
			print_message("row %zu: %s\n", i, table[i].options);
		assert_int_equal(o.state, table[i].state);
	}
}

static void
test_names(void **state)
{
	static const struct {
		const char *options;
		const char *params;
		const char *name;
	} rows[] = {
		{ "rate = 5/1m", IP, "sluice:{192.0.2.1}:a:s60000" },
		{ "rate = 5/50ms", IP, "sluice:{192.0.2.1}:a:s50" },
		{ "rate = 5/1m\nalgorithm = fixed_window", IP,
		    "sluice:{192.0.2.1}:a:f60000" },
		{ "rate = 5/1m burst 9\nalgorithm = token_bucket", IP,
		    "sluice:{192.0.2.1}:a:t60000" },
		{ "rate = 9/1m\nkey = global", IP, "sluice:{global}:a:s60000" },
		/* B10: a window is in the name, so that none outlives it. */
		{ "rate = 5/1h", IP, "sluice:{192.0.2.1}:a:s3600000" },
		/* N is in no name: it changes and the count stays. */
		{ "rate = 9/1m", IP, "sluice:{192.0.2.1}:a:s60000" },
		/* B62: one key for all of a /64. */
		{ "rate = 5/1m", "REMOTE_ADDR=2001:db8:1:2:3:4:5:6",
		    "sluice:{2001:db8:1:2::}:a:s60000" },
		{ "rate = 5/1m", "REMOTE_ADDR=2001:db8:1:2::",
		    "sluice:{2001:db8:1:2::}:a:s60000" },
		{ "rate = 5/1m", "REMOTE_ADDR=::ffff:192.0.2.1",
		    "sluice:{192.0.2.1}:a:s60000" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct outcome o =
		    prepare_with(rows[i].options, rows[i].params);

		assert_int_equal(o.state, LIMIT_CHECKED);
		assert_int_equal(o.n, 1);
		expect_str(o.check[0].key, str_of(rows[i].name));
	}
}

/* The role of FastCGI that a limit is for. */
static void
test_roles(void **state)
{
	static const struct {
		const char *options;
		bool of_responder;
		bool of_authorizer;
	} rows[] = {
		{ R, true, true },
		{ R "role = responder", true, false },
		{ R "role = authorizer", false, true },
		{ R "role = authorizer\npath = /x", false, false },
		/* An authorizer has one path, and that is both forms. */
		{ R "path = /", false, false },
		{ R "path = /a/*", true, true },
		{ R "except_path = /a/*", true, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows) * 2; i++) {
		bool authorizer = i % 2 != 0;
		struct outcome o = prepare_for(
		    authorizer ? CONFIG_ROLE_AUTHORIZER : CONFIG_ROLE_RESPONDER,
		    rows[i / 2].options,
		    authorizer ? IP "REQUEST_URI=/a/b"
			       : IP "REQUEST_URI=/a/b\nSCRIPT_NAME=/s");

		assert_int_equal(o.state,
		    (authorizer ? rows[i / 2].of_authorizer
				: rows[i / 2].of_responder)
			? LIMIT_CHECKED
			: LIMIT_SKIPPED);
	}
}

static struct str
name_of(const char *options, const char *params)
{
	struct outcome o = prepare_with(options, params);

	assert_int_equal(o.state, LIMIT_CHECKED);
	assert_int_equal(o.n, 1);
	return o.check[0].key;
}

/* B67, B68: no text of a client's, and of one length: 32 hex digits. */
static void
expect_hashed(struct str name)
{
	const struct str before = STR("sluice:{");
	const struct str behind = STR("}:a:s60000");

	assert_int_equal(name.len, before.len + 32 + behind.len);
	expect_str((struct str){ name.p, before.len }, before);
	for (size_t i = 0; i < 32; i++)
		assert_non_null(
		    strchr("0123456789abcdef", name.p[before.len + i]));
	expect_str(
	    (struct str){ name.p + before.len + 32, behind.len }, behind);
}

#define KEY(key)    R "missing_key = deny\nkey = " key
#define ALWAYS(key) R "key = " key

static void
test_tags(void **state)
{
	/* Each is somebody else's. */
	static const char *const rows[][2] = {
		{ KEY("header:A"), "HTTP_A=one" },
		{ KEY("header:A"), "HTTP_A=ONE" },
		{ KEY("header:A"), "HTTP_A=192.0.2.1" },
		{ KEY("header:A"), "HTTP_A=global" },
		{ KEY("header:A"), "HTTP_A=}:a{" },
		{ KEY("client"), "REMOTE_ADDR=unix:" },
		{ KEY("header:A+header:B"), "HTTP_A=a\nHTTP_B=bc" },
		{ KEY("header:A+header:B"), "HTTP_A=ab\nHTTP_B=c" },
		{ KEY("header:B+header:A"), "HTTP_A=a\nHTTP_B=ab" },
		{ KEY("client+path"), IP "REQUEST_URI=/a" },
		{ KEY("client+path"), IP "REQUEST_URI=/b" },
		{ ALWAYS("path"), "REQUEST_URI=/c" },
		{ ALWAYS("host"), "HTTP_HOST=h" },
		{ ALWAYS("host"), "HTTP_HOST=" },
		{ ALWAYS("method"), "REQUEST_METHOD=GET" },
		{ ALWAYS("host+method"), "HTTP_HOST=h\nREQUEST_METHOD=GET" },
		{ ALWAYS("global+host"), "HTTP_HOST=h" },
		/* A header that says what another's address is. */
		{ KEY("header:A|client"), "HTTP_A=192.0.2.7" },
		{ KEY("header:A|client"), "REMOTE_ADDR=192.0.2.7" },
		{ KEY("client|header:A"), "HTTP_A=192.0.2.8" },
		{ KEY("client|header:A"), "REMOTE_ADDR=192.0.2.8" },
		{ KEY("param:REMOTE_USER|header:A"), "HTTP_A=joe" },
		{ KEY("param:REMOTE_USER|header:A"), "REMOTE_USER=joe" },
	};
	struct str names[COUNT(rows)];

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		names[i] = name_of(rows[i][0], rows[i][1]);
		expect_hashed(names[i]);
		for (size_t k = 0; k < i; k++)
			assert_false(str_eq(names[i], names[k]));
	}
}

static void
test_same_tags(void **state)
{
	/* Each is the same as the one beside it. */
	static const char *const rows[][4] = {
		{ ALWAYS("path"), "REQUEST_URI=/a?x", ALWAYS("path"),
		    "REQUEST_URI=//a#y" },
		{ ALWAYS("host"), "HTTP_HOST=H.org:1", ALWAYS("host"),
		    "HTTP_HOST=h.ORG" },
		{ KEY("client+host"), "REMOTE_ADDR=2001:db8::1", //
		    KEY("client+host"), "REMOTE_ADDR=2001:db8::ffff" },
		{ KEY("client+host"), "REMOTE_ADDR=192.0.2.1",
		    KEY("client+host"), "REMOTE_ADDR=::ffff:c000:201" },
		/* The first that is there, whatever stands behind. */
		{ KEY("header:A|header:B"), "HTTP_A=x\nHTTP_B=y",
		    KEY("header:A|header:B"), "HTTP_A=x" },
		{ KEY("header:A|header:B"), "HTTP_A=\nHTTP_B=y",
		    KEY("header:A|header:B"), "HTTP_B=y" },
		/* B72: Apache's name for it after a redirect. */
		{ KEY("header:Authorization"), "HTTP_AUTHORIZATION=x",
		    KEY("header:Authorization"),
		    "REDIRECT_HTTP_AUTHORIZATION=x" },
		{ KEY("header:Authorization"),
		    "REDIRECT_HTTP_AUTHORIZATION=y\nHTTP_AUTHORIZATION=x",
		    KEY("header:Authorization"), "HTTP_AUTHORIZATION=x" },
		/* One API key, however it is sent. */
		{ KEY("header:A|query:k"), "QUERY_STRING=k=%78+y",
		    KEY("header:A"), "HTTP_A=x y" },
		{ KEY("header:A|cookie:k"), "HTTP_COOKIE=j=1; k=\"%78\"",
		    KEY("query:A"), "QUERY_STRING=A=x&A=y" },
		{ KEY("client/24,48"), "REMOTE_ADDR=192.0.2.9", R,
		    "REMOTE_ADDR=192.0.2.0" },
		{ KEY("client/24,48"), "REMOTE_ADDR=2001:db8:1:2::3", R,
		    "REMOTE_ADDR=2001:db8:1::" },
		{ KEY("header:Content-Type"), "CONTENT_TYPE=x",
		    KEY("header:content-type"), "CONTENT_TYPE=x" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct str a = name_of(rows[i][0], rows[i][1]);

		expect_str(a, name_of(rows[i][2], rows[i][3]));
	}
}

/* A field of a form counts once its body is there, and of its kind. */
static void
test_form(void **state)
{
	static const char type[] =
	    "CONTENT_TYPE=application/x-www-form-urlencoded\n";
	static const struct {
		const char *type;
		const char *uri;
		struct str body;
		bool awaits;
		enum limit_state state;
	} rows[] = {
		{ type, "/login", { "a=1&user=%6aoe", 14 }, true, YES },
		{ type, "/login", { "a=1", 3 }, true, LIMIT_KEY_MISSING },
		{ type, "/login", { NULL, 0 }, true, LIMIT_KEY_MISSING },
		{ type, "/x", { "user=joe", 8 }, false, NO },
		{ type, "/login", STR("user=joe&user=%6aoe"), true, YES },
		{ type, "/login", STR("user=joe&user=ann"), true,
		    LIMIT_KEY_TWICE },
		{ type, "/x", STR("user=joe&user=ann"), false, NO },
		{ "CONTENT_TYPE=application/x-www-form-urlencoded, x\n",
		    "/login", STR("+user=joe"), true, YES },
		{ "CONTENT_TYPE=text/plain\n", "/login",
		    STR("user=joe&user=ann"), false, LIMIT_KEY_MISSING },
		{ "CONTENT_TYPE=text/plain\n", "/login", { "user=joe", 8 },
		    false, LIMIT_KEY_MISSING },
		{ "", "/login", { "user=joe", 8 }, false, LIMIT_KEY_MISSING },
	};
	struct config *config = load_warned(STORE
	    "[limit a]\nrate = 5/1m\nkey = form:user\nmissing_key = deny\n"
	    "path = /login\n[limit b]\nrate = 5/1m\n" BACKEND);

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct store_check check[1];
		char params_text[256];
		struct params params;
		struct subject s;
		size_t n;

		snprintf(params_text, sizeof(params_text), "%sREQUEST_URI=%s\n",
		    rows[i].type, rows[i].uri);
		params = params_of(params_text, &arena);
		assert_true(subject_read(
		    &s, CONFIG_ROLE_RESPONDER, &params, config, &arena));
		assert_int_equal(
		    limit_awaits_body(&config->limit[0], &s), rows[i].awaits);
		assert_false(limit_awaits_body(&config->limit[1], &s));
		s.form_body = rows[i].body;
		assert_int_equal(limit_prepare(&config->limit[0],
				     &config->store, &s, &arena, check, 1, &n),
		    rows[i].state);
		if (rows[i].state == YES)
			expect_str(check[0].key,
			    name_of("rate = 5/1m\nkey = header:U\n"
				    "missing_key = deny",
				"HTTP_U=joe"));
	}
	config_unref(config);
}

/* What a client writes into one alternative is not another's value. */
static void
test_alternatives_are_apart(void **state)
{
	static const char key[] = KEY("header:A|client");
	static const char *const said[] = {
		"HTTP_A=192.0.2.9\nREMOTE_ADDR=192.0.2.1",
		"REMOTE_ADDR=192.0.2.9",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(said); i++)
		for (size_t k = i + 1; k < COUNT(said); k++) {
			char first[512];
			struct str a = name_of(key, said[i]);

			assert_true(a.len < sizeof(first));
			memcpy(first, a.p, a.len);
			assert_false(str_eq((struct str){ first, a.len },
			    name_of(key, said[k])));
		}
}

/* Who is none of known_keys has no key, and so the next alternative. */
static void
test_known_keys(void **state)
{
#define HEX   "0123456789abcdef0123456789abcdef"
#define KNOWN KEY("header:A|query:k|client") "\nknown_keys = @keys"
	static const char *const same[][2] = {
		{ "HTTP_A=alpha key", "QUERY_STRING=k=alpha+key" },
		{ "HTTP_A=beta", "HTTP_A=x\nQUERY_STRING=k=beta" },
		{ IP "HTTP_A=alpha", IP },
		{ IP "HTTP_A=alpha key2", IP "QUERY_STRING=k=gamma" },
		/* Of a hash the value is known, the hash is no value. */
		{ "HTTP_A=delta", "HTTP_A=delta" },
		{ IP "HTTP_A=4043a81585819d51096cdc492e46ef17", IP },
		{ IP "HTTP_A=hash:4043a81585819d51096cdc492e46ef17", IP },
		{ "HTTP_A=" HEX, "QUERY_STRING=k=" HEX },
	};
	static const struct row rows[] = {
		{ KEY("header:A") "\nknown_keys = @keys", "HTTP_A=beta", YES },
		{ KEY("header:A") "\nknown_keys = @keys", "HTTP_A=BETA",
		    LIMIT_KEY_MISSING },
		{ R "key = cookie:c+path\nmissing_key = skip\n"
		    "known_keys = @keys",
		    "HTTP_COOKIE=c=zeta", NO },
		{ R "key = cookie:c+path\nmissing_key = skip\n"
		    "known_keys = @keys",
		    "HTTP_COOKIE=c=beta", YES },
	};

	(void)state;
	write_file("keys",
	    STR("# ours\nalpha key\n  beta \r\n\n"
		"hash:4043a81585819d51096cdc492e46ef17\n" HEX "\n"));
	for (size_t i = 0; i < COUNT(same); i++)
		expect_str(
		    name_of(KNOWN, same[i][0]), name_of(KNOWN, same[i][1]));
	assert_false(str_eq(name_of(KNOWN, IP "HTTP_A=delta"),
	    name_of(KNOWN, IP "HTTP_A=beta")));
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_int_equal(
		    prepare_with(rows[i].options, rows[i].params).state,
		    rows[i].state);
}

/* The configuration's prefix, name, secret and address prefixes. */
static void
test_configured(void **state)
{
	static const char *const secrets[] = { "", "key_secret = s3cret\n",
		"key_secret = s3creu\n" };
	struct str names[COUNT(secrets)];
	struct config *config = load_good(
	    "[gateway]\nipv4_prefix = 24\nipv6_prefix = 48\n" STORE
	    "prefix = app-1\n[limit my_limit-2]\nrate = 5/1m\n" BACKEND);

	(void)state;
	expect_str(prepare(config, IP).check[0].key,
	    STR("app-1:{192.0.2.0}:my_limit-2:s60000"));
	expect_str(prepare(config, "REMOTE_ADDR=2001:db8:1:2::3").check[0].key,
	    STR("app-1:{2001:db8:1::}:my_limit-2:s60000"));
	config_unref(config);
	for (size_t i = 0; i < COUNT(secrets); i++) {
		struct buf text;

		buf_init(&text);
		buf_addf(&text, STORE "%s[limit a]\nrate = 5/1m\nkey = host\n",
		    secrets[i]);
		buf_addf(&text, BACKEND "%c", '\0');
		config = load_good(text.p);
		names[i] = prepare(config, "HTTP_HOST=h").check[0].key;
		expect_hashed(names[i]);
		for (size_t k = 0; k < i; k++)
			assert_false(str_eq(names[i], names[k]));
		config_unref(config);
		buf_release(&text);
	}
}

/* The longest name a configuration can make fits. */
static void
test_longest_name(void **state)
{
	struct config *config = load_good(
	    STORE "prefix = pppppppppppppppppppppppppppppppppppppppppppppppppp"
		  "pppppppppppppp\n"
		  "[limit nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn]\n"
		  "key = host\nrate = 5/366d\n" BACKEND);
	struct outcome o = prepare(config, "HTTP_HOST=h");

	(void)state;
	assert_int_equal(o.state, LIMIT_CHECKED);
	assert_int_equal(o.check[0].key.len, 64 + 2 + 32 + 2 + 32 + 2 + 11);
	config_unref(config);
}

static void
test_checks(void **state)
{
	struct outcome o = prepare_with(
	    "rate = 5/1s burst 7, 100/1h\nalgorithm = token_bucket", IP);
	const struct check *c = &o.check[0].check;

	(void)state;
	assert_int_equal(o.n, 2);
	assert_int_equal(c->algorithm, ALGORITHM_TOKEN_BUCKET);
	assert_int_equal(c->count, 5);
	assert_int_equal(c->period_us, 1000000);
	assert_int_equal(c->burst, 7);
	assert_int_equal(c->cost, 1);
	assert_int_equal(c->offset_us, 0);
	assert_false(c->observe);
	c = &o.check[1].check;
	assert_int_equal(c->count, 100);
	assert_int_equal(c->period_us, 3600000000);
	assert_int_equal(c->burst, 100);
	expect_str(o.check[0].key, STR("sluice:{192.0.2.1}:a:t1000"));
	expect_str(o.check[1].key, STR("sluice:{192.0.2.1}:a:t3600000"));
}

/* Each key's windows have an offset of their own, but where told not to. */
static void
test_offsets(void **state)
{
	static const char *const spread[] = { R,
		R "algorithm = fixed_window\n" };
	static const char *const none[] = {
		R "algorithm = fixed_window\nalign = epoch\n",
		R "algorithm = fixed_window\nalign = first\n",
		R "algorithm = token_bucket\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(spread); i++) {
		int64_t a =
		    prepare_with(spread[i], IP).check[0].check.offset_us;
		int64_t b = prepare_with(spread[i], "REMOTE_ADDR=192.0.2.2")
				.check[0]
				.check.offset_us;

		assert_in_range(a, 0, 59999999);
		assert_in_range(b, 0, 59999999);
		assert_int_not_equal(a, b);
		assert_int_equal(a % 1000, 0);
		assert_int_equal(
		    a, prepare_with(spread[i], IP).check[0].check.offset_us);
	}
	for (size_t i = 0; i < COUNT(none); i++) {
		struct check c = prepare_with(none[i], IP).check[0].check;

		assert_int_equal(c.offset_us, 0);
		assert_int_equal(c.align,
		    i == 0       ? ALIGN_EPOCH
			: i == 1 ? ALIGN_FIRST
				 : ALIGN_SPREAD);
	}
}

/* No room for all of its rates: none is written. */
static void
test_room(void **state)
{
	struct config *config =
	    load_good(STORE "[limit a]\nrate = 5/1s, 9/1m, 99/1h\n" BACKEND);
	struct params params = params_of(IP, &arena);
	struct store_check check[3];
	struct subject s;
	size_t n;

	(void)state;
	assert_true(
	    subject_read(&s, CONFIG_ROLE_RESPONDER, &params, config, &arena));
	for (size_t room = 0; room <= 3; room++) {
		memset(check, 0x5a, sizeof(check));
		assert_int_equal(
		    limit_prepare(&config->limit[0], &config->store, &s, &arena,
			check, room, &n),
		    room < 3 ? LIMIT_FAILED : LIMIT_CHECKED);
		assert_int_equal(n, room < 3 ? 0 : 3);
		if (room < 3)
			assert_int_equal(check[0].key.len, 0x5a5a5a5a5a5a5a5a);
		/* What it has not is said too. */
		for (size_t i = 0; i < n; i++)
			assert_true(check[i].slot.p == NULL &&
			    check[i].own_key.p == NULL);
	}
	config_unref(config);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#define EXPORTS "/v1/free*=0, /v1/export=50, /export.php*=40, *=10"
#define BEHIND  "SCRIPT_NAME=/index.php"

/* By what was asked for; by another path only what a pattern names. */
static void
test_costs(void **state)
{
	static const struct {
		const char *cost;
		const char *params;
		int64_t units;
	} costs[] = {
		{ "5", "REQUEST_URI=/a", 5 },
		{ "/a=3, *=2", "REQUEST_URI=/a?b", 3 },
		{ "/a=3, *=2", "REQUEST_URI=/b", 2 },
		{ "/a=3", "REQUEST_URI=/b", 1 },
		{ "POST /a=3", "REQUEST_URI=/a\nREQUEST_METHOD=POST", 3 },
		{ "POST /a=3", "REQUEST_URI=/a\nREQUEST_METHOD=GET", 1 },
		{ "GET /a=3", "REQUEST_URI=/a\nREQUEST_METHOD=HEAD", 3 },
		{ "/a=3", "REQUEST_URI=//%61", 3 },
		{ "/a=3, *=0",
		    "REQUEST_URI=/index.php/a\n"
		    "SCRIPT_NAME=/index.php\nPATH_INFO=/a",
		    3 },
		{ "/a=3, *=0", "REQUEST_URI=/x\nSCRIPT_NAME=/a", 3 },
		{ "/free=0, *=1", "REQUEST_URI=/free\nSCRIPT_NAME=/free", 0 },
		/* Rewritten to one script. */
		{ EXPORTS, "REQUEST_URI=/v1/free\n" BEHIND, 0 },
		{ EXPORTS,
		    "REQUEST_URI=/v1/free\n" BEHIND "\nPATH_INFO=/v1/free", 0 },
		{ EXPORTS, "REQUEST_URI=/v1/export\n" BEHIND, 50 },
		{ EXPORTS, "REQUEST_URI=/v1/other\n" BEHIND, 10 },
		{ "/v1/free=0", "REQUEST_URI=/v1/free\n" BEHIND, 0 },
		{ "/v1/free=0, GET *=9, /*=8",
		    "REQUEST_METHOD=GET\nREQUEST_URI=/v1/free\n" BEHIND, 0 },
		{ "/v1/free=0, GET *=9, /**=8",
		    "REQUEST_METHOD=PUT\nREQUEST_URI=/v1/free\n" BEHIND, 0 },
		/* Asked for by the script. */
		{ EXPORTS,
		    "REQUEST_URI=/index.php/v1/export\n" BEHIND
		    "\nPATH_INFO=/v1/export",
		    50 },
		{ EXPORTS,
		    "REQUEST_URI=/index.php/v1/free\n" BEHIND
		    "\nPATH_INFO=/v1/free",
		    10 },
		{ EXPORTS,
		    "REQUEST_URI=/export.php/v1/free\n"
		    "SCRIPT_NAME=/export.php\nPATH_INFO=/v1/free",
		    40 },
		{ EXPORTS, "REQUEST_URI=/v1/free\nSCRIPT_NAME=/export.php",
		    40 },
		{ "/=5, *=2", "REQUEST_URI=/a\nSCRIPT_NAME=/\n", 5 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(costs); i++) {
		char options[128], params[256];
		struct outcome o;

		snprintf(options, sizeof(options),
		    "rate = 50/1s, 90/1h\ncost = %s", costs[i].cost);
		snprintf(params, sizeof(params), IP "%s", costs[i].params);
		o = prepare_with(options, params);
		assert_int_equal(o.n, 2);
		assert_int_equal(o.check[0].check.cost, costs[i].units);
		assert_int_equal(o.check[1].check.cost, costs[i].units);
	}
}

static void
test_observe(void **state)
{
	struct outcome o = prepare_with(R "mode = observe", IP);

	(void)state;
	assert_true(o.check[0].check.observe);
}

static void
test_calendar(void **state)
{
	struct outcome o = prepare_with("rate = 5/1d, 9/month\n"
					"algorithm = fixed_window\n"
					"align = calendar",
	    IP);
	const int64_t *day = o.check[0].check.boundary_us;
	const int64_t *month = o.check[1].check.boundary_us;

	(void)state;
	assert_int_equal(o.n, 2);
	/* Not that of a window of as many milliseconds. */
	assert_true(
	    str_eq(o.check[0].key, STR("sluice:{192.0.2.1}:a:w86400000")));
	assert_true(
	    str_eq(o.check[1].key, STR("sluice:{192.0.2.1}:a:w2678400000")));
	assert_int_equal(day[1] % INT64_C(86400000000), 0);
	assert_int_equal(day[3] - day[0], 3 * INT64_C(86400000000));
	assert_true(month[1] <= day[1] && day[1] < month[2]);
	assert_int_equal(o.check[0].check.align, ALIGN_CALENDAR);
}

/* What stands in for the shared store counts under names of its own. */
static void
test_instead(void **state)
{
	struct config *c = load_good(
	    STORE "[limit a]\n" R
		  "on_outage = local\noutage_rate = 2/1m, 3/1h\n" BACKEND);
	struct params params = params_of(IP, &arena);
	struct store_check check[STORE_CHECKS_MAX];
	struct subject subject;
	size_t n;

	(void)state;
	assert_true(
	    subject_read(&subject, CONFIG_ROLE_RESPONDER, &params, c, &arena));
	assert_int_equal(limit_prepare_instead(&c->limit[0], &c->store,
			     &subject, &arena, check, STORE_CHECKS_MAX, &n),
	    LIMIT_CHECKED);
	assert_int_equal(n, 2);
	assert_true(
	    str_eq(check[0].key, STR("sluice:{192.0.2.1}:a:out:s60000")));
	assert_true(
	    str_eq(check[1].key, STR("sluice:{192.0.2.1}:a:out:s3600000")));
	assert_int_equal(check[0].check.count, 2);
	config_unref(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_applies),
		TEST(test_roles),
		TEST(test_names),
		TEST(test_tags),
		TEST(test_same_tags),
		TEST(test_form),
		TEST(test_alternatives_are_apart),
		TEST(test_known_keys),
		TEST(test_configured),
		TEST(test_longest_name),
		TEST(test_checks),
		TEST(test_offsets),
		TEST(test_room),
		cmocka_unit_test(test_costs),
		cmocka_unit_test(test_observe),
		cmocka_unit_test(test_calendar),
		cmocka_unit_test(test_instead),
	};

	return cmocka_run_group_tests_name(
	    "limit", tests, enter_directory, leave_directory);
}
