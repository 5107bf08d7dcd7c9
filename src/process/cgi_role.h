/*
 * cgi_role: run by a web server as a CGI program, for one request.
 *
 * Checks its limits, and then becomes the script: the same process, its
 * input unread. Who is refused gets a CGI response. What the program was
 * given as arguments is not looked at: where a query has no `=`, it is a
 * client's.
 */
#ifndef SLUICE_CGI_ROLE_H
#define SLUICE_CGI_ROLE_H

#include <stdbool.h>

/* GATEWAY_INTERFACE is set, and descriptor 0 is no socket that listens. */
bool cgi_role_is_asked(void);
/*
 * Returns, with an exit code, only if the script was not to be run: 0 when
 * the request was answered as the configuration says, 70 when memory failed,
 * 78 when the configuration does not stand, or does not serve this role.
 */
int cgi_role(const char *config_file);

#endif
