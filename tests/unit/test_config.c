#include "config/config.h"

#include <inttypes.h>

#include "config/option.h"
#include "config/roles.h"
#include "config_text.h"

#define S  INT64_C(1000000)
#define MS INT64_C(1000)

/* As documented. */
static void
test_defaults(void **state)
{
	struct config *c = load_good(STORE "[limit a]\nrate = 1/s\n" BACKEND);
	const struct config_gateway *g = &c->gateway;
	const struct config_store *s = &c->store;
	const struct config_limit *l = &c->limit[0];
	const struct config_backend *b = &c->backend[0];

	(void)state;
	assert_string_equal(c->file, "t.ini");
	assert_int_equal(g->listen.n, 0);
	assert_int_equal(g->socket_mode, 0660);
	assert_null(g->socket_user);
	assert_null(g->socket_group);
	assert_int_equal(g->peer_uids.n, 0);
	assert_null(g->user);
	assert_null(g->group);
	assert_true(roles_has(g, CONFIG_ROLE_RESPONDER));
	assert_false(roles_has(g, CONFIG_ROLE_AUTHORIZER));
	assert_int_equal(g->threads, 64);
	assert_int_equal(g->max_connections, 4096);
	assert_int_equal(g->ipv4_prefix, 32);
	assert_int_equal(g->ipv6_prefix, 64);
	assert_int_equal(g->head_timeout_us, 10 * S);
	assert_int_equal(g->body_timeout_us, 60 * S);
	assert_int_equal(g->max_head_bytes, 128 << 10);
	assert_int_equal(g->max_body_bytes, 1 << 30);
	assert_int_equal(g->spool_memory_bytes, 64 << 10);
	assert_int_equal(g->spool_total_bytes, INT64_C(4) << 30);
	assert_string_equal(g->spool_directory, "/var/tmp");
	assert_int_equal(g->shutdown_timeout_us, 30 * S);
	assert_null(g->include);

	assert_int_equal(s->kind, CONFIG_STORE_MEMORY);
	assert_null(s->username);
	assert_null(s->password);
	assert_string_equal(s->prefix, "sluice");
	assert_int_equal(s->timeout_us, 50 * MS);
	assert_int_equal(s->connect_timeout_us, 200 * MS);
	assert_int_equal(s->connections, 1);
	assert_int_equal(s->breaker_failures, 5);
	assert_int_equal(s->breaker_cooldown_us, 1 * S);
	assert_null(s->alert_command);
	assert_null(s->key_secret);
	assert_int_equal(s->max_keys, 1000000);
	assert_non_null(s->hasher);

	assert_null(l->match.host);
	assert_null(l->match.path);
	assert_null(l->match.method);
	assert_int_equal(l->client.n, 0);
	assert_null(l->backend);
	assert_int_equal(l->role, CONFIG_ROLE_ANY);
	assert_int_equal(l->key.n, 1);
	assert_int_equal(l->key.part[0].alternative[0].source, KEY_CLIENT);
	assert_int_equal(l->missing_key, CONFIG_MISSING_UNSET);
	assert_int_equal(l->algorithm, ALGORITHM_SLIDING_WINDOW);
	assert_int_equal(l->align, ALIGN_SPREAD);
	assert_int_equal(l->scope, CONFIG_SCOPE_SHARED);
	assert_int_equal(l->on_outage, CONFIG_OUTAGE_ALLOW);
	assert_null(l->message);

	assert_int_equal(b->type, CONFIG_BACKEND_FASTCGI);
	assert_int_equal(b->connect_timeout_us, 1 * S);
	assert_int_equal(b->send_timeout_us, 30 * S);
	assert_int_equal(b->first_byte_timeout_us, 60 * S);
	assert_int_equal(b->idle_timeout_us, 60 * S);
	assert_int_equal(b->max_inflight, 48);
	assert_int_equal(b->queue, 1024);
	assert_int_equal(b->queue_timeout_us, 5 * S);
	assert_int_equal(b->run_timeout_us, 60 * S);

	assert_int_equal(c->log.level, LOG_LEVEL_INFO);
	assert_int_equal(c->log.format, LOG_FORMAT_LOGFMT);
	assert_int_equal(c->log.access, CONFIG_ACCESS_DENIED);
	assert_string_equal(c->log.target, "stderr");
	config_unref(c);
}

