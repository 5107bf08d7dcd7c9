"""keep_alive: connections to a backend that carry more than one request."""

import hashlib
import os
import select
import signal
import socket
import threading

import pytest

from harness import fcgi
from harness.application import Holding
from harness.deadline import SCALE, elapse, until
from harness.gateway import APPS
from harness.process import children
from harness.recipes import fastcgi, script, together

OK = "Content-Type: text/plain\r\n\r\n"


class Kept:
    """Notes which connection each request came on; does as its path says."""

    def __init__(self):
        self.conns = []  # of each request, in order
        self.flags = set()
        self.go = threading.Event()
        self.done = threading.Event()

    def __call__(self, request):
        how = request.param("REQUEST_URI").strip("/") or "quick"
        self.conns.append(request.conn)
        self.flags.add(request.keep)
        self.done.clear()
        getattr(self, how)(request)
        self.done.set()

    def quick(self, request):
        request.answer("quick")

    def closes(self, request):
        """As if KEEP_CONN had not been set, and in no hurry."""
        request.answer("closes")
        elapse(0.003)
        request.keep = False

    def closes_later(self, request):
        request.answer("closes later")
        self.go.wait(10.0)
        request.conn.sock.close()

    def closes_unread(self, request):
        """Once the next request is on its way."""
        request.answer("closes")
        select.select([request.conn.sock], [], [], 10.0 * SCALE)
        request.conn.sock.close()

    def closes_half_unread(self, request):
        """As php-fpm does: says that it ends, and reads away what comes."""
        request.answer("closes")
        select.select([request.conn.sock], [], [], 10.0 * SCALE)
        request.conn.sock.shutdown(socket.SHUT_WR)
        while request.conn.sock.recv(4096):
            pass
        request.conn.sock.close()

    def complains_and_dies(self, request):
        request.raw(fcgi.record(fcgi.STDERR, b"no memory", request.rid))
        request.keep = False

    def half_closes(self, request):
        request.answer("half-closes")
        request.conn.sock.shutdown(socket.SHUT_WR)

    def more(self, request):
        """Bytes behind END, in one piece with it."""
        rid = request.rid
        request.raw(fcgi.record(fcgi.STDOUT, (OK + "more").encode(), rid)
                    + fcgi.record(fcgi.END, b"\0" * 8, rid)
                    + fcgi.record(fcgi.STDOUT, b"stray", rid))

    def more_later(self, request):
        request.answer("more later")
        self.go.wait(10.0)
        request.raw(fcgi.record(fcgi.STDOUT, b"stray", request.rid))

    def padded(self, request):
        request.write(OK + "padded", padding=7)
        request.raw(fcgi.record(
            fcgi.END, b"\0" * 8, request.rid, padding=5))

    def dies(self, request):
        request.keep = False

    def dies_in_body(self, request):
        request.write(OK + "half of it")
        request.keep = False

    def short(self, request):
        request.answer("half of it", "Content-Length: 100\r\n")

    def refuses(self, request):
        request.end(0, fcgi.OVERLOADED)


class Setup:
    def __init__(self, farm, keep_alive=1, **gateway):
        self.kept = Kept()
        self.app = farm.application(self.kept)
        self.config = {"gateway": gateway, "backend default": fastcgi(
            self.app, keep_alive=keep_alive, max_inflight=8)}
        self.gateway = farm.gateway(self.config)

    def ask(self, uri="/", **kwargs):
        return self.gateway.ask(uri, **kwargs)

    def was_reused(self):
        """Did the last request come on a connection of an earlier one?"""
        return self.kept.conns[-1] in self.kept.conns[:-1]

    def warm(self):
        """Until a connection is known to stay open; the next one has it."""
        def reused():
            assert self.ask().body == b"quick"
            return self.was_reused()

        until(reused, what="a connection to be used again")
        return self.kept.conns[-1]

    def counter(self, name):
        self.gateway.stop()
        return int(self.gateway.log.find("counters")[0][name])


def test_84_none_is_kept_by_default(farm):
    s = Setup(farm, 0)
    for _ in range(10):
        assert s.ask().body == b"quick"
        elapse(0.015)
    assert s.kept.flags == {False}
    assert len(set(s.kept.conns)) == 10
    assert s.counter("backend_kept") == 0


