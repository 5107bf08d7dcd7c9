"""Starting, stopping, listening."""

import fcntl
import os
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

from harness import fcgi, process
from harness.deadline import SCALE, until
from harness.gateway import BINARY, WRAPPER, listener, render
from harness.log import Log
from harness.recipes import MEMORY, cgi, fastcgi, fixed, script
from harness.web import fetch


def simple(**gateway):
    return {"gateway": gateway, "store": MEMORY,
            "limit all": fixed("5/1h"), "backend default": cgi()}


def run(*args, **kwargs):
    """A command that ends by itself."""
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run(
        WRAPPER + [BINARY, *args], capture_output=True, text=True,
        timeout=10 * SCALE, **kwargs)


def test_9_10_sigterm_when_idle_ends_within_a_second(farm):
    gateway = farm.gateway(simple())
    assert gateway.ask("/hello.cgi").status == 200
    with gateway.connect() as kept:
        assert kept.ask(fcgi.env("/x"), keep=True).status in (403, 404)
        start = time.monotonic()
        assert gateway.stop() == 0
        assert time.monotonic() - start < 1.0 * SCALE
        assert kept.wait_closed() == b""
    assert gateway.log.find("stopped")


def test_sigint_stops_too(farm):
    gateway = farm.gateway(simple())
    gateway.signal(signal.SIGINT)
    assert gateway.wait_exit() == 0
    assert not os.path.exists(gateway.address)


def blocks(pid, number):
    with open("/proc/%d/status" % pid) as f:
        mask = re.search(r"^SigBlk:\s*(\w+)", f.read(), re.M).group(1)
    return bool(int(mask, 16) >> (number - 1) & 1)


@pytest.fixture
def starting(farm):
    """(process, its log's pipe) that is held where it reads its file: of
    that it has a warning, and the pipe for it is full."""
    reads, writes = os.pipe()
    fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writes, b"\n" * 4096)
    config = simple(listen="unix:" + farm.place / "s")
    config["limit all"].update(key="header:X-Invented", missing_key="skip")
    path = farm.place.write("slow.ini", render(config))
    server = farm.add(process.Process(
        farm.place, "slow", WRAPPER + [BINARY, "serve", "-c", path],
        stderr=writes))
    os.close(writes)
    until(lambda: blocks(server.pid, signal.SIGUSR1), 10.0,
          "signals to be blocked")
    with open(reads, "rb") as pipe:
        yield server, pipe


@pytest.mark.parametrize("name", ["TERM", "INT"])
def test_a_start_is_ended_at_once(farm, starting, name):
    server, _ = starting
    server.signal(signal.Signals["SIG" + name])
    assert server.wait_exit() == 0
    assert not os.path.exists(farm.place / "s")


def test_signals_of_the_start_are_served_once_it_is_ready(farm, starting):
    server, pipe = starting
    server.signal(signal.SIGHUP)
    server.signal(signal.SIGUSR1)
    log = Log(pipe)
    log.wait_for("reloaded", 10.0)
    assert "a client can invent" in log.text()
    assert fcgi.ask(farm.place / "s", uri="/x").complete
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == 0
    log.wait_end()
    log.close()
    assert not os.path.exists(farm.place / "s")


def test_stop_finishes_what_runs(farm):
    go = threading.Event()

    def handler(request):
        go.wait(20.0)
        request.answer("finished")

    app = farm.application(handler)
    gateway = farm.gateway({"backend default": fastcgi(app)})
    before = gateway.open_descriptors()
    with gateway.connect() as running, gateway.connect() as half:
        running.send(fcgi.request(fcgi.env("/")))
        whole = fcgi.request(fcgi.env("/half"))
        half.send(whole[:50])
        until(lambda: app.seen == 1)
        until(lambda: gateway.open_descriptors() >= before + 3)
        gateway.signal(signal.SIGTERM)
        until(lambda: not process.can_connect(gateway.address), 5.0,
              "it to stop listening")
        half.send(whole[50:])
        until(lambda: app.seen == 2)
        assert gateway.running()
        go.set()
        for conn in (running, half):
            got = conn.response()
            assert (got.body, got.complete) == (b"finished", True)
    assert gateway.wait_exit() == 0


