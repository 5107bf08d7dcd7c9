#include "pure/accept.h"

#include <stdbool.h>
#include <stddef.h>

#include "pure/field.h"

#define Q_MAX 1000 /* q = 1, in thousandths */

/* How well a range fits; of a type's ranges the most exact one counts. */
struct fit {
	unsigned exactness; /* 0: none; 1: any; 2: its type; 3: itself */
	unsigned q;
	size_t at; /* the how-manieth it is */
};

static bool
ends_in_json(struct str subtype)
{
	return subtype.len > 5 &&
	    str_eq_nocase(
		(struct str){ subtype.p + subtype.len - 5, 5 }, STR("+json"));
}

/* 0: the range does not cover it. */
static unsigned
exactness(struct str type, struct str subtype, enum accept_type of)
{
	bool is_json = of == ACCEPT_JSON;

	if (str_eq(type, STR("*")))
		return str_eq(subtype, STR("*")) ? 1 : 0;
	if (!str_eq_nocase(type, is_json ? STR("application") : STR("text")))
		return 0;
	if (str_eq(subtype, STR("*")))
		return 2;
	switch (of) {
	case ACCEPT_TEXT:
		return str_eq_nocase(subtype, STR("plain")) ? 3 : 0;
	case ACCEPT_HTML:
		return str_eq_nocase(subtype, STR("html")) ? 3 : 0;
	case ACCEPT_JSON:
		return str_eq_nocase(subtype, STR("json")) ||
			ends_in_json(subtype)
		    ? 3
		    : 0;
	case ACCEPT_TYPES:
		break;
	}
	return 0;
}

/* qvalue = ( "0" [ "." 0*3DIGIT ] ) / ( "1" [ "." 0*3("0") ] ) */
static bool
read_q(struct str text, unsigned *q)
{
	unsigned scale = Q_MAX / 10;

	if (text.len < 1 || text.len > 5 ||
	    (text.p[0] != '0' && text.p[0] != '1') ||
	    (text.len > 1 && text.p[1] != '.'))
		return false;
	*q = text.p[0] == '1' ? Q_MAX : 0;
	for (size_t i = 2; i < text.len; i++, scale /= 10) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return false;
		*q += (unsigned)(text.p[i] - '0') * scale;
	}
	return *q <= Q_MAX;
}

/* The parameters behind a range: of all of them only q is looked at. */
static bool
read_parameters(struct str rest, unsigned *q)
{
	*q = Q_MAX;
	while (rest.p != NULL) {
		struct str value = field_cut(&rest, ";");
		struct str name = str_trim(str_cut(&value, '='));

		if (str_eq_nocase(name, STR("q")) &&
		    !read_q(str_trim(value), q))
			return false;
	}
	return true;
}

static void
weigh(struct fit fits[ACCEPT_TYPES], struct str element, size_t at)
{
	struct str subtype = str_trim(field_cut(&element, ";"));
	struct str type = str_cut(&subtype, '/');
	unsigned q;

	if (!field_is_name(type) || !field_is_name(subtype) ||
	    !read_parameters(element, &q))
		return;
	for (int i = 0; i < ACCEPT_TYPES; i++) {
		struct fit fit = {
			exactness(type, subtype, (enum accept_type)i), q, at
		};

		if (fit.exactness > fits[i].exactness ||
		    (fit.exactness > 0 && fit.exactness == fits[i].exactness &&
			q > fits[i].q))
			fits[i] = fit;
	}
}

static bool
is_better(const struct fit *a, const struct fit *b)
{
	if (a->q != b->q)
		return a->q > b->q;
	if (a->exactness != b->exactness)
		return a->exactness > b->exactness;
	return a->at < b->at;
}

enum accept_type
accept_choose(struct str accept)
{
	struct fit fits[ACCEPT_TYPES] = { { .exactness = 0 } };
	int best = 0;

	for (size_t at = 0; accept.p != NULL; at++)
		weigh(fits, str_trim(field_cut(&accept, ",")), at);
	for (int i = 1; i < ACCEPT_TYPES; i++)
		if (is_better(&fits[i], &fits[best]))
			best = i;
	return fits[best].q == 0 ? ACCEPT_TEXT : (enum accept_type)best;
}