def test_one_carries_many(farm):
    s = Setup(farm)
    conn = s.warm()
    for how in ("quick", "padded") * 10:
        assert s.ask("/" + how).body == how.encode()
        assert s.kept.conns[-1] is conn
    elapse(0.12)  # what may not be sent again wants to be certain
    body = os.urandom(300_000)
    got = s.ask(method="POST", body=body, CONTENT_LENGTH=str(len(body)))
    assert got.body == b"quick" and s.kept.conns[-1] is conn
    assert s.kept.flags == {True}
    assert s.counter("backend_kept") >= 21


def test_no_more_than_said_are_kept(farm):
    holding = Holding()
    app = farm.application(holding)
    gateway = farm.gateway({"backend default": fastcgi(
        app, keep_alive=2, max_inflight=8)})
    conns = [gateway.connect() for _ in range(6)]
    for conn in conns:
        conn.send(fcgi.request(fcgi.env("/hold")))
    until(lambda: holding.inside == 6)
    holding.go.set()
    for conn in conns:
        assert conn.response().body == b"ok"
        conn.close()
    until(lambda: len(app.open) == 2, what="the others to be closed")


def test_kept_ones_stay_in_use_though_there_are_others(farm):
    """New ones, which are on trial, do not take their places."""
    app = farm.application(lambda request: request.answer("ok"))
    gateway = farm.gateway({"backend default": fastcgi(
        app, keep_alive=2, max_inflight=6)})

    def client(i):
        for _ in range(20):
            assert gateway.ask("/").body == b"ok"

    def most_on_kept_ones():
        before = app.accepted
        together(6, client)
        return app.accepted - before < 60

    until(most_on_kept_ones, what="a round with fewer new connections")


def test_they_are_closed_when_nobody_comes(farm):
    s = Setup(farm)
    s.warm()
    assert len(s.app.open) == 1
    until(lambda: not s.app.open, 5.0, "the idle connection to be closed")


def test_they_are_closed_at_the_end(farm):
    s = Setup(farm)
    s.warm()
    s.gateway.stop()
    until(lambda: not s.app.open, 1.0)


@pytest.mark.parametrize("how", ["gone", "fewer"])
def test_a_reload_closes_those_that_are_not_wanted(farm, how):
    s = Setup(farm)
    conn = s.warm()
    mark = s.gateway.reload(s.config)
    s.gateway.log.wait_for("reloaded", since=mark)
    assert s.ask().body == b"quick"
    assert s.kept.conns[-1] is conn
    if how == "gone":
        other = farm.application(Kept(), name="other")
        s.config["backend default"]["address"] = other.option
    else:
        s.config["backend default"]["keep_alive"] = 0
    mark = s.gateway.reload(s.config)
    s.gateway.log.wait_for("reloaded", since=mark)
    until(lambda: not s.app.open, 1.0, "it to be closed")
    assert s.ask().body == b"quick"


def test_an_application_that_closes_all_the_same_is_served_as_ever(farm):
    s = Setup(farm, 2)
    for _ in range(100):
        got = s.ask("/closes", method="POST")
        assert (got.status, got.body) == (200, b"closes")
    assert len(set(s.kept.conns)) == 100


@pytest.mark.parametrize("how", ["closes_later", "half_closes", "more",
                                 "more_later"])
def test_what_is_not_as_it_was_left_is_not_used(farm, how):
    s = Setup(farm)
    conn = s.warm()
    before = len(s.kept.conns)
    got = s.ask("/" + how)
    assert got.complete and s.kept.conns[-1] is conn
    s.kept.go.set()
    assert s.kept.done.wait(5.0 * SCALE)
    got = s.ask()
    assert (got.status, got.body) == (200, b"quick")
    assert s.kept.conns[-1] is not conn
    assert len(s.kept.conns) == before + 2
    assert s.counter("backend_kept_dead") == (0 if how == "more" else 1)


@pytest.mark.parametrize("how,status", [
    ("short", None), ("refuses", 503), ("dies_in_body", 200)])
def test_what_was_not_answered_whole_is_not_kept(farm, how, status):
    s = Setup(farm)
    conn = s.warm()
    with s.gateway.connect() as client:
        got = client.ask(fcgi.env("/" + how), keep=True)
    if status:
        assert got.status == status
    assert s.ask().body == b"quick"
    assert s.kept.conns[-1] is not conn