def test_a_request_on_an_idle_connection_is_served_while_a_stop_begins(farm):
    """All of them are there before anybody looks, and so is the signal."""
    app = farm.application(lambda request: request.answer("served"))
    gateway = farm.gateway({"backend default": fastcgi(app)})
    kept = [gateway.connect(20.0) for _ in range(100)]
    try:
        for conn in kept:
            assert conn.ask(fcgi.env("/"), keep=True).body == b"served"
        gateway.signal(signal.SIGSTOP)
        for conn in kept[1:]:
            conn.send(fcgi.request(fcgi.env("/"), keep=True))
        gateway.signal(signal.SIGTERM)
        gateway.signal(signal.SIGCONT)
        for conn in kept[1:]:
            assert conn.response().body == b"served"
        assert kept[0].wait_closed() == b""
    finally:
        for conn in kept:
            conn.close()
    assert gateway.wait_exit() == 0


def test_stop_waits_no_longer_than_shutdown_timeout(farm):
    go = threading.Event()
    app = farm.application(lambda request: go.wait(20.0))
    gateway = farm.gateway({"gateway": {"shutdown_timeout": "300ms"},
                            "backend default": fastcgi(app)})
    with gateway.connect() as conn:
        conn.send(fcgi.request(fcgi.env("/")))
        until(lambda: app.seen == 1)
        start = time.monotonic()
        gateway.signal(signal.SIGTERM)
        gateway.wait_exit()
        assert 0.25 < time.monotonic() - start < 3.0 * SCALE
    go.set()


def test_95_stop_ends_running_scripts_after_shutdown_timeout(farm):
    path = farm.place / "pids"
    gateway = farm.gateway(simple(shutdown_timeout="200ms"))
    with gateway.connect() as conn:
        conn.send(fcgi.request(script("/hang.cgi?" + path)))
        until(lambda: os.path.exists(path))
        with open(path) as f:
            pids = [int(word) for word in f.read().split()]
        gateway.signal(signal.SIGTERM)
        gateway.wait_exit()
    until(lambda: not any(process.alive(pid) for pid in pids), 5.0,
          "the script to end")


@pytest.mark.parametrize("query, seconds", [("", 0.2), ("+deaf", 2.2)])
def test_stop_ends_a_script_that_works_on_after_its_answer(
        farm, query, seconds):
    """Whoever has the answer may have left long ago."""
    path = farm.place / "pids"
    gateway = farm.gateway(simple(shutdown_timeout="200ms"))
    got = gateway.ask("/after.cgi?" + path + query)
    assert (got.body, got.complete) == (b"answered\n", True)
    until(lambda: os.path.exists(path))
    with open(path) as f:
        pids = [int(word) for word in f.read().split()]
    assert all(process.alive(pid) for pid in pids)
    start = time.monotonic()
    gateway.signal(signal.SIGTERM)
    assert gateway.wait_exit() == 0
    assert seconds - 0.05 < time.monotonic() - start < seconds + SCALE
    assert not os.path.exists("/proc/%d" % pids[0]), "it was not reaped"
    until(lambda: not any(process.alive(pid) for pid in pids), 1.0,
          "its child to end")


def test_stop_waits_for_what_a_script_does_after_its_answer(farm):
    path = farm.place / "fifo"
    os.mkfifo(path)
    farm.place.write("later.cgi", (
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\nnow\\n'\n"
        "exec >/dev/null 2>&1\nread -r word <%s\necho $word >%s\n") % (
            path, farm.place / "word"), 0o755)
    config = simple()
    config["backend default"] = cgi(farm.place.path)
    gateway = farm.gateway(config)
    got = gateway.ask("/", SCRIPT_FILENAME=farm.place / "later.cgi")
    assert (got.body, got.complete) == (b"now\n", True)
    gateway.signal(signal.SIGTERM)
    until(lambda: not process.can_connect(gateway.address), 5.0,
          "it to stop listening")
    assert gateway.running()
    with open(path, "w") as fifo:
        fifo.write("later\n")
    assert gateway.wait_exit() == 0
    with open(farm.place / "word") as f:
        assert f.read() == "later\n"


