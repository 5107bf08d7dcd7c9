/*
 * listener: the sockets that web servers connect to.
 *
 * Those of the configuration, descriptor 0 where it listens (spawn-fcgi,
 * mod_fcgid, lighttpd's bin-path), and those that systemd passes, in any mix.
 * An inherited socket is never unlinked; an own path is removed on close if
 * the socket there is still ours. They
 * stand in the lot's epoll set, tagged 0, 1, ..., one event at a time; while
 * descriptors, memory or connections have run out they are disarmed, for
 * else they would wake workers for nothing.
 */
#ifndef SLUICE_LISTENER_H
#define SLUICE_LISTENER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "config/config.h"
#include "request/connection.h"

/* 0 to LISTENERS_MAX - 1 are tags in the epoll set. */
#define LISTENERS_MAX 64

struct listeners;

/*
 * NULL and err: a socket could not be opened, or what was inherited is none.
 * None at all is no error.
 */
struct listeners *listeners_open(
    const struct config_gateway *gateway, struct err *err);
/* Unlinks what is ours. No worker may use them any more. */
void listeners_close(struct listeners *l);
size_t listeners_count(const struct listeners *l);
/* "unix:/run/x.sock, descriptor 0": for the log; static storage of l. */
const char *listeners_text(const struct listeners *l);

bool listeners_watch(struct listeners *l, struct lot *lot, struct err *err);
/*
 * Takes them out of the epoll set, for good. Who was accepted before is among
 * the lot's connections then, and nobody is accepted after.
 */
void listeners_stop(struct listeners *l);
/* One connection, allowed to be here; NULL: none. Any worker. */
struct connection *listeners_accept(struct listeners *l, size_t tag);
/* Arms them again if they are disarmed: something may have come free. */
void listeners_rearm(struct listeners *l);
/* Called (by any worker) when they get disarmed. */
void listeners_set_waker(
    struct listeners *l, void (*wake)(void *), void *context);
bool listeners_are_disarmed(const struct listeners *l);

#endif
