"""Backends that are dead, slow, full or dishonest."""

import os
import socket
import threading

import pytest

from harness import fcgi
from harness.deadline import SCALE, Deadline, timed, until
from harness.gateway import APPS
from harness.recipes import MEMORY, by_key, cgi, fastcgi, key, together


class Behaviour:
    """An application whose requests wait until told to go on."""

    def __init__(self):
        self.go = threading.Event()
        self.busy = 0
        self.lock = threading.Lock()

    def __call__(self, request):
        how = request.param("REQUEST_URI").split("/")[-1]
        with self.lock:
            self.busy += 1
        try:
            getattr(self, how)(request)
        finally:
            with self.lock:
                self.busy -= 1

    def quick(self, request):
        request.answer("quick")

    def dies(self, request):
        """Gone before its head."""

    def dies_in_head(self, request):
        request.write("Content-Type: text/pl")

    def ends_without_head(self, request):
        request.end()

    def dies_in_body(self, request):
        request.write("Content-Type: text/plain\r\n\r\nhalf of it")

    def dies_in_record(self, request):
        request.write("Content-Type: text/plain\r\n\r\n")
        request.raw(b"\x01\x06\0\x01\xff\xff\0\0half of it")

    def short_of_length(self, request):
        request.write("Content-Length: 100\r\n\r\nhalf of it")
        request.end()

    def beyond_length(self, request):
        request.write("Content-Length: 4\r\n\r\nbody and more")
        request.end()

    def overloaded(self, request):
        request.end(0, fcgi.OVERLOADED)

    def cant_mpx(self, request):
        request.end(0, fcgi.CANT_MPX)

    def unknown_role(self, request):
        request.end(0, fcgi.UNKNOWN_ROLE)

    def failed(self, request):
        request.write("Content-Type: text/plain\r\n\r\nall of it")
        request.end(app_status=3)

    def no_protocol(self, request):
        request.raw(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 10)

    def wait(self, request):
        self.go.wait(30.0)
        request.answer("waited")

    def trickle(self, request):
        request.write("Content-Type: text/plain\r\n\r\n")
        for n in range(5):
            # Of its own time: idle_timeout is not stretched either.
            threading.Event().wait(0.3)
            request.write("%d" % n)
        request.end()

    def stall(self, request):
        request.write("Content-Type: text/plain\r\n\r\nhalf of it")
        self.go.wait(30.0)


@pytest.fixture(scope="module")
def behaviour():
    return Behaviour()


@pytest.fixture(scope="module")
def gateway(shared, behaviour):
    app = shared.application(behaviour)
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(shared.place / "dead.s")  # never listened on
    shared.place.write("nosocket", "")
    return shared.gateway({
        "store": MEMORY,
        "limit keyed": by_key("1/1h"),
        "backend dead": {"address": "unix:" + shared.place / "dead.s",
                         "path": "/dead/*"},
        "backend absent": {"address": "unix:" + shared.place / "absent.s",
                           "path": "/absent/*"},
        "backend file": {"address": "unix:" + shared.place / "nosocket",
                         "path": "/file/*"},
        "backend port": {"address": "127.0.0.1:1", "path": "/port/*"},
        "backend hasty": {**fastcgi(app, first_byte_timeout="200ms",
                                    idle_timeout="200ms"),
                          "path": "/hasty/*"},
        "backend patient": {**fastcgi(app, first_byte_timeout="1s",
                                      idle_timeout="1s"),
                            "path": "/patient/*"},
        "backend default": fastcgi(app),
    })


@pytest.mark.parametrize("where", ["dead", "absent", "file", "port"])
def test_29_nobody_there_is_502(gateway, where):
    got, took = timed(gateway.ask, "/%s/x" % where)
    assert (got.status, got.complete) == (502, True)
    assert got.all("retry-after") == []
    assert took < 0.5 * SCALE


def test_29_it_is_served_again_when_it_is_back(farm):
    gateway = farm.gateway({"backend default": {
        "address": "unix:" + farm.place / "app.s"}})
    assert gateway.ask("/quick").status == 502
    farm.application(Behaviour())
    assert gateway.ask("/quick").body == b"quick"


@pytest.mark.parametrize("how", [
    "dies", "dies_in_head", "ends_without_head", "no_protocol",
    "unknown_role"])
def test_46_502(gateway, how):
    got = gateway.ask("/" + how)
    assert (got.status, got.complete) == (502, True)


@pytest.mark.parametrize("how", ["overloaded", "cant_mpx"])
def test_rejected_by_the_application_is_503(gateway, how):
    got = gateway.ask("/" + how)
    assert (got.status, got.complete) == (503, True)
    assert int(got.header("retry-after")) >= 1


@pytest.mark.parametrize("how", ["dies_in_body", "dies_in_record",
                                 "short_of_length"])
def test_an_ending_is_never_invented(gateway, how):
    with gateway.connect() as conn:
        got = conn.ask(fcgi.env("/" + how), keep=True)
    if got.out and got.status == 502:  # known before anything went out
        return
    assert got.eof and got.end is None
    if got.out:
        assert got.status == 200
        assert b"half of it".startswith(got.body)


