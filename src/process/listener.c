#include "process/listener.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/counter.h"
#include "base/log.h"
#include "io/net.h"
#include "process/activation.h"

/*
 * One worker is woken for a connection, and re-arms before it serves it.
 * Left level-triggered, a connection woke seven workers for nothing.
 */
#define ARMED (EPOLLIN | EPOLLONESHOT)

struct listener {
	int fd;
	bool is_stdin;
	bool is_inherited;
	char *path; /* to be removed, NULL: not ours */
	dev_t device;
	ino_t inode;
};

struct listeners {
	struct listener at[LISTENERS_MAX];
	size_t n;
	char text[512];
	uint64_t max_head;
	uid_t *peer_uid;
	size_t n_peer_uids;
	struct lot *lot;
	pthread_mutex_t lock; /* to change disarmed and stopped */
	_Atomic bool disarmed;
	_Atomic bool stopped;
	_Atomic size_t taking;       /* workers that take a connection in */
	void (*wake)(void *context); /* NULL: nobody */
	void *wake_context;
};

static bool
find_uid(const char *name, uid_t *uid, struct err *err)
{
	uint64_t number;
	struct passwd *user;

	if (str_to_u64(str_of(name), UINT32_MAX - 1, &number)) {
		*uid = (uid_t)number;
		return true;
	}
	user = getpwnam(name);
	if (user == NULL)
		return err_set(err, "there is no user %s", name);
	*uid = user->pw_uid;
	return true;
}

static bool
find_gid(const char *name, gid_t *gid, struct err *err)
{
	uint64_t number;
	struct group *group;

	if (str_to_u64(str_of(name), UINT32_MAX - 1, &number)) {
		*gid = (gid_t)number;
		return true;
	}
	group = getgrnam(name);
	if (group == NULL)
		return err_set(err, "there is no group %s", name);
	*gid = group->gr_gid;
	return true;
}

static void
describe(struct listeners *l, const char *what)
{
	size_t at = strlen(l->text);

	snprintf(l->text + at, sizeof(l->text) - at, "%s%s",
	    at == 0 ? "" : ", ", what);
}

static bool
open_unix(const struct config_gateway *gateway, const char *path,
    struct listener *at, struct err *err)
{
	struct net_unix_options options = {
		.mode = (mode_t)gateway->socket_mode,
		.uid = (uid_t)-1,
		.gid = (gid_t)-1,
	};
	struct stat st;

	if (gateway->socket_user != NULL &&
	    !find_uid(gateway->socket_user, &options.uid, err))
		return false;
	if (gateway->socket_group != NULL &&
	    !find_gid(gateway->socket_group, &options.gid, err))
		return false;
	at->fd = net_listen_unix(path, &options, err);
	if (at->fd < 0)
		return false;
	if (lstat(path, &st) == 0) {
		at->path = strdup(path);
		at->device = st.st_dev;
		at->inode = st.st_ino;
	}
	return true;
}

static bool
find_address(const struct config_address *address, struct net_address *where,
    struct err *err)
{
	return address->kind == CONFIG_UNIX
	    ? net_address_unix(address->host, where, err)
	    : net_address_tcp(address->host, address->port, where, err);
}

/* Who passes a socket may well name it in the file, too. */
static bool
is_inherited(const struct listeners *l, const struct net_address *where)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->at[i].is_inherited && net_is_bound(l->at[i].fd, where))
			return true;
	return false;
}

static bool
open_one(struct listeners *l, const struct config_gateway *gateway,
    const struct config_address *address, struct err *err)
{
	struct listener *at = &l->at[l->n];
	struct net_address where;
	struct err why;
	bool ok = find_address(address, &where, &why);

	if (ok && is_inherited(l, &where))
		return true;
	if (l->n == LISTENERS_MAX)
		return err_set(err, "more than %d sockets", LISTENERS_MAX);
	if (ok && address->kind == CONFIG_UNIX) {
		ok = open_unix(gateway, address->host, at, &why);
	} else if (ok) {
		at->fd = net_listen_tcp(&where, &why);
		ok = at->fd >= 0;
	}
	if (!ok)
		return err_set(
		    err, "listen = %s: %.300s", address->text, why.text);
	l->n++;
	describe(l, address->text);
	return true;
}

