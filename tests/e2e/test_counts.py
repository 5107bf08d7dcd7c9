"""Which requests are one count, and what that count is in the store."""

import math
import struct

import pytest

from harness.deadline import until
from harness.gateway import APPS
from harness.log import OUTAGE
from harness.recipes import MEMORY, by_key, fastcgi, key, together

LIMITS = {
    "pages": by_key("100/1h", path="/a, /b, /c/*"),
    "one": by_key("7/1h", path="/one"),
    "two": by_key("7/1h", path="/two"),
    "quick": by_key("3/1h", path="/each, /quick", on_outage="local",
                    outage_rate="1/1h"),
    "slow": by_key("5/2h", path="/each, /slow", on_outage="local",
                   outage_rate="2/2h"),
    "drops": by_key("7/1d burst 9", "token_bucket", path="/each, /drops"),
}


def config(store, php, limits=LIMITS):
    return {
        "store": store,
        **{"limit " + name: limit for name, limit in limits.items()},
        "backend default": fastcgi(php),
    }


def other_way_round(limits):
    """The same limits in another place, among others."""
    turned = {"before": by_key("900/1h", path="/before")}
    turned.update(reversed(limits.items()))
    turned["behind"] = by_key("900/1h", path="/a*")
    return turned


@pytest.fixture(scope="module")
def php(shared):
    return shared.php(children=4)


@pytest.fixture(scope="module")
def redis(shared):
    return shared.redis()


@pytest.fixture(scope="module", params=["memory", "redis"])
def store(request, redis):
    if request.param == "memory":
        return MEMORY
    return {"address": redis.address, "timeout": "2s"}


@pytest.fixture
def gateway(farm, store, php):
    return farm.gateway(config(store, php))


def ask(gateway, uri, who, **kwargs):
    return gateway.ask(uri, headers=key(who),
                       SCRIPT_FILENAME=APPS + "/ok.php", **kwargs)


def left(gateway, uri, who, **kwargs):
    return ask(gateway, uri, who, **kwargs).limit[1]


def test_B70_a_limit_is_one_count_wherever_it_applies(gateway, store, php):
    """By its name and its key alone, not by route, place or generation."""
    asked = [("/a", {}), ("/b", {"method": "POST"}), ("//a", {}),
             ("/c/d?e", {"client": "198.51.100.1"}),
             ("/x", {"SCRIPT_NAME": "/c/x"})]
    for n, (uri, how) in enumerate(asked):
        assert left(gateway, uri, "b70", **how) == 99 - n
    for n in range(3):
        limits = other_way_round(LIMITS) if n % 2 == 0 else LIMITS
        mark = gateway.reload(config(store, php, limits))
        gateway.log.wait_for("reloaded", since=mark)
        assert left(gateway, "/b", "b70") == 94 - n


def test_B70_nor_by_gateway(farm, redis, php):
    store = {"address": redis.address, "timeout": "2s"}
    gateways = [farm.gateway(config(store, php, limits))
                for limits in (LIMITS, other_way_round(LIMITS))]
    got = [left(gateway, uri, "b70g") for uri in ("/a", "/b", "/c/d")
           for gateway in gateways]
    assert got == [99, 98, 97, 96, 95, 94]


def test_B71_limits_that_are_alike_count_apart(gateway):
    for n in range(8):
        assert ask(gateway, "/one", "b71").status == (200 if n < 7 else 429)
    assert [left(gateway, "/two", "b71") for _ in range(7)] == [
        6, 5, 4, 3, 2, 1, 0]


def test_B71_sites_with_a_prefix_of_their_own_count_apart(farm, redis, php):
    sites = [farm.gateway(config(
        {"address": redis.address, "timeout": "2s", "prefix": prefix}, php))
        for prefix in ("one", "one-two")]
    for site in sites:
        assert [left(site, "/one", "b71p") for _ in range(3)] == [6, 5, 4]
    assert {name.split(b":")[0] for name in redis.client().scan_iter("one*")
            } == {b"one", b"one-two"}