static char *
print(void (*printer)(FILE *))
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	printer(out);
	fclose(out);
	return text;
}

static char *shipped;

/* B105: the sample as it is shipped; the tests start in the checkout. */
static void
test_shipped_file(void **state)
{
	char *text = print(config_print_ini);

	(void)state;
	assert_string_equal(shipped, text);
	config_unref(load_good(text));
	free(text);
}

/* What an option, or one of its values, can not be without. */
static const char *
companion(const struct option *o, const char *value)
{
	static const struct {
		enum option_section section;
		const char *key;
		const char *value; /* NULL: any */
		const char *text;
	} table[] = {
		{ OPTION_limit, "algorithm", "concurrency", "rate = 1\n" },
		{ OPTION_limit, "status", "503",
		    "rate = 1\nalgorithm = concurrency\n" },
		{ OPTION_limit, "on_outage", "local",
		    "rate = 1/m\noutage_rate = 1/m\n" },
		{ OPTION_limit, "align", NULL,
		    "rate = 1/m\nalgorithm = fixed_window\n" },
		{ OPTION_limit, "timezone", NULL,
		    "rate = 1/m\nalgorithm = fixed_window\n"
		    "align = calendar\n" },
		{ OPTION_limit, "delay_max", NULL,
		    "rate = 1/m\nalgorithm = leaky_bucket\n" },
		{ OPTION_limit, "outage_rate", NULL,
		    "rate = 1/m\non_outage = local\n" },
		{ OPTION_limit, "rate", NULL, "" },
		{ OPTION_limit, NULL, NULL, "rate = 1/m\n" },
		{ OPTION_store, "address", NULL, "" },
		{ OPTION_store, NULL, NULL, "address = unix:/a\n" },
		{ OPTION_backend, "type", "cgi", "root = /etc\n" },
		{ OPTION_backend, "type", "answer", "" },
		{ OPTION_backend, "denial", NULL, "type = answer\n" },
		{ OPTION_backend, "run_timeout", NULL,
		    "type = cgi\nroot = /etc\n" },
		{ OPTION_backend, "address", NULL, "" },
		{ OPTION_backend, NULL, NULL, "address = unix:/a\n" },
	};

	for (size_t i = 0; i < COUNT(table); i++)
		if (o->section == table[i].section &&
		    (table[i].key == NULL ||
			strcmp(o->key, table[i].key) == 0) &&
		    (table[i].value == NULL ||
			strcmp(value, table[i].value) == 0))
			return table[i].text;
	return "";
}

/* A whole configuration that says so of an option, and little else. */
static void
write_option(const struct option *o, const char *value)
{
	bool is_cgi_role = o->section == OPTION_gateway &&
	    strcmp(o->key, "roles") == 0 && strcmp(value, "cgi") == 0;
	struct buf text;

	buf_init(&text);
	buf_addf(&text, "[gateway]\n");
	if (o->section == OPTION_gateway)
		buf_addf(&text, "%s = %s\n", o->key, value);
	else
		buf_addf(&text, "[%s%s]\n%s = %s\n%s",
		    option_section_name(o->section),
		    option_section_is_named(o->section) ? " default" : "",
		    o->key, value, companion(o, value));
	if (is_cgi_role)
		buf_addf(&text,
		    "[backend default]\ntype = cgi\nroot = /etc\n"
		    "[store]\naddress = unix:/a\n");
	else if (o->section != OPTION_backend)
		buf_addf(&text, "%s", BACKEND);
	if (!is_cgi_role && o->section != OPTION_store)
		buf_addf(&text, "%s", STORE);
	buf_add_char(&text, '\0');
	write_file("t.ini", str_of(text.p));
	buf_release(&text);
}