def test_58_what_is_beyond_the_length_is_cut(gateway):
    got = gateway.ask("/beyond_length")
    assert got.status == 200
    assert got.body == b"body"
    assert gateway.ask("/quick").body == b"quick"


def test_an_exit_status_after_the_head_is_only_logged(gateway):
    mark = gateway.log.mark()
    got = gateway.ask("/failed")
    assert (got.status, got.body) == (200, b"all of it")
    assert got.end[1] == fcgi.COMPLETE
    entry = gateway.log.wait_for("request", since=mark, path="/failed")
    assert entry["error"] == "ended with status 3"


def test_504_no_first_byte(gateway, behaviour):
    behaviour.go.clear()
    got, took = timed(gateway.ask, "/hasty/wait")
    behaviour.go.set()
    assert (got.status, got.complete) == (504, True)
    assert got.all("retry-after") == []
    assert 0.19 < took < 1.5 * SCALE


def test_35_idle_timeout_after_the_head_cuts(gateway, behaviour):
    behaviour.go.clear()
    got = gateway.ask("/hasty/stall")
    behaviour.go.set()
    assert (got.status, got.body) == (200, b"half of it")
    assert got.eof and got.end is None


def test_35_what_moves_is_not_idle(gateway):
    """Longer than idle_timeout in all, but never at once."""
    got = gateway.ask("/patient/trickle")
    assert (got.status, got.body, got.complete) == (200, b"01234", True)


@pytest.mark.parametrize("how", ["dead/x", "dies"])
def test_what_can_not_be_served_stays_counted(gateway, how):
    got = gateway.ask("/" + how, headers=key(how))
    assert got.status == 502
    assert got.limit[:2] == (1, 0)
    assert gateway.ask("/" + how, headers=key(how)).status == 429


def test_404_without_a_backend(farm):
    gateway = farm.gateway({"backend one": {
        **cgi(), "path": "/one/*", "method": "GET", "host": "a.example"}})
    hello = {"SCRIPT_FILENAME": APPS + "/hello.cgi"}
    host = {"Host": "A.example:80"}
    assert gateway.ask("/one/x", headers=host, **hello).status == 200
    for uri, method, headers in (("/two", "GET", host),
                                 ("/one/x", "POST", host),
                                 ("/one/x", "GET", {"Host": "b.example"})):
        got = gateway.ask(uri, method=method, headers=headers, **hello)
        assert (got.status, got.complete) == (404, True)


def test_84_a_client_that_leaves_ends_the_backends_connection(farm):
    left = threading.Event()

    def handler(request):
        request.write("Content-Type: text/plain\r\n\r\nbegin")
        assert request.conn.read_record(Deadline(10.0)) is None
        left.set()

    gateway = farm.gateway({
        "backend default": fastcgi(farm.application(handler))})
    with gateway.connect() as conn:
        conn.send(fcgi.request(fcgi.env("/")))
        conn.read_record()
    assert left.wait(5.0 * SCALE)


def test_42_a_client_that_leaves_before_the_head(farm):
    left = threading.Event()

    def handler(request):
        assert request.conn.read_record(Deadline(10.0)) is None
        left.set()

    app = farm.application(handler)
    gateway = farm.gateway({"backend default": fastcgi(app)})
    with gateway.connect() as conn:
        conn.send(fcgi.request(fcgi.env("/")))
        until(lambda: app.seen == 1)
    assert left.wait(5.0 * SCALE)
    assert not gateway.log.find("request", status="502")


def test_94_early_answer_while_the_body_goes_up(farm):
    """Answers and closes after the head; the rest is not an error."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(farm.place / "early.s")
    server.listen(5)

    def serve():
        conn, _ = server.accept()
        conn.recv(1000)
        conn.sendall(fcgi.record(
            fcgi.STDOUT, b"Content-Type: text/plain\r\n\r\nearly")
            + fcgi.record(fcgi.STDOUT) + fcgi.record(fcgi.END, b"\0" * 8))
        conn.shutdown(socket.SHUT_RDWR)
        conn.close()

    thread = threading.Thread(target=serve)
    thread.start()
    gateway = farm.gateway({
        "backend default": {"address": "unix:" + farm.place / "early.s"}})
    got = gateway.ask("/", b"b" * 3_000_000, method="POST",
                      CONTENT_LENGTH="3000000")
    thread.join()
    server.close()
    assert (got.status, got.body) == (200, b"early")


def test_200_concurrent_requests_to_5_children(farm):
    gateway = farm.gateway({
        "backend default": fastcgi(farm.php(children=5))})

    def client(i):
        with gateway.connect(30.0) as conn:
            got = conn.ask(fcgi.env(
                "/slow.php", SCRIPT_FILENAME=os.path.join(APPS, "slow.php")))
            return got.status, got.body

    assert together(200, client) == [(200, b"done")] * 200
