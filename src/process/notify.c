#include "process/notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "io/net.h"

#define MESSAGE_MAX 1024
#define PATIENCE_US 1000000
/* For what comes after the last request: leases, the log. */
#define STOP_SLACK_US 10000000

static struct {
	struct sockaddr_un address;
	socklen_t len; /* 0: nobody wants to know */
} to;

void
notify_init(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len = path == NULL ? 0 : strlen(path);

	unsetenv("NOTIFY_SOCKET");
	if (len == 0)
		return;
	if ((path[0] != '/' && path[0] != '@') ||
	    len >= sizeof(to.address.sun_path)) {
		log_event(LOG_LEVEL_WARN, "notify_failed",
		    "NOTIFY_SOCKET=%.200s is no unix socket", path);
		return;
	}
	to.address.sun_family = AF_UNIX;
	memcpy(to.address.sun_path, path, len);
	/* An abstract one: its name begins with a NUL and has none behind. */
	if (path[0] == '@')
		to.address.sun_path[0] = '\0';
	to.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

static void
tell(const char *message)
{
	int fd;

	if (to.len == 0)
		return;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	/* Who does not listen does not keep us from starting or stopping. */
	if (fd >= 0)
		net_set_send_timeout(fd, PATIENCE_US);
	if (fd < 0 ||
	    sendto(fd, message, strlen(message), MSG_NOSIGNAL,
		(const struct sockaddr *)&to.address, to.len) < 0)
		log_event(LOG_LEVEL_WARN, "notify_failed", "NOTIFY_SOCKET: %s",
		    strerror(errno));
	if (fd >= 0)
		close(fd);
}

void
notify_ready(const char *status, ...)
{
	char message[MESSAGE_MAX] = "READY=1\nSTATUS=";
	size_t at = strlen(message);
	va_list args;

	va_start(args, status);
	vsnprintf(message + at, sizeof(message) - at, status, args);
	va_end(args);
	tell(message);
}

void
notify_reloading(void)
{
	char message[MESSAGE_MAX];

	snprintf(message, sizeof(message),
	    "RELOADING=1\nMONOTONIC_USEC=%lld\n"
	    "STATUS=Reading the configuration",
	    (long long)clock_mono_us());
	tell(message);
}

void
notify_stopping(int64_t timeout_us)
{
	char message[MESSAGE_MAX];
	long long most_us = timeout_us + STOP_SLACK_US;

	snprintf(message, sizeof(message),
	    "STOPPING=1\nEXTEND_TIMEOUT_USEC=%lld\n"
	    "STATUS=Letting requests end",
	    most_us);
	tell(message);
}
