/*
 * notify: tells the service manager how far we are (sd_notify(3)).
 *
 * Its protocol is a datagram of lines to the unix socket that NOTIFY_SOCKET
 * names; that is all that is needed of libsystemd, which every process would
 * load, with the libraries that it needs, on every start.
 * Without NOTIFY_SOCKET each of these does nothing. The main thread only.
 */
#ifndef SLUICE_NOTIFY_H
#define SLUICE_NOTIFY_H

#include <stdint.h>

/*
 * Takes NOTIFY_SOCKET out of the environment, for no child is to speak for
 * us. Once, while there is no other thread.
 */
void notify_init(void);
/* We serve from now on, or again after a reload; status: a line for people. */
void notify_ready(const char *status, ...)
    __attribute__((format(printf, 1, 2)));
void notify_reloading(void);
/* How long it may take at the most. */
void notify_stopping(int64_t timeout_us);

#endif
