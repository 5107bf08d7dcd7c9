"""Every algorithm from a configuration to an answer."""

import time

import pytest

from harness import fcgi
from harness.application import Holding
from harness.deadline import SCALE, until
from harness.recipes import MEMORY, by_key, fastcgi, together


@pytest.fixture(scope="module")
def holding():
    return Holding()


@pytest.fixture(scope="module")
def app(shared, holding):
    return shared.application(holding)


@pytest.fixture(scope="module", params=["memory", "redis"])
def gateway(request, shared, app):
    store = MEMORY
    if request.param == "redis":
        store = {"address": shared.redis().address}
    return shared.gateway({
        "store": store,
        "limit log": by_key("3/1h", "sliding_log", name="X-Log"),
        "limit slots": by_key("3", "concurrency", name="X-Slots",
                              status="503"),
        "limit polite": by_key("2", "concurrency", name="X-Polite"),
        "limit drip": by_key("20/1s", "leaky_bucket", name="X-Drip"),
        "limit brim": by_key("1/1h burst 2", "leaky_bucket", name="X-Brim"),
        "limit brute": by_key("2/1s", name="X-Brute", penalty="1h"),
        "backend default": fastcgi(app, max_inflight=20),
    })


def test_sliding_log(gateway):
    for left in (2, 1, 0):
        got = gateway.ask("/", headers={"X-Log": "a"})
        assert (got.status, got.limit[:2]) == (200, (3, left))
    got = gateway.ask("/", headers={"X-Log": "a"})
    assert (got.status, got.limit[:2]) == (429, (3, 0))
    assert 3590 <= int(got.header("Retry-After")) <= 3600


def hold(gateway, header, who, count):
    conns = [gateway.connect(30.0) for _ in range(count)]
    for conn in conns:
        conn.send(fcgi.request(fcgi.env(
            "/hold", headers={header: who})))
    return conns


def test_concurrency(gateway, app, holding):
    """B36, B57: every way out gives the slot back; 503 where it says so."""
    holding.go.clear()
    before = app.seen
    held = hold(gateway, "X-Slots", "a", 3)
    until(lambda: app.seen == before + 3, what="three inside")
    got = gateway.ask("/", headers={"X-Slots": "a"})
    assert (got.status, got.limit) == (503, (3, 0, None))
    assert got.header("Retry-After") == "1"
    # Another key has slots of its own.
    assert gateway.ask("/", headers={"X-Slots": "b"}).status == 200
    # A client that goes away gives its slot back.
    held.pop().close()
    until(lambda: gateway.ask("/", headers={"X-Slots": "a"}).status == 200,
          what="its slot")
    holding.go.set()
    for conn in held:
        assert conn.response().status == 200
        conn.close()
    for _ in range(10):  # one at a time: there is always a slot
        assert gateway.ask("/", headers={"X-Slots": "a"}).status == 200


def test_concurrency_refuses_with_429_else(gateway, app, holding):
    holding.go.clear()
    before = app.seen
    held = hold(gateway, "X-Polite", "a", 2)
    until(lambda: app.seen == before + 2, what="two inside")
    assert gateway.ask("/", headers={"X-Polite": "a"}).status == 429
    holding.go.set()
    for conn in held:
        assert conn.response().status == 200
        conn.close()


def test_leaky_bucket_spreads_a_burst(gateway):
    begun = time.monotonic()
    got = together(8, lambda i: gateway.ask("/", headers={"X-Drip": "a"}))
    assert [g.status for g in got] == [200] * 8
    # The first goes at once, and each of the others 50 ms after one.
    assert 0.34 <= time.monotonic() - begun < 1.0 * SCALE


def test_leaky_bucket_refuses_what_would_wait_too_long(gateway):
    assert gateway.ask("/", headers={"X-Brim": "a"}).status == 200
    got = gateway.ask("/", headers={"X-Brim": "a"})
    assert got.status == 429
    assert 3590 <= int(got.header("Retry-After")) <= 3600


def test_penalty(gateway):
    who = {"X-Brute": "a"}
    got = gateway.ask("/", headers=who)
    while got.status == 200:
        got = gateway.ask("/", headers=who)
    assert got.status == 429
    first = int(got.header("Retry-After"))
    assert 3590 <= first <= 3600
    # It is set once, and not made longer by who keeps trying.
    later = gateway.ask("/", headers=who)
    assert later.status == 429
    assert int(later.header("Retry-After")) <= first
