/*
 * log: one line per event, as logfmt or JSON.
 *
 * A line is built on the caller's stack and written with one write, so
 * lines of several threads never mix. Nobody waits for a reader of the log:
 * a line that a full pipe does not take is lost and counted, and the log
 * says so (log_lines_lost) as soon as it goes on. Values are escaped: no
 * control character and no byte that is not UTF-8 ever reaches the log as it
 * is. A line that grows too long is cut in a value, never in its framing.
 * Any thread may log once log_open (or nothing: standard error, logfmt,
 * info) has been called.
 */
#ifndef SLUICE_LOG_H
#define SLUICE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARN,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG
};
enum log_format { LOG_FORMAT_LOGFMT, LOG_FORMAT_JSON };

#define LOG_LINE_MAX 4096

struct log_line {
	size_t len;
	enum log_level level;
	bool wanted;
	char text[LOG_LINE_MAX];
};

/*
 * target: "stderr", "syslog" or "file:PATH" (created 0640, appended to).
 * May be called again; on failure the old target stays.
 */
bool log_open(const char *target, enum log_level level, enum log_format format,
    struct err *err);
/* Opens a file target anew, after logrotate has moved it. */
bool log_reopen(struct err *err);
bool log_wants(enum log_level level);

/* Starts a line with time, level and event (a word: "refused"). */
void log_begin(struct log_line *line, enum log_level level, const char *event);
void log_str(struct log_line *line, const char *key, struct str value);
void log_text(struct log_line *line, const char *key, const char *value);
void log_number(struct log_line *line, const char *key, int64_t value);
/* Writes it. */
void log_end(struct log_line *line);

/* The short form: an event and a sentence under "msg". */
void log_event(enum log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
