#include "domain/reach.h"

#include <unistd.h>

#include "base/clock.h"

/* Until when this one may take, where `left` have not been tried. */
static int64_t
share_of(int64_t now_us, int64_t deadline_us, size_t left)
{
	int64_t rest_us = deadline_us > now_us ? deadline_us - now_us : 0;

	return now_us + rest_us / (int64_t)(left > 0 ? left : 1);
}

static enum net_connected
try_one(struct reach *r, int64_t deadline_us, struct err *err)
{
	struct upstream *u = r->visit.at;
	struct err why;
	enum net_connected result =
	    net_connect(upstreams_address(u), deadline_us, &r->fd, &why);

	if (result == NET_CONNECTED) {
		upstreams_connected(&r->visit, clock_mono_us());
		return result;
	}
	/* Not its fault. */
	if (result != NET_NO_SOCKET)
		upstreams_refused(&r->visit, clock_mono_us(), why.text);
	upstreams_leave(&r->visit);
	err_set(err, "%s: %.300s", upstreams_text(u), why.text);
	return result;
}

bool
reach_open(struct reach *r, const struct config_backend *backend,
    struct upstreams_set *set, struct arena *arena, struct err *err)
{
	int64_t now_us = clock_mono_us();
	int64_t deadline_us = now_us + backend->connect_timeout_us;
	size_t left = set->n;
	bool *tried = NULL;

	r->fd = -1;
	while (upstreams_choose(set, tried, now_us, &r->visit)) {
		enum net_connected result =
		    try_one(r, share_of(now_us, deadline_us, left), err);

		if (result != NET_REFUSED && result != NET_TIMED_OUT)
			return result == NET_CONNECTED;
		if (--left == 0)
			return false;
		if (tried == NULL)
			tried = arena_alloc(arena, set->n * sizeof(*tried));
		if (tried == NULL)
			return false;
		tried[r->visit.index] = true;
		now_us = clock_mono_us();
	}
	return false;
}

void
reach_leave(struct reach *r)
{
	if (r->visit.at != NULL)
		upstreams_leave(&r->visit);
	r->visit.at = NULL;
}

void
reach_close(struct reach *r)
{
	reach_leave(r);
	close(r->fd);
	r->fd = -1;
}
