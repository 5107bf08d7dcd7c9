#include "pure/zone_rule.h"

#include <stddef.h>

#include "pure/civil.h"

#define DAY           INT64_C(86400)
#define HOURS_MAX     167 /* of a time of day: a week, less an hour */
#define DEFAULT_HOURS 2

struct reader {
	struct str rest;
	bool failed;
};

static bool
take(struct reader *r, char c)
{
	if (r->rest.len == 0 || r->rest.p[0] != c)
		return false;
	r->rest.p++;
	r->rest.len--;
	return true;
}

static void
expect(struct reader *r, char c)
{
	if (!take(r, c))
		r->failed = true;
}

static int
take_number(struct reader *r, int least, int most)
{
	int number = 0;
	size_t digits = 0;

	while (r->rest.len > 0 && r->rest.p[0] >= '0' && r->rest.p[0] <= '9' &&
	    digits < 4) {
		number = number * 10 + (r->rest.p[0] - '0');
		digits++;
		r->rest.p++;
		r->rest.len--;
	}
	if (digits == 0 || number < least || number > most)
		r->failed = true;
	return number;
}

/* "CEST" or "<+03>". */
static void
skip_name(struct reader *r)
{
	bool quoted = take(r, '<');
	size_t len = 0;

	while (r->rest.len > 0) {
		char c = r->rest.p[0];
		bool is_letter =
		    (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (!is_letter && (!quoted || c == '>'))
			break;
		len++;
		r->rest.p++;
		r->rest.len--;
	}
	if (quoted)
		expect(r, '>');
	if (len < 3)
		r->failed = true;
}

/* [+-]hh[:mm[:ss]] */
static int64_t
take_time(struct reader *r, int hours_max)
{
	bool negative = take(r, '-');
	int64_t seconds;

	if (!negative)
		take(r, '+');
	seconds = take_number(r, 0, hours_max) * INT64_C(3600);
	if (take(r, ':')) {
		seconds += take_number(r, 0, 59) * INT64_C(60);
		if (take(r, ':'))
			seconds += take_number(r, 0, 59);
	}
	return negative ? -seconds : seconds;
}

static void
take_change(struct reader *r, struct zone_change *c)
{
	*c = (struct zone_change){ .kind = ZONE_DAY };
	if (take(r, 'M')) {
		c->kind = ZONE_WEEKDAY;
		c->month = take_number(r, 1, 12);
		expect(r, '.');
		c->week = take_number(r, 1, 5);
		expect(r, '.');
		c->day = take_number(r, 0, 6);
	} else if (take(r, 'J')) {
		c->kind = ZONE_JULIAN;
		c->day = take_number(r, 1, 365);
	} else {
		c->day = take_number(r, 0, 365);
	}
	c->second = DEFAULT_HOURS * INT64_C(3600);
	if (take(r, '/'))
		c->second = take_time(r, HOURS_MAX);
}

/* POSIX counts offsets westwards. */
bool
zone_rule_parse(struct str text, struct zone_rule *rule)
{
	struct reader r = { text, false };
	struct zone_rule parsed = { 0 };

	skip_name(&r);
	parsed.standard = -take_time(&r, 24);
	if (r.rest.len > 0) {
		parsed.has_summer = true;
		skip_name(&r);
		parsed.summer = parsed.standard + 3600;
		if (r.rest.len > 0 && r.rest.p[0] != ',')
			parsed.summer = -take_time(&r, 24);
		expect(&r, ',');
		take_change(&r, &parsed.begins);
		expect(&r, ',');
		take_change(&r, &parsed.ends);
	}
	if (r.failed || r.rest.len > 0)
		return false;
	*rule = parsed;
	return true;
}

static bool
is_leap(int64_t year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int64_t
day_of_month(int64_t year, const struct zone_change *c)
{
	int64_t first = civil_to_days(year, c->month, 1);
	int64_t next = c->month == 12 ? civil_to_days(year + 1, 1, 1)
				      : civil_to_days(year, c->month + 1, 1);
	int64_t day = first + (c->day - civil_weekday(first) + 7) % 7 +
	    (c->week - 1) * INT64_C(7);

	return day < next ? day : day - 7;
}

/* Days since 1970. */
static int64_t
day_of(int64_t year, const struct zone_change *c)
{
	int64_t first = civil_to_days(year, 1, 1);

	switch (c->kind) {
	case ZONE_JULIAN: /* never the 29th of February */
		return first + c->day - 1 +
		    (is_leap(year) && c->day >= 60 ? 1 : 0);
	case ZONE_DAY:
		return first + c->day;
	case ZONE_WEEKDAY:
		break;
	}
	return day_of_month(year, c);
}

static int64_t
floor_days(int64_t seconds)
{
	return seconds / DAY - (seconds % DAY < 0 ? 1 : 0);
}

int64_t
zone_rule_offset(const struct zone_rule *rule, int64_t at)
{
	int64_t year, begins, ends;
	bool summer;

	if (!rule->has_summer)
		return rule->standard;
	year = civil_of_days(floor_days(at + rule->standard)).year;
	begins = day_of(year, &rule->begins) * DAY + rule->begins.second -
	    rule->standard;
	ends =
	    day_of(year, &rule->ends) * DAY + rule->ends.second - rule->summer;
	summer = begins < ends ? at >= begins && at < ends
			       : at >= begins || at < ends;
	return summer ? rule->summer : rule->standard;
}
