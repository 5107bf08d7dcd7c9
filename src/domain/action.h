/*
 * action: a web server that was told to run Sluice itself for a script
 * (Apache's Action) names Sluice as the script, and the script as what
 * follows it.
 */
#ifndef SLUICE_ACTION_H
#define SLUICE_ACTION_H

#include <stdbool.h>

#include "base/arena.h"
#include "pure/params.h"

enum action {
	ACTION_NONE,     /* the script is named as it is */
	ACTION_RESOLVED, /* params are as they would be without Sluice */
	ACTION_DIRECT,   /* Sluice itself was asked for: 404 */
	ACTION_NO_MEMORY,
};

/*
 * Where SCRIPT_FILENAME is this program: the script is PATH_TRANSLATED, its
 * SCRIPT_NAME and PATH_INFO the two parts of PATH_INFO. Only for what came by
 * way of an Action (REDIRECT_STATUS is set then): the web server has asked
 * nobody whether a client may have what it writes behind the address of
 * Sluice itself. Changes params, in the arena. Any thread.
 */
enum action action_resolve(struct params *params, struct arena *arena);

#endif