@pytest.mark.parametrize("method,idle,status", [
    ("GET", 0, 200), ("HEAD", 0, 200), ("GET", 0.12, 200),
    ("POST", 0, 200), ("POST", 0.12, 502)])
@pytest.mark.parametrize("how", ["closes_unread", "closes_half_unread"])
def test_closed_with_a_whole_request_unread(farm, how, method, idle, status):
    """What is safe is sent again; the rest waits for who stays open."""
    s = Setup(farm)
    s.warm()
    assert s.ask("/" + how).complete
    before = len(s.kept.conns)
    elapse(idle)
    got = s.ask(method=method)
    assert (got.status, got.complete) == (status, True)
    assert len(s.kept.conns) == before + (status == 200)
    assert s.counter("backend_kept_dead") == (1 if method != "POST" else 0)


@pytest.mark.parametrize("method,times", [("GET", 2), ("POST", 1)])
def test_dead_before_a_byte_of_the_response(farm, method, times):
    """It may have run: what is not safe is not sent again, the rest once."""
    s = Setup(farm)
    conn = s.warm()
    before = len(s.kept.conns)
    elapse(0.12)
    got = s.ask("/dies", method=method)
    assert (got.status, got.complete) == (502, True)
    assert s.kept.conns[before] is conn
    assert len(s.kept.conns) == before + times


def test_a_new_connection_is_no_reason_to_send_again(farm):
    s = Setup(farm)
    assert s.ask("/dies").status == 502
    assert len(s.kept.conns) == 1


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_dead_after_a_byte_of_the_response(farm, method):
    s = Setup(farm)
    s.warm()
    before = len(s.kept.conns)
    elapse(0.12)
    got = s.ask("/complains_and_dies", method=method)
    assert (got.status, got.complete) == (502, True)
    assert len(s.kept.conns) == before + 1


def test_an_early_answer_leaves_nothing_for_the_next_request(farm):
    """Of a body that has not gone up the connection is not free."""
    server = farm.application(lambda request: None, name="early")
    conns = []

    def serve(conn):
        conns.append(conn)
        while True:
            record = conn.read_record()
            if record is None:
                return
            if record[0] == fcgi.PARAMS and not record[2]:
                break
        conn.send(fcgi.stream(fcgi.STDOUT, (OK + "early").encode())
                  + fcgi.record(fcgi.END, b"\0" * 8))
        conn.wait_closed()

    server._serve = serve
    gateway = farm.gateway({"backend default": fastcgi(server, keep_alive=1)})
    for n in (1, 2, 3):
        got = gateway.ask(method="POST", body=b"b" * 3_000_000,
                          CONTENT_LENGTH="3000000")
        assert (got.status, got.body) == (200, b"early")
        assert len(conns) == n
        elapse(0.11)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_head_that_was_not_taken_whole_is_sent_again(farm, method):
    """Nobody runs half a head."""
    s = Setup(farm, max_head="4m")
    conn = s.warm()
    assert s.ask("/closes_unread").complete
    elapse(0.12)
    headers = {"X-%d" % i: "x" * 60000 for i in range(20)}
    got = s.ask(method=method, headers=headers)
    assert (got.status, got.body) == (200, b"quick")
    assert s.kept.conns[-2] is conn and s.kept.conns[-1] is not conn
    assert s.counter("backend_kept_dead") == 1


# ---- whose response it is


class Talker:
    """Says it all again behind its END where the path is /more...

    When: after so many seconds, or "asked": once the next request is there.
    """

    def __init__(self, when="asked"):
        self.when = when
        self.seen = []  # of each request: path, id, connection

    def __call__(self, request):
        uri = request.param("REQUEST_URI")
        self.seen.append((uri, request.rid, request.conn))
        request.answer("for " + uri)
        if not uri.startswith("/more"):
            return
        if self.when == "asked":
            select.select([request.conn.sock], [], [], 10.0 * SCALE)
        elif self.when > 0:
            elapse(self.when)
        request.answer("SECRET of " + uri)


