#include "pure/numbers.h"

#include <inttypes.h>

#include "pure/field.h"

__extension__ typedef __int128 wide;

/* What a structured field can hold (RFC 9651, 3.3.1). */
#define INTEGER_MAX INT64_C(999999999999999)

int64_t
numbers_seconds(int64_t us)
{
	return us <= 0 ? 0 : (us - 1) / 1000000 + 1;
}

/* a * b / c, rounded up. */
static int64_t
ratio(int64_t a, int64_t b, int64_t c)
{
	wide product = (wide)a * b;
	wide result = product / c + (product % c > 0 ? 1 : 0);

	return result > INT64_MAX ? INT64_MAX : (int64_t)result;
}

static int64_t
bounded(int64_t number)
{
	return number > INTEGER_MAX ? INTEGER_MAX : number;
}

struct numbers_rate
numbers_rate(const char *limit, bool is_one_of_many, const struct check *check,
    const struct verdict *verdict)
{
	struct numbers_rate rate = {
		.limit = limit,
		.is_one_of_many = is_one_of_many,
		.period_us = check->period_us,
		.units = verdict->limit,
		.per_us = check->period_us,
		.verdict = *verdict,
	};

	switch (check->algorithm) {
	case ALGORITHM_TOKEN_BUCKET:
	case ALGORITHM_LEAKY_BUCKET:
		rate.units =
		    verdict->own_count > 0 ? verdict->own_count : check->count;
		break;
	case ALGORITHM_CONCURRENCY:
		rate.is_in_flight = true;
		rate.per_us = 0;
		break;
	case ALGORITHM_FIXED_WINDOW:
		if (check->align != ALIGN_CALENDAR)
			break;
		rate.is_calendar = true;
		rate.per_us = check->boundary_us[2] - check->boundary_us[1];
		break;
	case ALGORITHM_SLIDING_WINDOW:
	case ALGORITHM_SLIDING_LOG:
		break;
	}
	return rate;
}

static bool
has_window(const struct numbers_rate *rate)
{
	return rate->per_us > 0 && rate->units > 0;
}

/* The seconds in which n units come back. */
static int64_t
seconds_of(const struct numbers_rate *rate, int64_t n)
{
	return bounded(numbers_seconds(ratio(n, rate->per_us, rate->units)));
}

/* A month and a year of the calendar go by their longest. */
#define MONTH_US (31 * INT64_C(86400000000))
#define YEAR_US  (366 * INT64_C(86400000000))

static void
add_period(struct buf *out, int64_t us)
{
	static const struct {
		int64_t ms;
		const char *unit;
	} units[] = {
		{ INT64_C(7) * 86400000, "w" },
		{ 86400000, "d" },
		{ 3600000, "h" },
		{ 60000, "m" },
		{ 1000, "s" },
		{ 1, "ms" },
	};
	int64_t ms = us / 1000;
	size_t i = 0;

	while (ms % units[i].ms != 0)
		i++;
	buf_addf(out, "%" PRId64 "%s", ms / units[i].ms, units[i].unit);
}

void
numbers_add_name(struct buf *out, const struct numbers_rate *rate)
{
	buf_add_str(out, str_of(rate->limit));
	if (!rate->is_one_of_many)
		return;
	buf_add_char(out, '-');
	if (rate->is_calendar && rate->period_us == MONTH_US)
		buf_addf(out, "1month");
	else if (rate->is_calendar && rate->period_us == YEAR_US)
		buf_addf(out, "1year");
	else
		add_period(out, rate->period_us);
}

static void
add_line(struct buf *out, const char *name, int64_t number)
{
	buf_add_str(out, str_of(name));
	buf_add_str(out, STR(": "));
	buf_add_i64(out, number);
	buf_add_str(out, STR("\r\n"));
}

/* Under the names of its three lines. */
static void
write_three(struct buf *out, const struct numbers *numbers, uint64_t reset,
    const char *const name[3])
{
	const struct verdict *v = &numbers->spoken->verdict;

	add_line(out, name[0], v->limit);
	add_line(out, name[1], v->remaining);
	if (numbers->spoken->is_in_flight)
		return;
	add_line(out, name[2],
	    numbers_seconds(reset == NUMBERS_RESET_EPOCH
		    ? numbers->at_us + v->full_us
		    : v->full_us));
}

static void
write_x(struct buf *out, const struct numbers *numbers, uint64_t reset)
{
	static const char *const name[] = { "X-RateLimit-Limit",
		"X-RateLimit-Remaining", "X-RateLimit-Reset" };

	write_three(out, numbers, reset, name);
}

static void
write_draft_03(struct buf *out, const struct numbers *numbers)
{
	const struct numbers_rate *rate = numbers->spoken;
	const struct verdict *v = &rate->verdict;

	buf_addf(out, "RateLimit-Limit: %" PRId64, v->limit);
	if (has_window(rate))
		buf_addf(out, ", %" PRId64 ";w=%" PRId64, v->limit,
		    seconds_of(rate, v->limit));
	buf_addf(out, "\r\n");
	add_line(out, "RateLimit-Remaining", v->remaining);
	if (!rate->is_in_flight)
		add_line(out, "RateLimit-Reset", numbers_seconds(v->full_us));
}

