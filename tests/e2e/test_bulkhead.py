"""One backend that hangs costs its own clients, nobody else."""

import select
import threading
import time

import pytest

from harness import fcgi
from harness.deadline import SCALE, Deadline, until
from harness.recipes import MEMORY, by_key, fastcgi, key, together

INFLIGHT = 4
QUEUE = 3


class Hanging:
    """Holds every request until told to go."""

    def __init__(self):
        self.go = threading.Event()

    def __call__(self, request):
        self.go.wait(60.0)
        request.answer("at last")


class Setup:
    def __init__(self, farm, threads=16, **options):
        self.hanging = Hanging()
        self.app = farm.application(self.hanging, name="hang")
        self.other = farm.application(
            lambda request: request.answer("other"), name="other")
        self.sections = {
            "gateway": {"threads": threads},
            "store": MEMORY,
            "limit keyed": by_key("1/1h"),
            "backend hang": {**fastcgi(
                self.app, max_inflight=INFLIGHT, queue=QUEUE, **options),
                "path": "/hang"},
            "backend default": fastcgi(self.other),
        }
        self.gateway = farm.gateway(self.sections)
        self.conns = []
        self.before = self.gateway.open_descriptors()

    def send(self, count):
        new = [self.gateway.connect(30.0) for _ in range(count)]
        for conn in new:
            conn.send(fcgi.request(fcgi.env("/hang")))
        self.conns += new
        return new

    def fill(self):
        """All places taken, and then all of the queue."""
        self.send(INFLIGHT)
        until(lambda: self.app.seen == INFLIGHT, what="the places taken")
        return self.send(QUEUE)

    def close(self):
        self.hanging.go.set()
        for conn in self.conns:
            conn.close()


@pytest.fixture
def setup(farm):
    made = []

    def make(**options):
        made.append(Setup(farm, **options))
        return made[0]

    yield make
    for one in made:
        one.close()


