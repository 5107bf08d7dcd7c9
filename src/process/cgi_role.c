/*
 * The story of gateway.c in one process that serves one request: no
 * connection, no threads, no body. A script that may run is not started but
 * become, so whatever the web server knows of the process stays true.
 */
#include "process/cgi_role.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "config/roles.h"
#include "domain/action.h"
#include "domain/cgi_env.h"
#include "domain/forward.h"
#include "domain/script.h"
#include "io/net.h"
#include "io/spawn.h"
#include "process/reload.h"
#include "process/stores.h"
#include "pure/key.h"
#include "pure/reply.h"
#include "request/answer.h"
#include "request/request.h"

#define REST_PIECE 32768
/* Of who sends a body that nobody wants; over all, 1 KB/s has to come. */
#define REST_SILENCE_US 15000000
#define REST_US_A_KB    1000000

bool
cgi_role_is_asked(void)
{
	return getenv("GATEWAY_INTERFACE") != NULL &&
	    !net_is_listening(STDIN_FILENO);
}

/* Warnings are for who looks at the file, not for the log of each request. */
static void
print_error(void *context, const char *text, bool warning)
{
	(void)context;
	if (!warning)
		fprintf(stderr, "sluice: %s\n", text);
}

static bool
print(const struct buf *text)
{
	size_t at = 0;

	while (!text->failed && at < text->len) {
		ssize_t n = write(STDOUT_FILENO, text->p + at, text->len - at);

		if (n < 0 && errno != EINTR)
			return false;
		at += n < 0 ? 0 : (size_t)n;
	}
	return !text->failed;
}

/* Can a body come? How much of one at the most. */
static uint64_t
announced(void)
{
	const char *length = getenv("CONTENT_LENGTH");
	uint64_t bytes;

	if (length != NULL && str_to_u64(str_of(length), INT64_MAX, &bytes))
		return bytes;
	return getenv("HTTP_TRANSFER_ENCODING") != NULL ? INT64_MAX : 0;
}

static int64_t
end_of_patience(int64_t started_us, uint64_t taken)
{
	int64_t silent = clock_mono_us() + REST_SILENCE_US;
	int64_t slow = started_us + REST_SILENCE_US +
	    (int64_t)(taken / 1024) * REST_US_A_KB;

	return silent < slow ? silent : slow;
}

/*
 * Apache's mod_cgid has one socket for both ways, and reads no answer before
 * the whole body is written: closed with a body unread, the socket would be
 * reset and the answer lost. From a pipe nothing is read.
 */
static void
take_rest(void)
{
	UNINITIALIZED char bytes[REST_PIECE];
	const int64_t started_us = clock_mono_us();
	const uint64_t all = announced();
	uint64_t left = all;
	struct stat input;
	ssize_t n = 1;

	if (fstat(STDIN_FILENO, &input) < 0 || !S_ISSOCK(input.st_mode))
		return;
	shutdown(STDOUT_FILENO, SHUT_WR);
	while (left > 0 && n > 0 &&
	    net_wait(STDIN_FILENO, POLLIN,
		end_of_patience(started_us, all - left))) {
		n = read(STDIN_FILENO, bytes,
		    left < sizeof(bytes) ? (size_t)left : sizeof(bytes));
		left -= n > 0 ? (uint64_t)n : 0;
	}
}

/* Nothing is known of the request, or of how answers are to look. */
static int
fail(int code)
{
	static const struct reply_style plain = { .never_us = 0 };
	static const struct reply reply = { .status = 500, .style = &plain };
	struct buf text;

	buf_init(&text);
	reply_write(&text, &reply);
	print(&text);
	buf_release(&text);
	take_rest();
	return code;
}

static int
fail_with(const struct err *err, int code)
{
	fprintf(stderr, "sluice: %s\n", err->text);
	return fail(code);
}

static void
answer(struct request *r, int status)
{
	struct buf text;
	bool sent;

	buf_init(&text);
	answer_write(r, status, ANSWER_NO_RETRY, &text);
	sent = print(&text);
	buf_release(&text);
	request_end(r, sent ? status : 0);
	take_rest();
}