def test_B86_each_limit_has_its_own_rate_and_window(gateway):
    for n in range(2):
        assert ask(gateway, "/each", "b86").limit[:2] == (3, 2 - n)
    assert ask(gateway, "/quick", "b86").limit == (3, 0, 3600)
    assert ask(gateway, "/slow", "b86").limit == (5, 2, 7200)
    limit, remaining, reset = ask(gateway, "/drops", "b86").limit
    assert (limit, remaining) == (9, 6)
    assert -1 < 3 * 86400 / 7 - reset < 20
    # The first has nothing left, and takes nothing from the others.
    assert ask(gateway, "/each", "b86").status == 429
    assert left(gateway, "/slow", "b86") == 1


def test_B86_each_has_its_own_rate_in_an_outage_too(farm, php):
    redis = farm.redis()
    gateway = farm.gateway(config({"address": redis.address}, php))
    redis.kill()
    until(lambda: ask(gateway, "/a", "b86o").status == 200
          and gateway.log.find(OUTAGE), 5.0, "the outage")
    for uri, passes in (("/quick", 1), ("/slow", 2)):
        got = [ask(gateway, uri, "b86o").status for _ in range(4)]
        assert got == [200] * passes + [429] * (4 - passes)


# The count that Redis has of what was let in

BIG = 1000


def units(db, algorithm, name):
    if algorithm == "sliding_log":
        return int(db.zscore(name, "n"))
    parts = struct.unpack("<%dd" % (len(db.get(name)) // 8), db.get(name))
    if algorithm == "token_bucket":
        return math.ceil(BIG - parts[1] / parts[2])
    return int(sum(parts[1:]))


@pytest.mark.parametrize("algorithm", [
    "fixed_window", "sliding_window", "token_bucket", "sliding_log"])
def test_B85_what_was_let_in_is_what_redis_counts(farm, redis, php, algorithm):
    """Also of the request that makes the key, of all at once, of refusals."""
    limits = {
        "total": by_key("%d/1d" % BIG, algorithm),
        "small": by_key("50/1d", algorithm, path="/small"),
    }
    store = {"address": redis.address, "timeout": "5s"}
    four = [farm.gateway(config(store, php, limits)) for _ in range(4)]
    db = redis.client()
    passed = 0
    for uri, clients, each in (("/", 1, 1), ("/", 8, 5), ("/small", 8, 10)):
        got = together(clients, lambda i: [
            ask(four[i % 4], uri, algorithm).status for _ in range(each)])
        passed += sum(got, []).count(200)
        (name,) = db.scan_iter("sluice:{*}:total:*")
        assert units(db, algorithm, name) == passed
    assert passed == 1 + 40 + 50
    db.flushall()


def test_B92_what_the_scripts_write_is_in_redis_own_log(farm, php):
    """And so at its replicas: read again after a crash, counts go on."""
    redis = farm.redis(options=["--appendonly", "yes",
                                "--appendfsync", "always"])
    laws = ("fixed_window", "sliding_window", "token_bucket", "sliding_log")
    gateway = farm.gateway(config(
        {"address": redis.address, "timeout": "5s",
         "breaker_cooldown": "200ms"},
        php, {law: by_key("5/1d", law, path="/" + law) for law in laws}))
    for law in laws:
        assert [left(gateway, "/" + law, "b92") for _ in range(3)] == [
            4, 3, 2]
    lasts = {k: redis.client().pexpiretime(k)
             for k in redis.client().scan_iter("sluice:{*")}
    redis.restart()
    until(lambda: left(gateway, "/fixed_window", "b92 again") is not None,
          10.0, "a link")
    for law in laws:
        assert [ask(gateway, "/" + law, "b92").limit[:2] for _ in range(2)
                ] == [(5, 1), (5, 0)]
        assert ask(gateway, "/" + law, "b92").status == 429
    client = redis.client()
    assert len(lasts) == len(laws)
    assert all(-100 <= client.pexpiretime(k) - at <= 2 * 86400 * 1000
               for k, at in lasts.items())
