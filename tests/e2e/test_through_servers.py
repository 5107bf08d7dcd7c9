"""Responses as an HTTP client has them, through real web servers."""

import hashlib
import http.client
import socket

import pytest

from harness.deadline import Deadline, elapse
from harness.recipes import MEMORY, cgi, fastcgi, fixed

BODY = b"0123456789" * 5000


def application(request):
    """The answer that the path names."""
    name = request.param("REQUEST_URI").split("/")[-1].split(".")[0]
    head = b"Content-Type: text/plain\r\n"
    length = b"Content-Length: %d\r\n" % len(BODY)
    if name == "length":
        request.write(head + length + b"\r\n" + BODY, chunk=999)
    elif name == "none":
        request.write(head + b"\r\n" + BODY, chunk=999)
    elif name == "beyond":
        request.write(head + length + b"\r\n" + BODY + b"more", chunk=999)
    elif name == "coding":
        request.write(b"Transfer-Encoding: identity\r\n" + head + length
                      + b"\r\n" + BODY)
    elif name == "empty":
        request.write(b"Status: 204\r\n" + length + b"\r\n")
    elif name == "unchanged":
        request.write(b"Status: 304\r\n\r\n" + BODY)
    request.end()


@pytest.fixture(scope="module")
def gateway(shared):
    return shared.gateway({
        "backend app": {**fastcgi(shared.application(application)),
                        "path": "/app/*"},
        "backend default": cgi()})


@pytest.fixture(scope="module", params=["lighttpd", "streaming", "apache"])
def server(request, shared, gateway):
    if request.param == "apache":
        return shared.apache(gateway.address)
    streams = request.param == "streaming"
    return shared.lighttpd(gateway.address, name=request.param,
                           stream=2 if streams else 0)


ANSWERS = {"length": (200, BODY), "none": (200, BODY), "beyond": (200, BODY),
           "coding": (200, BODY), "empty": (204, b""),
           "unchanged": (304, b"")}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_23_63_bodies_are_exact_on_a_kept_connection(server, method):
    """Each answer is followed by each other, on one connection."""
    conn = http.client.HTTPConnection("127.0.0.1", server.port, timeout=15.0)
    conn.connect()
    sock = conn.sock
    for first in ANSWERS:
        for second in ANSWERS:
            for name in (first, second):
                conn.request(method, "/app/%s.py" % name)
                response = conn.getresponse()
                status, body = ANSWERS[name]
                want = body if method == "GET" else b""
                assert (name, response.status, response.read()) == (
                    name, status, want)
                assert conn.sock is sock, "not the same connection"
    conn.close()


def test_19_a_slow_client_gets_the_last_byte_too(gateway, server, shared):
    size = 8_000_000
    path = shared.place.write("large", b"large one\n" * (size // 10))
    with socket.create_connection(("127.0.0.1", server.port)) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        sock.sendall(b"GET /download.cgi?%s HTTP/1.0\r\n\r\n"
                     % path.encode())
        deadline = Deadline(20.0, "the end")
        got = b""
        for n in range(1000000):
            sock.settimeout(max(deadline.left(), 0.001))
            piece = sock.recv(65536)
            if not piece:
                break
            got += piece
            if n < 20:
                elapse(0.02)
    head, _, body = got.partition(b"\r\n\r\n")
    assert head.split()[1] == b"200"
    assert len(body) == size
    assert hashlib.sha256(body).digest() == hashlib.sha256(
        b"large one\n" * (size // 10)).digest()


def test_45_a_page_for_refusals_that_is_refused_itself(farm):
    """Apache asks for it once more, and that is all."""
    gateway = farm.gateway({
        "store": MEMORY, "limit all": fixed("1/1h", key="global"),
        "backend default": cgi()})
    server = farm.apache(
        gateway.address,
        more="ProxyErrorOverride On\nErrorDocument 429 /hello.cgi\n")
    conn = http.client.HTTPConnection("127.0.0.1", server.port, timeout=15.0)
    conn.request("GET", "/hello.cgi")
    assert conn.getresponse().read() == b"hello\n"
    mark = gateway.log.mark()
    conn.request("GET", "/hello.cgi")
    response = conn.getresponse()
    response.read()
    conn.close()
    assert response.status == 429
    assert gateway.ask("/last.cgi").status == 429
    gateway.log.wait_for("refused", since=mark, path="/last.cgi")
    assert [e["path"] for e in gateway.log.find("refused", mark)] == [
        "/hello.cgi", "/hello.cgi", "/last.cgi"]
