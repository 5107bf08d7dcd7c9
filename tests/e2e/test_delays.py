"""leaky_bucket: who has to wait holds no worker, and can change his mind."""

import select
import threading

import pytest

from harness import fcgi
from harness.deadline import SCALE, Deadline, timed, until
from harness.fake_redis import SlowRefunds
from harness.recipes import MEMORY, fastcgi, together

THREADS = 3
HELD = 100  # at a time: many more than there are workers

LIMITS = {
    # One each 36 seconds, so the hundredth waits for an hour.
    "slow": {"path": "/slow", "rate": "100/1h burst %d" % (HELD + 1),
             "delay_max": "1h"},
    # The second waits for an hour; one more would have to for two.
    "hour": {"path": "/hour", "rate": "1/1h burst 3", "delay_max": "1h"},
    "brisk": {"path": "/brisk", "rate": "20/1s burst 100",
              "delay_max": "10s"},
    "after": {"path": "/hour, /after", "rate": "1000/1h",
              "algorithm": "fixed_window", "align": "first"},
}


@pytest.fixture(scope="module")
def app(shared):
    return shared.application(lambda request: request.answer(b"ok"))


@pytest.fixture(scope="module", params=["memory", "redis"])
def gateway(request, shared, app):
    store = MEMORY
    if request.param == "redis":
        store = {"address": shared.redis().address, "timeout": "2s"}
    return shared.gateway({
        "gateway": {"threads": THREADS},
        "store": store,
        **{"limit " + name: {"algorithm": "leaky_bucket",
                             "key": "client", **limit}
           for name, limit in LIMITS.items()},
        "backend default": fastcgi(app),
    })


def crowd(gateway, uri, client, count):
    """count + 1 ask at once: one is refused, the others are to wait."""
    conns = [gateway.connect(30.0) for _ in range(count + 1)]
    for conn in conns:
        conn.send(fcgi.request(fcgi.env(uri, client=client)))
    ready, _, _ = select.select([c.sock for c in conns], [], [],
                                Deadline(10.0).left())
    assert len(ready) == 1
    refused = next(c for c in conns if c.sock in ready)
    conns.remove(refused)
    assert refused.response().status == 429
    refused.close()
    return conns


def leave(gateway, conns, uri):
    mark = gateway.log.mark()
    for conn in conns:
        conn.close()
    gateway.log.wait_for("request", status=499, path=uri, since=mark,
                         count=len(conns), seconds=10.0)


def quick(gateway):
    got, seconds = timed(gateway.ask, "/quick")
    assert got.status == 200
    assert seconds < 1.0 * SCALE


def test_a_hundred_who_wait_hold_no_worker(gateway, app):
    before = app.seen
    who = "192.0.2.1"
    assert gateway.ask("/slow", client=who).limit[:2] == (HELD + 1, HELD)
    conns = crowd(gateway, "/slow", who, HELD)
    for _ in range(20):
        quick(gateway)
    assert app.seen == before + 1 + 20
    leave(gateway, conns, "/slow")


def test_who_goes_away_is_forgotten_and_takes_nothing(gateway, app):
    who = "192.0.2.2"
    before = app.seen
    assert gateway.ask("/hour", client=who).status == 200
    for _ in range(5):
        # Each time there is room for one.
        leave(gateway, crowd(gateway, "/hour", who, 1), "/hour")
    assert app.seen == before + 1
    # What its other limit had taken has come back too.
    assert gateway.ask("/after", client=who).limit[:2] == (1000, 998)


def test_each_is_served_when_his_time_has_come(gateway):
    count = 30
    done = threading.Event()

    def ask(i):
        if i < count:
            return gateway.ask("/brisk", client="192.0.2.3", seconds=30.0)
        for _ in range(20):
            quick(gateway)
        done.set()
        return None

    got, seconds = timed(together, count + 1, ask)
    assert [g.status for g in got[:count]] == [200] * count
    assert seconds >= (count - 1) / 20
    assert done.is_set()


def test_many_who_leave_at_once_keep_nobody_waiting(farm, app):
    """Though it takes the store its time to forget each of them."""
    slow = farm.add(SlowRefunds(farm.place, 0.1))
    gateway = farm.gateway({
        "store": {"address": slow.address, "timeout": "1s"},
        "limit slow": {"algorithm": "leaky_bucket", "key": "client",
                       "rate": "1/1h burst 10", "delay_max": "1h",
                       "path": "/slow"},
        "backend default": fastcgi(app),
    })
    conns = []
    for n in range(1, 31):  # one by one, so that few workers are needed
        before = gateway.open_descriptors()
        conns += [gateway.connect(30.0)]
        conns[-1].send(fcgi.request(fcgi.env("/slow")))
        until(lambda: gateway.open_descriptors() > before)
    for conn in conns:
        conn.close()
    until(lambda: slow.taken_back >= 2)
    for _ in range(5):
        got, seconds = timed(gateway.ask, "/quick")
        assert got.status == 200
        assert seconds < 0.3 * SCALE
    gateway.log.wait_for("request", status=499, count=30, seconds=20.0)
