/* Sockets: whose path is replaced, and that nothing waits for ever. */
#include "io/net.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/clock.h"

#define PATIENCE_US 5000000
#define PATH        "t.sock"

static const struct net_unix_options as_it_is = { 0600, (uid_t)-1, (gid_t)-1 };
static char directory[] = "/tmp/sluice-net-XXXXXX";

static int64_t
soon(void)
{
	return clock_mono_us() + PATIENCE_US;
}

static int
listen_at(const char *path)
{
	struct err err = { "" };
	int fd = net_listen_unix(path, &as_it_is, &err);

	if (fd < 0)
		print_message("%s\n", err.text);
	return fd;
}

static bool
is_cloexec(int fd)
{
	return (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0;
}

static bool
is_nonblocking(int fd)
{
	return (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0;
}

static int
connect_to(const char *path)
{
	struct net_address address;
	struct err err;
	int fd;

	assert_true(net_address_unix(path, &address, &err));
	assert_int_equal(
	    net_connect(&address, soon(), &fd, &err), NET_CONNECTED);
	return fd;
}

static void
test_address_unix(void **state)
{
	struct net_address address;
	struct err err = { "" };
	char path[128];

	(void)state;
	memset(path, 'x', sizeof(path));
	path[107] = '\0';
	assert_true(net_address_unix(path, &address, &err));
	assert_int_equal(address.storage.ss_family, AF_UNIX);
	assert_string_equal(
	    ((struct sockaddr_un *)&address.storage)->sun_path, path);
	path[107] = 'x';
	path[108] = '\0';
	assert_false(net_address_unix(path, &address, &err));
	assert_non_null(strstr(err.text, "107"));
	assert_false(net_address_unix("", &address, &err));
}

static void
test_unix(void **state)
{
	struct net_unix_options options = { 0640, getuid(), getgid() };
	struct err err;
	struct timeval timeout;
	socklen_t len = sizeof(timeout);
	struct stat st;
	uid_t uid;
	int fd = net_listen_unix(PATH, &options, &err);
	int near, far;

	(void)state;
	assert_in_range(fd, 0, 1000);
	assert_true(is_cloexec(fd) && is_nonblocking(fd));
	assert_true(net_is_listening(fd));
	assert_int_equal(stat(PATH, &st), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0640);
	assert_int_equal(net_accept(fd), -1);
	assert_int_equal(errno, EAGAIN);
	near = connect_to(PATH);
	assert_true(is_cloexec(near) && is_nonblocking(near));
	assert_false(net_is_listening(near));
	far = net_accept(fd);
	net_set_send_timeout(far, 1500000);
	assert_in_range(far, 0, 1000);
	assert_true(is_cloexec(far));
	assert_false(is_nonblocking(far));
	assert_int_equal(
	    getsockopt(far, SOL_SOCKET, SO_SNDTIMEO, &timeout, &len), 0);
	assert_int_equal(timeout.tv_sec, 1);
	assert_int_equal(timeout.tv_usec, 500000);
	assert_true(net_peer_uid(far, &uid));
	assert_int_equal(uid, getuid());
	close(near);
	close(far);
	close(fd);
	unlink(PATH);
}

/* Owner and group are each given, or left. */
static void
test_owner(void **state)
{
	static const struct net_unix_options table[] = {
		{ 0600, 1, (gid_t)-1 },
		{ 0600, (uid_t)-1, 2 },
		{ 0600, 3, 4 },
	};

	(void)state;
	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < 3; i++) {
		struct err err;
		struct stat st;
		int fd = net_listen_unix(PATH, &table[i], &err);

		assert_true(fd >= 0);
		assert_int_equal(stat(PATH, &st), 0);
		assert_int_equal(
		    st.st_uid, table[i].uid == (uid_t)-1 ? 0 : table[i].uid);
		assert_int_equal(st.st_gid,
		    table[i].gid == (gid_t)-1 ? getegid() : table[i].gid);
		close(fd);
		unlink(PATH);
	}
}

/* What nobody answers on is replaced; what somebody does is not. */
static void
test_stale_and_live(void **state)
{
	struct err err = { "" };
	struct stat before, after;
	int first = listen_at(PATH);
	int second;

	(void)state;
	assert_in_range(first, 0, 1000);
	assert_int_equal(stat(PATH, &before), 0);
	assert_int_equal(net_listen_unix(PATH, &as_it_is, &err), -1);
	assert_non_null(strstr(err.text, PATH));
	assert_int_equal(stat(PATH, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	close(connect_to(PATH));
	close(first);
	second = listen_at(PATH);
	assert_in_range(second, 0, 1000);
	close(connect_to(PATH));
	close(second);
	unlink(PATH);
}

/* A socket with `backlog` places, all taken; the takers are in at[]. */
static int
listen_full(int at[16])
{
	struct net_address address;
	struct err err;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int n = 0;

	assert_true(net_address_unix(PATH, &address, &err));
	assert_int_equal(
	    bind(fd, (struct sockaddr *)&address.storage, address.len), 0);
	assert_int_equal(listen(fd, 0), 0);
	memset(at, 0xff, 16 * sizeof(*at));
	do {
		assert_in_range(n, 0, 15);
		at[n] = socket(
		    AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	} while (connect(at[n++], (struct sockaddr *)&address.storage,
		     address.len) == 0);
	assert_int_equal(errno, EAGAIN);
	return fd;
}

static void
close_all(int fd, const int at[16])
{
	close(fd);
	for (int i = 0; i < 16; i++)
		if (at[i] >= 0)
			close(at[i]);
	unlink(PATH);
}

/* One that is too busy to answer is alive. */
static void
test_busy_is_live(void **state)
{
	struct err err = { "" };
	struct stat st;
	int at[16];
	int fd = listen_full(at);

	(void)state;
	assert_int_equal(net_listen_unix(PATH, &as_it_is, &err), -1);
	assert_int_equal(stat(PATH, &st), 0);
	close_all(fd, at);
}

/* So is one of another type, which refuses us for that. */
static void
test_other_type_is_live(void **state)
{
	static const int types[] = { SOCK_DGRAM, SOCK_SEQPACKET };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct net_address address;
		struct err err = { "" };
		struct stat st;
		int fd = socket(AF_UNIX, types[i] | SOCK_CLOEXEC, 0);

		assert_true(net_address_unix(PATH, &address, &err));
		assert_int_equal(
		    bind(fd, (struct sockaddr *)&address.storage, address.len),
		    0);
		if (types[i] == SOCK_SEQPACKET)
			assert_int_equal(listen(fd, 1), 0);
		assert_int_equal(net_listen_unix(PATH, &as_it_is, &err), -1);
		assert_int_equal(stat(PATH, &st), 0);
		close(fd);
		unlink(PATH);
	}
}

/* A file, a directory, a pipe or a link is left alone. */
static void
test_no_socket(void **state)
{
	struct err err = { "" };
	struct stat st;
	int live;

	(void)state;
	close(open(PATH, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(net_listen_unix(PATH, &as_it_is, &err), -1);
	assert_non_null(strstr(err.text, "no socket"));
	assert_int_equal(stat(PATH, &st), 0);
	unlink(PATH);
	assert_int_equal(mkdir(PATH, 0700), 0);
	assert_int_equal(net_listen_unix(PATH, &as_it_is, &err), -1);
	assert_int_equal(rmdir(PATH), 0);
	assert_int_equal(mkfifo(PATH, 0600), 0);
	assert_int_equal(net_listen_unix(PATH, &as_it_is, &err), -1);
	assert_int_equal(unlink(PATH), 0);
	live = listen_at("other.sock");
	close(live);
	assert_int_equal(symlink("other.sock", PATH), 0);
	assert_int_equal(net_listen_unix(PATH, &as_it_is, &err), -1);
	assert_int_equal(unlink(PATH), 0);
	assert_int_equal(unlink("other.sock"), 0);
	assert_int_equal(
	    net_listen_unix("nowhere/t.sock", &as_it_is, &err), -1);
}

/* Only the inode that was ours is removed. */
static void
test_unlink_own(void **state)
{
	struct stat st;
	int fd = listen_at(PATH);

	(void)state;
	assert_int_equal(stat(PATH, &st), 0);
	net_unlink_own(PATH, st.st_dev, st.st_ino + 1);
	net_unlink_own(PATH, st.st_dev + 1, st.st_ino);
	assert_int_equal(access(PATH, F_OK), 0);
	net_unlink_own(PATH, st.st_dev, st.st_ino);
	assert_int_equal(access(PATH, F_OK), -1);
	net_unlink_own(PATH, st.st_dev, st.st_ino);
	close(fd);
}

static void
test_connect_refused(void **state)
{
	struct net_address address;
	struct err err = { "" };
	int fd = 99;

	(void)state;
	assert_true(net_address_unix(PATH, &address, &err));
	assert_int_equal(net_connect(&address, soon(), &fd, &err), NET_REFUSED);
	assert_int_equal(fd, -1);
	assert_non_null(strstr(err.text, strerror(ENOENT)));
	close(listen_at(PATH));
	assert_int_equal(net_connect(&address, soon(), &fd, &err), NET_REFUSED);
	assert_int_equal(fd, -1);
	assert_non_null(strstr(err.text, strerror(ECONNREFUSED)));
	unlink(PATH);
}

/* A full backlog is waited for, to the deadline and no longer. */
static void
test_connect_times_out(void **state)
{
	struct net_address address;
	struct err err = { "" };
	int at[16];
	int listener = listen_full(at);
	int64_t before = clock_mono_us();
	int fd = 99;

	(void)state;
	assert_true(net_address_unix(PATH, &address, &err));
	assert_int_equal(
	    net_connect(&address, before + 30000, &fd, &err), NET_TIMED_OUT);
	assert_in_range(clock_mono_us() - before, 30000, PATIENCE_US);
	assert_int_equal(fd, -1);
	assert_non_null(strstr(err.text, strerror(ETIMEDOUT)));
	assert_int_equal(
	    net_connect(&address, before, &fd, &err), NET_TIMED_OUT);
	close_all(listener, at);
}

static void *
accept_two(void *context)
{
	const int *listener = context;

	for (int i = 0; i < 2; i++)
		close(accept4(*listener, NULL, NULL, SOCK_CLOEXEC));
	return NULL;
}

static void
test_connect_waits(void **state)
{
	struct net_address address;
	struct err err = { "" };
	pthread_t thread;
	int at[16];
	int listener = listen_full(at);
	int fd;

	(void)state;
	assert_true(net_address_unix(PATH, &address, &err));
	assert_int_equal(
	    pthread_create(&thread, NULL, accept_two, &listener), 0);
	assert_int_equal(
	    net_connect(&address, soon(), &fd, &err), NET_CONNECTED);
	pthread_join(thread, NULL);
	close(fd);
	close_all(listener, at);
}

/* Listens at a port the system chooses; the address gets it. */
static int
listen_tcp(const char *host, struct net_address *address)
{
	struct err err;
	int fd;

	assert_true(net_address_tcp(host, 0, address, &err));
	fd = net_listen_tcp(address, &err);
	if (fd >= 0)
		assert_int_equal(
		    getsockname(fd, (struct sockaddr *)&address->storage,
			&address->len),
		    0);
	return fd;
}

static bool
has_no_delay(int fd)
{
	int on = 0;
	socklen_t len = sizeof(on);

	return getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &len) == 0 && on;
}

static void
test_tcp(void **state)
{
	static const char *const hosts[] = { "127.0.0.1", "::1" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct net_address address;
		struct err err;
		uid_t uid;
		int near, far;
		int fd = listen_tcp(hosts[i], &address);

		if (fd < 0 && i == 1)
			continue; /* a machine without IPv6 */
		assert_true(is_cloexec(fd) && is_nonblocking(fd));
		assert_int_equal(net_listen_tcp(&address, &err), -1);
		assert_int_equal(
		    net_connect(&address, soon(), &near, &err), NET_CONNECTED);
		assert_true(is_cloexec(near) && has_no_delay(near));
		assert_true(net_wait(fd, POLLIN, soon()));
		far = net_accept(fd);
		assert_true(is_cloexec(far) && has_no_delay(far));
		assert_false(is_nonblocking(far));
		assert_false(net_peer_uid(far, &uid));
		close(near);
		close(far);
		close(fd);
		assert_int_equal(
		    net_connect(&address, soon(), &near, &err), NET_REFUSED);
		assert_int_equal(near, -1);
	}
}

static void
test_wait(void **state)
{
	int64_t before = clock_mono_us();
	int pipe_fd[2];

	(void)state;
	assert_int_equal(pipe2(pipe_fd, O_CLOEXEC), 0);
	assert_false(net_is_listening(pipe_fd[0]));
	assert_false(net_wait(pipe_fd[0], POLLIN, before + 10000));
	assert_in_range(clock_mono_us() - before, 10000, PATIENCE_US);
	/* What is there is seen even when the time is up. */
	assert_true(net_wait(pipe_fd[1], POLLOUT, 0));
	assert_false(net_wait(pipe_fd[0], POLLIN, 0));
	net_set_nonblocking(pipe_fd[0]);
	assert_true(is_nonblocking(pipe_fd[0]));
	/* The end of the other side is something to see. */
	close(pipe_fd[1]);
	assert_true(net_wait(pipe_fd[0], POLLIN, soon()));
	close(pipe_fd[0]);
}

static void
on_alarm(int signal)
{
	(void)signal;
}

/* A signal is no event and does not end the wait. */
static void
test_wait_and_signals(void **state)
{
	const struct sigaction action = { .sa_handler = on_alarm };
	const struct itimerval often = { { 0, 2000 }, { 0, 2000 } };
	const struct itimerval never = { { 0, 0 }, { 0, 0 } };
	int64_t before = clock_mono_us();
	int pipe_fd[2];
	bool seen;

	(void)state;
	assert_int_equal(pipe2(pipe_fd, O_CLOEXEC), 0);
	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	seen = net_wait(pipe_fd[0], POLLIN, before + 20000);
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	assert_false(seen);
	assert_in_range(clock_mono_us() - before, 20000, PATIENCE_US);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
}

static int
enter(void **state)
{
	(void)state;
	return mkdtemp(directory) == NULL || chdir(directory) != 0;
}

static int
leave(void **state)
{
	(void)state;
	return chdir("/") != 0 || rmdir(directory) != 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_address_unix),
		cmocka_unit_test(test_unix),
		cmocka_unit_test(test_owner),
		cmocka_unit_test(test_stale_and_live),
		cmocka_unit_test(test_busy_is_live),
		cmocka_unit_test(test_other_type_is_live),
		cmocka_unit_test(test_no_socket),
		cmocka_unit_test(test_unlink_own),
		cmocka_unit_test(test_connect_refused),
		cmocka_unit_test(test_connect_times_out),
		cmocka_unit_test(test_connect_waits),
		cmocka_unit_test(test_tcp),
		cmocka_unit_test(test_wait),
		cmocka_unit_test(test_wait_and_signals),
	};

	return cmocka_run_group_tests_name("net", tests, enter, leave);
}
