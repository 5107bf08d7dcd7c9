"""Fixtures: a place, the servers, and the check that nothing is left."""

import os
import signal

import pytest

from harness import application, gateway, php_fpm, process, redis_server, web
from harness.deadline import SCALE, until

TEST_SECONDS = 90


def pytest_sessionstart(session):
    process.become_reaper()


def pytest_sessionfinish(session):
    for server in list(process.LIVE):
        server.kill()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for server in process.LIVE:
            report.sections.append((server.name, server.output()[-8000:]))


class Farm:
    """Starts servers in one place and stops them, the last one first."""

    def __init__(self):
        self.place = process.Place()
        self.started = []

    def add(self, server):
        self.started.append(server)
        return server

    def gateway(self, config, **kwargs):
        return self.add(gateway.Gateway(self.place, config, **kwargs))

    def redis(self, *args, **kwargs):
        return self.add(redis_server.Redis(self.place, *args, **kwargs))

    def php(self, *args, **kwargs):
        return self.add(php_fpm.PhpFpm(self.place, *args, **kwargs))

    def application(self, *args, **kwargs):
        return self.add(
            application.Application(self.place, *args, **kwargs))

    def lighttpd(self, socket, **kwargs):
        return self.add(web.Lighttpd(self.place, socket, **kwargs))

    def apache(self, socket, **kwargs):
        return self.add(web.Apache(self.place, socket, **kwargs))

    def nginx(self, socket, **kwargs):
        return self.add(web.Nginx(self.place, socket, **kwargs))

    def close(self):
        """Stops all, then raises the first trouble any of them had."""
        trouble = []
        for server in reversed(self.started):
            try:
                server.stop()
            except AssertionError as error:
                trouble.append(error)
        for server in list(process.LIVE):  # what failed while starting
            if server.place is self.place:
                server.kill()
        self.place.remove()
        if trouble:
            raise trouble[0]


@pytest.fixture(scope="module")
def shared():
    """A farm for the whole module."""
    farm = Farm()
    yield farm
    farm.close()


@pytest.fixture
def farm():
    """A farm for one test."""
    farm = Farm()
    yield farm
    farm.close()


def live_gateways():
    return [p for p in process.LIVE if isinstance(p, gateway.Gateway)]


def too_long(number, frame):
    raise AssertionError("the test took too long")


@pytest.fixture(autouse=True)
def nothing_left():
    """No stray process, no child of a gateway, no grown descriptor count."""
    before = {g: g.open_descriptors() for g in live_gateways()}
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(int(TEST_SECONDS * SCALE))
    yield
    signal.alarm(0)
    for g in live_gateways():
        if g in before and g.running():
            g.wait_idle(before[g] + g.links + g.kept)
            g.links = 0  # by now its link to the store is open
    try:
        until(lambda: not process.strays(), 5.0, "strays to end")
    finally:
        for pid in process.strays():
            os.kill(pid, signal.SIGKILL)
