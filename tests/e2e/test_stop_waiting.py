"""SIGTERM, and requests that wait: for their time, or for a place."""

import select
import signal
import threading
import time

import pytest

from harness import fcgi, process
from harness.deadline import SCALE, Deadline, until
from harness.fake_redis import SlowRefunds
from harness.recipes import MEMORY, fastcgi, fixed

INFLIGHT = 2


def leaky(rate, **options):
    return {"rate": rate, "algorithm": "leaky_bucket", "key": "client",
            "delay_max": "1h", **options}


class Desk:
    """An application that keeps all who come until it opens."""

    def __init__(self, farm):
        self.opens = threading.Event()
        self.app = farm.application(self)

    def __call__(self, request):
        if request.param("SCRIPT_NAME") == "/kept":
            self.opens.wait(60.0)
        request.answer(b"served")


@pytest.fixture
def desk(farm):
    desk = Desk(farm)
    yield desk
    desk.opens.set()


@pytest.fixture(params=["memory", "redis"])
def store(request, farm):
    if request.param == "memory":
        return MEMORY
    return {"address": farm.redis().address, "timeout": "2s"}


def start(farm, desk, store=MEMORY, shutdown_timeout="30s", **limits):
    return farm.gateway({
        "gateway": {"shutdown_timeout": shutdown_timeout},
        "store": store,
        **{"limit " + name: limit for name, limit in limits.items()},
        "backend default": fastcgi(desk.app, max_inflight=INFLIGHT),
    })


def send(gateway, uri, count=1, **kwargs):
    conns = [gateway.connect(30.0) for _ in range(count)]
    for conn in conns:
        conn.send(fcgi.request(fcgi.env(uri, **kwargs)))
    return conns


def told(conns, seconds=5.0):
    """Takes the first of them that is answered out of the list."""
    ready, _, _ = select.select(
        [c.sock for c in conns], [], [], Deadline(seconds).left())
    assert ready, "none of them was answered"
    conn = next(c for c in conns if c.sock in ready)
    conns.remove(conn)
    return conn.response()


def waiting(gateway, uri, count):
    """One passes at once and one is refused, for all others wait by then."""
    conns = send(gateway, uri, count)
    assert sorted([told(conns).status, told(conns).status]) == [200, 429]
    return conns


def stop_listening(gateway):
    gateway.signal(signal.SIGTERM)
    until(lambda: not process.can_connect(gateway.address), 5.0,
          "it to stop listening")


def is_turned_away(got):
    assert (got.status, got.complete) == (503, True)
    assert int(got.header("retry-after")) >= 1
    assert got.header("cache-control") == "no-store"


def ended(gateway):
    """It has ended well; its counters."""
    assert gateway.wait_exit() == 0
    gateway.stop()  # reads its log to the end
    out = {}
    for entry in gateway.log.find("counters"):
        out.update(entry)
    return out


# In time

def test_who_comes_due_in_time_is_served(farm, desk, store):
    gateway = start(farm, desk, store, slow=leaky("1/1s burst 3"))
    start_time = time.monotonic()
    conns = waiting(gateway, "/", 4)
    stop_listening(gateway)
    for _ in range(2):
        got = told(conns)
        assert (got.status, got.body, got.complete) == (200, b"served", True)
    assert time.monotonic() - start_time >= 1.9
    assert ended(gateway)["requests_turned_away"] == "0"


def fill(gateway, desk, queued):
    """All places taken, and so many in the queue."""
    before = gateway.open_descriptors()
    inside = send(gateway, "/kept", INFLIGHT)
    until(lambda: desk.app.seen == INFLIGHT, what="the places taken")
    queue = send(gateway, "/queued", queued)
    until(lambda: gateway.open_descriptors()
          >= before + 2 * INFLIGHT + queued, what="the queue")
    return inside, queue


def test_who_gets_a_place_in_time_is_served(farm, desk):
    gateway = start(farm, desk)
    inside, queue = fill(gateway, desk, 5)
    stop_listening(gateway)
    assert desk.app.seen == INFLIGHT
    desk.opens.set()
    for conn in inside + queue:
        got = conn.response()
        assert (got.status, got.body, got.complete) == (200, b"served", True)
    assert gateway.wait_exit() == 0


# Too late

