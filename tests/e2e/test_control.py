"""sluice reset, and the socket by which commands reach the process."""

import os
import socket
import stat
import struct
import subprocess
import threading

import pytest

from harness.deadline import until
from harness.gateway import BINARY, WRAPPER, render
from harness.recipes import MEMORY, by_key, cgi, key, script, together

LIMITS = {
    "limit one": by_key("1/1h", path="/one/*"),
    "limit two": by_key("2/1h, 1/1d", path="/two/*"),
    "limit out": by_key("1/1s", "token_bucket", path="/out/*", penalty="1h"),
    "limit slow": by_key("1/1h", "sliding_window", path="/slow/*"),
    "limit queue": by_key("1/1h", "leaky_bucket", path="/queue/*"),
    "limit log": by_key("1/1h", "sliding_log", path="/log/*"),
    "limit year": by_key("1/1year", align="calendar", path="/year/*"),
    "limit slots": by_key("1", "concurrency", path="/slots/*"),
    "limit ahead": by_key("20/1h", path="/ahead/*", lease=10,
                          align="epoch"),
    "limit near": by_key("1/1h", path="/near/*", scope="local"),
    "limit client": {"rate": "1/1h", "path": "/client/*"},
    "tier gold": {"when": "param:PLAN=gold", "one": "1/7d"},
}
PATHS = ["one", "two", "out", "slow", "queue", "log", "year"]


def config(store, control=None, **more):
    if store != MEMORY:
        store = {"timeout": "2s", "deny_cache": 1000, "deny_cache_ttl": "1m",
                 **store}
    return {"store": store,
            "gateway": {"control": control} if control else {},
            **LIMITS, "backend default": cgi(), **more}


class Controlled:
    def __init__(self, farm, store, name):
        self.path = farm.place / name
        self.gateway = farm.gateway(config(store, self.path))

    def ask(self, path, who="k", **kwargs):
        return self.gateway.ask("/%s/x" % path, headers=key(who), **kwargs)

    def refused(self, path, who="k"):
        return self.ask(path, who).status == 429

    def run(self, *arguments, **kwargs):
        return run(self.gateway.config_path, *arguments, **kwargs)

    def line(self, text):
        with self.connect() as sock:
            sock.sendall(text)
            return everything(sock)

    def connect(self):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(10)
        sock.connect(self.path)
        return sock


def everything(sock):
    out = b""
    while True:
        try:
            some = sock.recv(65536)
        except ConnectionResetError:
            return out
        if not some:
            return out
        out += some


def run(path, *arguments, text=None):
    command = arguments[0], "-c", path, *arguments[1:]
    done = subprocess.run([*WRAPPER, BINARY, *command], input=text,
                          capture_output=True, text=True, timeout=60)
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.fixture(scope="module")
def redis(shared):
    return shared.redis()


@pytest.fixture(scope="module")
def over(shared, redis):
    """A gateway over Redis."""
    return Controlled(shared, {"address": redis.address}, "c1.s")


@pytest.fixture(scope="module")
def memory(shared):
    return Controlled(shared, MEMORY, "c2.s")


