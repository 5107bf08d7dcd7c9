/*
 * Two steps, for raw moves while it grows: a line is judged as soon as it
 * is whole, so that a bad head is known at once, and the fields are cut out
 * of raw when the empty line has come.
 */
#include "pure/cgi_head.h"

#include <stdlib.h>
#include <string.h>

#define SHOWN_MAX   64 /* bytes of a bad line that its error shows */
#define NPH_PREFIX  STR("HTTP/1.")
#define NPH_VERSION 8 /* "HTTP/1.x" */

static bool
is_status(struct str name)
{
	return str_eq_nocase(name, STR("Status"));
}

static bool
is_content_length(struct str name)
{
	return str_eq_nocase(name, STR("Content-Length"));
}

static void
restart(struct cgi_head *h)
{
	h->head_start = h->line_start;
	h->n_fields = 0;
	h->status = 0;
	h->has_status = false;
	h->has_location = false;
	h->content_length = -1;
}

void
cgi_head_init(struct cgi_head *h)
{
	*h = (struct cgi_head){ 0 };
	buf_init(&h->raw);
	restart(h);
}

void
cgi_head_release(struct cgi_head *h)
{
	free(h->field);
	buf_release(&h->raw);
	cgi_head_init(h);
}

/* Sets the error, with the line at fault; always false. */
static bool
bad_line(struct cgi_head *h, struct str line, const char *what)
{
	if (line.len > SHOWN_MAX)
		line.len = SHOWN_MAX;
	return err_set(
	    &h->error, "the response head has %s: `%.*s`", what, STR_ARG(line));
}

static bool
has_byte(struct str s, char c)
{
	return s.len > 0 && memchr(s.p, c, s.len) != NULL;
}

static bool
is_clean_name(struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		unsigned char c = (unsigned char)name.p[i];

		if (c <= ' ' || c == 127)
			return false;
	}
	return name.len > 0;
}

/* "NNN" or "NNN reason". */
static bool
parse_status(struct str text, int *status, struct str *reason)
{
	struct str digits = { text.p, 3 };
	uint64_t value;

	if (text.len < 3 || !str_to_u64(digits, 999, &value) || value < 100)
		return false;
	if (text.len > 3 && text.p[3] != ' ' && text.p[3] != '\t')
		return false;
	*status = (int)value;
	*reason = str_trim((struct str){ text.p + 3, text.len - 3 });
	return true;
}

static bool
take_status(struct cgi_head *h, struct str line, struct str text)
{
	struct str reason;

	if (h->has_status)
		return bad_line(h, line, "a second status");
	if (!parse_status(text, &h->status, &reason))
		return bad_line(h, line,
		    "a status that is not three digits from 100 to 999");
	h->has_status = true;
	return true;
}

static bool
take_length(struct cgi_head *h, struct str line, struct str text)
{
	uint64_t value;

	if (!str_to_u64(text, INT64_MAX, &value))
		return bad_line(h, line, "a Content-Length that is no number");
	if (h->content_length >= 0 && (uint64_t)h->content_length != value)
		return bad_line(h, line, "two Content-Length that differ");
	h->content_length = (int64_t)value;
	return true;
}

static struct cgi_field
split(struct str line)
{
	struct cgi_field field;

	field.name = str_cut(&line, ':');
	field.value = str_trim(line);
	return field;
}

/* The first line of a head may be a status line, as NPH scripts write it. */
static bool
is_nph(const struct cgi_head *h, struct str line)
{
	return h->line_start == h->head_start && str_starts(line, NPH_PREFIX);
}

static struct str
nph_status(struct str line)
{
	if (line.len < NPH_VERSION || line.p[NPH_VERSION - 1] < '0' ||
	    line.p[NPH_VERSION - 1] > '9')
		return STR_NONE;
	line.p += NPH_VERSION;
	line.len -= NPH_VERSION;
	return line.len > 0 && line.p[0] == ' ' ? str_trim(line) : STR_NONE;
}

static bool
take_field(struct cgi_head *h, struct str line)
{
	struct cgi_field field = split(line);

	if (line.p[0] == ' ' || line.p[0] == '\t')
		return bad_line(h, line, "a folded line");
	if (!has_byte(line, ':'))
		return bad_line(h, line, "a line without a colon");
	if (!is_clean_name(field.name))
		return bad_line(h, line, "a field name that is none");
	if (is_status(field.name))
		return take_status(h, line, field.value);
	if (is_content_length(field.name) && !take_length(h, line, field.value))
		return false;
	if (str_eq_nocase(field.name, STR("Location")))
		h->has_location = true;
	if (++h->n_fields > CGI_HEAD_FIELDS_MAX)
		return err_set(&h->error,
		    "the response head has more than %d fields",
		    CGI_HEAD_FIELDS_MAX);
	return true;
}

