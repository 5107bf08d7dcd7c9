"""Units taken ahead: never more than the limit, and what is left goes back."""

import struct

import pytest

from harness import fcgi
from harness.deadline import until
from harness.recipes import by_key, fastcgi, key, together

LIMIT = 100
SIZE = 16
CLIENTS = 16
ASKED = 400  # by all clients together


def ok(request):
    request.answer(b"ok")


@pytest.fixture
def redis(farm):
    return farm.redis()


def config(farm, redis, app=None, **options):
    options.setdefault("lease", SIZE)
    return {
        "store": {"address": redis.address, "timeout": "2s"},
        "limit leased": by_key("%d/1h" % LIMIT, **options),
        "backend default": fastcgi(app or farm.application(ok)),
    }


def count(redis, name="leased"):
    """What Redis says was taken of the one key there is."""
    for found in redis.client().scan_iter("sluice:*:%s:*" % name):
        value = redis.client().get(found)
        if value:
            return int(struct.unpack("<dd", value[:16])[1])
    return 0


def fire(gateways, asked=ASKED, who="one", mortal=None):
    """
    The statuses of that many requests. mortal: a gateway that is killed
    meanwhile; None then stands for the answers it did not give.
    """
    def client(i):
        statuses = []
        for n in range(asked // CLIENTS):
            if mortal and (i, n) == (0, 3):
                mortal.kill()
            gateway = gateways[(i + n) % len(gateways)]
            try:
                statuses.append(gateway.ask(headers=key(who)).status)
            except (OSError, AssertionError):
                if gateway is not mortal:
                    raise
                statuses.append(None)
        return statuses

    return sum(together(CLIENTS, client), [])


def all_is_back(redis, admitted):
    until(lambda: count(redis) == admitted, 5.0,
          "what was not spent to be given back")


def counters(gateway):
    found = {}
    for entry in gateway.log.find("counters"):
        found.update(entry)
    return found


def test_four_gateways_admit_the_limit(farm, redis):
    settings = config(farm, redis)
    gateways = [farm.gateway(settings) for _ in range(4)]
    statuses = fire(gateways)
    admitted = statuses.count(200)
    assert admitted + statuses.count(429) == ASKED
    assert LIMIT - 4 * SIZE <= admitted <= LIMIT
    all_is_back(redis, admitted)
    # What was held somewhere is there for whoever asks then.
    asked = []

    def all_are_used():
        asked.append(gateways[0].ask(headers=key("one")).status)
        return admitted + asked.count(200) == LIMIT

    if admitted < LIMIT:
        until(all_are_used, 5.0, "the others' units to be there")
    assert gateways[0].ask(headers=key("one")).status == 429


def test_one_is_killed_among_many(farm, redis):
    settings = config(farm, redis)
    settings["store"]["deny_cache"] = 0  # what comes back is seen at once
    gateways = [farm.gateway(settings) for _ in range(4)]
    farm.started.remove(gateways[0])  # does not end as it should
    admitted = fire(gateways, mortal=gateways[0]).count(200)
    # It was asked for 1 in 4 before, and answered some that were lost.
    assert LIMIT - 5 * SIZE <= admitted <= LIMIT
    until(lambda: count(redis) <= admitted + SIZE + CLIENTS, 5.0,
          "the others' units to be given back")
    while gateways[1].ask(headers=key("one")).status == 200:
        admitted += 1
    # What the dead one had is gone until the window ends, and no more.
    assert LIMIT - SIZE - CLIENTS <= admitted <= LIMIT


@pytest.mark.parametrize("algorithm", ["sliding_window", "token_bucket"])
def test_other_algorithms(farm, redis, algorithm):
    settings = config(farm, redis, algorithm=algorithm)
    gateways = [farm.gateway(settings) for _ in range(4)]
    admitted = fire(gateways).count(200)
    # An hour's limit: little flows in, and nothing fades.
    assert LIMIT - 4 * SIZE <= admitted <= LIMIT + 1


@pytest.mark.parametrize("lease", [SIZE, "auto"])
def test_far_fewer_trips_than_requests(farm, redis, lease):
    settings = config(farm, redis, lease=lease)
    settings["limit leased"]["rate"] = "100000/1h"
    gateway = farm.gateway(settings)
    redis.client().config_resetstat()
    assert fire([gateway]).count(200) == ASKED
    stats = redis.client().info("commandstats")
    trips = stats["cmdstat_evalsha"]["calls"]
    assert trips < ASKED / 2
    all_is_back(redis, ASKED)
    gateway.stop()
    numbers = {k: int(v) for k, v in counters(gateway).items()
               if k.startswith("lease")}
    assert numbers["leases_taken"] <= trips
    assert numbers["lease_units_taken"] > ASKED / 2
    assert numbers["lease_units_taken"] == (
        numbers["lease_units_spent"] + numbers["lease_units_returned"])
    assert numbers["lease_units_expired"] == 0


def test_auto_admits_the_limit(farm, redis):
    settings = config(farm, redis, lease="auto")
    gateways = [farm.gateway(settings) for _ in range(4)]
    statuses = fire(gateways)
    admitted = statuses.count(200)
    assert admitted + statuses.count(429) == ASKED
    # It holds a sixteenth of what remains at the most.
    assert LIMIT - 4 * (LIMIT // 16) <= admitted <= LIMIT
    all_is_back(redis, admitted)


def test_the_headers_count_what_is_held(farm, redis):
    gateway = farm.gateway(config(farm, redis))
    for n in range(1, 41):
        answer = gateway.ask(headers=key("one"))
        remaining = int(answer.header("X-RateLimit-Remaining"))
        assert answer.header("X-RateLimit-Limit") == str(LIMIT)
        assert 0 <= int(answer.header("X-RateLimit-Reset")) <= 3600
        # A little less while some are on their way back.
        assert remaining <= LIMIT - n
        if n == 1:
            assert remaining == LIMIT - 1


def test_none_is_refused_beside_who_takes_all(farm, redis):
    settings = config(farm, redis)
    settings["limit leased"]["rate"] = "%d/1h" % SIZE
    gateway = farm.gateway(settings)
    for n in range(20):
        who = key("fresh-%d" % n)
        statuses = together(4, lambda _: gateway.ask(headers=who).status)
        assert statuses == [200] * 4


def test_a_reload_gives_back(farm, redis):
    settings = config(farm, redis)
    gateway = farm.gateway(settings)
    assert gateway.ask(headers=key("one")).status == 200
    mark = gateway.reload(settings)
    gateway.log.wait_for("reloaded", 10.0, mark)
    assert count(redis) == 1
    settings["limit leased"]["lease"] = 0
    mark = gateway.reload(settings)
    gateway.log.wait_for("reloaded", 10.0, mark)
    assert gateway.ask(headers=key("one")).status == 200
    assert count(redis) == 2


def test_a_reload_changes_how_long_another_is_waited_for(farm, redis):
    settings = config(farm, redis, on_outage="deny")
    settings["store"]["timeout"] = "1ms"
    gateway = farm.gateway(settings)
    settings["store"]["timeout"] = "10s"
    gateway.log.wait_for("reloaded", since=gateway.reload(settings))
    assert gateway.ask(headers=key("another")).status == 200  # there is a link
    with gateway.connect() as first, gateway.connect() as second:
        redis.freeze()
        for conn in first, second:
            conn.send(fcgi.request(fcgi.env("/", headers=key("one"))))
        # Of no limit: answered when those two have come, and wait.
        for _ in range(50):
            assert gateway.ask().status == 200
        redis.thaw()
        assert [conn.response().status for conn in (first, second)] == [200] * 2


def test_a_clean_stop_gives_back(farm, redis):
    gateway = farm.gateway(config(farm, redis))
    assert gateway.ask(headers=key("one")).status == 200
    gateway.stop()
    assert count(redis) == 1


def test_a_stop_does_not_wait_for_a_store_that_stands_still(farm, redis):
    settings = config(farm, redis)
    settings["store"].update(timeout="3s", connections=8, breaker_failures=9)
    gateway = farm.gateway(settings)
    for n in range(300):
        assert gateway.ask(headers=key("k%d" % n)).status == 200
    redis.freeze()
    # Ten trips of three seconds: as many as there is no time for.
    gateway.stop()


def test_another_limit_without_a_lease_is_asked(farm, redis):
    """Then the request leases nothing."""
    settings = config(farm, redis)
    settings["limit exact"] = by_key("%d/1h" % LIMIT)
    gateway = farm.gateway(settings)
    for n in range(1, 4):
        assert gateway.ask(headers=key("one")).status == 200
        assert count(redis) == n
        assert count(redis, "exact") == n


def test_two_limits_with_leases(farm, redis):
    settings = config(farm, redis)
    settings["limit narrow"] = by_key("10/1h", lease=4)
    gateway = farm.gateway(settings)
    assert fire([gateway], 32).count(200) == 10
    all_is_back(redis, 10)
    assert count(redis, "narrow") == 10


def test_who_leaves_while_delayed_gives_the_unit_back(farm, redis):
    settings = config(farm, redis)
    settings["limit slow"] = by_key(
        "1/10m", "leaky_bucket", scope="local", delay_max="1h")
    settings["limit slow"]["rate"] += " burst 3"
    gateway = farm.gateway(settings)
    assert gateway.ask(headers=key("one")).status == 200
    all_is_back(redis, 1)
    with gateway.connect() as conn:
        conn.send(fcgi.request(fcgi.env("/", headers=key("one"))))
        until(lambda: count(redis) > 1, 5.0, "the second request's unit")
    all_is_back(redis, 1)


def test_what_a_local_limit_refuses_takes_nothing(farm, redis):
    settings = config(farm, redis)
    settings["limit guard"] = by_key("3/1h", scope="local")
    gateway = farm.gateway(settings)
    assert fire([gateway], 32).count(200) == 3
    all_is_back(redis, 3)