static bool
read_peers(
    struct listeners *l, const struct config_gateway *gateway, struct err *err)
{
	if (gateway->peer_uids.n == 0)
		return true;
	l->peer_uid = calloc(gateway->peer_uids.n, sizeof(uid_t));
	if (l->peer_uid == NULL)
		return err_set(err, "out of memory");
	for (size_t i = 0; i < gateway->peer_uids.n; i++)
		if (!find_uid(gateway->peer_uids.at[i], &l->peer_uid[i], err))
			return false;
	l->n_peer_uids = gateway->peer_uids.n;
	return true;
}

static void
add_inherited(struct listeners *l, int fd, struct str name)
{
	char text[128];

	l->at[l->n++] = (struct listener){
		.fd = fd,
		.is_stdin = fd == STDIN_FILENO,
		.is_inherited = true,
	};
	snprintf(text, sizeof(text), "descriptor %d%s%.*s%s", fd,
	    name.len == 0 ? "" : " (", STR_ARG(name), name.len == 0 ? "" : ")");
	describe(l, text);
}

static bool
take_inherited(struct listeners *l, struct err *err)
{
	struct activation passed;

	if (net_is_listening(STDIN_FILENO)) {
		/* Another worker may have been quicker: no accept may wait. */
		net_set_nonblocking(STDIN_FILENO);
		add_inherited(l, STDIN_FILENO, STR(""));
	}
	if (!activation_take(&passed, LISTENERS_MAX - l->n, err))
		return false;
	for (size_t i = 0; i < passed.n; i++)
		add_inherited(
		    l, ACTIVATION_FD + (int)i, activation_next_name(&passed));
	return true;
}

struct listeners *
listeners_open(const struct config_gateway *gateway, struct err *err)
{
	struct listeners *l = calloc(1, sizeof(*l));
	bool ok;

	if (l == NULL) {
		err_set(err, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&l->lock, NULL);
	l->max_head = gateway->max_head_bytes;
	ok = read_peers(l, gateway, err) && take_inherited(l, err);
	for (size_t i = 0; ok && i < gateway->listen.n; i++)
		ok = open_one(l, gateway, &gateway->listen.at[i], err);
	if (ok)
		return l;
	listeners_close(l);
	return NULL;
}

void
listeners_close(struct listeners *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct listener *at = &l->at[i];

		if (at->path != NULL)
			net_unlink_own(at->path, at->device, at->inode);
		free(at->path);
		if (!at->is_stdin && !l->stopped)
			close(at->fd);
	}
	pthread_mutex_destroy(&l->lock);
	free(l->peer_uid);
	free(l);
}

size_t
listeners_count(const struct listeners *l)
{
	return l->n;
}

const char *
listeners_text(const struct listeners *l)
{
	return l->text;
}

static void
set_events(struct listeners *l, int op, uint32_t events)
{
	for (size_t i = 0; i < l->n; i++) {
		struct epoll_event event = { .events = events, .data.u64 = i };

		epoll_ctl(lot_epoll(l->lot), op, l->at[i].fd, &event);
	}
}

bool
listeners_watch(struct listeners *l, struct lot *lot, struct err *err)
{
	l->lot = lot;
	for (size_t i = 0; i < l->n; i++) {
		struct epoll_event event = { .events = ARMED, .data.u64 = i };

		if (epoll_ctl(
			lot_epoll(lot), EPOLL_CTL_ADD, l->at[i].fd, &event) < 0)
			return err_set(err, "epoll: %s", strerror(errno));
	}
	return true;
}

/*
 * An own socket is closed here, so that whoever connects now is refused
 * and goes elsewhere. So is one of systemd, which has it too: whoever connects
 * now waits in it for the next of us. Descriptor 0 stays what it is.
 * Who is being taken in is in by the end of this, and among the lot's.
 */
