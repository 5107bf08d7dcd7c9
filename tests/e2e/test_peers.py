"""Silent, slow and too many peers cost a deadline, and nobody else."""

import os
import resource
import select
import time

import pytest

from harness import fcgi
from harness.deadline import SCALE, Deadline, elapse, pause, until
from harness.recipes import MEMORY, by_key, fastcgi, key

HEAD_TIMEOUT = 0.4
BODY_TIMEOUT = 0.5


@pytest.fixture(scope="module")
def app(shared):
    return shared.application(handler=big_or_small)


def big_or_small(request):
    if "big" in request.param("REQUEST_URI"):
        request.answer(b"x" * 8_000_000)
    else:
        request.answer("small")


@pytest.fixture(scope="module")
def gateway(shared, app):
    return shared.gateway({
        "gateway": {"body_timeout": "%dms" % (BODY_TIMEOUT * SCALE * 1000),
                    "threads": 8},
        "store": MEMORY,
        "log": {"access": "denied"},
        "limit all": by_key("1/1h"),
        "backend default": fastcgi(app),
    })


@pytest.fixture(scope="module")
def hasty(shared, app):
    return shared.gateway({
        "gateway": {"head_timeout": "%dms" % (HEAD_TIMEOUT * SCALE * 1000)},
        "backend default": fastcgi(app),
    })


