/*
 * Days and longer: a window begins at the first moment at which the date is
 * that of its first day; where midnight does not exist or comes twice, that
 * is where the clocks are changed. Hours and minutes pass evenly, whatever
 * the clocks do, but for a zone that is moved by half an hour: there one is
 * cut short.
 */
#include "pure/calendar.h"

#include "pure/civil.h"

#define SECOND_US INT64_C(1000000)
#define MINUTE    INT64_C(60)
#define HOUR      (60 * MINUTE)
#define DAY       (24 * HOUR)
#define FAR       (30 * HOUR) /* farther than any zone is off */

struct window {
	int64_t start, end; /* UTC seconds */
};

bool
calendar_unit_of(const struct rate *rate, enum calendar_unit *unit)
{
	static const struct {
		int64_t seconds;
		enum calendar_unit unit;
	} units[] = {
		{ MINUTE, CALENDAR_MINUTE },
		{ HOUR, CALENDAR_HOUR },
		{ DAY, CALENDAR_DAY },
		{ 7 * DAY, CALENDAR_WEEK },
	};

	if (rate->calendar != RATE_ANY) {
		*unit = rate->calendar == RATE_MONTH ? CALENDAR_MONTH
						     : CALENDAR_YEAR;
		return true;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (rate->period_us != units[i].seconds * SECOND_US)
			continue;
		*unit = units[i].unit;
		return true;
	}
	return false;
}

static int64_t
floor_to(int64_t a, int64_t b)
{
	int64_t over = a % b;

	return a - (over < 0 ? over + b : over);
}

/* What the clock on the wall says, as if it were UTC. */
static int64_t
wall(const struct zone *zone, int64_t at)
{
	return at + zone_offset(zone, at);
}

/* The first moment at which the clock on the wall says `local` or later. */
static int64_t
when_wall_says(const struct zone *zone, int64_t local)
{
	int64_t before = local - FAR, after = local + FAR;

	while (after - before > 1) {
		int64_t middle = before + (after - before) / 2;

		if (wall(zone, middle) >= local)
			after = middle;
		else
			before = middle;
	}
	return after;
}

/* The first moment in (before, after] with the offset that `after` has. */
static int64_t
when_changed(const struct zone *zone, int64_t before, int64_t after)
{
	int64_t offset = zone_offset(zone, after);

	while (after - before > 1) {
		int64_t middle = before + (after - before) / 2;

		if (zone_offset(zone, middle) == offset)
			after = middle;
		else
			before = middle;
	}
	return after;
}

static struct window
even_window(const struct zone *zone, int64_t length, int64_t at)
{
	int64_t offset = zone_offset(zone, at);
	struct window w;

	w.start = floor_to(at + offset, length) - offset;
	w.end = w.start + length;
	if (zone_offset(zone, w.start) != offset)
		w.start = when_changed(zone, w.start, at);
	if (zone_offset(zone, w.end - 1) != offset)
		w.end = when_changed(zone, at, w.end - 1);
	return w;
}

/* The first day, since 1970, of the unit that a day is in, `ahead` of it. */
static int64_t
first_day(enum calendar_unit unit, int64_t day, int ahead)
{
	struct civil date = civil_of_days(day);
	int64_t months;

	switch (unit) {
	case CALENDAR_WEEK:
		return day - (civil_weekday(day) + 6) % 7 + ahead * INT64_C(7);
	case CALENDAR_MONTH:
		months = date.year * 12 + date.month - 1 + ahead;
		return civil_to_days(months / 12, (int)(months % 12) + 1, 1);
	case CALENDAR_YEAR:
		return civil_to_days(date.year + ahead, 1, 1);
	case CALENDAR_MINUTE:
	case CALENDAR_HOUR:
	case CALENDAR_DAY:
	case CALENDAR_UNITS:
		break;
	}
	return day + ahead;
}

static struct window
window_of_day(const struct zone *zone, enum calendar_unit unit, int64_t day)
{
	return (struct window){
		when_wall_says(zone, first_day(unit, day, 0) * DAY),
		when_wall_says(zone, first_day(unit, day, 1) * DAY),
	};
}

/* Clocks set back over midnight say the day before once more. */
static struct window
dated_window(const struct zone *zone, enum calendar_unit unit, int64_t at)
{
	int64_t day = floor_to(wall(zone, at), DAY) / DAY;
	struct window w = window_of_day(zone, unit, day);

	if (at < w.start)
		w = window_of_day(zone, unit, day - 1);
	else if (at >= w.end)
		w = window_of_day(zone, unit, day + 1);
	return w;
}

static struct window
window_at(const struct zone *zone, enum calendar_unit unit, int64_t at)
{
	if (unit == CALENDAR_MINUTE)
		return even_window(zone, MINUTE, at);
	if (unit == CALENDAR_HOUR)
		return even_window(zone, HOUR, at);
	return dated_window(zone, unit, at);
}

static struct calendar_windows
compute(const struct zone *zone, enum calendar_unit unit, int64_t now_us)
{
	int64_t now = floor_to(now_us, SECOND_US) / SECOND_US;
	struct window current = window_at(zone, unit, now);
	struct window before = window_at(zone, unit, current.start - 1);
	struct window next = window_at(zone, unit, current.end);

	return (struct calendar_windows){ {
	    before.start * SECOND_US,
	    current.start * SECOND_US,
	    current.end * SECOND_US,
	    next.end * SECOND_US,
	} };
}

/* False: somebody is writing. */
static bool
recall(struct calendar_kept *kept, struct calendar_windows *w)
{
	unsigned version =
	    atomic_load_explicit(&kept->version, memory_order_acquire);

	for (int i = 0; i < 4; i++)
		w->boundary_us[i] = atomic_load_explicit(
		    &kept->boundary_us[i], memory_order_acquire);
	return version % 2 == 0 &&
	    atomic_load_explicit(&kept->version, memory_order_relaxed) ==
	    version;
}

/* Who finds another writing leaves it to that one. */
static void
remember(struct calendar_kept *kept, const struct calendar_windows *w)
{
	unsigned version =
	    atomic_load_explicit(&kept->version, memory_order_relaxed);

	if (version % 2 != 0 ||
	    !atomic_compare_exchange_strong_explicit(&kept->version, &version,
		version + 1, memory_order_acq_rel, memory_order_relaxed))
		return;
	for (int i = 0; i < 4; i++)
		atomic_store_explicit(&kept->boundary_us[i], w->boundary_us[i],
		    memory_order_release);
	atomic_store_explicit(
	    &kept->version, version + 2, memory_order_release);
}

struct calendar_windows
calendar_around(struct calendar *c, enum calendar_unit unit, int64_t now_us)
{
	struct calendar_kept *kept = &c->kept[unit];
	struct calendar_windows w;

	if (recall(kept, &w) && now_us >= w.boundary_us[1] &&
	    now_us < w.boundary_us[2])
		return w;
	w = compute(c->zone, unit, now_us);
	remember(kept, &w);
	return w;
}
