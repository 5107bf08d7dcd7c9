/*
 * Every error shows the item it is about and what would be right in its
 * place. Periods are held in microseconds from here on.
 */
#include "pure/rate.h"

#include <stddef.h>

#define COUNT_MAX  INT64_C(1000000000000)
#define MS         INT64_C(1000)
#define SECOND     (1000 * MS)
#define DAY        (SECOND * 3600 * 24)
#define PERIOD_MAX (DAY * 366)
#define UNITS_TEXT "units are ms s m h d w"
#define MONTH_MAX  (DAY * 31)
#define YEAR_MAX   (DAY * 366)

static const struct {
	struct str name;
	int64_t us;
} units[] = {
	{ { "ms", 2 }, MS },
	{ { "s", 1 }, SECOND },
	{ { "m", 1 }, SECOND * 60 },
	{ { "h", 1 }, SECOND * 3600 },
	{ { "d", 1 }, DAY },
	{ { "w", 1 }, DAY * 7 },
};

static bool
parse_unit(struct str item, struct str name, int64_t *us, struct err *err)
{
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (str_eq(units[i].name, name)) {
			*us = units[i].us;
			return true;
		}
	}
	return err_set(err, "`%.*s`: unknown unit `%.*s`; " UNITS_TEXT,
	    STR_ARG(item), STR_ARG(name));
}

/* "10s" into its digits and the rest. */
static struct str
split_digits(struct str *text)
{
	struct str digits = { text->p, 0 };

	while (digits.len < text->len && text->p[digits.len] >= '0' &&
	    text->p[digits.len] <= '9')
		digits.len++;
	text->p += digits.len;
	text->len -= digits.len;
	return digits;
}

static bool
multiply(struct str item, struct str digits, int64_t unit, int64_t *us,
    struct err *err)
{
	uint64_t n;

	if (!str_to_u64(digits, (uint64_t)(PERIOD_MAX / unit), &n))
		return err_set(
		    err, "`%.*s`: the longest time is 366d", STR_ARG(item));
	*us = (int64_t)n * unit;
	return true;
}

bool
rate_parse_duration(struct str text, int64_t *us, struct err *err)
{
	struct str unit_name = text;
	struct str digits = text.len > 0 ? split_digits(&unit_name) : text;
	int64_t unit = 0;

	if (digits.len == 0)
		return err_set(err,
		    "`%.*s`: a time is a whole number and a unit, such as "
		    "10s; " UNITS_TEXT,
		    STR_ARG(text));
	if (str_eq(text, STR("0"))) {
		*us = 0;
		return true;
	}
	if (unit_name.len == 0)
		return err_set(err, "`%.*s`: the unit is missing; " UNITS_TEXT,
		    STR_ARG(text));
	return parse_unit(text, unit_name, &unit, err) &&
	    multiply(text, digits, unit, us, err);
}

/* "month" or "1month". */
static bool
is_calendar(struct str text, struct str unit)
{
	return str_eq(text, unit) ||
	    (text.len > 0 && text.p[0] == '1' &&
		str_eq((struct str){ text.p + 1, text.len - 1 }, unit));
}

static bool
take_calendar(struct str text, struct rate *rate)
{
	if (is_calendar(text, STR("month"))) {
		rate->calendar = RATE_MONTH;
		rate->period_us = MONTH_MAX;
	} else if (is_calendar(text, STR("year"))) {
		rate->calendar = RATE_YEAR;
		rate->period_us = YEAR_MAX;
	}
	return rate->calendar != RATE_ANY;
}

/* "10s", or "s" for "1s". */
static bool
parse_period(struct str item, struct str text, int64_t *us, struct err *err)
{
	struct str unit_name = text;
	struct str digits = text.len > 0 ? split_digits(&unit_name) : text;
	int64_t unit = 0;

	if (unit_name.len == 0)
		return err_set(err,
		    "`%.*s`: the period's unit is missing; " UNITS_TEXT,
		    STR_ARG(item));
	if (!parse_unit(item, unit_name, &unit, err))
		return false;
	*us = unit;
	if (digits.len > 0 && !multiply(item, digits, unit, us, err))
		return false;
	if (*us == 0)
		return err_set(
		    err, "`%.*s`: a period is at least 1ms", STR_ARG(item));
	return true;
}

static bool
parse_count(struct str item, struct str text, const char *what, int64_t *count,
    struct err *err)
{
	uint64_t n;

	if (!str_to_u64(text, COUNT_MAX, &n) || n == 0)
		return err_set(err,
		    "`%.*s`: `%.*s` is no %s; it is a whole number from 1 to "
		    "10^12",
		    STR_ARG(item), STR_ARG(text), what);
	*count = (int64_t)n;
	return true;
}

/* " burst 20" behind a period. */
static bool
parse_burst(
    struct str item, struct str text, struct rate *rate, struct err *err)
{
	struct str number = str_trim(text);
	struct str word = str_cut(&number, ' ');

	if (!str_eq(word, STR("burst")))
		return err_set(err,
		    "`%.*s`: `%.*s` behind the period; only `burst N` may "
		    "stand there",
		    STR_ARG(item), STR_ARG(word));
	rate->has_burst = true;
	return parse_count(item, str_trim(number), "burst", &rate->burst, err);
}

static bool
is_number(struct str text)
{
	uint64_t n;

	return str_to_u64(text, UINT64_MAX, &n);
}

static bool
parse_item(struct str item, struct rate *rate, struct err *err)
{
	struct str rest = item;
	struct str count = str_cut(&rest, '/');
	struct str period;

	if (rest.p == NULL && !is_number(item))
		return err_set(err,
		    "`%.*s`: no rate; it is written N/PERIOD, such as 10/1s, "
		    "or unlimited or deny",
		    STR_ARG(item));
	if (!parse_count(item, count, "count", &rate->count, err))
		return false;
	rate->burst = rate->count;
	if (rest.p == NULL)
		return true;
	period = str_cut(&rest, ' ');
	if (!take_calendar(period, rate) &&
	    !parse_period(item, period, &rate->period_us, err))
		return false;
	return rest.p == NULL || parse_burst(item, rest, rate, err);
}

static bool
is_new_period(const struct rates *rates, const struct rate *rate)
{
	for (size_t i = 0; i < rates->n; i++)
		if (rates->rate[i].period_us == rate->period_us)
			return false;
	return true;
}

static bool
add_item(struct rates *rates, struct str item, struct err *err)
{
	struct rate rate = { 0 };

	if (!parse_item(item, &rate, err))
		return false;
	if (!is_new_period(rates, &rate))
		return err_set(err,
		    "`%.*s`: a second rate of the same period; each rate of a "
		    "limit needs its own",
		    STR_ARG(item));
	if (rates->n == RATES_MAX)
		return err_set(err,
		    "`%.*s`: one rate too many; a limit takes %d",
		    STR_ARG(item), RATES_MAX);
	rates->rate[rates->n++] = rate;
	return true;
}

bool
rate_parse(struct str text, struct rates *rates, struct err *err)
{
	struct rates parsed = { .kind = RATES_LIST };
	struct str rest = str_trim(text);

	if (str_eq(rest, STR("unlimited"))) {
		parsed.kind = RATES_UNLIMITED;
	} else if (str_eq(rest, STR("deny"))) {
		parsed.kind = RATES_DENY;
	} else {
		do {
			struct str item = str_trim(str_cut(&rest, ','));

			if (!add_item(&parsed, item, err))
				return false;
		} while (rest.p != NULL);
	}
	*rates = parsed;
	return true;
}
