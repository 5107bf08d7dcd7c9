"""Gateways whose clocks are hours apart, and one Redis: its clock counts."""

import datetime
import os
import subprocess

import pytest

from harness import fcgi
from harness.application import Holding
from harness.deadline import until
from harness.recipes import by_key, fastcgi, key

APART_S = (-7200, 0, 7200)
HOUR = 3600

CLOCK = r"""
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *t)
{
	int failed = (int)syscall(SYS_clock_gettime, id, t);

	if (!failed && id == CLOCK_REALTIME)
		t->tv_sec += atoi(getenv("APART_S"));
	return failed;
}
"""

LAWS = {
    "fixed": by_key("6/1h", path="/fixed"),
    "sliding": by_key("6/1h", "sliding_window", path="/sliding"),
    "bucket": by_key("6/1h", "token_bucket", path="/bucket"),
    "log": by_key("6/1h", "sliding_log", path="/log"),
}


@pytest.fixture(scope="module")
def holding():
    return Holding()


@pytest.fixture(scope="module")
def app(shared, holding):
    return shared.application(holding)


@pytest.fixture(scope="module")
def redis(shared):
    return shared.redis()


@pytest.fixture(scope="module")
def gateways(shared, redis, app):
    library = shared.place / "clock.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", library, "-x", "c", "-"],
        input=CLOCK, text=True, check=True, timeout=60)
    return [shared.gateway({
        "store": {"address": redis.address, "timeout": "5s"},
        "limit slots": by_key("3", "concurrency", name="X-Slots"),
        **{"limit " + name: limit for name, limit in LAWS.items()},
        "backend default": fastcgi(app, max_inflight=20),
    }, env={**os.environ, "LD_PRELOAD": library, "APART_S": str(seconds)})
        for seconds in APART_S]


def time_of(gateway):
    """As its log has it."""
    mark = gateway.log.mark()
    gateway.ask("/")
    text = gateway.log.wait_for("request", since=mark)["time"]
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def test_they_are_apart(gateways):
    """Else the others show nothing."""
    now = time_of(gateways[1])
    for gateway, seconds in zip(gateways, APART_S):
        apart = (time_of(gateway) - now).total_seconds()
        assert abs(apart - seconds) < 60


def test_B37_slots_are_counted_by_one_clock(gateways, app, holding):
    who = {"X-Slots": "b37"}
    holding.go.clear()
    held = []
    try:
        for gateway in gateways:
            before = app.seen
            held.append(gateway.connect(30.0))
            held[-1].send(fcgi.request(fcgi.env("/hold", headers=who)))
            until(lambda: app.seen == before + 1, what="one more inside")
        for gateway in gateways * 3:
            got = gateway.ask("/", headers=who)
            assert (got.status, got.limit) == (429, (3, 0, None))
    finally:
        holding.go.set()
        statuses = [conn.response().status for conn in held]
        for conn in held:
            conn.close()
    assert statuses == [200] * 3
    for gateway in gateways:
        until(lambda: gateway.ask("/", headers=who).limit[1] == 2,
              what="all slots")


@pytest.mark.parametrize("law", LAWS)
def test_B37_and_so_are_all_others(gateways, law):
    asked = [gateway.ask("/" + law, headers=key("b37"))
             for _ in range(2) for gateway in gateways]
    assert [got.limit[:2] for got in asked] == [
        (6, left) for left in (5, 4, 3, 2, 1, 0)]
    for gateway in gateways:
        got = gateway.ask("/" + law, headers=key("b37"))
        assert (got.status, got.limit[1]) == (429, 0)
        most = 2 * HOUR if law == "sliding" else HOUR
        assert 0 < int(got.header("retry-after")) <= most
