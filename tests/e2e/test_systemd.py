"""Sockets passed by systemd, and what systemd is told."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

from harness import fcgi, process
from harness.deadline import SCALE, until
from harness.gateway import BINARY, listener, render
from harness.recipes import MEMORY, cgi, fixed, script
from harness.systemd import Manager, activated
from harness.web import fetch

CONFIG = {"store": MEMORY, "limit all": fixed("100000/1h"),
          "backend default": cgi()}


@pytest.fixture
def manager(farm):
    manager = Manager(farm.place / "notify.s")
    yield manager
    manager.close()


def tcp():
    return socket.create_server(("127.0.0.1", 0))


def told_of(manager, **more):
    return dict(os.environ, NOTIFY_SOCKET=manager.address, **more)


def ask_at(gateway, address):
    gateway.address = address
    got = gateway.ask("/hello.cgi")
    return (got.status, got.body)


# Sockets

def test_sockets_of_every_kind_together(farm):
    """Descriptor 0, two passed ones and one of its own."""
    stdin, unix = listener(farm.place / "0.s"), listener(farm.place / "3.s")
    own = farm.place / "own.s"
    with stdin, unix, tcp() as inet:
        gateway = farm.gateway(
            {**CONFIG, "gateway": {"listen": "unix:" + own}}, listen=own,
            stdin=stdin, passed=[unix, inet], names=["sluice.socket", "tcp"])
        assert gateway.log.find("ready")[0]["listen"] == (
            "descriptor 0, descriptor 3 (sluice.socket), descriptor 4 (tcp), "
            "unix:" + own)
        for address in (stdin.getsockname(), unix.getsockname(),
                        inet.getsockname(), own):
            assert ask_at(gateway, address) == (200, b"hello\n")
        gateway.stop()
        # What was inherited is there, and takes who connects meanwhile.
        assert not os.path.exists(own)
        for address in (stdin.getsockname(), unix.getsockname(),
                        inet.getsockname()):
            assert process.can_connect(address)


def test_passed_sockets_that_listen_names_too(farm):
    """Each is the passed one, used once; what is not passed is opened."""
    path, own = farm.place / "3.s", farm.place / "own.s"
    with listener(path) as unix, tcp() as inet:
        gateway = farm.gateway({**CONFIG, "gateway": {
            "listen": "unix:%s, 127.0.0.1:%d, unix:%s" % (
                path, inet.getsockname()[1], own)}},
            passed=[unix, inet], names=["web", "tcp"])
        assert gateway.log.find("ready")[0]["listen"] == (
            "descriptor 3 (web), descriptor 4 (tcp), unix:" + own)
        for address in (own, inet.getsockname(), path):
            assert ask_at(gateway, address) == (200, b"hello\n")
        gateway.stop()
        assert process.can_connect(path)
        assert not os.path.exists(own)


def test_sockets_without_names(farm):
    with listener(farm.place / "3.s") as one, tcp() as two:
        gateway = farm.gateway(CONFIG, passed=[one, two])
        assert gateway.log.find("ready")[0]["listen"] == (
            "descriptor 3 (unknown), descriptor 4 (unknown)")
        assert ask_at(gateway, two.getsockname()) == (200, b"hello\n")


def test_systemd_s_own_activator(farm):
    """It opens the socket, and becomes Sluice when somebody connects. Where
    there is no systemd, it is ours alone that passes sockets."""
    activator = shutil.which("systemd-socket-activate")
    if activator is None:
        return
    path = farm.place / "3.s"
    config = farm.place.write("activated.ini", render(CONFIG))
    server = farm.add(process.Process(farm.place, "activator", [
        activator, "-l", path, "--fdname=web", BINARY, "serve", "-c",
        config]))
    until(lambda: os.path.exists(path), 10.0, "its socket")
    with fcgi.Connection(path, 10.0) as conn:
        got = conn.ask(script("/hello.cgi"))
    assert (got.status, got.body) == (200, b"hello\n")
    assert 'listen="descriptor 3 (web)"' in server.output()
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == 0
    assert os.path.exists(path)


def close_on_exec(gateway, fd):
    with open("/proc/%d/fdinfo/%d" % (gateway.pid, fd)) as f:
        flags = re.search(r"flags:\s*(\d+)", f.read()).group(1)
    return bool(int(flags, 8) & os.O_CLOEXEC)


def test_children_inherit_nothing(farm, manager):
    """No script and no alert_command gets a socket, or speaks for us."""
    told = farm.place / "told"
    names = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "NOTIFY_SOCKET",
             "LISTEN_PIDFDID"]
    with listener(farm.place / "3.s") as sock:
        gateway = farm.gateway({
            "store": {"address": "unix:" + farm.place / "none.s",
                      "alert_command": "(env; ls /proc/self/fd) >%s.new; "
                      "mv %s.new %s" % (told, told, told)},
            "limit all": fixed("9/1h"),
            "backend default": cgi(env=", ".join(names + ["SEEN"]))},
            passed=[sock], names=["a"],
            env=told_of(manager, SEEN="1", LISTEN_PIDFDID="7"))
        assert close_on_exec(gateway, 3)
        script = gateway.ask("/env.cgi").body.decode()
        until(lambda: os.path.exists(told), 10.0, "an alert")
    with open(told) as f:
        alert = f.read()
    for text in (script, alert):
        assert "SEEN=1" in text
        assert not [name for name in names if name + "=" in text]
    # Its own three, and the directory it lists.
    assert [line for line in alert.split("\n") if line.isdigit()] == [
        "0", "1", "2", "3"]


def start_with(farm, descriptors, **environment):
    """(status, what it said) of a gateway that should not start."""
    config = farm.place.write("bad.ini", "[backend default]\ntype = cgi\n"
                              "root = /var\n")
    argv = [BINARY, "serve", "-c", config]
    if descriptors is not None:
        argv = activated(argv, [d.fileno() for d in descriptors], ["x", "y"])
    got = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=10 * SCALE, check=False, env=dict(os.environ, **environment),
        pass_fds=[d.fileno() for d in descriptors or ()])
    return got.returncode, got.stderr


def datagram(place):
    return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)


def connected(place):
    one, other = socket.socketpair()
    other.detach()
    return one


def not_listening(place):
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM)


def packets(place):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.bind(place / "packets.s")
    sock.listen()
    return sock


def plain_file(place):
    return open(place.write("file", ""), "rb")


@pytest.mark.parametrize("make", [
    datagram, connected, not_listening, packets, plain_file])
def test_no_listening_stream_socket(farm, make):
    with listener(farm.place / "3.s") as good, make(farm.place) as bad:
        code, said = start_with(farm, [good, bad])
    assert code == 78
    assert ("LISTEN_FDS: descriptor 4 (y) is no listening stream socket"
            in said)


def test_a_number_that_is_none(farm):
    for number in ("x", "-1", "", "65", "99999999999999999999"):
        code, said = start_with(farm, None, LISTEN_FDS=number, LISTEN_PID="1")
        assert code == 78 and "nothing to listen on" in said
        got = subprocess.run(
            ["/bin/sh", "-c", 'export LISTEN_PID=$$; exec "$@"', "sh", BINARY,
             "serve", "-c", farm.place / "bad.ini"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=10 * SCALE, check=False,
            env=dict(os.environ, LISTEN_FDS=number))
        assert got.returncode == 78
        assert "LISTEN_FDS=%s: not a number of sockets" % number in got.stderr


def test_passed_to_another_process(farm):
    """LISTEN_PID is not ours: they are not either."""
    with listener(farm.place / "3.s") as sock:
        argv = activated(["/bin/sh", "-c", 'LISTEN_PID=1 exec "$@"', "sh"], [
            sock.fileno()])
        got = subprocess.run(
            argv + [BINARY, "serve", "-c", farm.place.write(
                "x.ini", "[backend default]\ntype = cgi\nroot = /var\n")],
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=10 * SCALE, check=False, pass_fds=[sock.fileno()])
    assert got.returncode == 78
    assert "nothing to listen on" in got.stderr


# What systemd is told

def test_told_of_start_reload_and_stop(farm, manager):
    with listener(farm.place / "3.s") as sock:
        gateway = farm.gateway(CONFIG, passed=[sock], env=told_of(manager))
        assert manager.told() == {
            "READY": "1",
            "STATUS": "Serving: 1 limits, 1 backends, counts in memory:"}
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        gateway.reload({**CONFIG, "limit more": fixed("9/1h")})
        got = manager.told()
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        assert got["RELOADING"] == "1"
        assert before <= int(got["MONOTONIC_USEC"]) <= now
        assert manager.told() == {
            "READY": "1",
            "STATUS": "Serving: 2 limits, 1 backends, counts in memory:"}
        gateway.reload({"limit broken": {"rate": "?"}})
        assert manager.told()["RELOADING"] == "1"
        got = manager.told()
        assert got["READY"] == "1"
        assert got["STATUS"].startswith(
            "The reload failed (see the log), serving as before: 2 limits")
        gateway.stop()
        got = manager.told()
        assert got["STOPPING"] == "1"
        # Longer than shutdown_timeout, whose default is 30 s.
        assert int(got["EXTEND_TIMEOUT_USEC"]) == 40 * 1000000
        assert manager.nothing_more()


def test_ready_is_not_said_too_early(farm, manager):
    """What asks at READY is served: its own socket is there by then."""
    gateway = farm.gateway(CONFIG, env=told_of(manager), wait=False)
    assert manager.told()["READY"] == "1"
    assert gateway.ask("/hello.cgi").status == 200


def test_nobody_is_told_of_what_does_not_start(farm, manager):
    code, _ = start_with(farm, None, NOTIFY_SOCKET=manager.address)
    assert code == 78
    assert manager.nothing_more()


def test_told_at_an_abstract_address(farm):
    manager = Manager("@sluice-test-%d" % os.getpid())
    farm.gateway(CONFIG, env=told_of(manager))
    assert manager.told()["READY"] == "1"
    manager.close()


@pytest.mark.parametrize("address", ["/none/there.s", "vsock:2:1", "/" * 108])
def test_served_is_without_who_wants_to_know(farm, address):
    gateway = farm.gateway(
        CONFIG, env=dict(os.environ, NOTIFY_SOCKET=address))
    gateway.log.wait_for("notify_failed")
    assert gateway.ask("/hello.cgi").status == 200


# Starting anew

class Load:
    """Clients that ask without pause, each on a connection of its own."""

    def __init__(self, count, ask):
        self.answers = []
        self.troubles = []
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self._run, args=(ask,))
                        for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def _run(self, ask):
        while not self.over.is_set():
            try:
                self.answers.append(ask())
            except Exception as error:  # shown by the test
                self.troubles.append(error)
                return

    def more(self, count):
        """That many answers from now on."""
        mark = len(self.answers)
        until(lambda: len(self.answers) >= mark + count or self.troubles,
              30.0, "answers")

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join(30.0)
        assert not self.troubles, self.troubles
        return self.answers


@pytest.mark.parametrize("by", ["fastcgi", "lighttpd"])
def test_a_restart_under_load_loses_no_connection(farm, by):
    """As `systemctl restart` does it: stop, and start when it has ended."""
    with listener(farm.place / "3.s", 4096) as sock:
        os.chmod(sock.getsockname(), 0o666)
        gateway = farm.gateway(CONFIG, passed=[sock])
        if by == "lighttpd":
            server = farm.lighttpd(sock.getsockname())

            def ask():
                got = fetch(server, "/hello.cgi", seconds=30.0)
                return got.status, got.body
        else:
            asker = gateway

            def ask():
                got = asker.ask("/hello.cgi", seconds=30.0)
                return got.status, got.body, got.complete
        load = Load(8, ask)
        for _ in range(4):
            load.more(50)
            assert gateway.stop() == 0
            gateway = farm.gateway(CONFIG, passed=[sock])
        load.more(50)
        answers = load.end()
    assert len(answers) >= 250
    assert {answer[:2] for answer in answers} == {(200, b"hello\n")}


def test_who_connects_between_two_is_served(farm):
    with listener(farm.place / "3.s") as sock:
        gateway = farm.gateway(CONFIG, passed=[sock])
        gateway.stop()
        with gateway.connect() as early:  # waits in the backlog
            early.send(fcgi.request(script("/hello.cgi")))
            farm.gateway(CONFIG, passed=[sock])
            assert early.response().body == b"hello\n"


ACCEPTED = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>
int accept4(int fd, struct sockaddr *peer, socklen_t *len, int flags)
{
	int (*real)(int, struct sockaddr *, socklen_t *, int) =
	    (int (*)(int, struct sockaddr *, socklen_t *, int))
	    dlsym(RTLD_NEXT, "accept4");
	int accepted = real(fd, peer, len, flags);

	if (accepted >= 0) {
		kill(getpid(), SIGTERM);
		poll(NULL, 0, 300);
	}
	return accepted;
}
"""