void
listeners_stop(struct listeners *l)
{
	pthread_mutex_lock(&l->lock);
	l->stopped = true;
	set_events(l, EPOLL_CTL_DEL, 0);
	pthread_mutex_unlock(&l->lock);
	while (atomic_load(&l->taking) > 0)
		poll(NULL, 0, 1);
	for (size_t i = 0; i < l->n; i++)
		if (!l->at[i].is_stdin)
			close(l->at[i].fd);
}

static void
disarm(struct listeners *l)
{
	bool is_new = false;

	pthread_mutex_lock(&l->lock);
	if (!l->stopped && !atomic_exchange(&l->disarmed, true)) {
		set_events(l, EPOLL_CTL_MOD, 0);
		is_new = true;
	}
	pthread_mutex_unlock(&l->lock);
	if (is_new && l->wake != NULL)
		l->wake(l->wake_context);
}

void
listeners_rearm(struct listeners *l)
{
	if (!atomic_load_explicit(&l->disarmed, memory_order_relaxed))
		return;
	pthread_mutex_lock(&l->lock);
	if (!l->stopped && atomic_exchange(&l->disarmed, false))
		set_events(l, EPOLL_CTL_MOD, ARMED);
	pthread_mutex_unlock(&l->lock);
}

void
listeners_set_waker(struct listeners *l, void (*wake)(void *), void *context)
{
	l->wake_context = context;
	l->wake = wake;
}

bool
listeners_are_disarmed(const struct listeners *l)
{
	return atomic_load(&l->disarmed);
}

static bool
is_welcome(const struct listeners *l, int fd)
{
	uid_t uid;

	if (l->n_peer_uids == 0 || !net_peer_uid(fd, &uid))
		return true;
	for (size_t i = 0; i < l->n_peer_uids; i++)
		if (l->peer_uid[i] == uid)
			return true;
	log_event(LOG_LEVEL_WARN, "peer_refused",
	    "a connection of user %u is not among peer_uids", (unsigned)uid);
	return false;
}

/* Reached max_connections: the longest idle kept connection goes first. */
static void
make_room(struct listeners *l, size_t max)
{
	struct connection *idle;

	if (lot_open_count(l->lot) < max)
		return;
	idle = connection_claim_oldest(l->lot, PARKED_IDLE);
	if (idle != NULL) {
		counter_add(COUNTER_connections_refused_full, 1);
		connection_close(l->lot, idle);
	}
}

static bool
is_want_of(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM ||
	    error == ENOBUFS;
}

/* Another worker may take the next connection. */
static void
arm_again(struct listeners *l, size_t tag)
{
	struct epoll_event event = { .events = ARMED, .data.u64 = tag };

	pthread_mutex_lock(&l->lock);
	if (!l->stopped && !atomic_load(&l->disarmed))
		epoll_ctl(
		    lot_epoll(l->lot), EPOLL_CTL_MOD, l->at[tag].fd, &event);
	pthread_mutex_unlock(&l->lock);
}

static struct connection *
take_in(struct listeners *l, size_t tag)
{
	struct connection *c;

	make_room(l, lot_max(l->lot));
	/* The place first, or two who accept at once would share the last. */
	c = connection_open(l->lot, -1, l->max_head);
	if (c == NULL) {
		disarm(l);
		return NULL;
	}
	c->fd = net_accept(l->at[tag].fd);
	if (c->fd < 0 && is_want_of(errno)) {
		counter_add(COUNTER_accept_failures, 1);
		disarm(l);
	} else {
		arm_again(l, tag);
	}
	if (c->fd >= 0)
		counter_add(COUNTER_connections_accepted, 1);
	if (c->fd >= 0 && is_welcome(l, c->fd))
		return c;
	connection_close(l->lot, c);
	return NULL;
}

struct connection *
listeners_accept(struct listeners *l, size_t tag)
{
	struct connection *c;

	atomic_fetch_add(&l->taking, 1);
	c = atomic_load(&l->stopped) ? NULL : take_in(l, tag);
	atomic_fetch_sub(&l->taking, 1);
	return c;
}
