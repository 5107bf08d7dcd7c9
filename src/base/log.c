/*
 * The line always keeps room for its end (quote, brace, newline): LINE_END
 * bytes that only close_line uses. A value that does not fit is cut.
 */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/counter.h"
#include "base/syslog_socket.h"

#define LINE_END 4

enum target { TARGET_STDERR, TARGET_SYSLOG, TARGET_FILE };

static struct {
	pthread_rwlock_t lock; /* held to write while the target changes */
	pthread_mutex_t turn;  /* of who writes to fd */
	int64_t lost;          /* under turn: lines since the last written */
	enum target target;
	int fd;
	char *path;
} out = { PTHREAD_RWLOCK_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, 0,
	TARGET_STDERR, STDERR_FILENO, NULL };

static _Atomic enum log_level wanted_level = LOG_LEVEL_INFO;
static _Atomic enum log_format wanted_format = LOG_FORMAT_LOGFMT;

static const char *const level_names[] = { "error", "warn", "info", "debug" };

static int
open_file(const char *path, struct err *err)
{
	int fd = open(
	    path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0640);

	if (fd < 0)
		err_set(
		    err, "can not open the log %s: %s", path, strerror(errno));
	return fd;
}

static void
set_target(enum target target, int fd, char *path)
{
	pthread_rwlock_wrlock(&out.lock);
	if (out.target != TARGET_STDERR && out.fd >= 0)
		close(out.fd);
	if (out.path != path)
		free(out.path);
	out.target = target;
	out.fd = fd;
	out.path = path;
	pthread_rwlock_unlock(&out.lock);
}

bool
log_open(const char *target, enum log_level level, enum log_format format,
    struct err *err)
{
	if (strcmp(target, "syslog") == 0) {
		set_target(TARGET_SYSLOG,
		    syslog_socket_open(SYSLOG_SOCKET_PATH), NULL);
	} else if (strncmp(target, "file:", 5) == 0) {
		int fd = open_file(target + 5, err);
		char *path;

		if (fd < 0)
			return false;
		path = strdup(target + 5);
		if (path == NULL) {
			close(fd);
			return err_set(err, "out of memory");
		}
		set_target(TARGET_FILE, fd, path);
	} else {
		set_target(TARGET_STDERR, STDERR_FILENO, NULL);
	}
	atomic_store(&wanted_level, level);
	atomic_store(&wanted_format, format);
	return true;
}

bool
log_reopen(struct err *err)
{
	int fd;

	if (out.target != TARGET_FILE)
		return true;
	fd = open_file(out.path, err);
	if (fd < 0)
		return false;
	set_target(TARGET_FILE, fd, out.path);
	return true;
}

bool
log_wants(enum log_level level)
{
	return level <=
	    atomic_load_explicit(&wanted_level, memory_order_relaxed);
}

static bool
is_json(void)
{
	return atomic_load_explicit(&wanted_format, memory_order_relaxed) ==
	    LOG_FORMAT_JSON;
}

static bool
put(struct log_line *line, const char *bytes, size_t len)
{
	if (line->len + len > sizeof(line->text) - LINE_END)
		return false;
	memcpy(line->text + line->len, bytes, len);
	line->len += len;
	return true;
}

/*
 * The length of the well-formed UTF-8 character at the front of s (RFC
 * 3629: no overlong form, no surrogate, nothing above U+10FFFF), 0: none.
 */
static size_t
utf8_length(struct str s)
{
	static const struct {
		unsigned char mask, lead;
		uint32_t least;
	} form[] = { { 0x80, 0x00, 0 }, { 0xe0, 0xc0, 0x80 },
		{ 0xf0, 0xe0, 0x800 }, { 0xf8, 0xf0, 0x10000 } };

	for (size_t n = 0; n < 4; n++) {
		unsigned char first = (unsigned char)s.p[0];
		uint32_t code = first & (unsigned char)~form[n].mask;

		if ((first & form[n].mask) != form[n].lead || n >= s.len)
			continue;
		for (size_t i = 1; i <= n; i++) {
			unsigned char c = (unsigned char)s.p[i];

			if ((c & 0xc0) != 0x80)
				return 0;
			code = code << 6 | (c & 0x3fU);
		}
		if (code < form[n].least || code > 0x10ffff ||
		    (code >= 0xd800 && code <= 0xdfff))
			return 0;
		return n + 1;
	}
	return 0;
}

/*
 * One character in its escaped form; *taken: its bytes. Control characters
 * (the C1 block too, which a terminal may obey) and what is no UTF-8 are
 * shown by number.
 */
static size_t
escape(struct str s, char out_bytes[8], size_t *taken)
{
	unsigned char c = (unsigned char)s.p[0];
	size_t n = utf8_length(s);

	*taken = n == 0 ? 1 : n;
	if (c == '"' || c == '\\') {
		out_bytes[0] = '\\';
		out_bytes[1] = (char)c;
		return 2;
	}
	if (n == 2 && c == 0xc2 && (unsigned char)s.p[1] < 0xa0)
		return (size_t)snprintf(
		    out_bytes, 8, "\\u%04x", (unsigned char)s.p[1]);
	if (n == 0 || c < 32 || c == 127)
		return (size_t)snprintf(out_bytes, 8, "\\u%04x", c);
	memcpy(out_bytes, s.p, n);
	return n;
}