def quick(gateway, count=20):
    """The median seconds of a request, all answered."""
    took = []
    for _ in range(count):
        start = time.monotonic()
        assert gateway.ask("/small").body == b"small"
        took.append(time.monotonic() - start)
    return sorted(took)[count // 2]


def half_head():
    return fcgi.head(fcgi.env("/half"))[:60]


def test_half_heads_time_out(hasty):
    start = time.monotonic()
    with hasty.connect() as conn:
        conn.send(half_head())
        assert conn.wait_closed() == b""
    took = (time.monotonic() - start) / SCALE
    assert HEAD_TIMEOUT * 0.9 <= took < HEAD_TIMEOUT + 1.5


def test_a_trickled_head_does_not_move_its_deadline(hasty):
    """The head has one deadline, whatever moves."""
    start = time.monotonic()
    deadline = Deadline(HEAD_TIMEOUT + 2.0, "a trickling head to be closed")
    data = fcgi.head(fcgi.env("/half", headers={"X-L": "y" * 5000}))
    with hasty.connect() as conn:
        for byte in data:
            if not conn.try_send(bytes([byte])):
                break
            deadline.check()
            pause()
        else:
            pytest.fail("the whole head could be trickled")
    assert time.monotonic() - start >= HEAD_TIMEOUT * SCALE * 0.9


def test_14a_silent_and_stalled_peers_cost_nobody_else(gateway):
    silent = [gateway.connect() for _ in range(30)]
    stalled = [gateway.connect() for _ in range(30)]
    for conn in stalled:
        conn.send(half_head())
    try:
        assert quick(gateway) < 0.05 * SCALE
    finally:
        for conn in silent + stalled:
            conn.close()


def post(length):
    return fcgi.head(fcgi.env("/small", method="POST",
                              CONTENT_LENGTH=str(length)))


def test_stalled_bodies_hold_no_worker_and_time_out(gateway, app):
    seen = app.seen
    stalled = [gateway.connect() for _ in range(30)]
    for conn in stalled:
        conn.send(post(1000) + fcgi.record(fcgi.STDIN, b"x" * 10))
    start = time.monotonic()
    assert quick(gateway) < 0.05 * SCALE
    asked = app.seen - seen
    for conn in stalled:
        got = conn.response()
        assert (got.status, got.complete) == (408, True)
        conn.close()
    took = (time.monotonic() - start) / SCALE
    assert took < BODY_TIMEOUT + 3.0
    assert app.seen - seen == asked, "half a body reached the application"


def test_86_a_slow_body_that_goes_on_is_served(gateway):
    """It takes longer than body_timeout, but never stands still as long."""
    pieces = 12
    with gateway.connect() as conn:
        conn.send(post(pieces * 2000))
        for _ in range(pieces):
            elapse(BODY_TIMEOUT / 6)
            conn.send(fcgi.record(fcgi.STDIN, b"x" * 2000))
        conn.send(fcgi.record(fcgi.STDIN))
        got = conn.response()
    assert (got.status, got.body) == (200, b"small")


def test_a_trickled_body_is_answered_408(gateway, app):
    """Always some progress, but far less than 1 KB/s."""
    seen = app.seen
    deadline = Deadline(BODY_TIMEOUT + 4.0, "a trickling body to be refused")
    with gateway.connect() as conn:
        conn.send(post(1_000_000))
        while not select.select([conn.sock], [], [], 0)[0]:
            conn.send(fcgi.record(fcgi.STDIN, b"x"))
            elapse(BODY_TIMEOUT / 20)
            deadline.check()
        got = conn.response()
    assert (got.status, got.complete) == (408, True)
    assert app.seen == seen


def test_slow_readers_cost_nobody_else(gateway):
    slow = [gateway.connect() for _ in range(4)]
    try:
        for conn in slow:
            conn.send(fcgi.request(fcgi.env("/big")))
            conn.read_record()
        assert quick(gateway) < 0.05 * SCALE
    finally:
        for conn in slow:
            conn.close()


def test_a_slow_reader_gets_all_of_it(gateway):
    """The last piece arrives too."""
    with gateway.connect() as conn:
        conn.send(fcgi.request(fcgi.env("/big")))
        for _ in range(5):
            conn.read_record()
            elapse(0.05)
        conn.response()
    with gateway.connect() as conn:
        got = conn.ask(fcgi.env("/big"))
        assert len(got.body) == 8_000_000
        assert got.complete


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_30_out_of_descriptors_is_survived(farm):
    """Many more connections than descriptors: no end, no spinning."""
    gateway = farm.gateway({
        "gateway": {"threads": 4, "max_connections": 4000,
                    "head_timeout": "60s"},
        "store": MEMORY,
        "limit all": by_key("1/1h"),
        "backend default": fastcgi(farm.application(big_or_small)),
    }, nofile=(80, 80))
    many = []
    for _ in range(200):
        conn = gateway.connect()
        conn.try_send(half_head())
        many.append(conn)
    before = cpu_seconds(gateway.pid)
    elapse(0.5)
    assert cpu_seconds(gateway.pid) - before < 0.25 * SCALE, "it spins"
    assert gateway.running()
    for conn in many:
        conn.close()
    assert gateway.ask("/small", headers=key("e")).status == 200
    assert gateway.ask("/small", headers=key("e")).status == 429


def test_7_more_than_1024_connections(farm):
    """Descriptors above 1024 are like any others (CVE-2012-6687)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    gateway = farm.gateway({
        "store": MEMORY,
        "limit all": by_key("1/1h"),
        "backend default": fastcgi(farm.application(big_or_small)),
    })
    many = [gateway.connect() for _ in range(2200)]
    try:
        for conn in many:
            conn.send(half_head())
        until(lambda: gateway.open_descriptors() > 2200,
              what="all to be accepted")
        assert gateway.ask("/small", headers=key("e")).status == 200
        assert gateway.ask("/small", headers=key("e")).status == 429
        last = many[-1]
        last.send(fcgi.request(fcgi.env("/half"))[60:])
        assert last.response().body == b"small"
    finally:
        for conn in many:
            conn.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_max_connections_closes_the_longest_idle_first(farm):
    gateway = farm.gateway({
        "gateway": {"max_connections": 5},
        "backend default": fastcgi(farm.application(big_or_small)),
    })
    kept = [gateway.connect() for _ in range(5)]
    for conn in kept:
        assert conn.ask(fcgi.env("/small"), keep=True).status == 200
    assert gateway.ask("/small").status == 200
    assert kept[0].wait_closed() == b""
    assert kept[4].ask(fcgi.env("/small"), keep=True).status == 200
    for conn in kept:
        conn.close()
