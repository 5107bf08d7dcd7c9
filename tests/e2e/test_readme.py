"""README.md: what it tells to type and to write gives what it says.

How its blocks are read and played is in readme_machine.py.
"""

import glob
import os
import re
import select
import shutil
import socket
import subprocess

import pytest

from harness import process
from harness.deadline import Deadline, until
from harness.gateway import BINARY, ROOT
from harness.recipes import cgi
from readme_machine import DEPS, README, Machine


@pytest.fixture(scope="module")
def installed():
    """The program, where `make install` puts it; a directory to copy."""
    place = process.Place()
    Machine(place).play("Install")
    yield place
    place.remove()


@pytest.fixture
def machine(installed):
    place = process.Place()
    for name in ("usr", "etc/sluice"):
        shutil.copytree(installed / name, place / name)
    machine = Machine(place)
    yield machine
    machine.close()
    place.remove()



def test_try_it(machine):
    machine.play("Try it")


def test_install(installed):
    """`Install` itself was played by the fixture."""
    for name in ("bin/sluice", "share/man/man8/sluice.8",
                 "share/man/man5/sluice.ini.5"):
        assert os.path.exists(installed / ("usr/local/" + name))
    line = [line for _, _, lines in README for line in lines
            if "libfcgi-dev" in line][0]
    needed = re.search(r"build\) echo (.*?) ;;", DEPS, re.DOTALL).group(1)
    assert set(needed.replace("\\", "").split()) <= set(line.split())


LIGHTTPD = ("Configuration", "lighttpd, php-fpm")


def play_behind_lighttpd(machine, *headings):
    machine.play(*LIGHTTPD)
    machine.systemctl("enable", "--now", "sluice.socket", "sluice")
    machine.play(*headings)


def test_lighttpd(machine):
    machine.play(*LIGHTTPD)


def test_apache(machine):
    machine.play("Configuration", "Apache, mod_proxy_fcgi, php-fpm")
    machine.write(["# added to /etc/sluice/sluice.ini", "[limit password]",
                   "path = /secret", "key = header:Authorization",
                   "missing_key = deny", "rate = 9/1h"])
    machine.systemctl("reload", "sluice")
    machine.log.wait_for("reloaded")
    machine.printed = [machine.type(
        "curl -s -u me:pw http://127.0.0.1/secret; curl -s -o /dev/null "
        "-w '%{http_code}\\n' http://127.0.0.1/secret")]
    machine.expect(["GET /secret", "403"])
    assert not is_refused_early(machine)
    # And it ends, also for a client that stops sending at a 429.
    machine.printed = [machine.type(
        "head -c 5000000 /dev/zero | curl -s -m 10 -H Expect: -o /dev/null "
        "-w '%{http_code}\\n' --data-binary @- http://127.0.0.1/login")]
    machine.expect(["429"])


def test_lighttpd_that_starts_sluice(machine):
    machine.play("Configuration", "lighttpd that starts Sluice")


def test_lighttpd_that_asks_sluice(machine):
    machine.play("Configuration", "lighttpd that asks Sluice")


def test_apache_that_starts_sluice(machine):
    machine.play("Configuration", "Apache that starts Sluice")


def test_apache_that_asks_sluice(machine):
    machine.play("Configuration", "Apache that asks Sluice")


def test_nginx(machine):
    machine.play("Configuration", "nginx, php-fpm")
    assert is_refused_early(machine)


def test_nginx_that_asks_sluice(machine):
    machine.play("Configuration", "nginx that asks Sluice")


def test_what_clients_see(machine):
    play_behind_lighttpd(machine, "What clients see")


def test_cgi(machine):
    machine.play(*LIGHTTPD, "CGI scripts")


def test_redis_is_down(machine):
    alerts = machine.place / "alerts"
    machine.place.write(
        "bin/logger", '#!/bin/sh\necho "$*" >>%s\n' % alerts, 0o755)
    machine.place.write("alerts", "", 0o666)
    play_behind_lighttpd(machine, "When Redis is down")

    def lines():
        with open(alerts) as f:
            return machine.moved_back(f.read()).splitlines()

    until(lambda: len(lines()) == 2, 5.0, "two alerts")
    assert lines() == ["-t sluice %s of redis://127.0.0.1:6379/0" % event
                       for event in ("outage", "recovery")]


def test_redis_of_many(machine):
    play_behind_lighttpd(machine, "A Redis that others use too")


def test_commands_log_reload(machine):
    play_behind_lighttpd(
        machine, "Commands", "The log", "Stopping and reloading")


def test_lighttpd_streams_when_told_to(machine):
    play_behind_lighttpd(machine, "The log")
    assert not is_refused_early(machine)
    machine.place.write("etc/lighttpd/conf-enabled/stream.conf",
                        "server.stream-request-body = 1\n")
    machine.systemctl("restart", "lighttpd")
    assert is_refused_early(machine)


