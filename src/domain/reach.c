#include "domain/reach.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/counter.h"

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

static bool
take_kept(struct reach *r, enum reach_wants wants, int64_t now_us)
{
	struct idle_connection kept;
	size_t dead;

	/* A probe is to show that it can be connected to. */
	if (wants == REACH_NEW_ONE || r->visit.is_probe)
		return false;
	kept = idle_take(
	    upstreams_idle(r->visit.at), wants == REACH_ANY, now_us, &dead);
	counter_add(COUNTER_backend_kept, kept.fd >= 0);
	counter_add(COUNTER_backend_kept_dead, dead);
	if (kept.fd < 0)
		return false;
	r->fd = kept.fd;
	r->uses = kept.uses;
	return true;
}

bool
reach_open(struct reach *r, const struct config_backend *backend,
    struct upstreams_set *set, enum reach_wants wants, struct arena *arena,
    struct err *err)
{
	int64_t now_us = clock_mono_us();
	int64_t deadline_us = now_us + backend->connect_timeout_us;
	size_t left = set->n;
	bool *tried = NULL;

	*r = (struct reach){ .fd = -1 };
	while (upstreams_choose(set, tried, now_us, &r->visit)) {
		enum net_connected result;

		if (backend->keep_alive > 0 && take_kept(r, wants, now_us))
			return true;
		result = try_one(r, share_of(now_us, deadline_us, left), err);
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
reach_leave(struct reach *r, bool keep)
{
	if (keep) {
		idle_put(upstreams_idle(r->visit.at), r->fd, r->uses + 1,
		    clock_mono_us());
		r->fd = -1;
	}
	upstreams_leave(&r->visit);
}

void
reach_close(struct reach *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}
