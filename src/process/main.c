#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "process/cgi_role.h"
#include "process/commands.h"
#include "process/serve.h"
#include "pure/rate.h"

#define CONFIG_DEFAULT "/etc/sluice/sluice.ini"

#define VALUES_MAX 3

struct arguments {
	const char *config_file;
	const char *value[VALUES_MAX];
	size_t n; /* values given */
	int64_t for_us;
	bool as_ini;
};

struct command {
	const char *name;
	size_t values;       /* needed, no more no less */
	const char *operand; /* what they are, for complaints */
	bool takes_config;
	bool takes_ini;
	bool takes_for;
	int (*run)(const struct arguments *arguments);
};

static const char usage[] =
    "usage: sluice [serve] [-c FILE]   serve in the foreground\n"
    "       sluice check [-c FILE]     validate; print every error\n"
    "       sluice options [--ini]     every option; as a commented file\n"
    "       sluice hash [-c FILE] VALUE\n"
    "                                  the stored form of a client value;\n"
    "                                  VALUE - reads standard input\n"
    "       sluice set [-c FILE] [--for TIME] LIMIT KEY N[,N...]\n"
    "                                  give a key its own counts; KEY is its\n"
    "                                  value, or those of its parts: A+B\n"
    "       sluice unset [-c FILE] LIMIT KEY\n"
    "                                  and take them back\n"
    "       sluice reset [-c FILE] LIMIT KEY\n"
    "                                  forget what was counted of a key\n"
    "       sluice version             its version and its libraries'\n"
    "FILE: " CONFIG_DEFAULT ", or what $SLUICE_CONFIG says\n"
    "exit: 0 ok, 1 refused, 64 usage, 69 store unreachable, 70 system, "
    "78 configuration\n";

static int
run_serve(const struct arguments *arguments)
{
	return serve(arguments->config_file);
}

static int
run_check(const struct arguments *arguments)
{
	return commands_check(arguments->config_file);
}

static int
run_options(const struct arguments *arguments)
{
	return commands_options(arguments->as_ini);
}

static int
run_hash(const struct arguments *arguments)
{
	return commands_hash(arguments->config_file, arguments->value[0]);
}

static int
run_own(const struct arguments *arguments)
{
	return commands_own(arguments->config_file,
	    &(struct commands_own){
		.limit = arguments->value[0],
		.key = arguments->value[1],
		.counts = arguments->value[2],
		.for_us = arguments->for_us,
	    });
}

static int
run_reset(const struct arguments *arguments)
{
	return commands_reset(
	    arguments->config_file, arguments->value[0], arguments->value[1]);
}

static int
run_version(const struct arguments *arguments)
{
	(void)arguments;
	return commands_version();
}

static int
run_help(const struct arguments *arguments)
{
	(void)arguments;
	fputs(usage, stdout);
	return EX_OK;
}

static const struct command commands[] = {
	{ .name = "serve", .takes_config = true, .run = run_serve },
	{ .name = "check", .takes_config = true, .run = run_check },
	{ .name = "options", .takes_ini = true, .run = run_options },
	{ "hash", 1, " takes a VALUE", .takes_config = true, .run = run_hash },
	{ "set", 3, " takes a LIMIT, a KEY and N[,N...]", .takes_config = true,
	    .takes_for = true, .run = run_own },
	{ "unset", 2, " takes a LIMIT and a KEY", .takes_config = true,
	    .run = run_own },
	{ "reset", 2, " takes a LIMIT and a KEY", .takes_config = true,
	    .run = run_reset },
	{ .name = "version", .run = run_version },
	{ .name = "--version", .run = run_version },
	{ .name = "--help", .run = run_help },
	{ .name = "-h", .run = run_help },
};

static int
misused(const char *what, const char *which)
{
	fprintf(stderr, "sluice: %s%s; see sluice --help\n", what, which);
	return EX_USAGE;
}

/* No command: FastCGI managers start it so. */
static const struct command *
find_command(const char *name)
{
	if (name == NULL || strcmp(name, "-c") == 0)
		return &commands[0];
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(name, commands[i].name) == 0)
			return &commands[i];
	return NULL;
}

static int
read_for(const char *text, struct arguments *a)
{
	struct err err;

	if (text == NULL)
		return misused("--for takes a TIME, such as 30d", "");
	if (!rate_parse_duration(str_of(text), &a->for_us, &err))
		return misused("--for: ", err.text);
	return a->for_us > 0 ? 0 : misused("--for is more than 0", "");
}

/* What stands behind the command. 0, or EX_USAGE once that was said. */
static int
read_arguments(const struct command *command, char **argv, struct arguments *a)
{
	int code;

	for (; *argv != NULL; argv++) {
		if (command->takes_config && strcmp(*argv, "-c") == 0) {
			if (*++argv == NULL)
				return misused("-c takes a FILE", "");
			a->config_file = *argv;
		} else if (command->takes_for && strcmp(*argv, "--for") == 0) {
			code = read_for(*++argv, a);
			if (code != 0)
				return code;
		} else if (command->takes_ini && strcmp(*argv, "--ini") == 0) {
			a->as_ini = true;
		} else if (a->n < command->values) {
			a->value[a->n++] = *argv;
		} else {
			return misused("unknown argument ", *argv);
		}
	}
	if (a->n < command->values)
		return misused(command->name, command->operand);
	return 0;
}

/* So that no socket of ours ever becomes one of these, here or in a child. */
static void
open_standard_descriptors(void)
{
	int fd;

	do
		/* NOLINTNEXTLINE(android-cloexec-open): a child keeps them */
		fd = open("/dev/null", O_RDWR | O_NOCTTY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int
main(int argc, char **argv)
{
	const char *variable = getenv("SLUICE_CONFIG");
	struct arguments arguments = { .config_file = CONFIG_DEFAULT };
	char **rest = argv + (argc > 0 ? 1 : 0);
	const struct command *command;
	int code;

	open_standard_descriptors();
	if (variable != NULL && variable[0] != '\0')
		arguments.config_file = variable;
	/* Before a look at the arguments, which may be a client's. */
	if (cgi_role_is_asked())
		return cgi_role(arguments.config_file);
	command = find_command(*rest);
	if (command == NULL)
		return misused("unknown command ", *rest);
	if (*rest != NULL && strcmp(*rest, "-c") != 0)
		rest++;
	code = read_arguments(command, rest, &arguments);
	return code != 0 ? code : command->run(&arguments);
}
