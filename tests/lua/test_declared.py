"""
B76, B92: what a script touches stands in KEYS, as a cluster, a replica and
the rights of a Redis user go by that; and all of one identity in one slot.
"""

import pytest
import redis
from conftest import (
    BUCKET, CALENDAR, FIRST, FIXED, LEAKY, LOG, SLIDING, SLOTS, Script, cut,
    record, request, settlement,
)
from redis.crc import key_slot

HOUR = 3600 * 10**6
TAG = "sluice:{192.0.2.1}:"
KINDS = {
    "sliding": {"algorithm": SLIDING},
    "fixed": {"algorithm": FIXED, "align": FIRST},
    "calendar": {"algorithm": FIXED, "align": CALENDAR,
                 "boundaries": (0, 10**15, 5 * 10**15, 10**16)},
    "bucket": {"algorithm": BUCKET},
    "log": {"algorithm": LOG},
    "leaky": {"algorithm": LEAKY, "delay_us": HOUR},
    "slots": {"algorithm": SLOTS, "slot": b"a"},
}

# Each key that a command names is looked for in KEYS. Of all commands that
# the scripts have, only MGET has more than one.
DECLARED = """
local server, declared = redis, {}
for i = 1, #KEYS do
	declared[KEYS[i]] = true
end
local function look(how)
	return function(command, ...)
		local keys = { ... }
		for i = 1, command == 'TIME' and 0 or
			command == 'MGET' and #keys or 1 do
			if not declared[keys[i]] then
				error('not in KEYS: ' .. command .. ' ' ..
					tostring(keys[i]))
			end
		end
		return how(command, ...)
	end
end
local redis = { call = look(server.call), pcall = look(server.pcall) }
local function now_us()
	local t = redis.call('TIME')
	return t[1] * 1000000 + t[2]
end
"""


def one(kind, **more):
    given = {"count": 2, "period_us": HOUR, "burst": 2, **KINDS[kind],
             "own_at": 0, "penalty_us": HOUR, **more}
    return record(**given)


def names(kind, penalty=True):
    """Of a count, of the key's own counts, of its penalty."""
    return [TAG + kind + what
            for what in ["", ":own", ":penalty"][: 2 + penalty]]


@pytest.fixture
def scripts(db):
    return [Script(db, name + ".lua", DECLARED)
            for name in ("check", "settle", "renew")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("own", [None, "1", "x"])
def test_B76_B92_every_key_of_a_law_is_declared(db, scripts, kind, own):
    """Allowed, given back, refused, punished, found without a TTL, settled,
    renewed."""
    check, settle, renew = scripts
    if own:
        db.set(names(kind)[1], own)

    def ask():
        reply = check(names(kind), request(one(kind, slot=b"a")))
        assert not isinstance(reply[1], Exception), reply
        return reply[0]

    def settle_at(taken, cost):
        part = settlement(taken, one(kind, cost=cost, penalty_us=0))
        assert cut(settle(names(kind, penalty=False), part))[0] >= 0

    settle_at(ask(), -1)
    assert not db.exists(names(kind)[0])
    for _ in range(5):
        taken = ask()
        for name in names(kind):
            db.persist(name)
    for cost in (2, -1):
        settle_at(taken, cost)
    if kind == "slots":
        assert renew(names(kind)[:1], b"\1a") == 1
    assert set(map(bytes.decode, db.keys())) <= set(names(kind))


def test_B76_B92_of_many_checks_in_one_call(db, scripts):
    check = scripts[0]
    keys = sum((names(kind) for kind in KINDS), [])
    asked = request(*(one(kind) for kind in KINDS))
    for _ in range(4):
        reply = check(keys * 2, asked * 2)
        assert not any(isinstance(part, Exception) for part in reply), reply
    assert len({key_slot(key.encode()) for key in keys}) == 1


@pytest.mark.parametrize("reads", [
    "redis.call('GET', KEYS[1] .. ':x')",
    "redis.pcall('MGET', KEYS[1], KEYS[1] .. ':x')",
    "redis.call('TIME') redis.call('ZADD', 'other', 1, KEYS[1])",
])
def test_what_is_not_declared_would_be_told(db, reads):
    check = Script(db, "check.lua", "%s\n%s\n" % (DECLARED, reads))
    with pytest.raises(redis.ResponseError, match="not in KEYS"):
        check(["key"], b"")
