"""Thousands of requests through each set-up leave what it holds as it was.

`make check` runs a tenth of each kind and a thirtieth of the small ones, `make
check-matrix` (MATRIX=whole) all.
"""

import contextlib
import os
import signal

import pytest

from harness import process
from harness.deadline import SCALE, until
from harness.gateway import fd_names
from harness.recipes import together

from client import abort, ask, begin, status_of
from driver import Running, name_of, resident_kb, tree
from setups import SETUPS

WHOLE = os.environ.get("MATRIX") == "whole"
SMALL = 10_000 if WHOLE else 300
EACH = 100 if WHOLE else 3
SECONDS = 500 if WHOLE else 80
CLIENTS = 8
# A worker takes what it needs when it is first busy with each kind: many
# crowds later all have, and then it is to stay. For each gateway:
CROWDS = 50 if WHOLE else 1
GROWTH_KB = 1024 if WHOLE else 8192
# How many children Apache has is its own affair.
OWN_POOLS = {"apache2"}
BODY = b"b" * (10 * 1024 * 1024)


class Load:
    """The kinds of requests of the matrix, many of each."""

    def __init__(self, running):
        self.running = running
        self.setup = running.setup
        self.port = running.port
        self.aborted = 0
        until(lambda: self.ask("small", key="once-flat")
              == self.setup.refused, 10.0, "the store to be asked")

    def ask(self, name, *args, **kwargs):
        return ask(self.port, self.running.uri(name), *args, **kwargs).status

    def small(self, count):
        uri = self.running.uri("small")

        clients = min(CLIENTS, self.setup.crowd)

        def some(i):
            return {status_of(self.port, uri)
                    for _ in range(i, count, clients)}

        assert set().union(*together(clients, some)) <= {200}

    def crowd(self):
        """As many at once as there are workers, and more."""
        together(self.setup.crowd, lambda _: self.small_one())

    def small_one(self):
        assert self.ask("small") == 200

    def aborts(self, count):
        """When php-fpm is through with what came too late for anybody."""
        for _ in range(count):
            self.aborted += 1
            mark = os.path.join(self.running.marks, "f%d" % self.aborted)
            sock = begin(self.port, self.running.uri("endless") + "?" + mark)
            until(lambda: os.path.exists(mark), 30.0, "it to begin")
            abort(sock)
            with contextlib.suppress(FileNotFoundError):  # it was told
                os.unlink(mark)

    def each(self, count):
        """`count` of every kind but the small ones."""
        for _ in range((count + 9) // 10):
            self.crowd()
        setup = self.setup
        once = {"key": "once-flat"}
        for _ in range(count):
            assert self.ask("data") == 200
            assert self.ask("data", **once) == setup.refused
            assert self.ask("data", "HEAD", **once) == setup.refused
            assert self.ask("sha", "POST", BODY) == 200
            assert self.ask("sha", "POST", BODY, **once) == setup.refused
            assert self.ask("sha", "POST", BODY[:300_000],
                            chunked=True) == 200
            assert self.ask("dies") in setup.dies
            if setup.relays and setup.ext == ".php":
                assert self.ask("dead") == 502
        late = 504 if setup.relays else 200
        together(min(count, 10), lambda _: [
            self.late(late) for _ in range((count + 9) // 10)])
        self.aborts(count)

    def late(self, status):
        assert self.ask("late") == status


class Held:
    """What a set-up holds: of each kind of process its number, descriptors
    of the gateways, and their memory; of a pool that of its largest."""

    def __init__(self, running, kept):
        self.kept = kept
        gateways = running.gateways()
        names = [name_of(pid) for pid in tree(running.pid)]
        self.processes = {name: names.count(name) for name in sorted(names)
                          if name not in OWN_POOLS}
        pool = running.setup.pool
        over_all = max if pool else sum
        if self.processes.get("sluice", 0) <= pool:
            self.processes.pop("sluice", None)
        self.descriptors = over_all([0] + [
            sum("memfd:" not in n for n in fd_names(pid))
            for pid in gateways])
        self.memory_kb = over_all([0] + [
            resident_kb(pid) for pid in gateways])

    def is_flat(self, later):
        return (later.processes == self.processes
                and later.descriptors <= self.descriptors + self.kept)

    def __repr__(self):
        return "%s, %d descriptors, %d KB" % (
            self.processes, self.descriptors, self.memory_kb)


@pytest.fixture(params=SETUPS)
def running(request):
    signal.alarm(int(SECONDS * SCALE))
    place = process.Place()
    try:
        yield Running(place, SETUPS[request.param])
    finally:
        for server in list(process.LIVE):
            if server.place is place:
                server.kill()
        place.remove()


def hold_after(running, load, before):
    """What is held after all of the load, which is but memory what it was."""
    load.each(EACH)
    load.small(SMALL)
    until(lambda: before.is_flat(Held(running, 0)), 10.0,
          "%r to be what it was: %r" % (Held(running, 0), before))
    return Held(running, 0)


def test_flat(running):
    """A heap of a thread is warm when that has had its part of the load: what
    grows still the second time is a leak."""
    load = Load(running)
    load.each(max(EACH // 10, 2))
    for _ in range(CROWDS):
        load.crowd()
    until(lambda: not any(name_of(pid).endswith(".cgi")
                          for pid in tree(running.pid)), 10.0,
          "the last scripts to end")
    warm = Held(running, running.setup.kept)
    after = hold_after(running, load, warm)
    most = GROWTH_KB * warm.processes.get("sluice", 1)
    if SCALE == 1 and after.memory_kb >= warm.memory_kb + most:
        first, after = after, hold_after(running, load, warm)
        assert after.memory_kb < first.memory_kb + most, (warm, first, after)
    running.end(signal.SIGINT)
