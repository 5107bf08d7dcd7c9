#include "base/syslog_socket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include <cmocka.h>

static char path[64];

static int
daemon_open(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	unlink(path);
	assert_int_equal(
	    bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void
expect_line(int daemon, const char *begin, const char *end)
{
	char got[512];
	ssize_t n = recv(daemon, got, sizeof(got) - 1, MSG_DONTWAIT);

	assert_in_range(n, strlen(begin) + strlen(end), sizeof(got));
	got[n] = '\0';
	assert_memory_equal(got, begin, strlen(begin));
	assert_string_equal(got + n - strlen(end), end);
}

/* <PRI>, the time, and the name with the pid, as syslog(3) has it. */
static void
test_a_line(void **state)
{
	int daemon = daemon_open();
	int fd = syslog_socket_open(path);
	char end[64];

	(void)state;
	snprintf(end, sizeof(end), " sluice[%ld]: event=x", (long)getpid());
	assert_true(syslog_socket_send(&fd, path, LOG_WARNING, STR("event=x")));
	expect_line(daemon, "<28>", end);
	close(fd);
	close(daemon);
}

/* Who does not read loses lines, and keeps nobody waiting. */
static void
test_nobody_reads(void **state)
{
	int daemon = daemon_open();
	int fd = syslog_socket_open(path);
	size_t sent = 0;
	char got[512];

	(void)state;
	while (sent < 100000 &&
	    syslog_socket_send(&fd, path, LOG_INFO, STR("a line")))
		sent++;
	assert_in_range(sent, 1, 99999);
	assert_true(recv(daemon, got, sizeof(got), MSG_DONTWAIT) > 0);
	assert_true(syslog_socket_send(&fd, path, LOG_INFO, STR("again")));
	close(fd);
	close(daemon);
}

static void
test_it_begins_anew(void **state)
{
	int daemon = daemon_open();
	int fd = syslog_socket_open(path);

	(void)state;
	close(daemon);
	unlink(path);
	assert_false(syslog_socket_send(&fd, path, LOG_ERR, STR("lost")));
	assert_int_equal(fd, -1);
	assert_int_equal(syslog_socket_open(path), -1);
	daemon = daemon_open();
	assert_true(syslog_socket_send(&fd, path, LOG_ERR, STR("there")));
	expect_line(daemon, "<27>", ": there");
	close(fd);
	close(daemon);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_line),
		cmocka_unit_test(test_nobody_reads),
		cmocka_unit_test(test_it_begins_anew),
	};
	int failed;

	snprintf(
	    path, sizeof(path), "/tmp/sluice-unit-log.%ld", (long)getpid());
	failed =
	    cmocka_run_group_tests_name("syslog_socket", tests, NULL, NULL);
	unlink(path);
	return failed;
}
