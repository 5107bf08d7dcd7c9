#include "domain/lease_wait.h"

#include "base/clock.h"

bool
lease_wait_suffices(const struct lease *lease, int64_t cost, int64_t now_us)
{
	return lease != NULL && lease->id != 0 && lease->units >= cost &&
	    now_us < lease->spend_until_us;
}

/* Of units that are being taken: may there be so many more? */
static bool
promises(const struct lease *lease, int64_t cost)
{
	const struct check *c = &lease->check.check;

	return lease->id == 0 && cost > 0 &&
	    c->most - c->cost - lease->promised >= cost;
}

static bool
is_being_taken(const struct lease *lease, uint64_t serial)
{
	return lease != NULL && lease->id == 0 && lease->serial == serial;
}

struct lease *
lease_wait_newest(struct lease_shard *s, uint64_t hash,
    const struct store_check *check, struct lease_patience *p)
{
	struct lease *lease = lease_table_find(s, hash, check);
	int64_t cost = check->check.cost, from_us, now_us;
	bool in_time = true;
	uint64_t serial;

	if (lease == NULL || !promises(lease, cost))
		return lease;
	serial = lease->serial;
	lease->promised += cost;
	from_us = now_us = clock_mono_us();
	while (
	    is_being_taken(lease, serial) && in_time && now_us < p->until_us) {
		in_time = lease_table_wait(s, p->until_us - now_us);
		lease = lease_table_find(s, hash, check);
		now_us = clock_mono_us();
	}
	if (is_being_taken(lease, serial))
		lease->promised -= cost;
	p->waited_us += now_us - from_us;
	return lease;
}
