#include "config/source_line.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * Length of the UTF-8 sequence at the front (RFC 3629: no surrogates,
 * nothing above U+10FFFF, no longer form than needed); 0: it is none.
 */
static size_t
utf8_length(const unsigned char *p, size_t len)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t n;

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	if (len < n || p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if (p[i] < 0x80 || p[i] > 0xbf)
			return 0;
	return n;
}

static bool
is_utf8(struct str text)
{
	const unsigned char *p = (const unsigned char *)text.p;
	size_t i = 0;

	while (i < text.len) {
		size_t n = utf8_length(p + i, text.len - i);

		if (n == 0)
			return false;
		i += n;
	}
	return true;
}

static bool
has_control(struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.p[i];

		if ((c < 32 && c != '\t') || c == 127)
			return true;
	}
	return false;
}

static bool
holds(struct str text, char c)
{
	return text.len > 0 && memchr(text.p, c, text.len) != NULL;
}

static bool
check_bytes(struct str line, struct err *err)
{
	if (line.len > SOURCE_LINE_MAX)
		return err_set(
		    err, "the line is longer than %d bytes", SOURCE_LINE_MAX);
	if (holds(line, '\0'))
		return err_set(err, "a NUL byte in the line");
	if (holds(line, '\r'))
		return err_set(err, "a carriage return inside the line");
	if (has_control(line))
		return err_set(err, "a control character in the line");
	if (!is_utf8(line))
		return err_set(err, "the line is not valid UTF-8");
	return true;
}

static enum source_line
bad(struct err *err, const char *text)
{
	err_set(err, "%s", text);
	return SOURCE_BAD;
}

static enum source_line
read_section(struct str line, struct str *name, struct err *err)
{
	struct str rest = { line.p + 1, line.len - 1 };

	*name = str_cut(&rest, ']');
	if (rest.p == NULL)
		return bad(err, "the section's name has no ] at its end");
	if (str_trim(rest).len > 0)
		return bad(err, "text after the ] of a section");
	if (str_trim(*name).len == 0)
		return bad(err, "the section has no name");
	return SOURCE_SECTION;
}

static enum source_line
read_option(
    struct str line, struct str *name, struct str *value, struct err *err)
{
	*value = line;
	*name = str_cut(value, '=');
	if (holds(*name, ':'))
		return bad(err, "a : before any =; write NAME = VALUE");
	if (value->p == NULL)
		return bad(err, "a line without =; write NAME = VALUE");
	*name = str_trim(*name);
	*value = str_trim(*value);
	if (name->len == 0)
		return bad(err, "no name before the =");
	return SOURCE_OPTION;
}

enum source_line
source_line_read(
    struct str line, struct str *name, struct str *value, struct err *err)
{
	if (!check_bytes(line, err))
		return SOURCE_BAD;
	if (str_trim(line).len == 0 || line.p[0] == '#' || line.p[0] == ';')
		return SOURCE_BLANK;
	if (line.p[0] == ' ' || line.p[0] == '\t')
		return bad(err, "the line is indented");
	if (line.p[0] == '[')
		return read_section(line, name, err);
	return read_option(line, name, value, err);
}

/* *rest stands behind "${"; moves behind the "}". */
static bool
expand_variable(struct str *rest, struct buf *out, struct err *err)
{
	struct str name = str_cut(rest, '}');
	char text[128];
	struct str value;

	if (rest->p == NULL) {
		err_set(err, "${ without a } ($${ is a plain ${)");
		return false;
	}
	if (name.len == 0 || name.len >= sizeof(text))
		return err_set(err, "no variable's name in ${}");
	memcpy(text, name.p, name.len);
	text[name.len] = '\0';
	value = str_of(getenv(text));
	if (value.p == NULL)
		return err_set(err, "${%s}: there is no such variable", text);
	if (has_control(value) || !is_utf8(value))
		return err_set(err,
		    "${%s}: the variable holds a control character or is "
		    "not valid UTF-8",
		    text);
	buf_add_str(out, value);
	return true;
}

bool
source_line_expand(struct str value, struct buf *out, struct err *err)
{
	while (value.len > 0) {
		if (str_starts(value, STR("$${"))) {
			buf_add(out, "${", 2);
			value = (struct str){ value.p + 3, value.len - 3 };
		} else if (str_starts(value, STR("${"))) {
			value = (struct str){ value.p + 2, value.len - 2 };
			if (!expand_variable(&value, out, err))
				return false;
		} else {
			buf_add_char(out, value.p[0]);
			value = (struct str){ value.p + 1, value.len - 1 };
		}
	}
	return out->failed ? err_set(err, "out of memory") : true;
}
