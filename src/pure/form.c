/*
 * PHP decodes a field's name, passes over the blanks in front, takes it to
 * end at a NUL, and writes `_` for what its variables can not have in their
 * names. Who could send `user.name` past a limit on `user_name` would log in
 * as often as he likes.
 */
#include "pure/form.h"

#include "pure/percent.h"

static bool
is_separator(char c)
{
	return c == ';' || c == ',' || c == ' ' || c == '\t';
}

bool
form_is_urlencoded(struct str content_type)
{
	struct str type = str_trim(content_type);
	size_t len = 0;

	while (len < type.len && !is_separator(type.p[len]))
		len++;
	type.len = len;
	return str_eq_nocase(type, STR("application/x-www-form-urlencoded"));
}

static char
fold(char c)
{
	return c == ' ' || c == '.' || c == '[' ? '_' : c;
}

static size_t
behind_blanks(struct str raw)
{
	size_t at = 0;

	while (at < raw.len) {
		char byte;
		size_t taken = percent_form_byte(raw, at, &byte);

		if (byte != ' ')
			break;
		at += taken;
	}
	return at;
}

static bool
is_name(struct str raw, struct str name)
{
	size_t n = 0;

	for (size_t at = behind_blanks(raw); at < raw.len; n++) {
		char byte;

		at += percent_form_byte(raw, at, &byte);
		if (byte == '\0')
			break;
		if (n == name.len || fold(byte) != fold(name.p[n]))
			return false;
	}
	return n == name.len;
}

/* The value of the next field of that name, still encoded; false: no more. */
static bool
next_value(struct str *rest, struct str name, struct str *raw)
{
	while (rest->p != NULL) {
		struct str pair_name;

		*raw = str_cut(rest, '&');
		pair_name = str_cut(raw, '=');
		if (is_name(pair_name, name))
			return true;
	}
	return false;
}

bool
form_get(
    struct str body, struct str name, struct arena *arena, struct str *value)
{
	struct str raw;

	*value = STR_NONE;
	return !next_value(&body, name, &raw) ||
	    percent_decode(raw, percent_form_byte, arena, value);
}

/* Are they the same once decoded? */
static bool
are_same(struct str a, struct str b)
{
	size_t at = 0, bt = 0;

	while (at < a.len && bt < b.len) {
		char byte_a, byte_b;

		at += percent_form_byte(a, at, &byte_a);
		bt += percent_form_byte(b, bt, &byte_b);
		if (byte_a != byte_b)
			return false;
	}
	return at == a.len && bt == b.len;
}

bool
form_disagrees(struct str body, struct str name)
{
	struct str first, other;

	if (!next_value(&body, name, &first))
		return false;
	while (next_value(&body, name, &other))
		if (!are_same(first, other))
			return true;
	return false;
}
