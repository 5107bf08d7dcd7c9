#include "config/value_number.h"

#include <string.h>

#include "base/buf.h"
#include "config/config.h"
#include "pure/rate.h"

static bool
is_within(const struct option *o, int64_t number, struct err *err)
{
	struct buf bounds;

	if (number >= o->low && number <= o->high)
		return true;
	buf_init(&bounds);
	option_print_bounds(&bounds, o);
	err_set(err, "must be %.*s", STR_ARG(buf_str(&bounds)));
	buf_release(&bounds);
	return false;
}

static bool
set_count(
    const struct option *o, struct str text, uint64_t *field, struct err *err)
{
	uint64_t number;

	if (!str_to_u64(text, INT64_MAX, &number))
		return err_set(err, "`%.*s` is no whole number", STR_ARG(text));
	if (!is_within(o, (int64_t)number, err))
		return false;
	*field = number;
	return true;
}

static bool
set_percent(
    const struct option *o, struct str text, uint64_t *field, struct err *err)
{
	struct str digits = { text.p, text.len - 1 };

	if (text.p[digits.len] != '%')
		return err_set(err, "`%.*s` is no share (10%%)", STR_ARG(text));
	return set_count(o, digits, field, err);
}

/* The power of two a unit stands for; -1: it is none. */
static int
unit_shift(char unit)
{
	switch (unit) {
	case 'k':
		return 10;
	case 'm':
		return 20;
	case 'g':
		return 30;
	case 't':
		return 40;
	default:
		return -1;
	}
}

static bool
set_size(
    const struct option *o, struct str text, uint64_t *field, struct err *err)
{
	struct str digits = text;
	uint64_t number;
	int shift = unit_shift(text.p[text.len - 1]);

	if (shift < 0)
		shift = 0;
	else
		digits.len--;
	if (!str_to_u64(digits, INT64_MAX >> shift, &number))
		return err_set(err,
		    "`%.*s` is no size (64k, 10m, 1g, or bytes)",
		    STR_ARG(text));
	number <<= shift;
	if (!is_within(o, (int64_t)number, err))
		return false;
	*field = number;
	return true;
}

static bool
set_duration(
    const struct option *o, struct str text, int64_t *field, struct err *err)
{
	int64_t us;

	if (!rate_parse_duration(text, &us, err) || !is_within(o, us, err))
		return false;
	*field = us;
	return true;
}

static bool
set_lease(
    const struct option *o, struct str text, uint64_t *field, struct err *err)
{
	uint64_t number;

	if (str_eq(text, STR("auto"))) {
		*field = CONFIG_LEASE_AUTO;
		return true;
	}
	if (!str_to_u64(text, UINT64_MAX, &number))
		return err_set(err, "`%.*s` is neither auto nor a whole number",
		    STR_ARG(text));
	return set_count(o, text, field, err);
}

static bool
set_mode(
    const struct option *o, struct str text, uint64_t *field, struct err *err)
{
	uint64_t mode = 0;

	for (size_t i = 0; i < text.len; i++) {
		if (text.len > 5 || text.p[i] < '0' || text.p[i] > '7')
			return err_set(err, "`%.*s` is no octal mode (0660)",
			    STR_ARG(text));
		mode = mode * 8 + (uint64_t)(text.p[i] - '0');
	}
	if (!is_within(o, (int64_t)mode, err))
		return false;
	*field = mode;
	return true;
}

static bool
set_word(
    const struct option *o, struct str text, uint64_t *field, struct err *err)
{
	struct str rest = str_of(o->words);
	struct buf words;

	for (uint64_t i = (uint64_t)o->low; rest.p != NULL; i++) {
		if (!str_eq(text, str_cut(&rest, ' ')))
			continue;
		*field = i;
		return true;
	}
	buf_init(&words);
	option_print_bounds(&words, o);
	err_set(err, "`%.*s` is none of %.*s", STR_ARG(text),
	    STR_ARG(buf_str(&words)));
	buf_release(&words);
	return false;
}

/* A bit for each word, in their order; `none` stands alone for no bit. */
static bool
set_words(
    const struct option *o, struct str text, uint64_t *field, struct err *err)
{
	bool is_list = memchr(text.p, ',', text.len) != NULL;
	uint64_t set = 0;

	while (text.p != NULL) {
		struct str word = str_trim(str_cut(&text, ','));
		uint64_t at;

		if (!set_word(o, word, &at, err))
			return false;
		if (str_eq(word, STR("none"))) {
			if (is_list)
				return err_set(err, "none stands alone");
			break;
		}
		if ((set >> at & 1) != 0)
			return err_set(
			    err, "`%.*s` is named twice", STR_ARG(word));
		set |= UINT64_C(1) << at;
	}
	*field = set;
	return true;
}

bool
value_number(
    const struct option *o, struct str text, void *field, struct err *err)
{
	if (o->kind == OPTION_COUNT)
		return set_count(o, text, field, err);
	if (o->kind == OPTION_SIZE)
		return set_size(o, text, field, err);
	if (o->kind == OPTION_DURATION)
		return set_duration(o, text, field, err);
	if (o->kind == OPTION_PERCENT)
		return set_percent(o, text, field, err);
	if (o->kind == OPTION_LEASE)
		return set_lease(o, text, field, err);
	if (o->kind == OPTION_MODE)
		return set_mode(o, text, field, err);
	if (o->kind == OPTION_WORDS)
		return set_words(o, text, field, err);
	return set_word(o, text, field, err);
}
