/*
 * The socket is our own: close-on-exec and non-blocking from birth, and
 * connected here, since hiredis' own connecting resolves and waits as it
 * likes. hiredis gets the connected descriptor for its buffers and its
 * parser; this room does the waiting, by poll.
 */
#include "io/redis_link.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"

/*
 * Of a reply, at the most. One that announces more is no Redis of ours, and
 * making room for what it announces would take all there is.
 */
#define ELEMENTS_MAX 65536
#define BYTES_MAX    ((size_t)4 << 20)

struct redis_link {
	redisContext *context; /* NULL until connected; then owns fd */
	int fd;                /* -1: none at the moment */
	bool unsent;           /* commands are queued */
	size_t reply_bytes;    /* that came since the last whole reply */
	int64_t deadline_us;   /* for connecting, all addresses */
	int64_t turn_us;       /* for the address being tried */
	struct addrinfo *list; /* of a name */
	struct addrinfo *next; /* to be tried after this one */
	struct addrinfo local; /* of a path */
	struct sockaddr_un path;
};

static bool
set_path(
    struct redis_link *link, const struct redis_address *a, struct err *err)
{
	size_t len = strlen(a->host);

	if (len >= sizeof(link->path.sun_path))
		return err_set(err, "the path is too long: %s", a->host);
	link->path.sun_family = AF_UNIX;
	memcpy(link->path.sun_path, a->host, len + 1);
	link->local.ai_family = AF_UNIX;
	link->local.ai_socktype = SOCK_STREAM;
	link->local.ai_addr = (struct sockaddr *)&link->path;
	link->local.ai_addrlen = sizeof(link->path);
	link->next = &link->local;
	return true;
}

static bool
resolve(struct redis_link *link, const struct redis_address *a, struct err *err)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_ADDRCONFIG };
	char port[8];
	int rc;

	snprintf(port, sizeof(port), "%u", (unsigned)a->port);
	rc = getaddrinfo(a->host, port, &hints, &link->list);
	if (rc != 0)
		return err_set(
		    err, "can not resolve %s: %s", a->host, gai_strerror(rc));
	link->next = link->list;
	return true;
}

static void
set_tcp_options(int fd)
{
	int on = 1, idle_s = 15;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
}

/* What is left is shared evenly by the addresses that are left. */
static int64_t
turn_of(const struct redis_link *link)
{
	int64_t now_us = clock_mono_us();
	int64_t n = 1;

	for (const struct addrinfo *a = link->next; a != NULL; a = a->ai_next)
		n++;
	return now_us + (link->deadline_us - now_us) / n;
}

