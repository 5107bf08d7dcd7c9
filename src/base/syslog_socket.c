#include "base/syslog_socket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

int
syslog_socket_open(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd >= 0 &&
	    connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static size_t
write_head(char *head, size_t room, int priority)
{
	time_t now = time(NULL);
	struct tm local;
	char when[32];

	localtime_r(&now, &local);
	strftime(when, sizeof(when), "%h %e %T", &local);
	return (size_t)snprintf(head, room,
	    "<%d>%s sluice[%ld]: ", LOG_DAEMON | priority, when,
	    (long)getpid());
}

static bool
send_once(int fd, int priority, struct str line)
{
	char head[96];
	struct iovec part[] = {
		{ head, write_head(head, sizeof(head), priority) },
		{ (void *)(uintptr_t)line.p, line.len },
	};
	struct msghdr message = { .msg_iov = part, .msg_iovlen = 2 };

	return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

bool
syslog_socket_send(int *fd, const char *path, int priority, struct str line)
{
	if (*fd >= 0 && send_once(*fd, priority, line))
		return true;
	if (*fd >= 0 && (errno == EAGAIN || errno == ENOBUFS))
		return false;
	if (*fd >= 0)
		close(*fd);
	*fd = syslog_socket_open(path);
	return *fd >= 0 && send_once(*fd, priority, line);
}