/* What is commented out in the sample is taken too, a line at a time. */
static void
test_examples(void **state)
{
	(void)state;
	setenv("REDIS_PASSWORD", "a", 1);
	setenv("SLUICE_KEY_SECRET", "b", 1);
	for (size_t i = 0; i < option_count; i++) {
		const struct option *o = &option_table[i];
		struct buf reports;

		/* These have to be there, or need their like. */
		if (o->kind == OPTION_SECRET_FILE || o->kind == OPTION_FILE ||
		    o->kind == OPTION_VALUES_FILE ||
		    o->kind == OPTION_INCLUDE || strcmp(o->key, "root") == 0 ||
		    strcmp(o->key, "env") == 0 ||
		    strcmp(o->key, "interpreter") == 0 ||
		    o->section == OPTION_tier)
			continue;
		write_option(o, o->preset != NULL ? o->preset : o->example);
		config_unref(load_file(&reports));
		assert_string_equal(reports.p, "");
		buf_release(&reports);
	}
}

/* Warned of at the most. */
static void
expect_taken(const struct option *o, const char *value)
{
	struct buf reports;
	struct config *config;

	write_option(o, value);
	config = load_file(&reports);
	if (config == NULL)
		fail_msg("%s = %s: %s", o->key, value, reports.p);
	config_unref(config);
	buf_release(&reports);
}

static void
expect_bound_taken(const struct option *o, int64_t bound)
{
	struct buf value;

	buf_init(&value);
	option_print_number(&value, o->kind, bound);
	buf_add_char(&value, '\0');
	expect_taken(o, value.p);
	buf_release(&value);
}

/* B105: each word and bound that is documented may be written. */
static void
test_documented_values(void **state)
{
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < option_count; i++) {
		const struct option *o = &option_table[i];
		struct str words = str_of(o->words);

		while (words.len > 0) {
			struct str word = str_cut(&words, ' ');
			char value[64];

			snprintf(value, sizeof(value), "%.*s", STR_ARG(word));
			expect_taken(o, value);
			n++;
		}
		if (o->high > o->low) {
			expect_bound_taken(o, o->low);
			expect_bound_taken(o, o->high);
			n += 2;
		}
	}
	assert_in_range(n, 90, 1000);
}

static void
test_list_of_options(void **state)
{
	char *text = print(config_print_options);
	size_t lines = 0;

	(void)state;
	for (const char *p = text; *p != '\0'; p++)
		lines += *p == '\n';
	assert_int_equal(lines, option_count);
	assert_non_null(strstr(text,
	    "\n[gateway] threads: count 1 to 1024; default 64; restart. "
	    "Worker threads at the most; they are started on demand.\n"));
	assert_non_null(strstr(text,
	    "\n[limit] scope: shared, local; default shared; reload. Whether "
	    "the count is kept in the store or in this process.\n"));
	assert_non_null(
	    strstr(text, "\n[gateway] head_timeout: duration 10ms to 1h; "));
	free(text);
}

#define TAKES_RESTART "warning: has changed, which takes a restart\n"

static void
report_restarts(const char *before, const char *after, const char *expected)
{
	struct config *running = load_good(before);
	struct config *wanted = load_good(after);
	struct buf reports;

	buf_init(&reports);
	config_report_restarts(running, wanted, collect, &reports);
	buf_add_char(&reports, '\0');
	assert_string_equal(reports.p, expected);
	buf_release(&reports);
	config_unref(running);
	config_unref(wanted);
}

