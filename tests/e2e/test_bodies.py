"""Bodies: byte-exact both ways, measured, and never held in memory.

`make check-matrix` (MATRIX=whole) makes a gigabyte of 64 MB.
"""

import hashlib
import os

import pytest

from harness import fcgi
from harness.recipes import cgi, fastcgi, script
from harness.web import fetch

MB = 1024 * 1024
BIG = 1024 * MB if os.environ.get("MATRIX") == "whole" else 64 * MB
EMPTY = hashlib.sha256(b"").hexdigest()


@pytest.fixture(scope="module")
def app(shared):
    return shared.application()


@pytest.fixture(scope="module")
def gateway(shared, app):
    return shared.gateway({
        "gateway": {"max_body": str(BIG)},
        "backend app": {**fastcgi(app), "path": "/app"},
        "backend tcp": {**fastcgi(shared.php(tcp=True, name="tcp")),
                        "path": "/tcp/*"},
        "backend php": {**fastcgi(shared.php()), "path": "/*.php"},
        "backend default": cgi(),
    })


@pytest.fixture(scope="module")
def big(shared):
    """Bytes that no compression or repetition helps with."""
    path, hashed = shared.place / "big", hashlib.sha256()
    with open(path, "wb") as f:
        for _ in range(BIG // MB):
            piece = os.urandom(MB)
            hashed.update(piece)
            f.write(piece)
    return path, hashed.hexdigest()


class Memory:
    """How far the gateway's resident memory went up meanwhile."""

    def __init__(self, gateway):
        self.gateway = gateway
        with open("/proc/%d/clear_refs" % gateway.pid, "w") as f:
            f.write("5")  # forget the peak
        self.before = gateway.memory_kb("VmRSS")

    def growth_kb(self):
        return self.gateway.memory_kb("VmHWM") - self.before


def post(uri, size):
    """The pairs of an upload to the script at the end of the path."""
    return script("/" + uri.split("/")[-1], method="POST", REQUEST_URI=uri,
                  SCRIPT_NAME=uri, CONTENT_LENGTH=str(size))


@pytest.mark.parametrize("uri", ["/sha.php", "/sha.cgi", "/tcp/sha.php"])
def test_53_upload_of_64_mb(gateway, big, uri):
    path, sha = big
    got = fcgi.ask(gateway.address, post(uri, MB), b"x" * MB)  # warm
    assert got.status == 200
    memory = Memory(gateway)
    with gateway.connect(30.0) as conn:
        conn.send(fcgi.head(post(uri, BIG)))
        with open(path, "rb") as f:
            while piece := f.read(fcgi.CONTENT_MAX):
                conn.send(fcgi.record(fcgi.STDIN, piece))
        conn.send(fcgi.record(fcgi.STDIN))
        got = conn.response()
    assert (got.status, got.complete) == (200, True)
    assert got.body.decode().split()[:2] == [str(BIG), sha]
    assert memory.growth_kb() < 8 * 1024


@pytest.mark.parametrize("uri", ["/download.php", "/download.cgi"])
def test_5_download_of_64_mb(gateway, big, uri):
    path, sha = big
    gateway.ask(uri + "?" + gateway.config_path)  # warm
    memory = Memory(gateway)
    hashed = hashlib.sha256()
    size, head, seen = 0, b"", False
    with gateway.connect(30.0) as conn:
        conn.send(fcgi.request(script(uri + "?" + path)))
        while True:
            kind, _, content = conn.read_record()
            if kind == fcgi.END:
                break
            if not seen:
                head += content
                seen = b"\r\n\r\n" in head
                content = head.partition(b"\r\n\r\n")[2] if seen else b""
            hashed.update(content)
            size += len(content)
    assert size == BIG
    assert hashed.hexdigest() == sha
    assert memory.growth_kb() < 8 * 1024


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 65537, 200_000])
@pytest.mark.parametrize("uri", ["/app", "/sha.php", "/sha.cgi"])
def test_68_90_91_bodies_around_a_record(gateway, uri, size):
    body = os.urandom(size)
    got = gateway.ask(uri, body, method="POST", CONTENT_LENGTH=str(size))
    assert got.status == 200
    assert hashlib.sha256(body).hexdigest() in got.body.decode()


UNKNOWN = {
    "absent": {},
    "empty": {"CONTENT_LENGTH": ""},
    "chunked": {"HTTP_TRANSFER_ENCODING": "chunked"},
}


@pytest.mark.parametrize("how", UNKNOWN)
@pytest.mark.parametrize("uri", ["/sha.php", "/sha.cgi"])
def test_41_an_unknown_length_is_measured(gateway, uri, how):
    body = os.urandom(150_000)
    got = gateway.ask(uri, body, method="POST", **UNKNOWN[how])
    assert got.body.decode().split()[:2] == [
        "150000", hashlib.sha256(body).hexdigest()]


