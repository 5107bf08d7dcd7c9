/*
 * redis_link: one connection to Redis, never blocking beyond a deadline.
 *
 * The only user of hiredis (0.14 and later). A link is used by one thread
 * at a time. Deadlines are clock_mono_us. A link that has failed, or whose
 * reply did not come in time, is of no more use: a late reply would be read
 * as the next one's. SIGPIPE must be ignored.
 */
#ifndef SLUICE_REDIS_LINK_H
#define SLUICE_REDIS_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "pure/redis_address.h"

struct redis_link;
struct redis_reply;

enum redis_progress { REDIS_READY, REDIS_NOT_YET, REDIS_BROKEN };

/*
 * Resolves (which may take long) and begins to connect; deadline_us is for
 * all addresses of the name together. NULL and err: it can not.
 */
struct redis_link *redis_link_open(
    const struct redis_address *address, int64_t deadline_us, struct err *err);
/* NULL is fine. */
void redis_link_close(struct redis_link *link);
/* Waits until it is connected, but not beyond until_us. */
enum redis_progress redis_link_wait(
    struct redis_link *link, int64_t until_us, struct err *err);

/* Queues a command, sent by the next redis_link_receive. False: no memory. */
bool redis_link_send(
    struct redis_link *link, const struct str *argument, size_t n);
/* Sends what is queued and waits for the next reply, the caller's to free. */
enum redis_progress redis_link_receive(struct redis_link *link,
    int64_t until_us, struct redis_reply **reply, struct err *err);
/* False when the peer has closed, or sent what nobody asked for. */
bool redis_link_is_quiet(struct redis_link *link);

/* hiredis', as it was built with: "0.14.1". */
const char *redis_link_version(void);

void redis_reply_free(struct redis_reply *reply);
/* The text of an error, or of a string; p is NULL for anything else. */
struct str redis_reply_error(const struct redis_reply *reply);
struct str redis_reply_string(const struct redis_reply *reply);
/* Of an array, else 0. at: i < count. */
size_t redis_reply_count(const struct redis_reply *reply);
const struct redis_reply *redis_reply_at(
    const struct redis_reply *reply, size_t i);

#endif
