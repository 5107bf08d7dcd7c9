#include "pure/zone.h"

#include <stdbool.h>
#include <stddef.h>

#include "pure/zone_rule.h"

#define HEADER_BYTES    44
#define TYPE_BYTES      ((size_t)6)
#define TRANSITIONS_MAX 10000 /* real ones have a few hundred */
#define TYPES_MAX       256
#define OFFSET_MAX      (INT64_C(26) * 3600)

struct transition {
	int64_t at;
	int64_t offset; /* from then on */
};

struct zone {
	int64_t first; /* the offset before all transitions */
	size_t n;
	struct transition *transition; /* rising */
	bool has_rule;                 /* for what is behind the last */
	struct zone_rule rule;
};

/* What a block of the file holds. */
struct counts {
	uint32_t utc, standard, leap, times, types, chars;
};

static uint64_t
big_endian(const char *p, size_t n)
{
	uint64_t value = 0;

	for (size_t i = 0; i < n; i++)
		value = value << 8 | (unsigned char)p[i];
	return value;
}

static uint32_t
word(const char *p)
{
	return (uint32_t)big_endian(p, 4);
}

/* Cuts n bytes off the front; p NULL: there are fewer. */
static struct str
take(struct str *rest, size_t n)
{
	struct str taken = { rest->p, n };

	if (rest->p == NULL || rest->len < n) {
		*rest = STR_NONE;
		return STR_NONE;
	}
	rest->p += n;
	rest->len -= n;
	return taken;
}

static bool
take_header(struct str *rest, struct counts *c, struct err *err)
{
	struct str h = take(rest, HEADER_BYTES);

	if (h.p == NULL || !str_starts(h, STR("TZif")))
		return err_set(err, "is no file of the tz database");
	if (h.p[4] < '2')
		return err_set(err, "is of version 1; 2 is needed");
	*c = (struct counts){ word(h.p + 20), word(h.p + 24), word(h.p + 28),
		word(h.p + 32), word(h.p + 36), word(h.p + 40) };
	if (c->times > TRANSITIONS_MAX || c->types > TYPES_MAX ||
	    c->chars > TRANSITIONS_MAX || c->leap > TRANSITIONS_MAX ||
	    c->utc > TYPES_MAX || c->standard > TYPES_MAX)
		return err_set(err, "says that it is unreasonably large");
	return true;
}

/* The block of version 1, with times of four bytes, is passed over. */
static void
skip_block(struct str *rest, const struct counts *c)
{
	take(rest,
	    (size_t)c->times * 5 + (size_t)c->types * TYPE_BYTES + c->chars +
		(size_t)c->leap * 8 + c->standard + c->utc);
}

static bool
offset_of_type(struct str types, size_t type, int64_t *offset, struct err *err)
{
	if ((type + 1) * TYPE_BYTES > types.len)
		return err_set(err, "names a kind of time that it has not");
	*offset = (int32_t)word(types.p + type * TYPE_BYTES);
	if (*offset < -OFFSET_MAX || *offset > OFFSET_MAX)
		return err_set(err, "is more than a day off");
	return true;
}

static bool
read_transitions(struct zone *z, struct str times, struct str kinds,
    struct str types, struct err *err)
{
	for (size_t i = 0; i < z->n; i++) {
		struct transition *t = &z->transition[i];

		t->at = (int64_t)big_endian(times.p + i * 8, 8);
		if (i > 0 && t->at <= z->transition[i - 1].at)
			return err_set(err, "its transitions do not rise");
		if (!offset_of_type(
			types, (unsigned char)kinds.p[i], &t->offset, err))
			return false;
	}
	return offset_of_type(types, 0, &z->first, err);
}

/* "\nCET-1CEST,M3.5.0,M10.5.0/3\n"; nothing between: no rule. */
static bool
read_footer(struct zone *z, struct str rest, struct err *err)
{
	struct str first = take(&rest, 1);
	struct str text = str_cut(&rest, '\n');

	if (first.p == NULL || first.p[0] != '\n' || rest.p == NULL)
		return err_set(err, "has no footer");
	z->has_rule = text.len > 0;
	if (z->has_rule && !zone_rule_parse(text, &z->rule))
		return err_set(err, "has a rule that can not be read");
	return true;
}

static bool
read_block(struct zone *z, struct str rest, const struct counts *c,
    struct arena *arena, struct err *err)
{
	struct str times = take(&rest, (size_t)c->times * 8);
	struct str kinds = take(&rest, c->times);
	struct str types = take(&rest, (size_t)c->types * TYPE_BYTES);

	take(&rest, c->chars + (size_t)c->leap * 12 + c->standard + c->utc);
	if (rest.p == NULL)
		return err_set(err, "ends too early");
	if (c->leap > 0)
		return err_set(err, "counts leap seconds");
	z->n = c->times;
	z->transition = arena_alloc(arena, z->n * sizeof(*z->transition));
	if (z->transition == NULL)
		return err_set(err, "out of memory");
	return read_transitions(z, times, kinds, types, err) &&
	    read_footer(z, rest, err);
}

struct zone *
zone_parse(struct str tzif, struct arena *arena, struct err *err)
{
	struct zone *z = arena_alloc(arena, sizeof(*z));
	struct str rest = tzif;
	struct counts counts = { 0 };

	if (z == NULL) {
		err_set(err, "out of memory");
		return NULL;
	}
	if (!take_header(&rest, &counts, err))
		return NULL;
	skip_block(&rest, &counts);
	if (!take_header(&rest, &counts, err) ||
	    !read_block(z, rest, &counts, arena, err))
		return NULL;
	return z;
}

/* How many transitions have been by then. */
static size_t
count_before(const struct zone *z, int64_t at)
{
	size_t low = 0, high = z->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (z->transition[middle].at <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int64_t
zone_offset(const struct zone *zone, int64_t at)
{
	size_t n;

	if (zone == NULL)
		return 0;
	n = count_before(zone, at);
	if (n == zone->n && zone->has_rule)
		return zone_rule_offset(&zone->rule, at);
	return n == 0 ? zone->first : zone->transition[n - 1].offset;
}