def test_who_is_held_back_too_long_is_503_and_takes_nothing(farm, desk):
    """Seen by the next gateway: there is room for one, and all is left."""
    limits = {
        "hour": leaky("1/1h burst 2", path="/held"),
        "other": fixed("1000/1h"),
    }
    store = {"address": farm.redis().address, "timeout": "2s"}
    gateway = start(farm, desk, store, "300ms", **limits)
    conns = waiting(gateway, "/held", 3)
    start_time = time.monotonic()
    gateway.signal(signal.SIGTERM)
    got = conns[0].response()
    is_turned_away(got)
    assert got.limit == (None, None, None)
    assert time.monotonic() - start_time >= 0.29
    assert ended(gateway)["requests_turned_away"] == "1"
    entry = gateway.log.find("request", status=503)[0]
    assert "shutdown_timeout" in entry["error"]
    assert desk.app.seen == 1

    after = start(farm, desk, store, "0", **limits)
    assert after.ask("/").limit[:2] == (1000, 998)
    conns = send(after, "/held", 2)
    assert told(conns).status == 429
    after.signal(signal.SIGTERM)
    is_turned_away(conns[0].response())


def test_who_has_no_place_in_time_is_503_and_reaches_nobody(farm, desk):
    limits = {
        "all": fixed("1000/1h", key="global"),
        "slots": {"algorithm": "concurrency", "rate": 50, "key": "global"},
    }
    redis = farm.redis()
    store = {"address": redis.address, "timeout": "2s"}
    gateway = start(farm, desk, store, "300ms", **limits)
    inside, queue = fill(gateway, desk, 20)
    gateway.signal(signal.SIGTERM)
    for conn in queue:
        got = conn.response()
        is_turned_away(got)
        # It stays counted, and says so.
        assert got.limit[0] == 1000 and got.limit[1] < 1000
    for conn in inside:
        assert conn.wait_closed() == b""
    assert ended(gateway)["requests_turned_away"] == "20"
    assert desk.app.seen == INFLIGHT
    client = redis.client()
    assert sum(client.zcard(k) for k in client.scan_iter("*:slots:*")) == 0
    after = start(farm, desk, store, "0", **limits)
    assert after.ask("/").limit[:2] == (1000, 1000 - INFLIGHT - 20 - 1)


def test_whose_body_does_not_come_in_time_is_503(farm, desk):
    gateway = start(farm, desk, shutdown_timeout="300ms",
                    all=fixed("1000/1h"))
    before = gateway.open_descriptors()
    with gateway.connect() as conn:
        conn.send(fcgi.head(fcgi.env("/", method="POST",
                                     CONTENT_LENGTH="1000"))
                  + fcgi.stream(fcgi.STDIN, b"x" * 500, end=False))
        until(lambda: gateway.open_descriptors() > before)
        stop_listening(gateway)
        is_turned_away(conn.response())
    assert gateway.wait_exit() == 0
    assert desk.app.seen == 0


def test_a_second_sigterm_turns_away_at_once(farm, desk):
    gateway = start(farm, desk, hour=leaky("1/1h burst 2"))
    conns = waiting(gateway, "/", 3)
    stop_listening(gateway)
    gateway.signal(signal.SIGTERM)
    is_turned_away(conns[0].response())
    assert gateway.wait_exit() == 0


# The store is no help

HELD = 100
MANY = {"hour": leaky("1000/1h burst 1000", path="/held"),
        "seen": fixed("1000/1h", path="/held, /look")}


def hold(gateway):
    """The first passes; how many wait is seen by what is left."""
    conns = send(gateway, "/held", HELD + 1)
    assert told(conns).status == 200
    looks = 0

    def all_wait():
        nonlocal looks
        looks += 1
        return gateway.ask("/look").limit[1] == 1000 - 1 - HELD - looks

    until(all_wait, what="all to wait")
    return conns


def test_a_store_that_is_gone_holds_nothing_up(farm, desk):
    redis = farm.redis()
    store = {"address": redis.address, "timeout": "500ms"}
    gateway = start(farm, desk, store, "300ms", **MANY)
    conns = hold(gateway)
    redis.freeze()
    began = time.monotonic()
    gateway.signal(signal.SIGTERM)
    for conn in conns:
        is_turned_away(conn.response())
    assert gateway.wait_exit() == 0
    assert time.monotonic() - began < 0.3 + 0.5 + 0.5 * SCALE


def test_a_store_that_is_slow_holds_it_up_for_a_second(farm, desk):
    slow = farm.add(SlowRefunds(farm.place, 0.05))
    store = {"address": slow.address, "timeout": "500ms"}
    gateway = start(farm, desk, store, "300ms", hour=leaky("1/1h burst 10"))
    before = gateway.open_descriptors()
    conns = send(gateway, "/held", HELD)
    until(lambda: gateway.open_descriptors() >= before + HELD,
          what="all to be there")
    began = time.monotonic()
    gateway.signal(signal.SIGTERM)
    for conn in conns:
        is_turned_away(conn.response())
    assert gateway.wait_exit() == 0
    assert time.monotonic() - began < 0.3 + 1 + 0.5 * SCALE
    assert 10 < slow.taken_back < 30
