/*
 * steady: HTTP requests at a constant rate, and how long they took.
 *
 * When each request is due is fixed beforehand, and its time counts from
 * then: what waits because the server lags behind is part of what it took
 * (no coordinated omission). Every time is kept, so that the percentiles are
 * exact.
 *
 * Usage: steady PORT RATE SECONDS CONNECTIONS
 * Prints: requests errors refused p50_us p99_us max_us
 * An error is a connection that ends, an answer that is none, or one that
 * did not come within GRACE_NS of the end; exit 1 if no request was answered.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS       INT64_C(1000000000)
#define GRACE_NS        (2 * SECOND_NS)
#define CONNECTIONS_MAX 1024
#define ANSWER_MAX      16384

static const char question[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

struct connection {
	int fd;
	int64_t due_ns; /* of the request it carries; 0: it is free */
	size_t len;
	char answer[ANSWER_MAX + 1];
};

struct run {
	struct connection *connection;
	size_t n;
	int epoll_fd;
	int64_t start_ns, gap_ns;
	size_t sent, total;
	size_t answered, errors, refused, open;
	int64_t *took_ns;
};

static int64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * SECOND_NS + t.tv_nsec;
}

static bool
connect_all(struct run *run, uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr = { htonl(INADDR_LOOPBACK) } };
	int one = 1;

	for (size_t i = 0; i < run->n; i++) {
		struct connection *c = &run->connection[i];
		struct epoll_event event = { .events = EPOLLIN,
			.data = { .ptr = c } };

		c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (c->fd < 0 ||
		    connect(c->fd, (struct sockaddr *)&to, sizeof(to)) != 0 ||
		    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one,
			sizeof(one)) != 0 ||
		    epoll_ctl(run->epoll_fd, EPOLL_CTL_ADD, c->fd, &event) != 0)
			return false;
	}
	run->open = run->n;
	return true;
}

/* Its end, or NULL while it is not whole. */
static const char *
end_of(const char *answer)
{
	const char *body = strstr(answer, "\r\n\r\n"), *field;
	size_t length = 0;

	if (body == NULL)
		return NULL;
	body += 4;
	field = strcasestr(answer, "\r\nTransfer-Encoding: chunked");
	if (field != NULL && field < body) {
		const char *last = strstr(body - 2, "\r\n0\r\n\r\n");

		return last == NULL ? NULL : last + 7;
	}
	field = strcasestr(answer, "\r\nContent-Length:");
	if (field != NULL && field < body)
		length = strtoul(field + 17, NULL, 10);
	return strlen(body) < length ? NULL : body + length;
}

static void
lose(struct run *run, struct connection *c)
{
	close(c->fd);
	c->fd = -1;
	run->open--;
	run->errors += c->due_ns != 0;
	c->due_ns = 0;
}

static void
send_due(struct run *run)
{
	int64_t now = now_ns();

	for (size_t i = 0; i < run->n && run->sent < run->total; i++) {
		struct connection *c = &run->connection[i];
		int64_t due = run->start_ns + (int64_t)run->sent * run->gap_ns;

		if (due > now)
			return;
		if (c->fd < 0 || c->due_ns != 0)
			continue;
		c->due_ns = due;
		run->sent++;
		if (send(c->fd, question, sizeof(question) - 1,
			MSG_NOSIGNAL | MSG_DONTWAIT) !=
		    (ssize_t)(sizeof(question) - 1))
			lose(run, c);
	}
}

static void
receive(struct run *run, struct connection *c)
{
	ssize_t n =
	    recv(c->fd, c->answer + c->len, ANSWER_MAX - c->len, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || c->due_ns == 0) {
		lose(run, c);
		return;
	}
	c->len += (size_t)n;
	c->answer[c->len] = '\0';
	if (end_of(c->answer) == NULL) {
		if (c->len == ANSWER_MAX)
			lose(run, c);
		return;
	}
	if (strncmp(c->answer, "HTTP/1.1 2", 10) != 0)
		run->refused++;
	run->took_ns[run->answered++] = now_ns() - c->due_ns;
	c->due_ns = 0;
	c->len = 0;
}

static bool
has_free(const struct run *run)
{
	for (size_t i = 0; i < run->n; i++)
		if (run->connection[i].fd >= 0 &&
		    run->connection[i].due_ns == 0)
			return true;
	return false;
}

static struct timespec
until(int64_t ns)
{
	if (ns < 0)
		ns = 0;
	return (struct timespec){ ns / SECOND_NS, ns % SECOND_NS };
}

static void
carry_out(struct run *run)
{
	int64_t end = run->start_ns + (int64_t)run->total * run->gap_ns;

	while (run->answered + run->errors < run->total && run->open > 0) {
		struct epoll_event event[64];
		struct timespec wait;
		int64_t due, now;
		int n;

		send_due(run);
		due = run->start_ns + (int64_t)run->sent * run->gap_ns;
		now = now_ns();
		if (now > end + GRACE_NS)
			break;
		/* None is to come, or all are busy: an answer wakes it. */
		if (run->sent == run->total || (due <= now && !has_free(run)))
			due = now + SECOND_NS / 100;
		wait = until(due - now);
		n = epoll_pwait2(run->epoll_fd, event, 64, &wait, NULL);
		for (int i = 0; i < n; i++)
			receive(run, event[i].data.ptr);
	}
	run->errors = run->total - run->answered;
}

static int
compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static double
percentile_us(const struct run *run, unsigned percent)
{
	return (double)run->took_ns[(run->answered - 1) * percent / 100] / 1e3;
}

int
main(int argc, char **argv)
{
	struct run run = { .epoll_fd = epoll_create1(EPOLL_CLOEXEC) };
	double rate = argc == 5 ? strtod(argv[2], NULL) : 0;
	double seconds = argc == 5 ? strtod(argv[3], NULL) : 0;

	if (argc == 5)
		run.n = strtoul(argv[4], NULL, 10);
	if (!(rate > 0 && seconds > 0 && rate * seconds < 1e8) || run.n < 1 ||
	    run.n > CONNECTIONS_MAX) {
		fputs("usage: steady PORT RATE SECONDS CONNECTIONS\n", stderr);
		return 64;
	}
	run.total = (size_t)(rate * seconds) + 1;
	run.connection = calloc(run.n, sizeof(*run.connection));
	run.took_ns = calloc(run.total, sizeof(*run.took_ns));
	prctl(PR_SET_TIMERSLACK, 1UL);
	if (run.connection == NULL || run.took_ns == NULL ||
	    !connect_all(&run, (uint16_t)strtoul(argv[1], NULL, 10))) {
		perror("steady");
		return 1;
	}
	run.gap_ns = (int64_t)(1e9 / rate);
	run.start_ns = now_ns();
	carry_out(&run);
	if (run.answered == 0) {
		fputs("steady: no request was answered\n", stderr);
		return 1;
	}
	qsort(run.took_ns, run.answered, sizeof(*run.took_ns), compare);
	printf("%zu %zu %zu %.1f %.1f %.1f\n", run.answered, run.errors,
	    run.refused, percentile_us(&run, 50), percentile_us(&run, 99),
	    percentile_us(&run, 100));
	return 0;
}
