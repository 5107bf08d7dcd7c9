"""One backend that hangs costs its own clients, nobody else."""

import select
import threading
import time

import pytest

from harness import fcgi
from harness.deadline import SCALE, Deadline, until
from harness.recipes import MEMORY, by_key, fastcgi, key

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


def test_a_client_that_leaves_the_queue_is_forgotten(setup):
    s = setup(queue_timeout="60s")
    queued = s.fill()
    full = INFLIGHT * 2 + QUEUE
    until(lambda: s.gateway.open_descriptors() >= s.before + full,
          what="the queue to fill")
    for conn in queued:
        conn.close()
    until(lambda: s.gateway.open_descriptors() <= s.before + full - QUEUE,
          what="the queue to empty")
    waiting = s.send(QUEUE)
    s.hanging.go.set()
    for conn in waiting:
        assert conn.response().body == b"at last"


def test_raised_max_inflight_is_used_at_once(setup):
    s = setup(queue_timeout="60s")
    s.fill()
    s.sections["backend hang"]["max_inflight"] = INFLIGHT + QUEUE
    mark = s.gateway.reload(s.sections)
    s.gateway.log.wait_for("reloaded", since=mark)
    until(lambda: s.app.seen == INFLIGHT + QUEUE, what="the queue served")


def test_places_come_free_again(setup):
    s = setup(queue_timeout="60s")
    s.fill()
    s.hanging.go.set()
    for conn in s.conns:
        conn.response()
    again = s.send(INFLIGHT)
    for conn in again:
        assert conn.response().body == b"at last"
