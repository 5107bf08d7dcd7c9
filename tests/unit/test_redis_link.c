/*
 * Against a peer played by the test, which says what it likes when it
 * likes; and against a server.
 */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>

#include "redis_server.h"

#define MS INT64_C(1000)

struct peer {
	char directory[64];
	char path[96];
	int listener;
	int fd;
	struct redis_link *link;
};

static int64_t
in(int64_t us)
{
	return clock_mono_us() + us;
}

static int
set_up(void **context)
{
	static struct peer peer;
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct redis_address address;
	struct err err;

	signal(SIGPIPE, SIG_IGN);
	strcpy(peer.directory, "/tmp/sluice-unit-XXXXXX");
	assert_non_null(mkdtemp(peer.directory));
	snprintf(peer.path, sizeof(peer.path), "%s/peer", peer.directory);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", peer.path);
	peer.listener = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(
	    bind(peer.listener, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(peer.listener, 4), 0);
	address = redis_server_address(peer.path);
	peer.link = redis_link_open(&address, in(1000 * MS), &err);
	assert_non_null(peer.link);
	assert_int_equal(
	    redis_link_wait(peer.link, in(1000 * MS), &err), REDIS_READY);
	peer.fd = accept(peer.listener, NULL, NULL);
	assert_true(peer.fd >= 0);
	*context = &peer;
	return 0;
}

static int
tear_down(void **context)
{
	struct peer *peer = *context;

	redis_link_close(peer->link);
	close(peer->fd);
	close(peer->listener);
	unlink(peer->path);
	return rmdir(peer->directory);
}

static void
say(struct peer *peer, const char *text)
{
	assert_int_equal(
	    write(peer->fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void
test_command_and_reply(void **context)
{
	struct peer *peer = *context;
	struct str argument[] = { STR("SET"), STR("a b\r\n"), { "\0x", 2 } };
	static const char wire[] = "*3\r\n$3\r\nSET\r\n$5\r\na b\r\n\r\n"
				   "$2\r\n\0x\r\n";
	char got[64];
	struct redis_reply *reply;
	struct err err;

	assert_true(redis_link_send(peer->link, argument, 3));
	assert_int_equal(
	    redis_link_receive(peer->link, in(0), &reply, &err), REDIS_NOT_YET);
	assert_int_equal(read(peer->fd, got, sizeof(got)), sizeof(wire) - 1);
	assert_memory_equal(got, wire, sizeof(wire) - 1);
	say(peer, "*4\r\n$3\r\nabc\r\n-ERR no\r\n:7\r\n*1\r\n$0\r\n\r\n");
	assert_int_equal(
	    redis_link_receive(peer->link, in(1000 * MS), &reply, &err),
	    REDIS_READY);
	assert_int_equal(redis_reply_count(reply), 4);
	assert_true(
	    str_eq(redis_reply_string(redis_reply_at(reply, 0)), STR("abc")));
	assert_true(
	    str_eq(redis_reply_error(redis_reply_at(reply, 1)), STR("ERR no")));
	assert_null(redis_reply_error(redis_reply_at(reply, 2)).p);
	assert_null(redis_reply_string(redis_reply_at(reply, 2)).p);
	assert_int_equal(redis_reply_count(redis_reply_at(reply, 2)), 0);
	assert_int_equal(redis_reply_count(redis_reply_at(reply, 3)), 1);
	redis_reply_free(reply);
	redis_reply_free(NULL);
}

/* Byte by byte: not yet, until the last. */
static void
test_reply_in_pieces(void **context)
{
	struct peer *peer = *context;
	static const char text[] = "*2\r\n$3\r\nabc\r\n:12\r\n";
	struct redis_reply *reply;
	struct err err;

	for (size_t i = 0; i + 1 < sizeof(text); i++) {
		assert_int_equal(
		    redis_link_receive(peer->link, in(0), &reply, &err),
		    REDIS_NOT_YET);
		assert_int_equal(write(peer->fd, text + i, 1), 1);
	}
	assert_int_equal(
	    redis_link_receive(peer->link, in(1000 * MS), &reply, &err),
	    REDIS_READY);
	redis_reply_free(reply);
}

static void
test_waits_no_longer_than_told(void **context)
{
	struct peer *peer = *context;
	struct redis_reply *reply;
	struct err err;
	int64_t begun_us = clock_mono_us();

	assert_int_equal(
	    redis_link_receive(peer->link, in(50 * MS), &reply, &err),
	    REDIS_NOT_YET);
	assert_in_range(clock_mono_us() - begun_us, 50 * MS, 150 * MS);
}

static void
test_nonsense(void **context)
{
	struct peer *peer = *context;
	struct redis_reply *reply;
	struct err err;

	say(peer, "HTTP/1.1 400 Bad Request\r\n\r\n");
	assert_int_equal(
	    redis_link_receive(peer->link, in(1000 * MS), &reply, &err),
	    REDIS_BROKEN);
}

/* What it announces is not waited for, however long it goes on. */
static void
test_reply_without_end(void **context)
{
	struct peer *peer = *context;
	char *piece = calloc(1, 65536);
	enum redis_progress progress = REDIS_NOT_YET;
	struct redis_reply *reply;
	struct err err;
	size_t sent = 0;

	say(peer, "$2147483648\r\n");
	while (progress == REDIS_NOT_YET && sent < 16 << 20) {
		ssize_t n = send(peer->fd, piece, 65536, MSG_DONTWAIT);

		sent += n > 0 ? (size_t)n : 0;
		progress = redis_link_receive(peer->link, in(0), &reply, &err);
	}
	assert_int_equal(progress, REDIS_BROKEN);
	assert_in_range(sent, 4 << 20, 5 << 20);
	free(piece);
}

static void
test_closed(void **context)
{
	struct peer *peer = *context;
	struct str argument[] = { STR("PING") };
	struct redis_reply *reply;
	struct err err;

	assert_true(redis_link_is_quiet(peer->link));
	shutdown(peer->fd, SHUT_RDWR);
	assert_false(redis_link_is_quiet(peer->link));
	assert_true(redis_link_send(peer->link, argument, 1));
	assert_int_equal(
	    redis_link_receive(peer->link, in(1000 * MS), &reply, &err),
	    REDIS_BROKEN);
}

/* hiredis #306: what nobody asked for is seen before anything is sent. */
static void
test_b101_unasked(void **context)
{
	struct peer *peer = *context;
	struct redis_reply *reply;
	struct err err;

	say(peer, "+late\r\n");
	assert_false(redis_link_is_quiet(peer->link));
	say(peer, "+later\r\n");
	assert_int_equal(
	    redis_link_receive(peer->link, in(1000 * MS), &reply, &err),
	    REDIS_READY);
	redis_reply_free(reply);
	/* Read already, and only waiting in the parser. */
	assert_false(redis_link_is_quiet(peer->link));
}

/* More than the socket takes: sent bit by bit, no longer than told. */
static void
test_large_command(void **context)
{
	struct peer *peer = *context;
	size_t size = 4 << 20, taken = 0;
	char *big = calloc(1, size);
	struct str argument[] = { STR("ECHO"), { big, size } };
	struct redis_reply *reply;
	struct err err;

	assert_true(redis_link_send(peer->link, argument, 2));
	assert_int_equal(
	    redis_link_receive(peer->link, in(20 * MS), &reply, &err),
	    REDIS_NOT_YET);
	while (taken < size) {
		ssize_t n = recv(peer->fd, big, size, MSG_DONTWAIT);

		if (n > 0)
			taken += (size_t)n;
		assert_int_equal(
		    redis_link_receive(peer->link, in(0), &reply, &err),
		    REDIS_NOT_YET);
	}
	say(peer, "+OK\r\n");
	assert_int_equal(
	    redis_link_receive(peer->link, in(1000 * MS), &reply, &err),
	    REDIS_READY);
	redis_reply_free(reply);
	free(big);
}

static void
test_close_on_exec(void **context)
{
	struct peer *peer = *context;
	struct sockaddr_un a;
	int found = 0;

	for (int fd = 3; fd < 64; fd++) {
		socklen_t len = sizeof(a);

		if (fd == peer->fd || fd == peer->listener ||
		    getpeername(fd, (struct sockaddr *)&a, &len) != 0 ||
		    strcmp(a.sun_path, peer->path) != 0)
			continue;
		found++;
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	}
	assert_int_equal(found, 1);
}

static void
test_nobody_there(void **context)
{
	struct redis_address a = redis_server_address("/nonexistent/x");
	struct err err;

	(void)context;
	assert_null(redis_link_open(&a, in(1000 * MS), &err));
	memset(a.host, 'x', sizeof(a.host) - 1);
	assert_null(redis_link_open(&a, in(1000 * MS), &err));
	redis_link_close(NULL);
}

/* A port of a name: each of its addresses is tried, also after a refusal. */
static void
test_tcp(void **context)
{
	struct redis_address a = { .transport = REDIS_TCP,
		.host = "localhost" };
	struct sockaddr_in in4 = { .sin_family = AF_INET };
	socklen_t len = sizeof(in4);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	struct redis_link *link;
	struct err err;

	(void)context;
	in4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(
	    bind(listener, (struct sockaddr *)&in4, sizeof(in4)), 0);
	getsockname(listener, (struct sockaddr *)&in4, &len);
	a.port = ntohs(in4.sin_port);
	listen(listener, 4);
	link = redis_link_open(&a, in(2000 * MS), &err);
	assert_non_null(link);
	assert_int_equal(
	    redis_link_wait(link, in(2000 * MS), &err), REDIS_READY);
	redis_link_close(link);
	close(listener);
	link = redis_link_open(&a, in(2000 * MS), &err);
	if (link != NULL)
		assert_int_equal(
		    redis_link_wait(link, in(2000 * MS), &err), REDIS_BROKEN);
	redis_link_close(link);
}

static void
test_server(void **context)
{
	struct redis_server server;

	(void)context;
	redis_server_init(&server);
	assert_true(redis_server_command(&server, "PING"));
	assert_false(redis_server_command(&server, "NONSENSE"));
	redis_server_release(&server);
}

int
main(void)
{
#define WITH_PEER(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_PEER(test_command_and_reply),
		WITH_PEER(test_reply_in_pieces),
		WITH_PEER(test_waits_no_longer_than_told),
		WITH_PEER(test_nonsense),
		WITH_PEER(test_reply_without_end),
		WITH_PEER(test_closed),
		WITH_PEER(test_b101_unasked),
		WITH_PEER(test_large_command),
		WITH_PEER(test_close_on_exec),
		cmocka_unit_test(test_nobody_there),
		cmocka_unit_test(test_tcp),
		cmocka_unit_test(test_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