def test_counters_are_logged_at_exit(farm):
    gateway = farm.gateway(simple())
    for _ in range(7):
        gateway.ask("/hello.cgi")
    gateway.stop()
    entries = gateway.log.find("counters")
    assert len(entries) >= 1
    counters = {}
    for entry in entries:
        counters.update(entry)
    assert counters["requests"] == "7"
    assert counters["requests_allowed"] == "5"
    assert counters["requests_refused"] == "2"
    assert counters["scripts_run"] == "5"


def test_what_was_never_decided_is_not_counted_as_unlimited(farm):
    limit = fixed("5/1h", key="form:token", missing_key="skip")
    gateway = farm.gateway({"store": MEMORY, "limit form": limit,
                            "backend default": cgi()})
    pairs = fcgi.env(
        "/hello.cgi", "POST", CONTENT_LENGTH="10",
        CONTENT_TYPE="application/x-www-form-urlencoded")
    with gateway.connect() as conn:  # whose body never comes
        conn.send(fcgi.head(pairs))
        conn.send(fcgi.record(fcgi.STDIN, b"tok"))
        assert gateway.ask("/hello.cgi").status == 200
    gateway.stop()
    counters = {}
    for entry in gateway.log.find("counters"):
        counters.update(entry)
    assert counters["requests"] == "2"
    assert counters["requests_unlimited"] == "1"


def test_an_inherited_socket_is_served_and_never_unlinked(farm):
    with listener(farm.place / "given") as sock:
        gateway = farm.gateway(simple(), stdin=sock)
        assert gateway.ask("/hello.cgi").status == 200
        gateway.stop()
        assert os.path.exists(farm.place / "given")
        # The next one takes over where it left: nobody was turned away.
        with fcgi.Connection(farm.place / "given") as waiting:
            waiting.send(fcgi.request(fcgi.env("/x")))
            again = farm.gateway(simple(), stdin=sock)
            assert waiting.response().complete
            again.stop()


def test_inherited_and_own_at_once(farm):
    own = farm.place / "own"
    with listener(farm.place / "given") as sock:
        gateway = farm.gateway(simple(listen="unix:" + own), stdin=sock)
        for address in (own, farm.place / "given"):
            assert fcgi.ask(address, uri="/x").complete
        gateway.stop()
    assert not os.path.exists(own)
    assert os.path.exists(farm.place / "given")


def test_several_listeners(farm):
    port = process.free_port()
    two = farm.place / "two"
    farm.gateway(simple(
        listen="unix:%s, 127.0.0.1:%d" % (two, port)), listen=two)
    for address in (two, ("127.0.0.1", port)):
        assert fcgi.ask(address, uri="/x").complete


def test_a_path_somebody_answers_on_is_refused(farm):
    gateway = farm.gateway(simple())
    other = farm.gateway(simple(), listen=gateway.address, wait=False)
    assert other.wait_exit() == 78
    farm.started.remove(other)
    assert gateway.address in other.output()
    assert gateway.ask("/hello.cgi").status == 200


def test_a_stale_path_is_replaced(farm):
    path = farm.place / "stale"
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(path)
    sock.close()
    gateway = farm.gateway(simple(), listen=path)
    assert gateway.ask("/hello.cgi").status == 200


def test_a_path_that_is_no_socket_is_refused(farm):
    path = farm.place.write("precious", "keep me")
    gateway = farm.gateway(simple(), listen=path, wait=False)
    assert gateway.wait_exit() == 78
    farm.started.remove(gateway)
    with open(path) as f:
        assert f.read() == "keep me"


def test_a_path_another_has_taken_over_is_not_removed(farm):
    gateway = farm.gateway(simple())
    os.unlink(gateway.address)
    with listener(gateway.address):
        gateway.signal(signal.SIGTERM)
        assert gateway.wait_exit() == 0
        farm.started.remove(gateway)
        assert os.path.exists(gateway.address)


@pytest.mark.parametrize("what, code", [
    ("listen", 78), ("control", 78), ("log", 78), ("descriptors", 70)])