def talk(farm, when="asked"):
    """Its connection is known to stay open, and is the only one."""
    talker = Talker(when)
    gateway = farm.gateway({"backend default": fastcgi(
        farm.application(talker), keep_alive=1)})

    def reused():
        assert gateway.ask("/").body == b"for /"
        conns = [conn for _, _, conn in talker.seen]
        return conns[-1] in conns[:-1]

    until(reused, what="a connection to be used again")
    return talker, gateway


def test_each_request_on_a_connection_has_another_id(farm):
    talker, gateway = talk(farm)
    del talker.seen[:-1]
    for _ in range(300):
        assert gateway.ask("/").body == b"for /"
    ids = [rid for _, rid, _ in talker.seen]
    assert len({conn for _, _, conn in talker.seen}) == 1
    assert ids == list(range(2, 303))


def test_the_only_request_on_a_connection_has_the_id_1(farm):
    talker = Talker()
    gateway = farm.gateway({"backend default": fastcgi(
        farm.application(talker))})
    for _ in range(3):
        assert gateway.ask("/").body == b"for /"
    assert [rid for _, rid, _ in talker.seen] == [1, 1, 1]


@pytest.mark.parametrize("method,status", [("GET", 200), ("POST", 502)])
def test_nobody_gets_what_comes_behind_the_last_end(farm, method, status):
    """What is safe is sent again, as to one that is found closed."""
    talker, gateway = talk(farm)
    assert gateway.ask("/more").body == b"for /more"
    conn = talker.seen[-1][2]
    elapse(0.12)
    got = gateway.ask("/mine", method=method)
    assert (got.status, got.complete) == (status, True)
    assert b"SECRET" not in got.out
    if method == "GET":
        assert got.body == b"for /mine"
        assert talker.seen[-1][1] == 1
    assert gateway.ask("/next").body == b"for /next"
    assert talker.seen[-1][2] is not conn
    gateway.stop()
    dead = gateway.log.find("counters")[0]["backend_kept_dead"]
    assert dead == ("1" if method == "GET" else "0")


@pytest.mark.parametrize("when", [0, 0.0002, 0.001, 0.12])
def test_nobody_gets_what_comes_a_moment_later(farm, when):
    talker, gateway = talk(farm, when)
    for n in range(40 if when < 0.1 else 8):
        assert gateway.ask("/").body == b"for /"
        assert gateway.ask("/more").body == b"for /more"
        method = "GET"
        if when > 0.1:
            elapse(0.112)  # what may not be sent again takes it by then
            method = ("GET", "POST")[n % 2]
        got = gateway.ask("/mine", method=method)
        assert got.complete
        if got.status == 200:
            assert got.body == b"for /mine"
        else:
            assert (got.status, method) == (502, "POST")


class Mixed:
    """Puts records of other requests into its response."""

    def __init__(self, parts):
        # Of the response: text, or a record's type and how far its id is
        # from the right one (None: it is 0).
        self.parts = parts
        self.conns = []

    def __call__(self, request):
        self.conns.append(request.conn)
        for part in self.parts:
            if isinstance(part, str):
                request.write(part)
            else:
                kind, difference = part
                rid = 0 if difference is None else request.rid + difference
                request.raw(fcgi.record(kind, b"stray", rid))
        request.end()


@pytest.mark.parametrize("keep_alive", [0, 1])
@pytest.mark.parametrize("parts", [
    [(fcgi.STDOUT, 1), OK + "body"],
    [(fcgi.STDERR, 256), OK + "body"],
    [(fcgi.UNKNOWN_TYPE, None), OK + "body"],
    [OK[:9], (fcgi.STDOUT, 1), OK[9:] + "body"],
])
def test_a_record_of_another_request_before_the_head(farm, keep_alive, parts):
    mixed = Mixed(parts)
    gateway = farm.gateway({"backend default": fastcgi(
        farm.application(mixed), keep_alive=keep_alive)})
    for _ in range(3):
        got = gateway.ask("/")
        assert (got.status, got.complete) == (502, True)
        assert b"stray" not in got.out
    assert len(set(mixed.conns)) == 3
    gateway.stop()
    errors = {line["error"] for line in gateway.log.find("request")}
    assert errors == {"a record of another request came"}


