/*
 * cgi_env: what a CGI script finds in its environment (RFC 3875, 4.1).
 *
 * The request's params and PATH, no more: nothing is inherited but what the
 * backend's `env` names. What finding the script has settled, and then what
 * `env` names, stands before a param of that name; of equal names the first
 * is taken. A name that the script's loader, shell or interpreter would obey
 * (LD_PRELOAD, BASH_ENV, PYTHONPATH), or that no environment can hold, is
 * left out. Any thread.
 */
#ifndef SLUICE_CGI_ENV_H
#define SLUICE_CGI_ENV_H

#include "base/arena.h"
#include "config/config.h"
#include "domain/script.h"
#include "pure/params.h"

/* For exec, in the arena. passed_on: names. NULL: no memory. */
char **cgi_env_make(const struct params *params,
    const struct config_list *passed_on, const struct script *script,
    struct arena *arena);
/*
 * Of a script that the web server itself would have run: all it gives, but
 * for what finding the script has settled. NULL: no memory.
 */
char **cgi_env_keep(const struct params *params, const struct script *script,
    struct arena *arena);

#endif