static void
put_quoted(struct log_line *line, struct str value)
{
	if (!put(line, "\"", 1))
		return;
	while (value.len > 0) {
		char bytes[8];
		size_t taken;
		size_t n = escape(value, bytes, &taken);

		/* One byte stays free for the quote that ends it. */
		if (line->len + n + 1 > sizeof(line->text) - LINE_END)
			break;
		put(line, bytes, n);
		value.p += taken;
		value.len -= taken;
	}
	put(line, "\"", 1);
}

static bool
needs_quotes(struct str value)
{
	if (value.len == 0 || is_json())
		return true;
	for (size_t i = 0; i < value.len; i++) {
		unsigned char c = (unsigned char)value.p[i];

		if (c <= ' ' || c >= 127 || c == '"' || c == '=' || c == '\\')
			return true;
	}
	return false;
}

/* Puts what goes before a value; false when the line is full. */
static bool
put_key(struct log_line *line, const char *key)
{
	char text[80];
	int n;

	if (!line->wanted)
		return false;
	n = snprintf(text, sizeof(text), is_json() ? "%s\"%s\":" : "%s%s=",
	    line->len <= 1  ? ""
		: is_json() ? ","
			    : " ",
	    key);
	/* Room for the key and at least two quotes, or neither. */
	if (line->len + (size_t)n + 2 > sizeof(line->text) - LINE_END)
		return false;
	return put(line, text, (size_t)n);
}

void
log_str(struct log_line *line, const char *key, struct str value)
{
	if (!put_key(line, key))
		return;
	if (needs_quotes(value) || !put(line, value.p, value.len))
		put_quoted(line, value);
}

void
log_text(struct log_line *line, const char *key, const char *value)
{
	log_str(line, key, str_of(value));
}

void
log_number(struct log_line *line, const char *key, int64_t value)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "%lld", (long long)value);

	if (line->len + 80 + (size_t)n > sizeof(line->text) - LINE_END)
		return;
	if (put_key(line, key))
		put(line, text, (size_t)n);
}

static void
put_time(struct log_line *line)
{
	struct timespec now;
	struct tm utc;
	char text[40];
	size_t n;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(text + n, sizeof(text) - n, ".%03ldZ", now.tv_nsec / 1000000);
	log_text(line, "time", text);
}

void
log_begin(struct log_line *line, enum log_level level, const char *event)
{
	line->len = 0;
	line->level = level;
	line->wanted = log_wants(level);
	if (!line->wanted)
		return;
	if (is_json())
		put(line, "{", 1);
	put_time(line);
	log_text(line, "level", level_names[level]);
	log_text(line, "event", event);
}

static void
close_line(struct log_line *line)
{
	if (is_json())
		line->text[line->len++] = '}';
	line->text[line->len++] = '\n';
}

/*
 * A pipe that is ready takes a line whole (PIPE_BUF), if nobody else writes
 * in between: hence the lock. False: it is lost.
 */
static bool
write_ready(const struct log_line *line)
{
	static const int priorities[] = { LOG_ERR, LOG_WARNING, LOG_INFO,
		LOG_DEBUG };
	struct pollfd p = { .fd = out.fd, .events = POLLOUT };

	if (out.target == TARGET_SYSLOG)
		return syslog_socket_send(&out.fd, SYSLOG_SOCKET_PATH,
		    priorities[line->level],
		    (struct str){ line->text, line->len - 1 });
	return poll(&p, 1, 0) == 1 && (p.revents & POLLOUT) != 0 &&
	    write(out.fd, line->text, line->len) == (ssize_t)line->len;
}

/* In their place. False: not yet. */
static bool
tell_lost(void)
{
	struct log_line line;

	log_begin(&line, LOG_LEVEL_WARN, "log_lines_lost");
	log_number(&line, "lines", out.lost);
	if (line.wanted) {
		close_line(&line);
		if (!write_ready(&line))
			return false;
	}
	out.lost = 0;
	return true;
}

static void
write_in_turn(const struct log_line *line)
{
	pthread_mutex_lock(&out.turn);
	if ((out.lost > 0 && !tell_lost()) || !write_ready(line)) {
		counter_add(COUNTER_log_lines_lost, 1);
		out.lost++;
	}
	pthread_mutex_unlock(&out.turn);
}

static void
write_line(const struct log_line *line)
{
	pthread_rwlock_rdlock(&out.lock);
	write_in_turn(line);
	pthread_rwlock_unlock(&out.lock);
}

void
log_end(struct log_line *line)
{
	if (!line->wanted)
		return;
	close_line(line);
	write_line(line);
}

void
log_event(enum log_level level, const char *event, const char *format, ...)
{
	struct log_line line;
	char text[1024];
	va_list args;

	if (!log_wants(level))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	log_begin(&line, level, event);
	log_text(&line, "msg", text);
	log_end(&line);
}