def test_41_a_measured_request_has_no_transfer_encoding(gateway):
    got = gateway.ask("/env.cgi", b"12345", method="POST",
                      HTTP_TRANSFER_ENCODING="chunked")
    assert b"CONTENT_LENGTH=5\n" in got.body
    assert b"TRANSFER_ENCODING" not in got.body


@pytest.mark.parametrize("reuse", [False, True], ids=["plain", "enablereuse"])
@pytest.mark.parametrize("uri", ["/sha.php", "/sha.cgi"])
def test_41_chunked_upload_through_apache(gateway, farm, uri, reuse):
    server = farm.apache(gateway.address, reuse=reuse)
    body = os.urandom(300_000)
    pieces = [body[i:i + 7000] for i in range(0, len(body), 7000)]
    for _ in range(3):
        got = fetch(server, uri, "POST", iter(pieces), chunked=True,
                    headers={"Transfer-Encoding": "chunked"})
        assert got.status == 200
        assert got.body.decode().split()[:2] == [
            "300000", hashlib.sha256(body).hexdigest()]


@pytest.mark.parametrize("uri", ["/sha.php", "/sha.cgi"])
def test_14b_upload_through_lighttpd(gateway, farm, uri):
    server = farm.lighttpd(gateway.address)
    body = os.urandom(700_000)
    got = fetch(server, uri, "POST", body)
    assert got.body.decode().split()[:2] == [
        "700000", hashlib.sha256(body).hexdigest()]


def bad_length(gateway, app, lengths, body):
    """A POST with these CONTENT_LENGTH params; 400, and no one sees it."""
    seen = app.seen
    items = fcgi.env("/app", method="POST")
    items += [("CONTENT_LENGTH", n) for n in lengths]
    with gateway.connect() as conn:
        conn.try_send(fcgi.request(items, body))
        got = conn.response()
    assert (got.status, got.complete) == (400, True)
    assert got.all("retry-after") == []
    assert app.seen == seen


@pytest.mark.parametrize("lengths", [
    ["5", "6"], ["5", ""], ["x"], ["-5"], ["5x"], [" 5"], ["0x5"], ["5.0"],
    ["+5"], ["5,5"], ["99999999999999999999999"]])
def test_content_length_that_is_no_length(gateway, app, lengths):
    bad_length(gateway, app, lengths, b"12345")


@pytest.mark.parametrize("said, sent", [(5, 4), (5, 6), (5, 0), (0, 5),
                                        (100000, 99999), (99999, 100000)])
def test_58_content_length_that_is_not_what_came(gateway, app, said, sent):
    bad_length(gateway, app, [str(said)], b"b" * sent)


def test_content_length_twice_the_same(gateway):
    items = fcgi.env("/app", method="POST", CONTENT_LENGTH="5")
    got = fcgi.ask(gateway.address, items + [("CONTENT_LENGTH", "5")],
                   b"12345")
    assert got.status == 200


@pytest.fixture(scope="module")
def small(shared, app):
    return shared.gateway({
        "gateway": {"max_body": "1m", "spool_total": "3m",
                    "spool_memory": "16k"},
        "backend default": fastcgi(app),
    })


@pytest.mark.parametrize("extra", [{"CONTENT_LENGTH": str(MB + 1)}, {}],
                         ids=["said", "measured"])
def test_413(small, app, extra):
    seen = app.seen
    with small.connect() as conn:
        conn.try_send(fcgi.request(
            fcgi.env("/app", method="POST", **extra), b"b" * (MB + 1)))
        got = conn.response()
    assert (got.status, got.complete) == (413, True)
    assert got.all("retry-after") == []
    assert app.seen == seen
    got = small.ask("/app", b"b" * MB, method="POST", CONTENT_LENGTH=str(MB))
    assert got.status == 200


def test_spool_total_is_503(small):
    """Four times 0.9 MB, all but the end of each, do not fit in 3 MB."""
    head = fcgi.head(fcgi.env("/app", method="POST",
                              CONTENT_LENGTH="900000"))
    most = fcgi.stream(fcgi.STDIN, b"b" * 899_999, end=False)
    conns = [small.connect() for _ in range(4)]
    for conn in conns:
        conn.try_send(head + most)
    got = conns[3].response()
    assert (got.status, got.complete) == (503, True)
    assert int(got.header("retry-after")) >= 1
    for conn in conns[:3]:
        conn.send(fcgi.stream(fcgi.STDIN, b"e"))
        assert conn.response().status == 200
    for conn in conns:
        conn.close()


def test_spool_files_have_no_name(gateway):
    with gateway.connect() as conn:
        conn.send(fcgi.head(fcgi.env("/app", method="POST",
                                     CONTENT_LENGTH="3000000")))
        conn.send(fcgi.stream(fcgi.STDIN, b"b" * 2_999_999, end=False))
        assert os.listdir(gateway.spool) == []
        conn.send(fcgi.stream(fcgi.STDIN, b"e"))
        assert conn.response().status == 200