def test_a_start_that_fails_leaves_no_path(farm, what, code):
    taken = farm.place.write("taken", "no socket")
    address, control = farm.place / "s", farm.place / "c"
    config = simple(listen="unix:" + address, control=control)
    if what == "listen":
        config["gateway"]["listen"] += ", unix:" + taken
    elif what == "control":
        config["gateway"]["control"] = taken
    elif what == "log":
        config["log"] = {"target": "file:" + farm.place / "none/log"}
    few = (7, 7) if what == "descriptors" else None
    gateway = farm.gateway(config, listen=address, wait=False, nofile=few)
    assert gateway.wait_exit() == code, gateway.output()
    farm.started.remove(gateway)
    assert os.path.exists(taken)
    assert not os.path.exists(address)
    assert not os.path.exists(control)


@pytest.mark.parametrize("mode", ["0600", "0660", "0666"])
def test_socket_mode(farm, mode):
    gateway = farm.gateway(simple(socket_mode=mode))
    assert os.stat(gateway.address).st_mode & 0o777 == int(mode, 8)


@pytest.mark.parametrize("stdin", ["null", "pipe", "closed"])
def test_95_no_listener_is_exit_78(farm, stdin):
    config = farm.place.write("none.ini", "[backend default]\n"
                              "address = unix:/nonexistent\n")
    argv = ["serve", "-c", config]
    if stdin == "null":
        done = run(*argv)
    elif stdin == "pipe":
        done = run(*argv, stdin=None, input="")
    else:
        done = subprocess.run(
            ["/bin/sh", "-c", 'exec "$@" <&-', "sh"] + WRAPPER
            + [BINARY] + argv, capture_output=True, text=True,
            timeout=10 * SCALE)
    assert done.returncode == 78
    assert "listen" in done.stderr


@pytest.mark.parametrize("closed", [(0,), (0, 1), (0, 1, 2)],
                         ids=lambda fds: "".join(map(str, fds)))
def test_6_started_with_descriptors_closed(farm, closed):
    gateway = farm.gateway(simple(), closed=closed)
    for _ in range(2):
        got = gateway.ask("/env.cgi")
        assert got.status == 200
    assert gateway.ask("/sha.cgi", b"x" * 100000, method="POST",
                       CONTENT_LENGTH="100000").status == 200


@pytest.mark.parametrize("name", ["CHLD", "PIPE", "HUP", "TERM", "USR1"])
def test_a_parent_that_ignores_a_signal(farm, name):
    """What is ignored is inherited through exec; scripts get defaults."""
    gateway = farm.gateway(simple(), prologue="trap '' " + name)
    for _ in range(2):
        assert gateway.ask("/hello.cgi").status == 200
    gateway.wait_idle(gateway.open_descriptors())
    mark = gateway.log.mark()
    gateway.signal(signal.SIGHUP)
    gateway.log.wait_for("reloaded", since=mark)


def test_spawn_fcgi(farm):
    place = farm.place
    config = place.write("spawned.ini", (
        "[store]\naddress = memory:\n[limit all]\nrate = 2/1h\n"
        "algorithm = fixed_window\n[backend default]\ntype = cgi\n"
        "root = %s\n[log]\ntarget = file:%s\n") % (
            cgi()["root"], place / "spawned.log"))
    subprocess.run(
        ["spawn-fcgi", "-s", place / "spawned", "-P", place / "pid", "--"]
        + WRAPPER + [BINARY, "serve", "-c", config],
        check=True, capture_output=True, timeout=10 * SCALE)
    with open(place / "pid") as f:
        pid = int(f.read())
    try:
        server = farm.lighttpd(place / "spawned")
        statuses = [fetch(server, "/hello.cgi").status for _ in range(3)]
        assert statuses == [200, 200, 429]
    finally:
        os.kill(pid, signal.SIGTERM)
        until(lambda: not process.alive(pid), 5.0, "it to end")
    assert os.path.exists(place / "spawned")
    with open(place / "spawned.log") as f:
        assert "event=stopped" in f.read()


def test_peer_uids_turns_others_away(farm):
    other = farm.gateway(simple(peer_uids=str(os.getuid() + 1)), wait=False)
    other.log.wait_for("ready", 10.0)
    with other.connect() as conn:
        conn.try_send(fcgi.request(fcgi.env("/x")))
        assert conn.wait_closed() == b""
    mine = farm.gateway(simple(peer_uids=str(os.getuid())))
    assert mine.ask("/hello.cgi").status == 200
