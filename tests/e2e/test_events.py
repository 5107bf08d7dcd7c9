"""Server-sent events reach the client one by one, at once, if the web server
is told to stream. Event n is read before event n + 1 is written. (nginx:
test_nginx.py)"""

import os
import socket
import time

import pytest

from harness.deadline import SCALE, Deadline
from harness.recipes import cgi, fastcgi

AT_ONCE = 0.1 * SCALE
EVENTS = 20


@pytest.fixture(scope="module")
def gateway(shared):
    return shared.gateway({
        "backend php": {**fastcgi(shared.php()), "path": "/*.php"},
        "backend default": cgi(),
    })


@pytest.fixture(scope="module")
def lighttpd(shared, gateway):
    return shared.lighttpd(gateway.address, stream=1)


@pytest.fixture(scope="module")
def apache(shared, gateway):
    return shared.apache(gateway.address, flush=True)


def read_until(sock, seen, want):
    deadline = Deadline(10.0, "%r" % want)
    while want not in seen:
        sock.settimeout(deadline.left())
        data = sock.recv(65536)
        assert data, "the end, after %r" % seen[-200:]
        seen += data
    return seen


def ask(server, uri):
    sock = socket.create_connection(
        ("127.0.0.1", server.port), Deadline(10.0).left())
    sock.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\n"
                 b"Connection: close\r\n\r\n" % uri.encode())
    return sock


@pytest.mark.parametrize("server", ["lighttpd", "apache"])
@pytest.mark.parametrize("name", ["events.php", "events.cgi"])
def test_55_each_at_once(request, gateway, server, name):
    """The slowest but for a few, which a busy machine may have delayed."""
    fifo = gateway.place / (server + name)
    os.mkfifo(fifo)
    os.chmod(fifo, 0o666)
    took = []
    with ask(request.getfixturevalue(server), "/%s?%s" % (name, fifo)) as sock:
        with open(fifo, "w") as lines:
            seen = b""
            for n in range(EVENTS):
                start = time.monotonic()
                lines.write("event-%d\n" % n)
                lines.flush()
                seen = read_until(sock, seen, b"data: event-%d\n\n" % n)
                took.append(time.monotonic() - start)
    assert b" 200 " in seen.split(b"\r\n")[0]
    assert sorted(took)[EVENTS * 3 // 4] < AT_ONCE, took