/* May it be run, for all that its limits say? 0, or the status instead. */
static int
judge(struct request *r, enum action *action)
{
	*action = action_resolve(&r->params, &r->arena);
	if (*action == ACTION_NO_MEMORY ||
	    !subject_read(&r->subject, r->role, &r->params,
		r->generation->config, &r->arena)) {
		err_set(&r->error, "out of memory");
		return 500;
	}
	decision_make(&r->decision, r->generation->config, r->stores,
	    &r->subject, &r->arena);
	return decision_passes(&r->decision)
	    ? 0
	    : answer_refusal_status(&r->decision);
}

/* Which script is it? 0, or the status instead. */
static int
find(struct request *r, enum action action, struct script *script)
{
	const struct config_backend *backend = r->subject.backend;

	if (action == ACTION_DIRECT)
		err_set(&r->error, "Sluice itself was asked for, not a script");
	else if (backend == NULL)
		err_set(&r->error, "no backend matches");
	else if (backend->type != CONFIG_BACKEND_CGI)
		err_set(&r->error, "backend %s is not of type = cgi",
		    backend->name);
	else
		switch (script_find(
		    backend, &r->params, &r->arena, script, &r->error)) {
		case SCRIPT_OK:
			r->error.text[0] = '\0';
			return 0;
		case SCRIPT_NOT_FOUND:
			break;
		case SCRIPT_FORBIDDEN:
			return 403;
		case SCRIPT_NO_MEMORY:
			return 500;
		}
	return 404;
}

/* As it is, but for what no program is to get. NULL: no memory. */
static char **
make_environment(struct request *r, const struct script *script)
{
	struct params passed;

	if (!forward_params(&r->params, false, 0, &r->arena, &passed))
		return NULL;
	return cgi_env_keep(&passed, script, &r->arena);
}

/* Returns only if that failed: with the status instead. */
static int
become(struct request *r, const struct script *script)
{
	char *argv[SCRIPT_ARGV];
	struct spawn s = {
		.path = script_command(script, argv),
		.argv = argv,
		.envp = make_environment(r, script),
		.directory = script->directory,
	};

	if (s.envp == NULL) {
		err_set(&r->error, "out of memory");
		return 500;
	}
	request_log(r, REQUEST_BECOMES_SCRIPT);
	spawn_become(&s, &r->error);
	return 502;
}

static int
serve(struct config *config, const struct stores *stores)
{
	static const struct err no_memory = { "out of memory" };
	struct generation *generation = generation_new(config, NULL, NULL);
	struct request *r;
	enum action action;
	struct script script;
	int status;

	if (generation == NULL)
		return fail_with(&no_memory, EX_SOFTWARE);
	config_ref(config);
	r = request_new_cgi(environ, generation, stores);
	if (r == NULL)
		return fail_with(&no_memory, EX_SOFTWARE);
	status = judge(r, &action);
	if (status == 0)
		status = find(r, action, &script);
	if (status == 0)
		status = become(r, &script);
	answer(r, status);
	return EX_OK;
}

static int
run(struct config *config)
{
	struct stores stores = { .shared = NULL };
	struct err err;
	int code;

	if (!reload_log(&config->log, &err))
		return fail_with(&err, EX_CONFIG);
	if (!roles_has(&config->gateway, CONFIG_ROLE_CGI)) {
		log_event(LOG_LEVEL_WARN, "unknown_role",
		    "run as a CGI program, and roles in [gateway] does not "
		    "list cgi: 500");
		return fail(EX_CONFIG);
	}
	code = stores_open_once(&stores, config, &err)
	    ? serve(config, &stores)
	    : fail_with(&err, EX_SOFTWARE);
	stores_close(&stores);
	return code;
}

int
cgi_role(const char *config_file)
{
	struct config *config;
	int code;

	signal(SIGPIPE, SIG_IGN);
	key_start_lightly();
	config = config_load(config_file, print_error, NULL);
	if (config == NULL)
		return fail(EX_CONFIG);
	code = run(config);
	config_unref(config);
	return code;
}
