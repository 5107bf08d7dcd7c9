"""Five requests pass, the sixth is told when to come back, and then passes."""

import time

import pytest

from harness.deadline import SCALE, Deadline, pause
from harness.process import free_port
from harness.recipes import MEMORY, cgi, fixed
from harness.web import fetch

WINDOW = 1 if SCALE == 1 else 5


def config(store):
    return {
        "store": store,
        "limit visitors": fixed("5/%ds" % WINDOW),
        "backend default": cgi(),
    }


def five_then_429_then_200(server):
    start = time.monotonic()
    for remaining in (4, 3, 2, 1, 0):
        got = fetch(server, "/hello.cgi")
        assert (got.status, got.body) == (200, b"hello\n")
        assert got.limit[:2] == (5, remaining)
        assert got.header("retry-after") is None
    refused_at = time.monotonic()
    got = fetch(server, "/hello.cgi")
    assert got.status == 429
    assert got.limit[:2] == (5, 0)
    wait = int(got.header("retry-after"))
    assert 1 <= wait <= WINDOW
    first_pass = poll_until_200(server, refused_at, wait)
    # The window opened after `start`: nothing passes a second early, and
    # who waits as long as Retry-After says is served.
    assert first_pass - start >= WINDOW


def poll_until_200(server, refused_at, wait):
    deadline = Deadline(WINDOW + 5, "a 200 after the 429")
    while True:
        asked_at = time.monotonic()
        got = fetch(server, "/hello.cgi")
        answered_at = time.monotonic()
        if got.status == 200:
            return answered_at
        assert got.status == 429
        assert asked_at < refused_at + wait, "Retry-After was too short"
        deadline.check()
        pause()


@pytest.mark.main_job
def test_main_job_lighttpd_cgi_memory(farm):
    gateway = farm.gateway(config(MEMORY))
    five_then_429_then_200(farm.lighttpd(gateway.address))


def test_main_job_lighttpd_redis(farm):
    redis = farm.redis()
    gateway = farm.gateway(config({"address": redis.address}))
    five_then_429_then_200(farm.lighttpd(gateway.address))


@pytest.mark.parametrize("reuse", [False, True], ids=["plain", "enablereuse"])
def test_main_job_apache_redis(farm, reuse):
    redis = farm.redis()
    gateway = farm.gateway(config({"address": redis.address}))
    five_then_429_then_200(farm.apache(gateway.address, reuse=reuse))


def test_main_job_tcp_listener_and_tcp_php_fpm(farm):
    php = farm.php(children=2, tcp=True)
    sections = config(MEMORY)
    sections["backend default"] = {"type": "fastcgi", "address": php.option}
    gateway = farm.gateway(sections, listen=("127.0.0.1", free_port()))
    for remaining in (4, 3, 2, 1, 0):
        got = gateway.ask("/ok.php")
        assert (got.status, got.body) == (200, b"ok\n")
        assert got.limit[:2] == (5, remaining)
    assert gateway.ask("/ok.php").status == 429