static void
add_policy(struct buf *out, const struct numbers_rate *rate)
{
	buf_add_char(out, '"');
	numbers_add_name(out, rate);
	buf_addf(out, "\";q=%" PRId64, bounded(rate->verdict.limit));
	if (rate->is_in_flight)
		buf_addf(out, ";qu=\"concurrent-requests\"");
	else if (has_window(rate))
		buf_addf(
		    out, ";w=%" PRId64, seconds_of(rate, rate->verdict.limit));
}

/*
 * Who spends r within t is not to be refused: so t is the longer of the
 * wait for one more and the time in which that many come.
 */
static int64_t
time_for_remaining(const struct numbers_rate *rate)
{
	int64_t next = bounded(numbers_seconds(rate->verdict.next_us));
	int64_t pace = seconds_of(rate, rate->verdict.remaining);

	return next > pace ? next : pace;
}

static void
write_draft_11(struct buf *out, const struct numbers *numbers)
{
	const struct numbers_rate *spoken = numbers->spoken;

	for (size_t i = 0; i < numbers->n; i++) {
		buf_addf(out, i == 0 ? "RateLimit-Policy: " : ", ");
		add_policy(out, &numbers->rate[i]);
	}
	buf_addf(out, "%sRateLimit: \"", numbers->n > 0 ? "\r\n" : "");
	numbers_add_name(out, spoken);
	buf_addf(out, "\";r=%" PRId64, bounded(spoken->verdict.remaining));
	if (has_window(spoken))
		buf_addf(out, ";t=%" PRId64, time_for_remaining(spoken));
	buf_addf(out, "\r\n");
}

void
numbers_write(struct buf *out, const struct numbers *numbers,
    const struct numbers_style *style)
{
	if ((style->families & NUMBERS_X_RATELIMIT) != 0)
		write_x(out, numbers, style->reset);
	if ((style->families & NUMBERS_DRAFT_03) != 0)
		write_draft_03(out, numbers);
	if ((style->families & NUMBERS_DRAFT_11) != 0)
		write_draft_11(out, numbers);
}

void
numbers_write_variables(struct buf *out, const struct numbers *numbers,
    const struct numbers_style *style)
{
	static const char *const name[] = { "Variable-RATELIMIT_LIMIT",
		"Variable-RATELIMIT_REMAINING", "Variable-RATELIMIT_RESET" };

	write_three(out, numbers, style->reset, name);
}

void
numbers_add_field_names(struct buf *out, uint64_t families)
{
	buf_addf(out, "Retry-After");
	if ((families & NUMBERS_X_RATELIMIT) != 0)
		buf_addf(out,
		    ", X-RateLimit-Limit, X-RateLimit-Remaining, "
		    "X-RateLimit-Reset");
	if ((families & NUMBERS_DRAFT_03) != 0)
		buf_addf(out,
		    ", RateLimit-Limit, RateLimit-Remaining, "
		    "RateLimit-Reset");
	if ((families & NUMBERS_DRAFT_11) != 0)
		buf_addf(out, ", RateLimit-Policy, RateLimit");
}

static bool
starts_nocase(struct str s, struct str prefix)
{
	return s.len >= prefix.len &&
	    str_eq_nocase((struct str){ s.p, prefix.len }, prefix);
}

/*
 * By their beginnings: an application that has ours replaced is not left
 * with its X-RateLimit-Used or X-RateLimit-Limit-Minute beside them.
 */
bool
numbers_is_field(struct str name)
{
	return starts_nocase(name, STR("X-RateLimit-")) ||
	    starts_nocase(name, STR("X-Rate-Limit-")) ||
	    starts_nocase(name, STR("RateLimit-")) ||
	    str_eq_nocase(name, STR("RateLimit"));
}

/* `"name";r=5;t=3` of -11, `limit=10, remaining=5, reset=3` of -07. */
static bool
least_of_list(struct str value, int64_t *remaining)
{
	bool found = false;

	while (value.p != NULL) {
		struct str number = str_trim(field_cut(&value, ";,"));
		struct str name = str_cut(&number, '=');
		uint64_t n;

		if ((!str_eq(name, STR("r")) &&
			!str_eq(name, STR("remaining"))) ||
		    !str_to_u64(number, INT64_MAX, &n) ||
		    (found && (int64_t)n >= *remaining))
			continue;
		*remaining = (int64_t)n;
		found = true;
	}
	return found;
}

bool
numbers_remaining(struct str name, struct str value, int64_t *remaining)
{
	uint64_t n;

	if (str_eq_nocase(name, STR("RateLimit")))
		return least_of_list(value, remaining);
	if ((!str_eq_nocase(name, STR("X-RateLimit-Remaining")) &&
		!str_eq_nocase(name, STR("X-Rate-Limit-Remaining")) &&
		!str_eq_nocase(name, STR("RateLimit-Remaining"))) ||
	    !str_to_u64(str_trim(value), INT64_MAX, &n))
		return false;
	*remaining = (int64_t)n;
	return true;
}