@pytest.fixture(params=["over", "memory"])
def either(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("path", PATHS)
def test_a_key_begins_anew_at_once(either, path):
    for who in "k", "other":
        assert not either.refused(path, who)
        assert either.refused(path, who) and either.refused(path, who)
    assert either.run("reset", path, "k") == (0, "")
    assert not either.refused(path)
    assert either.refused(path, "other")


def test_a_count_in_this_process(either):
    assert not either.refused("near") and either.refused("near")
    assert either.run("reset", "near", "k") == (0, "")
    assert not either.refused("near")


def test_a_client(either):
    assert not either.refused("client") and either.refused("client")
    assert either.run("reset", "client", "192.0.2.9") == (0, "")
    assert either.refused("client")
    assert either.run("reset", "client", "192.0.2.1") == (0, "")
    assert not either.refused("client")


def test_what_a_tier_counts(either):
    gold = {"PLAN": "gold"}
    assert either.ask("one", "t", **gold).status != 429
    assert either.ask("one", "t", **gold).status == 429
    assert either.run("reset", "one", "-", text="t\n") == (0, "")
    assert either.ask("one", "t", **gold).status != 429


def test_exactly_its_keys_are_deleted(over, redis):
    """B91: none is looked for, and own counts stay."""
    db = redis.client()
    db.flushall()
    assert over.run("set", "two", "k", "3,4") == (0, "")
    for path in PATHS:
        over.ask(path)
    kept = {k for k in db.keys("*") if b":two:f" not in k}
    db.config_resetstat()
    assert over.run("reset", "two", "k") == (0, "")
    ran = {name.partition("_")[2] for name in db.info("commandstats")}
    assert "del" in ran
    assert not ran & {"keys", "scan", "unlink", "flushdb", "flushall"}
    assert set(db.keys("*")) - {b"sluice:probe"} == kept - {b"sluice:probe"}
    assert over.ask("two").limit[:2] == (3, 2)


def test_slots(over, redis):
    """None is held any more; who runs takes his again."""
    db = redis.client()
    db.flushall()
    assert not over.refused("slots", "s")
    name = "sluice:{%s}:slots:c0" % tag(over, "s")
    db.zadd(name, {"stranger": 4 * 10 ** 15})
    db.pexpire(name, 60000)
    assert over.refused("slots", "s")
    assert over.run("reset", "slots", "s") == (0, "")
    assert not over.refused("slots", "s")


def tag(over, value):
    done = subprocess.run([BINARY, "hash", "-c", over.gateway.config_path,
                           value], capture_output=True, text=True, check=True)
    return done.stdout.strip().rpartition(":")[2]


def test_units_that_were_taken_ahead(over, redis):
    """They are of the count that was: neither spent nor given back."""
    name = "sluice:{%s}:ahead:f3600000" % tag(over, "ahead")

    def count():
        value = redis.client().get(name)
        return value and struct.unpack("<dd", value)[1]

    for _ in range(3):
        assert not over.refused("ahead", "ahead")
        assert over.run("reset", "ahead", "ahead") == (0, "")
        assert count() is None
    assert over.ask("ahead", "ahead").limit[:2] == (20, 19)
    until(lambda: count() == 1, 5.0, "what is idle to be given back")


def test_own_counts_are_in_force_at_once(over, redis):
    redis.client().flushall()
    assert not over.refused("slow", "own")
    assert over.refused("slow", "own") and over.refused("slow", "own")
    assert over.run("set", "slow", "own", "3") == (0, "")
    assert not over.refused("slow", "own")
    assert over.refused("slow", "own") is False
    assert over.refused("slow", "own") and over.refused("slow", "own")
    assert over.run("unset", "slow", "own") == (0, "")
    got = over.ask("slow", "own")
    assert (got.status, got.limit[0]) == (429, 1)


def test_what_was_asked_before_is_not_remembered(over, redis):
    """While four clients hammer at it each reset lets exactly one pass."""
    which = tag(over, "raced")
    name = "sluice:{%s}:one:f3600000" % which
    passed, over_now = [], threading.Event()

    def hammer(_):
        with over.gateway.connect() as conn:
            items = script("/one/x", headers=key("raced"))
            while not over_now.is_set():
                if conn.ask(items, keep=True).status != 429:
                    passed.append(1)

    def rounds():
        try:
            until(lambda: passed, 10.0, "the first")
            for i in range(30):
                redis.client().delete(name)
                assert over.line(b"forget one %s\n" % which.encode()) == (
                    b"ok\n")
                until(lambda: len(passed) == i + 2, 10.0, "the next")
        finally:
            over_now.set()

    together(5, lambda i: rounds() if i == 4 else hammer(i))
    assert len(passed) == 31


def test_another_gateway_hears_of_it_after_the_ttl(farm, redis, over):
    other = farm.gateway(config(
        {"address": redis.address, "deny_cache_ttl": "100ms"}))

    def ask():
        return other.ask("/one/x", headers=key("far")).status

    assert not over.refused("one", "far")
    assert ask() == 429
    assert over.run("reset", "one", "far") == (0, "")
    until(lambda: ask() != 429, 5.0, "the ttl")


def write(shared, name, store, control=None):
    return shared.place.write(name, render(config(store, control)), 0o600)


def test_nobody_is_there(shared, redis, over):
    """Of a count in Redis that is no matter."""
    for who in "a", "b":
        assert not over.refused("one", "away" + who)
    path = write(shared, "away.ini", {"address": redis.address},
                 shared.place / "nobody.s")
    assert run(path, "reset", "one", "awaya") == (0, "")
    assert run(path, "set", "one", "awaya", "2") == (0, "")
    assert run(path, "unset", "one", "awaya") == (0, "")
    assert not over.refused("one", "awaya")
    assert over.refused("one", "awayb")
    path = write(shared, "gone.ini", MEMORY, shared.place / "nobody.s")
    code, said = run(path, "reset", "one", "k")
    assert code == 69 and "[gateway] control = " in said
    path = write(shared, "none.ini", MEMORY)
    code, said = run(path, "reset", "one", "k")
    assert code == 1 and "[gateway] control" in said


@pytest.mark.parametrize("arguments,code,said", [
    (("reset",), 64, "takes a LIMIT and a KEY"),
    (("reset", "one"), 64, "takes a LIMIT and a KEY"),
    (("reset", "one", "k", "more"), 64, "unknown argument"),
    (("reset", "no-such", "k"), 1, "no such limit"),
    (("reset", "one", ""), 64, "empty"),
], ids=str)
def test_what_is_refused(over, arguments, code, said):
    got, text = over.run(*arguments)
    assert got == code and said in text


def test_no_store(shared):
    path = write(shared, "nowhere.ini",
                 {"address": "unix:" + shared.place / "nothing.s"})
    code, said = run(path, "reset", "one", "k")
    assert code == 69 and said.startswith("sluice: unix:")


# --- The socket -----------------------------------------------------------


def test_whose_it_is(over):
    mode = os.stat(over.path).st_mode
    assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600


@pytest.mark.parametrize("line,answer", [
    (b"forget one abc\n", b"ok\n"),
    (b"forget nothing abc\n", b"ok\n"),
    (b"reset one abc\n", b"ok\n"),
    (b"reset nothing abc\n", b"error no such limit runs\n"),
    (b"reset one " + b"a" * 200 + b"\n", b"error no key has such a tag\n"),
    (b"\n", None), (b" \n", None), (b"reset\n", None), (b"reset one\n", None),
    (b"reset one  abc\n", None), (b"reset one abc \n", None),
    (b"reset one abc more\n", None), (b"RESET one abc\n", None),
    (b"\0\xff\n", None), (b"forget one abc\nforget one abc\n", b"ok\n"),
    (b"reset one " + b"a" * 5000 + b"\n",
     b"error a line has at most 4096 bytes\n"),
    (b"a" * 4097, b"error a line has at most 4096 bytes\n"),
], ids=lambda v: repr(v)[:40])
def test_lines(over, line, answer):
    got = over.line(line)
    if answer is None:
        assert got.startswith(b"error there is no such verb")
    else:
        assert got == answer
    assert over.line(b"forget one abc\n") == b"ok\n"


def test_a_line_in_pieces(over):
    with over.connect() as sock:
        for byte in b"forget one abc":
            sock.sendall(bytes([byte]))
        sock.sendall(b"\n")
        assert everything(sock) == b"ok\n"


def test_peers_that_hang_are_closed(over):
    """They hold up who comes behind them, but not for long."""
    before = over.gateway.open_descriptors()
    hung = [over.connect() for _ in range(12)]
    hung[0].sendall(b"forget one ")
    assert over.line(b"forget one abc\n") == b"ok\n"
    for sock in hung:
        assert everything(sock) == b""
        sock.close()
    until(lambda: over.gateway.open_descriptors() <= before, 5.0,
          "their descriptors")


def test_many_at_once_cost_no_memory(over):
    over.line(b"forget one abc\n")
    before = over.gateway.memory_kb()
    answers = together(8, lambda i: [
        over.line(b"reset one %d\n" % (1000 * i + n)) for n in range(250)])
    assert {a for some in answers for a in some} == {b"ok\n"}
    assert over.gateway.memory_kb() - before < 1024


def test_the_socket_comes_and_goes(farm):
    """One that is in use is not taken; the one left over by a crash is."""
    path = farm.place / "c.s"
    first = farm.gateway(config(MEMORY, path))
    second = farm.gateway(config(MEMORY, path), wait=False)
    assert second.wait_exit(10.0) == 78
    second.log.close()
    assert "control = " in second.output() and path in second.output()
    second.stop = lambda: 0
    first.kill()
    assert os.path.exists(path)
    first.stop = lambda: 0
    third = farm.gateway(config(MEMORY, path))
    assert third.ask("/one/x").status != 429
    third.stop()
    assert not os.path.exists(path)


def test_it_takes_a_restart(farm):
    gateway = farm.gateway(config(MEMORY, farm.place / "c.s"))
    mark = gateway.reload(config(MEMORY, farm.place / "d.s"))
    gateway.log.wait_for("reloaded", since=mark)
    assert any("control" in e["msg"] for e in
               gateway.log.find("config_warning", since=mark))
    assert not os.path.exists(farm.place / "d.s")