def median(call, count=30):
    took = []
    for _ in range(count):
        start = time.monotonic()
        call()
        took.append(time.monotonic() - start)
    return sorted(took)[count // 2], max(took)


def check_others_are_fast(gateway):
    assert gateway.ask("/other", headers=key("k")).status == 200

    def refusal():
        assert gateway.ask("/hang", headers=key("k")).status == 429

    def other():
        assert gateway.ask("/other").body == b"other"

    for call in (refusal, other):
        middle, worst = median(call)
        assert middle < 0.020 * SCALE
        assert worst < 0.150 * SCALE


def test_refusals_and_another_backend_are_fast(setup):
    s = setup(queue_timeout="60s")
    s.fill()
    check_others_are_fast(s.gateway)


def test_the_same_with_hardly_a_worker_to_spare(setup):
    """One worker is never let into a backend; one place is for others."""
    s = setup(threads=INFLIGHT + 2, queue_timeout="60s")
    s.fill()
    check_others_are_fast(s.gateway)


def first_to_answer(conns, seconds=5.0):
    """Takes the first of them that has an answer out of the list."""
    ready, _, _ = select.select(
        [c.sock for c in conns], [], [], Deadline(seconds).left())
    assert ready, "none of them was answered"
    conn = next(c for c in conns if c.sock in ready)
    conns.remove(conn)
    return conn.response()


def test_a_full_queue_is_503_at_once(setup):
    s = setup(queue_timeout="60s")
    waiting = s.fill() + s.send(4)
    for _ in range(4):  # whichever of the seven came last
        got = first_to_answer(waiting)
        assert (got.status, got.complete) == (503, True)
        assert int(got.header("retry-after")) >= 1
    s.hanging.go.set()
    for conn in waiting:
        assert conn.response().body == b"at last"


def test_queue_timeout_is_503(setup):
    s = setup(queue_timeout="300ms")
    start = time.monotonic()
    for conn in s.fill():
        got = conn.response()
        assert (got.status, got.complete) == (503, True)
        assert int(got.header("retry-after")) >= 1
    assert time.monotonic() - start >= 0.29
    s.hanging.go.set()
    for conn in s.conns[:INFLIGHT]:
        assert conn.response().body == b"at last"


def test_queued_requests_are_served_in_turn(setup):
    s = setup(queue_timeout="60s")
    s.fill()
    assert s.app.seen == INFLIGHT
    s.hanging.go.set()
    for conn in s.conns:
        got = conn.response()
        assert (got.status, got.body) == (200, b"at last")
    assert s.app.seen == INFLIGHT + QUEUE


@pytest.mark.parametrize("leave", [
    lambda conn: conn.close(),
    lambda conn: conn.send(fcgi.record(fcgi.ABORT)),
], ids=["close", "abort"])
def test_a_client_that_leaves_the_queue_is_forgotten(setup, leave):
    s = setup(queue_timeout="60s")
    queued = s.fill()
    full = INFLIGHT * 2 + QUEUE
    until(lambda: s.gateway.open_descriptors() >= s.before + full,
          what="the queue to fill")
    for conn in queued:
        leave(conn)
    until(lambda: s.gateway.open_descriptors() <= s.before + full - QUEUE,
          what="the queue to empty")
    waiting = s.send(QUEUE)
    s.hanging.go.set()
    for conn in waiting:
        assert conn.response().body == b"at last"


def test_who_sends_its_next_head_keeps_its_turn(farm):
    """It is neither read for the request that waits, nor put behind."""
    hanging, turns = threading.Event(), []

    def app(request):
        turns.append(request.param("QUERY_STRING"))
        hanging.wait(60.0)
        request.answer("at last")

    gateway = farm.gateway({
        "gateway": {"threads": 8},
        "backend default": {**fastcgi(farm.application(app)),
                            "max_inflight": 1, "queue_timeout": "60s"},
    })
    conns = [gateway.connect(30.0) for _ in range(3)]
    for i, conn in enumerate(conns):
        conn.send(fcgi.request(fcgi.env("/?%d" % i), keep=True))
        until(lambda: not conn.unread(), what="the request read")
        until(lambda: turns == ["0"], what="the first one inside")
    second = fcgi.request(fcgi.env("/?again"), rid=2)
    conns[1].send(second[:8])
    until(lambda: not conns[1].unread(), what="its next head read")
    conns[1].send(second[8:])
    hanging.set()
    for conn in conns:
        assert conn.response(1).body == b"at last"
    assert conns[1].response(2).body == b"at last"
    assert turns[:3] == ["0", "1", "2"]
    for conn in conns:
        conn.close()


def test_nobody_is_lost_who_talks_while_he_waits(farm):
    """Places come free while what the others say is looked at."""
    gateway = farm.gateway({
        "gateway": {"threads": 6},
        "backend default": {
            **fastcgi(farm.application(lambda r: r.answer("ok"))),
            "max_inflight": 1, "queue_timeout": "60s"},
    })
    rounds = 40

    def client(i):
        with gateway.connect(30.0) as conn:
            conn.send(fcgi.request(fcgi.env("/"), rid=1, keep=True))
            for rid in range(1, rounds + 1):
                request = fcgi.request(fcgi.env("/"), rid=rid + 1, keep=True)
                for start in range(0, 12, 3):
                    conn.send(request[start:start + 3])
                assert conn.response(rid).body == b"ok"
                conn.send(request[12:])
            return conn.response(rounds + 1).body

    assert together(16, client) == [b"ok"] * 16


def test_raised_max_inflight_is_used_at_once(setup):
    s = setup(queue_timeout="60s")
    s.fill()
    s.sections["backend hang"]["max_inflight"] = INFLIGHT + QUEUE
    mark = s.gateway.reload(s.sections)
    s.gateway.log.wait_for("reloaded", since=mark)
    until(lambda: s.app.seen == INFLIGHT + QUEUE, what="the queue served")


def test_places_come_free_again(setup):
    """Each of them, if a moment after who had it has its answer."""
    s = setup(queue_timeout="60s")
    s.fill()
    s.hanging.go.set()
    for conn in s.conns:
        conn.response()
    s.hanging.go.clear()
    seen = s.app.seen
    again = []
    for i in range(INFLIGHT):
        again += s.send(1)
        until(lambda: s.app.seen == seen + i + 1, what="a place")
    s.hanging.go.set()
    for conn in again:
        assert conn.response().body == b"at last"
