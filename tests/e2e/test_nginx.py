"""nginx passes requests to Sluice (fastcgi_pass), on connections it keeps.

As nginx comes, it takes a body in before it says a word and a response as
fast as it comes; streaming, it does neither, and announces no length of a
body of unknown length (CONTENT_LENGTH is there, and empty).
"""

import hashlib
import http.client
import os
import socket
import time

import pytest

from harness.deadline import SCALE, Deadline
from harness.recipes import MEMORY, by_key, cgi, fastcgi, key, together
from harness.web import Nginx, fetch

EVENT_S = 0.1 * SCALE
STREAMS = "fastcgi_request_buffering off;\nfastcgi_buffering off;\n"
BODY = bytes(range(256)) * 40960  # 10 MiB
SHA = hashlib.sha256(BODY).hexdigest()


@pytest.fixture(scope="module")
def gateway(shared):
    gateway = shared.gateway({
        "store": MEMORY,
        "limit keys": by_key("2/1h", message="Not so often."),
        "backend php": {**fastcgi(shared.php(children=2)), "path": "/*.php"},
        "backend default": cgi(),
    })
    gateway.kept = 2 * Nginx.KEPT
    return gateway


@pytest.fixture(scope="module")
def buffering(shared, gateway):
    return shared.nginx(gateway.address, name="buffering")


@pytest.fixture(scope="module")
def streaming(shared, gateway):
    return shared.nginx(gateway.address, name="streaming", lines=STREAMS)


