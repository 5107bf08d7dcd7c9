#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "process/commands.h"
#include "process/serve.h"

#define CONFIG_DEFAULT "/etc/sluice/sluice.ini"

struct arguments {
	const char *config_file;
	const char *value; /* NULL: not given */
	bool as_ini;
};

struct command {
	const char *name;
	bool takes_config;
	bool takes_ini;
	bool takes_value; /* and needs it */
	int (*run)(const struct arguments *arguments);
};

static const char usage[] =
    "usage: sluice [serve] [-c FILE]   serve in the foreground\n"
    "       sluice check [-c FILE]     validate; print every error\n"
    "       sluice options [--ini]     every option; as a commented file\n"
    "       sluice hash [-c FILE] VALUE\n"
    "                                  the stored form of a client value;\n"
    "                                  VALUE - reads standard input\n"
    "       sluice version             its version and its libraries'\n"
    "FILE: " CONFIG_DEFAULT ", or what $SLUICE_CONFIG says\n"
    "exit: 0 ok, 64 usage, 78 configuration\n";

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
	return commands_hash(arguments->config_file, arguments->value);
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
	{ "serve", true, false, false, run_serve },
	{ "check", true, false, false, run_check },
	{ "options", false, true, false, run_options },
	{ "hash", true, false, true, run_hash },
	{ "version", false, false, false, run_version },
	{ "--version", false, false, false, run_version },
	{ "--help", false, false, false, run_help },
	{ "-h", false, false, false, run_help },
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

/* What stands behind the command. 0, or EX_USAGE once that was said. */
static int
read_arguments(const struct command *command, char **argv, struct arguments *a)
{
	for (; *argv != NULL; argv++) {
		if (command->takes_config && strcmp(*argv, "-c") == 0) {
			if (*++argv == NULL)
				return misused("-c takes a FILE", "");
			a->config_file = *argv;
		} else if (command->takes_ini && strcmp(*argv, "--ini") == 0) {
			a->as_ini = true;
		} else if (command->takes_value && a->value == NULL) {
			a->value = *argv;
		} else {
			return misused("unknown argument ", *argv);
		}
	}
	if (command->takes_value && a->value == NULL)
		return misused(command->name, " takes a VALUE");
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
	const struct command *command = find_command(*rest);
	int code;

	open_standard_descriptors();
	if (command == NULL)
		return misused("unknown command ", *rest);
	if (*rest != NULL && strcmp(*rest, "-c") != 0)
		rest++;
	if (variable != NULL && variable[0] != '\0')
		arguments.config_file = variable;
	code = read_arguments(command, rest, &arguments);
	return code != 0 ? code : command->run(&arguments);
}
