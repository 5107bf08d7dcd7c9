"""A backend at several addresses: who gets what, who rests, who is back."""

import os
import socket

from harness import fcgi
from harness.application import Holding
from harness.deadline import SCALE, Deadline, pause, timed, until

NAMES = ("a", "b")


class Pair:
    """Two applications of one backend, either of which may be away."""

    def __init__(self, farm, away=(), **options):
        self.farm = farm
        self.holding = {n: Holding() for n in NAMES}
        self.apps = {n: self.start(n) for n in NAMES if n not in away}
        self.config = {"backend default": {
            "address": ["unix:" + farm.place / (n + ".s") for n in NAMES],
            **options}}
        self.gateway = farm.gateway(self.config)

    def start(self, name):
        return self.farm.application(self.holding[name], name=name)

    def come(self, name):
        self.apps[name] = self.start(name)

    def seen(self, name):
        return self.apps[name].seen if name in self.apps else 0

    def ask(self, count=1):
        for _ in range(count):
            assert self.gateway.ask("/").body == b"ok"

    def hold(self, conns, count):
        for _ in range(count):
            before = sum(self.seen(n) for n in NAMES)
            conn = self.gateway.connect(30.0)
            conn.send(fcgi.request(fcgi.env("/hold")))
            conns.append(conn)
            until(lambda: sum(self.seen(n) for n in NAMES) > before,
                  what="the request to arrive")

    def let_go(self, conns):
        for held in self.holding.values():
            held.go.set()
        for conn in conns:
            assert conn.response().body == b"ok"
            conn.close()


def shares(pair):
    return [pair.seen(n) for n in NAMES]


def test_equals_share(farm):
    pair = Pair(farm)
    pair.ask(20)
    assert shares(pair) == [10, 10]


def test_who_is_slow_gets_less(farm):
    pair = Pair(farm)
    conns = []
    pair.hold(conns, 1)
    slow, quick = sorted(NAMES, key=pair.seen, reverse=True)
    pair.ask(20)
    assert (pair.seen(slow), pair.seen(quick)) == (1, 20)
    pair.hold(conns, 5)
    assert (pair.seen(slow), pair.seen(quick)) == (3, 23)
    pair.let_go(conns)
    pair.ask(10)
    assert (pair.seen(slow), pair.seen(quick)) == (8, 28)


def test_one_is_down_and_comes_back(farm):
    pair = Pair(farm, away="a")
    pair.ask(10)
    assert shares(pair) == [0, 10]
    rests = pair.gateway.log.wait_for("backend_rests")
    assert rests["backend"] == "default"
    assert rests["address"].endswith("/a.s") and rests["msg"]
    pair.come("a")
    deadline = Deadline(5.0, "the address to be tried again")
    while pair.seen("a") == 0:
        pair.ask()
        deadline.check()
        pause()
    back = pair.gateway.log.wait_for("backend_back")
    assert back["address"] == rests["address"]
    before = shares(pair)
    pair.ask(10)
    assert shares(pair) == [before[0] + 5, before[1] + 5]
    pair.gateway.stop()
    assert len(pair.gateway.log.find("backend_rests")) == 1
    assert len(pair.gateway.log.find("backend_back")) == 1
    counters = pair.gateway.log.find("counters")[0]
    assert counters["backend_rests"] == "1"
    assert int(counters["backend_connect_failures"]) >= 1
    assert counters["backend_failures"] == "0"


def test_29_all_are_down(farm):
    """Then each is tried on, and who comes back is found at once."""
    pair = Pair(farm, away=NAMES)
    for _ in range(5):
        got = pair.gateway.ask("/")
        assert (got.status, got.complete) == (502, True)
    assert len(pair.gateway.log.find("backend_rests")) == 2
    pair.come("b")
    pair.ask(5)
    assert pair.seen("b") == 5


def test_30_34_one_that_accepts_nobody_takes_its_share_of_the_time(farm):
    timeout = 0.4
    full = socket.socket(socket.AF_UNIX)
    full.bind(farm.place / "a.s")
    full.listen(0)
    waiting = []
    while True:
        conn = socket.socket(socket.AF_UNIX)
        conn.setblocking(False)
        waiting.append(conn)
        try:
            conn.connect(farm.place / "a.s")
        except BlockingIOError:
            break
    pair = Pair(farm, away="a", connect_timeout="%dms" % (timeout * 1000))
    took = [timed(pair.ask)[1] for _ in range(4)]
    assert timeout / 2 - 0.01 < max(took[:2]) < timeout + 0.5 * SCALE
    assert max(took[2:]) < 0.2 * SCALE
    assert pair.gateway.log.find("backend_rests")
    for conn in waiting + [full]:
        conn.close()


def test_who_rests_goes_on_resting_over_a_reload(farm):
    pair = Pair(farm, away="a")
    pair.ask(4)
    mark = pair.gateway.reload(pair.config)
    pair.gateway.log.wait_for("reloaded", since=mark)
    pair.ask(4)
    assert not pair.gateway.log.find("backend_rests", since=mark)
    other = farm.place / "c.s"
    assert not os.path.exists(other)
    pair.config["backend default"]["address"][0] = "unix:" + other
    mark = pair.gateway.reload(pair.config)
    pair.gateway.log.wait_for("reloaded", since=mark)
    pair.ask(4)
    assert len(pair.gateway.log.find("backend_rests", since=mark)) == 1
