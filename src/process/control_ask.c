#include "process/control_ask.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "io/net.h"

#define ANSWER_MAX 4096

/* Nobody listens there: it is not running. */
static bool
is_absence(int error)
{
	return error == ENOENT || error == ECONNREFUSED;
}

static bool
send_line(int fd, struct str line)
{
	struct buf text;
	bool ok;

	buf_init(&text);
	buf_add_str(&text, line);
	buf_add_char(&text, '\n');
	ok = !text.failed &&
	    send(fd, text.p, text.len, MSG_NOSIGNAL) == (ssize_t)text.len;
	buf_release(&text);
	return ok;
}

/* All that comes, as far as there is room. False: not in time. */
static bool
receive(int fd, int64_t deadline_us, char *text, size_t size, size_t *len)
{
	*len = 0;
	while (*len < size) {
		ssize_t n = recv(fd, text + *len, size - *len, MSG_DONTWAIT);

		if (n == 0)
			return true;
		if (n > 0)
			*len += (size_t)n;
		else if ((errno != EAGAIN && errno != EINTR) ||
		    !net_wait(fd, POLLIN, deadline_us))
			return false;
	}
	return true;
}

static enum control_answer
talk(int fd, struct str line, int64_t deadline_us, struct err *err)
{
	char text[ANSWER_MAX];
	struct str rest = { text, 0 };
	struct str first;

	if (!send_line(fd, line) ||
	    !receive(fd, deadline_us, text, sizeof(text), &rest.len)) {
		err_set(err, "it did not answer in time");
		return CONTROL_REFUSED;
	}
	first = str_cut(&rest, '\n');
	if (str_eq(first, STR("ok")))
		return CONTROL_OK;
	str_cut(&first, ' ');
	err_set(err, "%.*s",
	    STR_ARG(first.p != NULL ? first : STR("it gave no answer")));
	return CONTROL_REFUSED;
}

enum control_answer
control_ask(
    const char *path, struct str line, int64_t deadline_us, struct err *err)
{
	enum control_answer answer;
	struct net_address address;
	int fd;

	if (!net_address_unix(path, &address, err))
		return CONTROL_REFUSED;
	errno = 0;
	if (net_connect(&address, deadline_us, &fd, err) != NET_CONNECTED)
		return is_absence(errno) ? CONTROL_NOBODY : CONTROL_REFUSED;
	answer = talk(fd, line, deadline_us, err);
	close(fd);
	return answer;
}
