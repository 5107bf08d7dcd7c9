#include "pure/template.h"

#include <string.h>

#include "pure/json.h"

enum place {
	PLACE_LIMIT,
	PLACE_RETRY_AFTER,
	PLACE_MESSAGE,
	PLACE_REQUEST_ID,
	PLACES
};

static const struct str names[PLACES] = {
	[PLACE_LIMIT] = { "{limit}", 7 },
	[PLACE_RETRY_AFTER] = { "{retry_after}", 13 },
	[PLACE_MESSAGE] = { "{message}", 9 },
	[PLACE_REQUEST_ID] = { "{request_id}", 12 },
};

static struct str
value_of(enum place place, const struct template_values *values)
{
	switch (place) {
	case PLACE_LIMIT:
		return values->limit;
	case PLACE_RETRY_AFTER:
		return values->retry_after;
	case PLACE_MESSAGE:
		return values->message;
	case PLACE_REQUEST_ID:
		return values->request_id;
	case PLACES:
		break;
	}
	return STR_NONE;
}

void
template_add_html(struct buf *out, struct str text)
{
	for (size_t i = 0; i < text.len; i++)
		switch (text.p[i]) {
		case '&':
			buf_addf(out, "&amp;");
			break;
		case '<':
			buf_addf(out, "&lt;");
			break;
		case '>':
			buf_addf(out, "&gt;");
			break;
		case '"':
			buf_addf(out, "&quot;");
			break;
		case '\'':
			buf_addf(out, "&#39;");
			break;
		default:
			buf_add_char(out, text.p[i]);
		}
}

static void
add_escaped(struct buf *out, struct str value, enum accept_type type)
{
	if (type == ACCEPT_HTML)
		template_add_html(out, value);
	else if (type == ACCEPT_JSON)
		json_add_escaped(out, value);
	else
		buf_add_str(out, value);
}

/* The place that the text begins with; PLACES: none. */
static enum place
place_at(struct str text)
{
	int i = 0;

	while (i < PLACES && !str_starts(text, names[i]))
		i++;
	return (enum place)i;
}

/* Cuts *text before the next brace that opens. */
static struct str
cut_literal(struct str *text)
{
	struct str literal = *text;
	const char *brace =
	    text->len == 0 ? NULL : memchr(text->p, '{', text->len);

	if (brace != NULL)
		literal.len = (size_t)(brace - text->p);
	text->p += literal.len;
	text->len -= literal.len;
	return literal;
}

void
template_fill(struct buf *out, struct str text, enum accept_type type,
    const struct template_values *values)
{
	for (;;) {
		enum place place;
		size_t n = 1;

		buf_add_str(out, cut_literal(&text));
		if (text.len == 0)
			return;
		place = place_at(text);
		if (place == PLACES) {
			buf_add_char(out, '{');
		} else {
			add_escaped(out, value_of(place, values), type);
			n = names[place].len;
		}
		text.p += n;
		text.len -= n;
	}
}

bool
template_has_request_id(struct str text)
{
	return text.len > 0 &&
	    memmem(text.p, text.len, names[PLACE_REQUEST_ID].p,
		names[PLACE_REQUEST_ID].len) != NULL;
}

static bool
check_utf8(struct str text, struct err *err)
{
	for (size_t at = 0; at < text.len;) {
		struct str rest = { text.p + at, text.len - at };
		size_t n = json_utf8_length(rest);

		if (n == 0)
			return err_set(err, "byte %zu is no UTF-8", at + 1);
		if (rest.p[0] == '\0')
			return err_set(err, "byte %zu is a NUL", at + 1);
		at += n;
	}
	return true;
}

bool
template_check(struct str text, enum accept_type type, struct err *err)
{
	static const struct template_values sample = {
		.limit = { "name", 4 },
		.retry_after = { "60", 2 },
		.message = { "\"A\" \\ message.", 14 },
		.request_id = { "0123456789abcdef", 16 },
	};
	struct buf filled;
	size_t at;
	bool is_good = true;

	if (!check_utf8(text, err))
		return false;
	if (type != ACCEPT_JSON)
		return true;
	buf_init(&filled);
	template_fill(&filled, text, type, &sample);
	if (filled.failed)
		is_good = err_set(err, "out of memory");
	else if (!json_is_valid(buf_str(&filled), &at))
		is_good = err_set(err,
		    "once filled in it is no JSON, from its byte %zu on",
		    at + 1);
	buf_release(&filled);
	return is_good;
}

struct str
template_unknown(struct str text)
{
	for (;;) {
		size_t n = 1;

		cut_literal(&text);
		if (text.len == 0)
			return STR_NONE;
		while (n < text.len &&
		    ((text.p[n] >= 'a' && text.p[n] <= 'z') ||
			text.p[n] == '_'))
			n++;
		if (n > 1 && n < text.len && text.p[n] == '}' &&
		    place_at(text) == PLACES)
			return (struct str){ text.p, n + 1 };
		text.p++;
		text.len--;
	}
}
