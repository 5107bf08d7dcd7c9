#include "config/option_test.h"

#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "pure/field.h"
#include "pure/numbers.h"
#include "pure/redis_address.h"

#define PREFIX_MAX 64

/* The braces would move the key's hash tag; blanks cut up commands. */
static bool
is_prefix(struct str text, struct err *err)
{
	for (size_t i = 0; i < text.len; i++)
		if (strchr(" \t{}", text.p[i]) != NULL)
			return err_set(
			    err, "may hold neither blanks nor braces");
	if (text.len > PREFIX_MAX)
		return err_set(err, "has at most %d bytes", PREFIX_MAX);
	return true;
}

static bool
is_absolute(struct str text, struct err *err)
{
	return text.p[0] == '/' ? true
				: err_set(err, "must be an absolute path");
}

/* The text is followed by a NUL, as all these are: see value_set. */
static bool
is_user(struct str text, struct err *err)
{
	return getpwnam(text.p) != NULL
	    ? true
	    : err_set(err, "there is no user `%s`", text.p);
}

static bool
is_group(struct str text, struct err *err)
{
	return getgrnam(text.p) != NULL
	    ? true
	    : err_set(err, "there is no group `%s`", text.p);
}

static bool
is_user_or_number(struct str text, struct err *err)
{
	uint64_t number;

	/* (uid_t)-1 stands for nobody in several calls. */
	return str_to_u64(text, UINT32_MAX - 1, &number) || is_user(text, err);
}

static bool
is_target(struct str text, struct err *err)
{
	if (str_eq(text, STR("stderr")) || str_eq(text, STR("syslog")))
		return true;
	if (str_starts(text, STR("file:/")))
		return true;
	return err_set(
	    err, "`%.*s` is none of stderr, syslog, file:/PATH", STR_ARG(text));
}

/* Values themselves do not belong into a configuration. */
static bool
is_values_file(struct str text, struct err *err)
{
	while (text.p != NULL) {
		struct str item = str_trim(str_cut(&text, ','));

		if (item.len < 2 || item.p[0] != '@')
			return err_set(err,
			    "is written @PATH: a file of values, or of "
			    "their hashes, one a line");
	}
	return true;
}

static bool
is_store(struct str text, struct err *err)
{
	struct redis_address address;

	return str_eq(text, STR("memory:")) ||
	    redis_address_parse(text, &address, err);
}

static bool
is_variable(struct str text, struct err *err)
{
	for (size_t i = 0; i < text.len; i++) {
		char c = text.p[i];
		bool is_letter = (c >= 'a' && c <= 'z') ||
		    (c >= 'A' && c <= 'Z') || c == '_';
		bool is_digit = c >= '0' && c <= '9';

		if (!is_letter && (!is_digit || i == 0))
			return err_set(err, "`%.*s` is no name of a variable",
			    STR_ARG(text));
	}
	return true;
}

static bool
is_interpreter(struct str text, struct err *err)
{
	struct str program = text;
	struct str end = str_cut(&program, '=');

	if (end.len < 2 || end.p[0] != '.' || program.len == 0 ||
	    program.p[0] != '/')
		return err_set(err, "`%.*s` is not of the form .END=/PROGRAM",
		    STR_ARG(text));
	if (access(program.p, X_OK) != 0)
		return err_set(err, "%s can not be executed", program.p);
	return true;
}

static bool
is_origin(struct str text, struct err *err)
{
	return str_eq(text, STR("*")) || field_is_origin(text)
	    ? true
	    : err_set(err,
		  "`%.*s` is no origin (https://app.example.org), nor *",
		  STR_ARG(text));
}

/* What an answer says for itself may not be said again. */
static bool
is_reserved(struct str name)
{
	static const struct str ours[] = {
		{ "Status", 6 },
		{ "Content-Type", 12 },
		{ "Content-Length", 14 },
		{ "Cache-Control", 13 },
		{ "Retry-After", 11 },
		{ "Connection", 10 },
		{ "Keep-Alive", 10 },
		{ "Proxy-Connection", 16 },
		{ "Transfer-Encoding", 17 },
		{ "TE", 2 },
		{ "Trailer", 7 },
		{ "Upgrade", 7 },
	};

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (str_eq_nocase(name, ours[i]))
			return true;
	return numbers_is_field(name);
}

static bool
is_addable(struct str text, struct err *err)
{
	struct str value = text;
	struct str name = str_cut(&value, ':');

	if (value.p == NULL || !field_is_name(name))
		return err_set(err, "`%.*s` is not of the form NAME: VALUE",
		    STR_ARG(text));
	if (!field_is_value(str_trim(value)))
		return err_set(err,
		    "the value of %.*s holds a control character",
		    STR_ARG(name));
	if (is_reserved(name))
		return err_set(err, "%.*s is not to be added", STR_ARG(name));
	return true;
}

static bool
is_anything(struct str text, struct err *err)
{
	(void)text;
	(void)err;
	return true;
}

option_test *
option_test_of(enum option_kind kind)
{
	static option_test *const tests[] = {
		[OPTION_PREFIX] = is_prefix,
		[OPTION_PATH] = is_absolute,
		[OPTION_USER] = is_user,
		[OPTION_GROUP] = is_group,
		[OPTION_TARGET] = is_target,
		[OPTION_VALUES_FILE] = is_values_file,
		[OPTION_STORE] = is_store,
		[OPTION_USERS] = is_user_or_number,
		[OPTION_VARIABLES] = is_variable,
		[OPTION_INTERPRETERS] = is_interpreter,
		[OPTION_ORIGINS] = is_origin,
		[OPTION_LINES] = is_addable,
	};
	size_t n = sizeof(tests) / sizeof(tests[0]);

	return (size_t)kind < n && tests[kind] != NULL ? tests[kind]
						       : is_anything;
}