static void
test_restarts(void **state)
{
	static const char before[] =
	    "[gateway]\nlisten = unix:/a, unix:/b\npeer_uids = 1\n"
	    "user = root\n[store]\naddress = memory:\nkey_secret = "
	    "s3cret\n" BACKEND;

	(void)state;
	report_restarts(before, before, "");
	report_restarts(before,
	    "[gateway]\nlisten = unix:/a\npeer_uids = 2\nthreads = 3\n"
	    "socket_mode = 0600\nsocket_user = root\nmax_connections = 9\n"
	    "group = root\n"
	    "[store]\naddress = unix:/r\nconnections = 2\nprefix = p\n"
	    "key_secret = other\n" BACKEND,
	    "t.ini:1: [gateway] user: " TAKES_RESTART
	    "t.ini:2: [gateway] listen: " TAKES_RESTART
	    "t.ini:3: [gateway] peer_uids: " TAKES_RESTART
	    "t.ini:4: [gateway] threads: " TAKES_RESTART
	    "t.ini:5: [gateway] socket_mode: " TAKES_RESTART
	    "t.ini:6: [gateway] socket_user: " TAKES_RESTART
	    "t.ini:7: [gateway] max_connections: " TAKES_RESTART
	    "t.ini:8: [gateway] group: " TAKES_RESTART
	    "t.ini:10: [store] address: " TAKES_RESTART
	    "t.ini:11: [store] connections: " TAKES_RESTART
	    "t.ini:12: [store] prefix: " TAKES_RESTART
	    "t.ini:13: [store] key_secret: " TAKES_RESTART);
	/* A reload does. */
	report_restarts(before,
	    "[gateway]\nlisten = unix:/a, unix:/b\npeer_uids = 1\n"
	    "user = root\nmax_head = 9k\nspool_directory = /tmp\n"
	    "[store]\naddress = memory:\nkey_secret = s3cret\n"
	    "max_keys = 3\n"
	    "[log]\ntarget = syslog\nlevel = debug\n"
	    "[limit a]\nrate = 1/s\n"
	    "[backend x]\naddress = unix:/x\n",
	    "");
	report_restarts("[store]\naddress = unix:/r\n" BACKEND,
	    "[store]\naddress = unix:/r\ntimeout = 9ms\n"
	    "password = x\n" BACKEND,
	    "");
}

/* In whatever file it stands, or would. */
static void
test_places_of_restarts(void **state)
{
	static const char before[] =
	    "[gateway]\nthreads = 3\nmax_connections = 9\n"
	    "[store]\naddress = memory:\nkey_secret = s3cret\n" BACKEND;

	(void)state;
	write_file("more.ini", STR("\n[gateway]\nthreads = 4\n"));
	write_file("secret", STR("0123456789abcdef\n"));
	assert_int_equal(chmod("secret", 0600), 0);
	report_restarts(before,
	    "\n[gateway]\ninclude = more.ini\n"
	    "[store]\naddress = memory:\n\nkey_secret_file = secret\n" BACKEND,
	    "t.ini:2: [gateway] max_connections: " TAKES_RESTART
	    "t.ini:7: [store] key_secret_file: " TAKES_RESTART
	    "more.ini:3: [gateway] threads: " TAKES_RESTART);
	report_restarts("[gateway]\nthreads = 3\n" BACKEND, BACKEND,
	    "t.ini: [gateway] threads: " TAKES_RESTART);
	unlink("more.ini");
	unlink("secret");
}

static void
test_references(void **state)
{
	struct config *c = load_good(BACKEND);

	(void)state;
	assert_ptr_equal(config_ref(c), c);
	config_unref(c);
	assert_string_equal(c->file, "t.ini");
	config_unref(c);
	config_unref(NULL);
}

/* Read before the tests leave the checkout. */
static char *
read_shipped_file(void)
{
	FILE *in = fopen("conf/sluice.ini", "r");
	char *text = calloc(1, 1 << 16);

	if (in == NULL || text == NULL ||
	    fread(text, 1, (1 << 16) - 1, in) == 0)
		exit(1);
	fclose(in);
	return text;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_shipped_file),
		cmocka_unit_test(test_examples),
		cmocka_unit_test(test_documented_values),
		cmocka_unit_test(test_list_of_options),
		cmocka_unit_test(test_restarts),
		cmocka_unit_test(test_places_of_restarts),
		cmocka_unit_test(test_references),
	};
	int failed;

	shipped = read_shipped_file();
	failed =
	    cmocka_run_group_tests(tests, enter_directory, leave_directory);
	free(shipped);
	return failed;
}
