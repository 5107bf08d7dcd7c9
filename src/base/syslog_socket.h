/*
 * syslog_socket: lines for the system's log daemon, which is never waited for.
 *
 * syslog(3) waits for a daemon that does not read, and whoever logs meanwhile
 * waits for it. What is sent here is of the form that syslog(3) has (RFC 3164
 * without a host name), to a socket of datagrams. One thread at a time.
 */
#ifndef SLUICE_SYSLOG_SOCKET_H
#define SLUICE_SYSLOG_SOCKET_H

#include <stdbool.h>

#include "base/str.h"

/* Where the daemon listens. */
#define SYSLOG_SOCKET_PATH "/dev/log"

/* Close it with close(). -1: nobody listens there. */
int syslog_socket_open(const char *path);
/*
 * priority: LOG_ERR and so on. A daemon that began anew is found again: *fd
 * may be another then, or -1. False: the line is lost.
 */
bool syslog_socket_send(
    int *fd, const char *path, int priority, struct str line);

#endif
