#include "process/commands.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/version.h"
#include "config/config.h"
#include "io/redis_link.h"
#include "process/secret_value.h"
#include "pure/key.h"
#include "pure/known.h"

/* These libraries do not tell; the build asks the package manager. */
#ifndef SLUICE_LIBFCGI_VERSION
#define SLUICE_LIBFCGI_VERSION "unknown"
#endif
#ifndef SLUICE_INIH_VERSION
#define SLUICE_INIH_VERSION "unknown"
#endif

struct tally {
	FILE *out;
	size_t errors;
	size_t warnings;
};

static void
count_and_print(void *context, const char *text, bool warning)
{
	struct tally *tally = context;

	*(warning ? &tally->warnings : &tally->errors) += 1;
	fprintf(tally->out, "%s\n", text);
}

static const char *
plural(size_t n)
{
	return n == 1 ? "" : "s";
}

int
commands_check(const char *config_file)
{
	struct tally tally = { .out = stdout };
	struct config *config =
	    config_load(config_file, count_and_print, &tally);

	if (config == NULL) {
		printf("%s: %zu error%s, %zu warning%s\n", config_file,
		    tally.errors, plural(tally.errors), tally.warnings,
		    plural(tally.warnings));
		return EX_CONFIG;
	}
	if (config->store.kind == CONFIG_STORE_MEMORY)
		printf("%s: memory: counts live in this process alone; where a "
		       "web server starts several (mod_fcgid, lighttpd's "
		       "bin-path), each counts for itself\n",
		    config_file);
	if (tally.warnings > 0)
		printf("%s: ok, %zu warning%s\n", config_file, tally.warnings,
		    plural(tally.warnings));
	else
		printf("%s: ok\n", config_file);
	config_unref(config);
	return EX_OK;
}

int
commands_options(bool as_ini)
{
	if (as_ini)
		config_print_ini(stdout);
	else
		config_print_options(stdout);
	return EX_OK;
}

static int
print_hash(const struct config *config, struct str value)
{
	char tag[KEY_TAG_MAX];

	if (value.len == 0) {
		fputs("sluice: an empty value is a missing key, it has no "
		      "hash\n",
		    stderr);
		return EX_USAGE;
	}
	if (key_tag(config->store.hasher, &value, 1, false, tag) == 0) {
		fputs("sluice: libcrypto failed\n", stderr);
		return EX_SOFTWARE;
	}
	printf(KNOWN_HASH "%s\n", tag);
	return EX_OK;
}

int
commands_hash(const char *config_file, const char *value)
{
	struct tally tally = { .out = stderr };
	struct config *config =
	    config_load(config_file, count_and_print, &tally);
	struct buf room;
	struct str text;
	int code = EX_USAGE;

	if (config == NULL)
		return EX_CONFIG;
	buf_init(&room);
	if (secret_value(value, &room, &text))
		code = print_hash(config, text);
	secret_value_release(&room);
	config_unref(config);
	return code;
}

int
commands_version(void)
{
	char pcre2[64] = "unknown";

	if (pcre2_config(PCRE2_CONFIG_VERSION, NULL) < (int)sizeof(pcre2))
		pcre2_config(PCRE2_CONFIG_VERSION, pcre2);
	printf("sluice %s\n"
	       "libfcgi %s\n"
	       "hiredis %s\n"
	       "inih %s\n"
	       "pcre2 %s\n",
	    SLUICE_VERSION, SLUICE_LIBFCGI_VERSION, redis_link_version(),
	    SLUICE_INIH_VERSION, pcre2);
	return EX_OK;
}