static bool
take_line(struct cgi_head *h, struct str line)
{
	if (has_byte(line, '\0'))
		return bad_line(h, line, "a NUL");
	if (has_byte(line, '\r'))
		return bad_line(h, line, "a bare CR");
	if (is_nph(h, line))
		return take_status(h, line, nph_status(line));
	return take_field(h, line);
}

/* The line from `start` and where it ends, its CR and LF left out. */
static struct str
line_at(const struct cgi_head *h, size_t start, size_t lf)
{
	struct str line = { h->raw.p + start, lf - start };

	if (line.len > 0 && line.p[line.len - 1] == '\r')
		line.len--;
	return line;
}

/* Cuts one line, judged before: a field to keep, or the status. */
static void
keep_line(struct cgi_head *h, struct str line, bool first)
{
	struct cgi_field field = split(line);
	bool nph = first && str_starts(line, NPH_PREFIX);
	int status;

	if (nph || is_status(field.name)) {
		parse_status(
		    nph ? nph_status(line) : field.value, &status, &h->reason);
		return;
	}
	if (is_content_length(field.name) &&
	    cgi_head_field(h, field.name) != NULL)
		return;
	h->field[h->n_fields++] = field;
}

static bool
keep_fields(struct cgi_head *h)
{
	size_t start = h->head_start;

	h->field = calloc(h->n_fields + 1, sizeof(*h->field));
	if (h->field == NULL)
		return err_set(&h->error, "out of memory for a response head");
	h->n_fields = 0;
	while (start < h->line_start) {
		const char *lf =
		    memchr(h->raw.p + start, '\n', h->raw.len - start);
		size_t end = (size_t)(lf - h->raw.p);

		keep_line(h, line_at(h, start, end), start == h->head_start);
		start = end + 1;
	}
	return true;
}

/* The empty line at line_start has ended a head. */
static enum cgi_head_state
end_head(struct cgi_head *h, size_t next)
{
	if (h->line_start == h->head_start) {
		err_set(&h->error, "the response head is empty");
		return CGI_HEAD_BAD;
	}
	if (h->has_status && h->status < 200) {
		h->line_start = next;
		restart(h);
		return CGI_HEAD_MORE;
	}
	if (!h->has_status)
		h->status = h->has_location ? 302 : 200;
	h->body_at = next;
	return keep_fields(h) ? CGI_HEAD_DONE : CGI_HEAD_BAD;
}

/* The end of the line that is open, just behind its LF; 0: not there yet. */
static size_t
find_line_end(struct cgi_head *h)
{
	size_t limit =
	    h->raw.len < CGI_HEAD_BYTES_MAX ? h->raw.len : CGI_HEAD_BYTES_MAX;
	const char *lf = NULL;

	if (h->scanned < limit)
		lf = memchr(h->raw.p + h->scanned, '\n', limit - h->scanned);
	h->scanned = lf == NULL ? limit : (size_t)(lf - h->raw.p) + 1;
	return lf == NULL ? 0 : h->scanned;
}

static enum cgi_head_state
read_lines(struct cgi_head *h)
{
	enum cgi_head_state state = CGI_HEAD_MORE;
	size_t end;

	while (state == CGI_HEAD_MORE && (end = find_line_end(h)) > 0) {
		struct str line = line_at(h, h->line_start, end - 1);

		if (line.len == 0) {
			state = end_head(h, end);
		} else {
			if (!take_line(h, line))
				return CGI_HEAD_BAD;
			h->line_start = end;
		}
	}
	return state;
}

enum cgi_head_state
cgi_head_feed(struct cgi_head *h, const char *bytes, size_t len)
{
	enum cgi_head_state state;

	buf_add(&h->raw, bytes, len);
	if (h->raw.failed) {
		err_set(&h->error, "out of memory for a response head");
		return CGI_HEAD_BAD;
	}
	state = read_lines(h);
	if (state == CGI_HEAD_MORE && h->scanned == CGI_HEAD_BYTES_MAX) {
		err_set(&h->error, "the response head is longer than %d bytes",
		    CGI_HEAD_BYTES_MAX);
		return CGI_HEAD_BAD;
	}
	return state;
}

const struct cgi_field *
cgi_head_field(const struct cgi_head *h, struct str name)
{
	for (size_t i = 0; i < h->n_fields; i++)
		if (str_eq_nocase(h->field[i].name, name))
			return &h->field[i];
	return NULL;
}