def test_who_has_just_been_accepted_is_served(farm):
    """The stop begins while a worker takes the connection in."""
    library = farm.place / "accepted.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", library,
         farm.place.write("accepted.c", ACCEPTED), "-ldl"],
        check=True, timeout=60)
    with listener(farm.place / "3.s") as sock:
        gateway = farm.gateway(
            CONFIG, passed=[sock],
            env=dict(os.environ, LD_PRELOAD=library,
                     ASAN_OPTIONS="verify_asan_link_order=0"))
        with gateway.connect() as conn:
            conn.send(fcgi.request(script("/hello.cgi")))
            assert conn.response().body == b"hello\n"
        assert gateway.wait_exit() == 0


def fill(path, fillers):
    """Until a sender that has sent nothing yet can not either."""
    sent = True
    while sent:
        sent = False
        fillers.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        fillers[-1].setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                fillers[-1].sendto(b"x", path)
                sent = True


def test_who_does_not_read_what_it_is_told_holds_nothing_up(farm):
    """Neither a start nor a stop waits for it but for a moment."""
    path = farm.place / "full"
    fillers = []
    with listener(farm.place / "4.s") as sock, \
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.bind(path)
        try:
            fill(path, fillers)
            gateway = farm.gateway(CONFIG, passed=[sock],
                                   env=dict(os.environ, NOTIFY_SOCKET=path))
            assert gateway.ask("/hello.cgi").status == 200
            assert gateway.stop() == 0
            assert len(gateway.log.find("notify_failed")) == 2
        finally:
            for filler in fillers:
                filler.close()