def test_a_record_of_another_request_behind_the_head(farm):
    gone = threading.Event()

    def application(request):
        request.write(OK + "half")
        gone.wait(10.0)
        request.raw(fcgi.record(fcgi.STDOUT, b"stray", request.rid + 1))
        request.end()

    gateway = farm.gateway({"backend default": fastcgi(
        farm.application(application), keep_alive=1)})
    with gateway.connect() as client:
        client.send(fcgi.request(fcgi.env("/"), keep=True))
        while not client.read_record()[2].endswith(b"half"):
            pass
        gone.set()
        rest = client.response()
    assert rest.eof and b"stray" not in rest.out


def test_a_gateway_behind_a_gateway(farm):
    """libfcgi takes any id, and keeps the connection."""
    talker = Talker()
    inner = farm.gateway({"backend default": fastcgi(
        farm.application(talker))})
    outer = farm.gateway({"backend default": {
        "type": "fastcgi", "address": "unix:" + inner.address,
        "keep_alive": 1}})
    body = os.urandom(100_000)
    for n in range(300):
        if n == 1:
            elapse(0.12)
        assert outer.ask("/%d" % n).body == b"for /%d" % n
    elapse(0.12)
    got = outer.ask("/body", method="POST", body=body,
                    CONTENT_LENGTH=str(len(body)))
    assert got.body == b"for /body"
    outer.stop()
    counters = outer.log.find("counters")[0]
    assert int(counters["backend_kept"]) >= 299
    assert counters["backend_failures"] == "0"


# ---- php-fpm


def ask_php(gateway, uri="/ok.php", **kwargs):
    with gateway.connect(30.0) as conn:
        return conn.ask(script(uri, **kwargs))


def kept_gateway(farm, php, **options):
    return farm.gateway({"backend default": fastcgi(
        php, keep_alive=2, **options)})


def test_php_takes_any_id(farm):
    gateway = kept_gateway(farm, farm.php(children=3))
    assert ask_php(gateway).status == 200
    elapse(0.12)
    for _ in range(300):
        got = ask_php(gateway)
        assert (got.status, got.body) == (200, b"ok\n")
    elapse(0.12)
    body = os.urandom(100_000)
    with gateway.connect(30.0) as conn:
        got = conn.ask(script("/sha.php", method="POST",
                              CONTENT_LENGTH=str(len(body))), body)
    assert hashlib.sha256(body).hexdigest().encode() in got.body
    gateway.stop()
    counters = gateway.log.find("counters")[0]
    assert int(counters["backend_kept"]) >= 301
    assert counters["backend_failures"] == "0"


def test_php_is_restarted(farm):
    php = farm.php(children=3)
    gateway = kept_gateway(farm, php)
    for _ in range(3):
        for _ in range(10):
            got = ask_php(gateway, method="POST")
            assert (got.status, got.body) == (200, b"ok\n")
            elapse(0.015)
        php.stop()
        php = farm.php(children=3)
    gateway.stop()
    counters = gateway.log.find("counters")[0]
    assert int(counters["backend_kept"]) > 0
    assert int(counters["backend_kept_dead"]) >= 1
    assert counters["backend_failures"] == "0"


def test_php_is_reloaded(farm):
    php = farm.php(children=3)
    gateway = kept_gateway(farm, php)
    for _ in range(3):
        for _ in range(10):
            assert ask_php(gateway).status == 200
            elapse(0.015)
        old = set(children(php.pid))
        php.signal(signal.SIGUSR2)
        until(lambda: len(set(children(php.pid)) - old) == 3
              and not old & set(children(php.pid)), 10.0, "new children")
    assert ask_php(gateway).status == 200


def test_children_that_end_after_some_requests(farm):
    """A child closes some time after it has said END, and nobody is told."""
    gateway = kept_gateway(farm, farm.php(children=3, max_requests=5))

    def client(i):
        return [ask_php(gateway, method=("GET", "POST")[n % 5 == 0]).status
                for n in range(100)]

    assert together(6, client) == [[200] * 100] * 6


def test_200_concurrent_requests_to_5_children(farm):
    gateway = kept_gateway(farm, farm.php(children=5))

    def client(i):
        got = ask_php(gateway, "/slow.php")
        return got.status, got.body

    assert together(200, client) == [(200, b"done")] * 200
