#include "pure/statuses.h"

#define LEAST 100
#define MOST  599
#define CLASS 100 /* statuses in one */

static void
add_range(struct statuses *s, uint64_t from, uint64_t to)
{
	for (uint64_t status = from; status <= to; status++)
		s->bit[status / 64] |= UINT64_C(1) << status % 64;
	s->some = true;
}

static bool
is_class(struct str item)
{
	return item.len == 3 && item.p[0] >= '1' && item.p[0] <= '5' &&
	    item.p[1] == 'x' && item.p[2] == 'x';
}

bool
statuses_add(struct statuses *s, struct str item, struct err *err)
{
	uint64_t status;

	if (is_class(item)) {
		status = (uint64_t)(item.p[0] - '0') * CLASS;
		add_range(s, status, status + CLASS - 1);
		return true;
	}
	if (item.len != 3 || !str_to_u64(item, MOST, &status) || status < LEAST)
		return err_set(err,
		    "`%.*s` is no response status (401, or 5xx for all that "
		    "begin with 5)",
		    STR_ARG(item));
	add_range(s, status, status);
	return true;
}

bool
statuses_have(const struct statuses *s, int status)
{
	if (!s->some)
		return true;
	if (status < LEAST || status > MOST)
		return false;
	return (s->bit[status / 64] >> status % 64 & 1) != 0;
}
