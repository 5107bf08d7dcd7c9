"""leaky_bucket: who has to wait holds no worker, and can change his mind."""

import itertools
import select
import threading

import pytest

from harness import fcgi
from harness.deadline import SCALE, Deadline, timed, until
from harness.fake_redis import SlowRefunds
from harness.recipes import MEMORY, fastcgi, together

CLIENTS = ("198.51.100.%d" % n for n in itertools.count(1))
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
    "half": {"path": "/half", "rate": "2/1s burst 5", "delay_max": "5s"},
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


def close(conn):
    conn.close()


def abort(conn):
    """HAProxy's way."""
    conn.send(fcgi.record(fcgi.ABORT))


def abort_in_pieces(conn):
    for byte in fcgi.record(fcgi.ABORT):
        until(lambda: not conn.unread(), what="a byte to be read")
        conn.send(bytes([byte]))


def pipeline_and_close(conn):
    conn.send(fcgi.request(fcgi.env("/quick")))
    conn.close()


def leave(gateway, conns, uri, how=close):
    mark = gateway.log.mark()
    for conn in conns:
        how(conn)
    gateway.log.wait_for("request", status=499, path=uri, since=mark,
                         count=len(conns), seconds=10.0)
    if how in (abort, abort_in_pieces):
        assert all(conn.wait_closed() == b"" for conn in conns)


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


LEAVING = [close, abort, abort_in_pieces, pipeline_and_close]


@pytest.mark.parametrize("how", LEAVING)
def test_who_goes_away_is_forgotten_and_takes_nothing(gateway, app, how):
    who = next(CLIENTS)
    before = app.seen
    assert gateway.ask("/hour", client=who).status == 200
    for _ in range(5):
        # Each time there is room for one.
        leave(gateway, crowd(gateway, "/hour", who, 1), "/hour", how)
    assert app.seen == before + 1
    # What its other limit had taken has come back too.
    assert gateway.ask("/after", client=who).limit[:2] == (1000, 998)


@pytest.mark.parametrize("last, status", [
    (fcgi.record(fcgi.ABORT), 499),
    (fcgi.record(fcgi.ABORT, version=0), 0),
    (fcgi.record(fcgi.ABORT, rid=2), 0),
    (fcgi.record(fcgi.PARAMS), 0),
    (fcgi.record(fcgi.BEGIN, b"", rid=0), 0),
    (b"GET / HTTP/1.1\r\n", 0),
], ids=["abort", "version", "id", "params", "begin", "http"])
@pytest.mark.parametrize("apart", [False, True], ids=["at once", "later"])
def test_what_ends_a_request_that_waits(gateway, last, status, apart):
    who = next(CLIENTS)
    assert gateway.ask("/hour", client=who).status == 200
    for _ in range(3):
        mark = gateway.log.mark()
        with gateway.connect() as conn:
            request = fcgi.request(fcgi.env("/hour", client=who), keep=True)
            conn.send(request if apart else request + last)
            if apart:
                until(lambda: not conn.unread(), what="the request read")
                conn.send(last)
            gateway.log.wait_for("request", status=status, path="/hour",
                                 since=mark)
            assert conn.wait_closed() == b""
    # All of them have been taken back: there is still room for one.
    leave(gateway, crowd(gateway, "/hour", who, 1), "/hour")


@pytest.mark.parametrize("after", [0, 5, 8, 20])
def test_what_belongs_to_the_next_request_waits_with_it(gateway, after):
    """Of a kept connection; and nobody is woken for it meanwhile."""
    who = next(CLIENTS)
    items = fcgi.env("/half", client=who)
    assert gateway.ask("/half", client=who).status == 200
    begun = gateway.cpu_seconds()
    second = fcgi.request(items, rid=2, keep=True)
    with gateway.connect() as conn:
        conn.send(fcgi.request(items, rid=1, keep=True))
        until(lambda: not conn.unread(), what="the request read")
        if after:
            conn.send(second[:after])
        got, seconds = timed(conn.response, 1)
        assert got.status == 200 and seconds > 0.3
        assert gateway.cpu_seconds() - begun < seconds / 2
        conn.send(second[after:])
        assert conn.response(2).status == 200


def test_a_question_in_between_is_answered_afterwards(gateway):
    who = next(CLIENTS)
    assert gateway.ask("/half", client=who).status == 200
    with gateway.connect() as conn:
        conn.send(fcgi.request(fcgi.env("/half", client=who), keep=True))
        conn.send(fcgi.record(
            fcgi.GET_VALUES, fcgi.pair("FCGI_MPXS_CONNS", ""), rid=0))
        assert conn.response().status == 200
        kind, _, content = conn.read_record()
        assert kind == fcgi.GET_VALUES_RESULT
        assert fcgi.read_pairs(content) == [(b"FCGI_MPXS_CONNS", b"0")]


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
