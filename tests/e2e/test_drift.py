"""Gateways that share a Redis and do not agree on a limit: one says so."""

import pytest

from harness.deadline import until
from harness.recipes import by_key, cgi


def config(redis, rate="3/1h", store=(), limit=(), **more):
    return {
        "store": {"address": redis.address, **dict(store)},
        "limit keyed": by_key(rate, **dict(limit)),
        "limit other": by_key("9/1h"),
        "backend default": cgi(),
        **more,
    }


def linked(farm, config):
    """A gateway that is connected: its fingerprint has been compared."""
    gateway = farm.gateway(config)
    got = gateway.ask("/hello.cgi", headers={"X-Key": "k"}, seconds=10)
    until(lambda: gateway.ask("/hello.cgi", headers={"X-Key": "k"}).limit
          is not None, what="a link to the store")
    assert got.status in (200, 429)
    return gateway


def drifts(gateway):
    return [entry.get("limit", "the secret")
            for entry in gateway.log.find("drift")]


@pytest.mark.parametrize("change", [
    {"rate": "4/1h"}, {"limit": {"algorithm": "sliding_window"}},
    {"limit": {"path": "/x*"}},
    {"tier gold": {"when": "client=192.0.2.0/24", "keyed": "9/1h"}},
    {"gateway": {"ipv4_prefix": 24}, "limit": {"key": "client"}},
], ids=lambda c: list(c)[0])
def test_a_limit_that_differs_is_named(farm, change):
    redis = farm.redis()
    common = {"limit": change["limit"]} if "gateway" in change else {}
    first = linked(farm, config(redis, **common))
    second = linked(farm, config(redis, **change))
    second.log.wait_for("drift", limit="keyed", level="warn")
    assert drifts(second) == ["keyed"]
    assert drifts(first) == []
    second.stop()
    assert "drifts=1" in second.output()


def test_gateways_that_agree_say_nothing(farm):
    """The default, blanks and the message make no difference."""
    redis = farm.redis()
    gateways = [
        linked(farm, config(redis)),
        linked(farm, config(redis, limit={"message": "Later."})),
        linked(farm, config(redis, limit={"on_outage": "allow"})),
    ]
    assert [drifts(g) for g in gateways] == [[], [], []]


TIER = {"when": "client=192.0.2.0/24"}


@pytest.mark.parametrize("one, other", [
    ({"rate": "3/1h"}, {"rate": "3/60m"}),
    ({"rate": "3/s, 7/1w"}, {"rate": "3/1000ms,  7/7d"}),
    ({"limit": {"penalty": "60s"}}, {"limit": {"penalty": "1m"}}),
    ({"tier gold": {**TIER, "keyed": "9/1h"}},
     {"tier gold": {**TIER, "keyed": "9/3600s"}}),
    ({"limit": {"on_outage": "local", "outage_rate": "9/1h"}},
     {"limit": {"on_outage": "local", "outage_rate": "9/60m"}}),
], ids=["rate", "rates", "penalty", "tier", "outage_rate"])
def test_it_is_one_however_it_is_written(farm, one, other):
    redis = farm.redis()
    gateways = [linked(farm, config(redis, **how)) for how in (one, other)]
    assert [drifts(g) for g in gateways] == [[], []]


def test_another_secret_is_told_alone_and_shown_nowhere(farm):
    redis = farm.redis()
    linked(farm, config(redis, store={"key_secret": "first-secret-of-all"}))
    second = linked(farm, config(
        redis, "4/1h", store={"key_secret": "another-secret-here"}))
    second.log.wait_for("drift", level="warn")
    assert drifts(second) == ["the secret"]
    fields = redis.client().hgetall("sluice:fingerprint")
    assert sorted(fields) == [b"/key_secret", b"keyed", b"other"]
    assert all(len(value) == 32 for value in fields.values())
    assert b"secret-here" not in b"".join(fields.values())


def test_once_rolled_out_it_is_quiet_and_the_fingerprint_expires(farm):
    redis = farm.redis()
    client = redis.client()
    old = linked(farm, config(redis))
    assert 0 < client.ttl("sluice:fingerprint") <= 86400
    client.expire("sluice:fingerprint", 100)
    first, second = [linked(farm, config(redis, "4/1h")) for _ in range(2)]
    assert client.ttl("sluice:fingerprint") > 86000
    first.log.wait_for("drift", limit="keyed")
    assert drifts(second) == []
    # The old one is told when it connects anew, once.
    client.client_kill_filter(_type="normal", skipme=True)
    old.log.wait_for("drift", limit="keyed", seconds=10)
    redis.client().client_kill_filter(_type="normal", skipme=True)
    until(lambda: old.ask("/hello.cgi", headers={"X-Key": "n"}).limit
          is not None, 10, what="a link to the store")
    assert len(drifts(old)) == 1


def test_a_key_of_another_type_keeps_nobody_out(farm):
    redis = farm.redis()
    client = redis.client()
    client.lpush("sluice:fingerprint", "x")
    gateway = linked(farm, config(redis))
    assert drifts(gateway) == []
    told = gateway.log.wait_for("fingerprint_failed", level="warn")
    assert "WRONGTYPE" in told["detail"]
    # It is a stranger's, who may want it for ever.
    assert client.pttl("sluice:fingerprint") == -1
    client.delete("sluice:fingerprint")
    client.lpush("sluice:fingerprint", "x")
    client.expire("sluice:fingerprint", 100)
    client.client_kill_filter(_type="normal", skipme=True)
    until(lambda: gateway.ask("/hello.cgi", headers={"X-Key": "n"}).limit
          is not None, 10, what="a link to the store")
    assert len(gateway.log.find("fingerprint_failed")) == 1
    assert client.ttl("sluice:fingerprint") <= 100


@pytest.mark.parametrize("denied", ["pexpire", "hget", "hset"])
def test_nothing_stays_behind_where_a_right_is_missing(farm, denied):
    redis = farm.redis()
    client = redis.client()
    client.execute_command("ACL", "SETUSER", "sluice", "on", ">pw", "~*",
                           "+@all", "-" + denied)
    gateway = linked(farm, config(
        redis, store={"username": "sluice", "password": "pw"}))
    told = gateway.log.wait_for("fingerprint_failed")
    assert denied in told["detail"].lower()
    assert client.exists("sluice:fingerprint") == 0