/* Begins with the next address that does not fail at once. */
static bool
begin_next(struct redis_link *link, struct err *err)
{
	while (link->next != NULL) {
		const struct addrinfo *a = link->next;

		link->next = a->ai_next;
		if (link->fd >= 0)
			close(link->fd);
		link->fd = socket(a->ai_family,
		    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (link->fd < 0) {
			err_set(err, "socket: %s", strerror(errno));
			continue;
		}
		if (a->ai_family != AF_UNIX)
			set_tcp_options(link->fd);
		link->turn_us = turn_of(link);
		if (connect(link->fd, a->ai_addr, a->ai_addrlen) == 0 ||
		    errno == EINPROGRESS)
			return true;
		err_set(err, "can not connect: %s", strerror(errno));
	}
	return false;
}

struct redis_link *
redis_link_open(
    const struct redis_address *address, int64_t deadline_us, struct err *err)
{
	struct redis_link *link = calloc(1, sizeof(*link));

	if (link == NULL) {
		err_set(err, "out of memory");
		return NULL;
	}
	link->fd = -1;
	link->deadline_us = deadline_us;
	if ((address->transport == REDIS_UNIX ? set_path(link, address, err)
					      : resolve(link, address, err)) &&
	    begin_next(link, err))
		return link;
	redis_link_close(link);
	return NULL;
}

void
redis_link_close(struct redis_link *link)
{
	if (link == NULL)
		return;
	if (link->context != NULL)
		redisFree(link->context);
	else if (link->fd >= 0)
		close(link->fd);
	if (link->list != NULL)
		freeaddrinfo(link->list);
	free(link);
}

/* hiredis 1.0 counts elements in size_t; 0.14 in int. */
#if HIREDIS_MAJOR >= 1
typedef size_t elements;
#else
typedef int elements;
#endif

static redisReplyObjectFunctions functions; /* hiredis' own but for one */
static void *(*create_array)(const redisReadTask *, elements);
static pthread_once_t functions_once = PTHREAD_ONCE_INIT;

static void *
create_bounded_array(const redisReadTask *task, elements n)
{
	return n > ELEMENTS_MAX ? NULL : create_array(task, n);
}

static redisReader *bounded_reader;

static void
copy_functions(void)
{
	functions = *bounded_reader->fn;
	create_array = functions.createArray;
	functions.createArray = create_bounded_array;
}

static void
bound_replies(redisReader *reader)
{
	bounded_reader = reader;
	pthread_once(&functions_once, copy_functions);
	reader->fn = &functions;
}

static bool
adopt(struct redis_link *link, struct err *err)
{
	link->context = redisConnectFd(link->fd);
	if (link->context == NULL)
		return err_set(err, "out of memory");
	link->context->flags &= ~REDIS_BLOCK;
	bound_replies(link->context->reader);
	return true;
}

/* poll with a deadline; 0: it passed. */
static int
poll_until(int fd, short events, int64_t until_us)
{
	for (;;) {
		struct pollfd p = { fd, events, 0 };
		int n = poll(&p, 1, clock_poll_ms(until_us));

		if (n > 0 || (n < 0 && errno != EINTR))
			return n;
		if (clock_mono_us() >= until_us)
			return 0;
	}
}

enum redis_progress
redis_link_wait(struct redis_link *link, int64_t until_us, struct err *err)
{
	while (link->context == NULL) {
		int64_t turn_us =
		    link->turn_us < until_us ? link->turn_us : until_us;
		int failure = ETIMEDOUT;
		socklen_t len = sizeof(failure);

		if (poll_until(link->fd, POLLOUT, turn_us) != 0)
			getsockopt(
			    link->fd, SOL_SOCKET, SO_ERROR, &failure, &len);
		else if (clock_mono_us() < link->turn_us)
			return REDIS_NOT_YET;
		if (failure == 0)
			return adopt(link, err) ? REDIS_READY : REDIS_BROKEN;
		err_set(err, "can not connect: %s", strerror(failure));
		if (!begin_next(link, err))
			return REDIS_BROKEN;
	}
	return REDIS_READY;
}

bool
redis_link_send(struct redis_link *link, const struct str *argument, size_t n)
{
	const char **at = malloc(n * (sizeof(char *) + sizeof(size_t)));
	size_t *len;
	int rc;

	if (at == NULL)
		return false;
	len = (size_t *)(void *)(at + n);
	for (size_t i = 0; i < n; i++) {
		at[i] = argument[i].p;
		len[i] = argument[i].len;
	}
	rc = redisAppendCommandArgv(link->context, (int)n, at, len);
	free(at);
	link->unsent = true;
	return rc == REDIS_OK;
}

static bool
write_out(struct redis_link *link)
{
	int done = 0;

	if (!link->unsent)
		return true;
	if (redisBufferWrite(link->context, &done) != REDIS_OK)
		return false;
	link->unsent = !done;
	return true;
}

static enum redis_progress
broken(const struct redis_link *link, struct err *err)
{
	if (link->context->err == REDIS_ERR_EOF)
		err_set(err, "the connection was closed");
	else
		err_set(
		    err, "the connection failed: %s", link->context->errstr);
	return REDIS_BROKEN;
}

static bool
read_in(struct redis_link *link)
{
	redisContext *context = link->context;
	size_t had = context->reader->len;

	if (redisBufferRead(context) != REDIS_OK)
		return false;
	link->reply_bytes += context->reader->len - had;
	return true;
}

/* The time is looked at though something comes: it may never be all. */
enum redis_progress
redis_link_receive(struct redis_link *link, int64_t until_us,
    struct redis_reply **reply, struct err *err)
{
	void *got = NULL;

	for (bool has_read = false;; has_read = true) {
		if (redisGetReplyFromReader(link->context, &got) != REDIS_OK)
			return broken(link, err);
		if (got != NULL) {
			link->reply_bytes = 0;
			*reply = got;
			return REDIS_READY;
		}
		if (link->reply_bytes > BYTES_MAX) {
			err_set(err,
			    "the connection failed: a reply of more "
			    "than 4 MB");
			return REDIS_BROKEN;
		}
		if (!write_out(link))
			return broken(link, err);
		if ((has_read && clock_mono_us() >= until_us) ||
		    poll_until(link->fd,
			link->unsent ? POLLIN | POLLOUT : POLLIN,
			until_us) == 0)
			return REDIS_NOT_YET;
		if (!read_in(link))
			return broken(link, err);
	}
}

bool
redis_link_is_quiet(struct redis_link *link)
{
	char byte;

	return link->context->reader->pos == link->context->reader->len &&
	    recv(link->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
	    (errno == EAGAIN || errno == EINTR);
}

#define TEXT_OF(number) #number
#define TEXT(macro)     TEXT_OF(macro)

const char *
redis_link_version(void)
{
	return TEXT(HIREDIS_MAJOR) "." TEXT(HIREDIS_MINOR) "." TEXT(
	    HIREDIS_PATCH);
}

static const redisReply *
reply_of(const struct redis_reply *reply)
{
	return (const redisReply *)(const void *)reply;
}

void
redis_reply_free(struct redis_reply *reply)
{
	if (reply != NULL)
		freeReplyObject(reply);
}

struct str
redis_reply_error(const struct redis_reply *reply)
{
	const redisReply *r = reply_of(reply);

	if (r->type != REDIS_REPLY_ERROR)
		return STR_NONE;
	return (struct str){ r->str, (size_t)r->len };
}

struct str
redis_reply_string(const struct redis_reply *reply)
{
	const redisReply *r = reply_of(reply);

	if (r->type != REDIS_REPLY_STRING)
		return STR_NONE;
	return (struct str){ r->str, (size_t)r->len };
}

size_t
redis_reply_count(const struct redis_reply *reply)
{
	const redisReply *r = reply_of(reply);

	return r->type == REDIS_REPLY_ARRAY ? r->elements : 0;
}

const struct redis_reply *
redis_reply_at(const struct redis_reply *reply, size_t i)
{
	const redisReply *r = reply_of(reply);

	return (const struct redis_reply *)(const void *)r->element[i];
}
