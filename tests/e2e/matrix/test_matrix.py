"""Every set-up of examples/, each kind of request, with the real servers.

What the web server of a set-up can not carry stands in setups.py.
"""

import contextlib
import hashlib
import os
import signal

import pytest

from harness import process
from harness.deadline import until
from harness.recipes import together

from client import abort, ask, begin
from driver import MANY, Running
from setups import SETUPS, directories

MB = 1024 * 1024
DATA = hashlib.sha256(b"0123456789" * 30000).hexdigest()


class Case:
    """A running set-up, and clients that none has seen before."""

    def __init__(self, running):
        self.running = running
        self.setup = running.setup
        self.clients = 0
        until(lambda: self.ask("small", key="once-ready").status
              == self.setup.refused, 10.0, "the store to be asked")
        self.idle = running.open_descriptors() + self.setup.kept

    def client(self, kind="once"):
        self.clients += 1
        return "%s-%d" % (kind, self.clients)

    def spent(self):
        """A client that has asked as often as it may."""
        client = self.client()
        assert self.ask("small", key=client).status == 200
        return client

    def ask(self, name, *args, **kwargs):
        return ask(self.running.port, self.running.uri(name), *args, **kwargs)


@pytest.fixture(scope="module", params=SETUPS)
def case(request):
    place = process.Place()
    running = None
    try:
        running = Running(place, SETUPS[request.param])
        yield Case(running)
    finally:
        for server in list(process.LIVE):
            if server.place is place:
                server.kill()
        place.remove()


@pytest.fixture(autouse=True)
def goes_idle(request):
    """After each: what the gateway held for it, it gives back."""
    yield
    if "case" in request.fixturenames:
        case = request.getfixturevalue("case")
        if case.running.running():
            case.running.wait_idle(case.idle)


def test_every_setup_is_in_the_table():
    assert directories() == {s.directory for s in SETUPS.values()}


def is_counted(got, setup, limit, remaining):
    """An allowed answer has the numbers, each once, if it can."""
    assert got.header("retry-after") is None
    want = (limit, remaining) if setup.counted else (None, None)
    assert got.limit[:2] == want
    reset = got.limit[2]
    assert 0 < reset <= 3600 if setup.counted else reset is None


def is_refusal(got, setup, limit=1):
    assert got.status == setup.refused
    if not setup.told:
        assert got.limit == (None, None, None)
        return
    assert got.limit[:2] == (limit, 0)
    assert 0 < got.limit[2] <= 3600
    assert 0 < int(got.header("retry-after")) <= 3600
    assert got.header("cache-control") == "no-store"


def test_get_allowed(case):
    got = case.ask("data", key=case.client())
    assert got.status == 200
    assert hashlib.sha256(got.body).hexdigest() == DATA
    assert got.all("set-cookie") == ["a=1", "b=2"]
    told = "0" if case.setup.variables else "nothing"
    assert got.header("x-told") == told
    is_counted(got, case.setup, 1, 0)


def test_get_refused(case):
    got = case.ask("data", key=case.spent())
    is_refusal(got, case.setup)
    assert got.body and b"0123456789" not in got.body


def test_head_refused(case):
    got = case.ask("data", "HEAD", key=case.spent())
    is_refusal(got, case.setup)
    assert got.body == b""


def test_post_of_10_mb_allowed(case):
    body = os.urandom(10 * MB)
    got = case.ask("sha", "POST", body, key=case.client())
    assert got.status == 200
    assert got.body.decode().split()[:2] == [
        str(len(body)), hashlib.sha256(body).hexdigest()]
    is_counted(got, case.setup, 1, 0)


def test_post_of_10_mb_refused(case):
    """However the server does it: the 429 comes, and not its own 502."""
    client = case.spent()
    for _ in range(3):
        got = case.ask("sha", "POST", b"p" * (10 * MB), key=client)
        is_refusal(got, case.setup)


def test_post_of_unknown_length(case):
    body = os.urandom(300_000)
    got = case.ask("sha", "POST", body, key=case.client(), chunked=True)
    assert got.status == 200
    words = got.body.decode().split()
    assert hashlib.sha256(body).hexdigest() in words
    if case.setup.measured:
        assert words[0] == "300000"


def test_100_at_once(case):
    client = case.client("many")
    got = together(100, lambda i: case.ask("small", key=client))
    statuses = [g.status for g in got]
    assert statuses.count(200) == MANY, "%s\n%s" % (
        [g.limit for g in got if g.status == 200], case.running.logs())
    assert statuses.count(case.setup.refused) == 100 - MANY
    for each in got:
        if each.status != 200:
            is_refusal(each, case.setup, MANY)
        elif case.setup.counted:
            assert each.limit[0] == MANY
    if case.setup.counted:
        left = [g.limit[1] for g in got if g.status == 200]
        assert sorted(left) == list(range(MANY))


def test_client_goes_away(case):
    """Then the application is told, if the server is, and not left to work
    for nobody."""
    mark = os.path.join(case.running.marks, case.client("gone"))
    sock = begin(case.running.port, case.running.uri("endless") + "?" + mark)
    until(lambda: os.path.exists(mark), 10.0, "the application to begin")
    with open(mark) as f:
        pid = int(f.read())
    abort(sock)
    if not case.setup.notices:
        with contextlib.suppress(FileNotFoundError):  # it may, by luck
            os.unlink(mark)
    elif case.setup.ext == ".php":
        until(lambda: not os.path.exists(mark), 10.0, "its last word")
    else:
        until(lambda: not process.alive(pid), 10.0, "the script to end")


def test_application_dies(case):
    got = case.ask("dies", key=case.client())
    assert got.status in case.setup.dies
    is_counted(got, case.setup, 1, 0)
    assert case.ask("small").status == 200


def test_application_is_not_there(case):
    """A script for each request, or the web server's own link: see dies."""
    if case.setup.relays and case.setup.ext == ".php":
        got = case.ask("dead", key=case.client())
        assert got.status == 502
        is_counted(got, case.setup, 1, 0)


def test_application_is_slow(case):
    """A gateway that relays gives it 300 ms here; no other can tell."""
    got = case.ask("late", key=case.client())
    if case.setup.relays:
        assert got.status == 504
        is_counted(got, case.setup, 1, 0)
    else:
        assert (got.status, got.body) == (200, b"late\n")


def test_stopped_by_term(case):
    """The last of each: nothing of it is left."""
    case.running.end(signal.SIGTERM)