@pytest.fixture(params=["buffering", "streaming"])
def nginx(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def name(request):
    """A key of this test's own."""
    return key(request.node.name)


def raw(place, text):
    """A file that raw.cgi prints as its whole output."""
    path = place.write("raw%d" % len(os.listdir(place.path)), text)
    return "/raw.cgi?" + path


def test_allowed_and_refused(nginx, name):
    for remaining in (1, 0):
        got = fetch(nginx, "/ok.php", headers=name)
        assert (got.status, got.limit) == (200, (2, remaining, 3600))
        assert got.reason == "OK"  # nginx adds none of its own
    for method in ("GET", "HEAD", "POST"):
        got = fetch(nginx, "/ok.php", method, headers=name)
        assert (got.status, got.limit) == (429, (2, 0, 3600))
        assert got.header("retry-after") == "3600"
        assert (b"Not so often." in got.body) == (method != "HEAD")


def connections(gateway):
    """Sluice's ends of them, by the numbers that unix sockets have."""
    with open("/proc/net/unix") as f:
        return {line.split()[6] for line in f
                if line.rstrip().endswith(gateway.address)
                and line.split()[3] != "00010000"}  # that one listens


def test_one_connection_for_all(farm, gateway):
    """Whatever the answer was, the next request is on the same one."""
    nginx = farm.nginx(gateway.address)
    before = connections(gateway)
    uris = ["/ok.php", "/hello.cgi", "/missing.cgi", "/cookies.php"]
    for uri in uris * 3:
        for method in ("GET", "POST"):
            fetch(nginx, uri, method, headers=key("one"),
                  body=b"x" * 1000 if method == "POST" else None)
    own = connections(gateway) - before
    assert len(own) == 1


@pytest.mark.parametrize("uri", ["/sha.php", "/sha.cgi"])
@pytest.mark.parametrize("chunked", [False, True], ids=["sized", "chunked"])
def test_upload(nginx, uri, chunked):
    pieces = [BODY[i:i + 7000] for i in range(0, len(BODY), 7000)]
    got = fetch(nginx, uri, "POST", iter(pieces) if chunked else BODY,
                headers={} if chunked else {"Expect": "100-continue"},
                chunked=chunked)
    assert got.status == 200
    assert got.body.decode().split()[:2] == [str(len(BODY)), SHA]


def test_an_empty_chunked_body(nginx):
    got = fetch(nginx, "/sha.php", "POST", iter([]), chunked=True)
    assert got.body.decode().split() == ["0", hashlib.sha256().hexdigest()]


@pytest.mark.parametrize("head", [
    "Content-Length: 10000000", "Transfer-Encoding: chunked"])
def test_refused_before_the_body_is_there(streaming, name, head):
    for _ in range(2):
        fetch(streaming, "/ok.php", headers=name)
    with ask(streaming, "/sha.php", "POST", head,
             "X-Key: " + name["X-Key"]) as sock:
        sock.sendall(b"7d0\r\n" + b"x" * 2000 + b"\r\n")
        got = http.client.HTTPResponse(sock)
        got.begin()
        assert (got.status, got.getheader("retry-after")) == (429, "3600")
        got.close()


@pytest.mark.parametrize("chunked", [False, True], ids=["sized", "chunked"])
def test_a_large_upload_is_refused(nginx, name, chunked):
    for _ in range(2):
        fetch(nginx, "/ok.php", headers=name)
    got = fetch(nginx, "/sha.php", "POST",
                iter([BODY] * 2) if chunked else BODY, name, chunked=chunked)
    assert (got.status, got.limit) == (429, (2, 0, 3600))
    assert b"Not so often." in got.body
    assert fetch(nginx, "/ok.php").status == 200


def ask(server, uri, method="GET", *lines):
    """A connection with a head that was sent on it."""
    sock = socket.create_connection(
        ("127.0.0.1", server.port), Deadline(10.0).left())
    sock.sendall("\r\n".join(
        ["%s %s HTTP/1.1" % (method, uri), "Host: localhost",
         "Connection: close", *lines, "", ""]).encode())
    return sock


EVENTS = {
    "buffering off": ("streaming", "/events.cgi?"),
    "X-Accel-Buffering": ("buffering", "/unbuffered.cgi?"),
}


@pytest.mark.parametrize("how", EVENTS)
def test_each_event_goes_out_at_once(request, shared, how):
    server, uri = EVENTS[how]
    server = request.getfixturevalue(server)
    fifo = shared.place / ("fifo-" + server.name)
    os.mkfifo(fifo)
    with ask(server, uri + fifo) as sock:
        file = sock.makefile("rb")
        writer = os.open(fifo, os.O_WRONLY)
        for n in range(20):
            began = time.monotonic()
            os.write(writer, b"event%d\n" % n)
            while b"event%d" % n not in file.readline():
                pass
            assert time.monotonic() - began < EVENT_S
        os.close(writer)
        file.read()


def test_x_accel_redirect(nginx, shared):
    """nginx serves the file that the application names; limits count."""
    uri = raw(shared.place,
              "X-Accel-Redirect: /internal/plain.txt\r\n"
              "Content-Type: text/x-mine\r\n\r\nnot this")
    got = fetch(nginx, uri, headers={"X-Accel-Redirect": "/etc/passwd"})
    assert (got.status, got.body) == (200, b"Not a script.\n")
    assert got.header("content-type") == "text/x-mine"
    assert fetch(nginx, "/internal/plain.txt").status == 404


def test_head(nginx, name):
    got = fetch(nginx, "/ok.php", "HEAD", headers=name)
    assert (got.status, got.body, got.limit) == (200, b"", (2, 1, 3600))


@pytest.mark.parametrize("status", [204, 304])
def test_no_content(nginx, shared, status, name):
    uri = raw(shared.place, "Status: %d\r\nETag: \"e\"\r\n\r\n" % status)
    for remaining in (1, 0):
        got = fetch(nginx, uri, headers=name)
        assert (got.status, got.body) == (status, b"")
        assert got.limit == (2, remaining, 3600)
        assert got.header("etag") == '"e"'


def test_redirect(nginx, shared):
    got = fetch(nginx, raw(shared.place, "Location: /elsewhere\r\n\r\n"))
    assert (got.status, got.reason) == (302, "Found")
    assert got.header("location").endswith("/elsewhere")


def test_interim_answers_do_not_confuse(nginx, shared):
    """A 103 of the application is no answer; its 200 is."""
    uri = raw(shared.place,
              "Status: 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
              "Status: 200 OK\r\nContent-Type: text/plain\r\n\r\nafter")
    got = fetch(nginx, uri)
    assert (got.status, got.body) == (200, b"after")


def test_many_cookies(nginx):
    got = fetch(nginx, "/cookies.php")
    assert got.status == 201
    assert got.all("set-cookie") == ["c%d=v%d" % (n, n) for n in range(1, 21)]


def test_download(nginx, shared):
    path = shared.place.write("big%s" % nginx.name, BODY)
    got = fetch(nginx, "/download.cgi?" + path)
    assert hashlib.sha256(got.body).hexdigest() == SHA


def test_a_client_leaves(nginx, gateway, shared):
    """Its script ends, nothing is left, and the next one is served."""
    fifo = shared.place / ("left-" + nginx.name)
    os.mkfifo(fifo)
    mark = gateway.log.mark()
    sock = ask(nginx, "/events.cgi?" + fifo)
    writer = os.open(fifo, os.O_WRONLY)
    sock.close()
    line = gateway.log.wait_for("request", since=mark, path="/events.cgi")
    os.close(writer)
    assert "backend" in line
    assert fetch(nginx, "/ok.php").status == 200


def test_a_dead_backend(farm):
    gateway = farm.gateway({"store": MEMORY, "backend default": {
        "address": "unix:" + farm.place / "nobody.s"}})
    nginx = farm.nginx(gateway.address)
    for _ in range(3):
        got = fetch(nginx, "/x")
        assert got.status == 502
        assert got.body == b"502 Bad Gateway\n"


def test_together(nginx, name):
    answers = together(40, lambda i: fetch(nginx, "/hello.cgi", headers=name))
    assert sorted(a.status for a in answers) == [200] * 2 + [429] * 38
