#include "pure/field.h"

#include <stdint.h>
#include <string.h>

#define DAY_SECONDS   86400
#define YEAR_9999_END INT64_C(253402300799)

static bool
is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_one_of(char c, const char *set)
{
	return c != '\0' && strchr(set, c) != NULL;
}

bool
field_is_name(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!is_letter(s.p[i]) && !is_digit(s.p[i]) &&
		    !is_one_of(s.p[i], "!#$%&'*+-.^_`|~"))
			return false;
	return s.len > 0;
}

bool
field_is_value(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if ((c < ' ' && c != '\t') || c == 0x7f)
			return false;
	}
	return str_trim(s).len == s.len;
}

static size_t
behind_string(struct str s, size_t at)
{
	for (at++; at < s.len && s.p[at] != '"'; at++)
		if (s.p[at] == '\\')
			at++;
	return at < s.len ? at + 1 : s.len;
}

struct str
field_cut(struct str *rest, const char *separators)
{
	struct str piece = *rest;
	size_t at = 0;

	while (at < rest->len && !is_one_of(rest->p[at], separators))
		at = rest->p[at] == '"' ? behind_string(*rest, at) : at + 1;
	piece.len = at;
	if (at < rest->len)
		*rest = (struct str){ rest->p + at + 1, rest->len - at - 1 };
	else
		*rest = STR_NONE;
	return piece;
}

bool
field_is_origin(struct str s)
{
	struct str rest = s;
	struct str scheme = str_cut(&rest, ':');

	for (size_t i = 0; i < scheme.len; i++)
		if ((scheme.p[i] < 'a' || scheme.p[i] > 'z') &&
		    (i == 0 || !is_digit(scheme.p[i])))
			return false;
	if (scheme.len == 0 || rest.len < 3 || rest.p[0] != '/' ||
	    rest.p[1] != '/')
		return false;
	for (size_t i = 2; i < rest.len; i++)
		if ((rest.p[i] < 'a' || rest.p[i] > 'z') &&
		    !is_digit(rest.p[i]) && !is_one_of(rest.p[i], "-._[]:"))
			return false;
	return rest.p[rest.len - 1] != ':';
}

static bool
is_leap(int64_t year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int
days_of(ptrdiff_t month, int64_t year)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30,
		31 };

	return days[month] + (month == 1 && is_leap(year) ? 1 : 0);
}

/* In English whatever the locale, which strftime is not. */
void
field_add_date(struct buf *out, int64_t seconds)
{
	static const char weekdays[] = "ThuFriSatSunMonTueWed";
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	int64_t day, second;
	int64_t year = 1970;
	ptrdiff_t month = 0;
	ptrdiff_t weekday;

	if (seconds > YEAR_9999_END)
		seconds = YEAR_9999_END;
	if (seconds < 0)
		seconds = 0;
	day = seconds / DAY_SECONDS;
	second = seconds % DAY_SECONDS;
	weekday = (ptrdiff_t)(day % 7);
	for (; day >= (is_leap(year) ? 366 : 365); year++)
		day -= is_leap(year) ? 366 : 365;
	for (; day >= days_of(month, year); month++)
		day -= days_of(month, year);
	buf_addf(out, "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT",
	    weekdays + weekday * 3, (int)day + 1, months + month * 3, (int)year,
	    (int)(second / 3600), (int)(second / 60 % 60), (int)(second % 60));
}