def is_refused_early(machine):
    """Is a POST to /login refused while its body is still coming in?"""
    pieces, piece = 40, b"x" * 16384
    address = ("127.0.0.1", machine.values["web_port"])
    with socket.create_connection(address, Deadline(10).left()) as sock:
        sock.sendall(b"POST /login HTTP/1.1\r\nHost: localhost\r\n"
                     b"Content-Length: %d\r\n\r\n" % (pieces * len(piece)))
        for i in range(pieces):
            sock.sendall(piece)
            if select.select([sock], [], [], 0.02)[0]:
                break
        assert sock.recv(100).startswith(b"HTTP/1.1 429 ")
        return i < pieces - 1


class Rights:
    """README's Redis user, in a Redis of its own, and what all it may do."""

    def __init__(self, farm):
        line = [line for _, _, lines in README for line in lines
                if line.startswith("user sluice")][0]
        self.words = line.split()[2:]
        self.farm = farm
        self.redis = farm.redis()
        self.admin = self.redis.client()

    def denied(self, without=None):
        """The commands refused while everything is made use of once."""
        words = [w for w in self.words if w != without]
        self.admin.flushall()
        self.admin.script_flush()
        self.admin.execute_command("ACL", "SETUSER", "sluice", "reset", *words)
        self.admin.execute_command("ACL", "LOG", "RESET")
        gateway = self.farm.gateway({
            "store": {"address": self.redis.address, "username": "sluice",
                      "password": "CHANGE-ME", "timeout": "500ms",
                      "deny_cache": 0},
            "limit a": {"rate": "1/1h", "key": "global"},
            "limit b": {"rate": "9/1h", "on_outage": "deny"},
            "limit log": {"rate": "9/50ms", "algorithm": "sliding_log",
                          "count": "500", "path": "/ok.cgi"},
            "limit slots": {"rate": "9", "algorithm": "concurrency",
                            "path": "/ok.cgi"},
            "backend default": cgi()})
        self.use_all(gateway)
        gateway.stop()
        return {entry[b"object"].decode() for entry in map(
            as_dict, self.admin.execute_command("ACL", "LOG"))}

    def use_all(self, gateway):
        key = "sluice:{%s}:%s:s3600000"
        gateway.ask("/hello.cgi")
        self.admin.persist(key % ("global", "a"))
        gateway.ask("/hello.cgi")  # refused; the key is given a lifetime
        self.admin.script_flush()
        gateway.ask("/hello.cgi")
        self.admin.delete(key % ("global", "a"))
        self.admin.delete(key % ("192.0.2.1", "b"))
        self.admin.lpush(key % ("192.0.2.1", "b"), "a stranger's")
        gateway.ask("/hello.cgi")  # a is taken, b is out: a is given back
        self.admin.flushdb()
        for _ in range(3):  # a log with what is over, slots come and go
            gateway.ask("/ok.cgi", client="192.0.2.2")


def as_dict(entry):
    return entry if isinstance(entry, dict) else dict(
        zip(entry[::2], entry[1::2]))


def test_rights_are_enough_and_needed(farm):
    rights = Rights(farm)
    assert rights.denied() == set()
    for right in [w for w in rights.words if w.startswith("+")]:
        assert right[1:] in rights.denied(without=right)
    # Who may not write a lifetime leaves keys that have none.
    rights.admin.flushall()


def test_every_block_is_played():
    """A heading with blocks is played by one of the tests above."""
    with open(__file__, encoding="utf-8") as f:
        text = f.read()
    for heading in {b[0] for b in README if b[1]}:
        assert '"%s"' % heading in text


def test_pages_say_what_the_program_says(tmp_path):
    """Otherwise: doc/update."""
    subprocess.run(["doc/update", str(tmp_path)], cwd=ROOT, check=True,
                   env=dict(os.environ, SLUICE=BINARY),
                   timeout=Deadline(20).left())
    for name in os.listdir(tmp_path):
        with open(os.path.join(ROOT, "doc", name)) as f:
            assert f.read() == (tmp_path / name).read_text()


def test_events_are_in_the_manual():
    with open(os.path.join(ROOT, "doc/sluice.8")) as f:
        manual = set(re.findall(r"\w+", f.read()))
    events = set()
    for path in glob.glob(os.path.join(ROOT, "src/*/*.c")):
        with open(path) as f:
            for argument in re.findall(
                    r"\b(?:log_event\(|log_begin\([^,]+,|tell\()[^,]+,([^,]+)",
                    f.read()):
                events |= set(re.findall(r'"(\w+)"', argument))
    assert {"ready", "refused", "config_error", "store_outage"} <= events
    assert events <= manual
