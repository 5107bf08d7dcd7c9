"""A refused POST whose body is still coming gets its 429 at once."""

import socket
import threading
import time

import pytest

from harness import fcgi
from harness.deadline import SCALE, Deadline
from harness.recipes import MEMORY, cgi, fixed

PIECE = b"p" * 65536
SOON = 0.7 * SCALE


@pytest.fixture(scope="module")
def gateway(shared):
    return shared.gateway({
        "store": MEMORY,
        "limit uploads": fixed("1/1h", key="global"),
        "backend default": cgi(),
    })


@pytest.fixture(scope="module")
def spent(gateway):
    assert gateway.ask("/hello.cgi").status == 200
    return gateway


def head(length, **kwargs):
    return fcgi.head(fcgi.env("/sha.cgi", method="POST",
                              CONTENT_LENGTH=str(length)), **kwargs)


def test_raw_with_a_body_that_never_goes_on(spent):
    start = time.monotonic()
    with spent.connect() as conn:
        conn.send(head(10_000_000) + fcgi.record(fcgi.STDIN, PIECE[:60000]))
        got = conn.response()
        took = time.monotonic() - start
        assert (got.status, got.complete) == (429, True)
        assert got.header("retry-after")
        assert took < SOON
        # It says it is through, and then takes what is still on its way.
        assert conn.wait_closed() == b""


def test_12_raw_with_a_body_that_goes_on(spent):
    """12_14: no reset swallows the answer, whenever it is read."""
    with spent.connect() as conn:
        conn.send(head(2_000_000))
        for _ in range(30):
            if not conn.try_send(fcgi.record(fcgi.STDIN, PIECE[:60000])):
                break
        got = conn.response()
        assert (got.status, got.complete) == (429, True)


def test_a_body_without_end_is_not_drained_for_ever(spent):
    deadline = Deadline(20.0, "an endless body to be cut off")
    with spent.connect() as conn:
        conn.send(head(10**12))
        while conn.try_send(fcgi.record(fcgi.STDIN, PIECE[:60000])):
            deadline.check()


def test_a_whole_body_leaves_the_connection_kept(spent):
    with spent.connect() as conn:
        for _ in range(3):
            items = fcgi.env("/sha.cgi", method="POST", CONTENT_LENGTH="5")
            got = conn.ask(items, b"12345", keep=True)
            assert (got.status, got.complete) == (429, True)


def test_413_comes_before_the_body(farm):
    gateway = farm.gateway({
        "gateway": {"max_body": "1m"},
        "backend default": cgi(),
    })
    start = time.monotonic()
    with gateway.connect() as conn:
        conn.send(head(1_048_577))
        got = conn.response()
        assert (got.status, got.complete) == (413, True)
    assert time.monotonic() - start < SOON


def http_upload(port, total, pace, seconds=15.0):
    """(status line, seconds until it came) while the body is being sent,
    64 KB each `pace` seconds."""
    start = time.monotonic()
    done = threading.Event()
    with socket.socket() as sock:
        sock.settimeout(Deadline(seconds).left())
        sock.connect(("127.0.0.1", port))
        sock.sendall(b"POST /sha.cgi HTTP/1.1\r\nHost: localhost\r\n"
                     b"Content-Length: %d\r\n\r\n" % total)

        def feed():
            try:
                for _ in range(total // len(PIECE)):
                    sock.sendall(PIECE)
                    if done.wait(pace):
                        return
            except OSError:
                pass

        feeder = threading.Thread(target=feed)
        feeder.start()
        try:
            line = sock.recv(64).split(b"\r\n")[0]
            took = time.monotonic() - start
        finally:
            done.set()
            feeder.join()
    return line, took


def check_upload(server, pace):
    line, took = http_upload(server.port, 300 * len(PIECE), pace)
    assert line.split()[1] == b"429"
    assert took < SOON


def test_12_lighttpd(spent, farm):
    check_upload(farm.lighttpd(spent.address, stream=1), pace=0.01)


@pytest.mark.parametrize("reuse", [False, True], ids=["plain", "enablereuse"])
def test_12_apache(spent, farm, reuse):
    """Apache has the 429 at once too, but takes the whole body before it
    passes it on; so this client sends as fast as it can."""
    server = farm.apache(spent.address, reuse=reuse)
    for _ in range(3):
        check_upload(server, pace=0)
