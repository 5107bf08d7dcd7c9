"""What is settled after the fact holds too when everybody comes at once."""

import random
import threading
import urllib.parse

import pytest

from harness import fcgi
from harness.deadline import until
from harness.gateway import APPS
from harness.recipes import fastcgi, fixed, together

GATEWAYS = 4
LOGINS = 100
SPENDERS = 8
SPENDINGS = 10000


@pytest.fixture(scope="module")
def redis(shared):
    return shared.redis()


def four(farm, redis, server, limits, **more):
    """Gateways that share one Redis and one application."""
    return [farm.gateway({
        "store": {"address": redis.address, "timeout": "5s"},
        **{"limit " + name: limit for name, limit in limits.items()},
        "backend default": fastcgi(server),
        **more,
    }) for _ in range(GATEWAYS)]


# Failed logins: count = 401

LOGIN = fixed("5/1h", path="/login", method="POST", key="form:user",
              missing_key="deny", count="401")


class Door:
    """Refuses every login, but while `answers` is clear it lets it wait."""

    def __init__(self):
        self.reached = 0
        self.lock = threading.Lock()
        self.answers = threading.Event()
        self.answers.set()

    def __call__(self, request):
        with self.lock:
            self.reached += 1
        assert self.answers.wait(30.0)
        request.answer(b"no", "Status: 401 Unauthorized\r\n")


def log_in(gateway, user):
    body = urllib.parse.urlencode({"user": user, "password": "x"})
    return gateway.ask(
        "/login", body.encode(), method="POST", seconds=30.0,
        CONTENT_TYPE="application/x-www-form-urlencoded",
        CONTENT_LENGTH=str(len(body)))


@pytest.mark.parametrize("gateways", [1, GATEWAYS])
def test_of_100_wrong_passwords_at_once_5_are_tried(farm, redis, gateways):
    door = Door()
    some = four(farm, redis, farm.application(door), {
        "login": LOGIN})[:gateways]
    user = "at once %d" % gateways
    got = together(LOGINS, lambda i: log_in(some[i % gateways], user).status)
    assert door.reached == 5
    assert (got.count(401), got.count(429)) == (5, LOGINS - 5)


def test_of_100_wrong_passwords_5_are_in_flight(farm, redis):
    """All that come while the five are not answered yet are refused."""
    door = Door()
    some = four(farm, redis, farm.application(door), {"login": LOGIN})
    door.answers.clear()
    got = []

    def guess(i):
        got.append(log_in(some[i % GATEWAYS], "in flight").status)

    thread = threading.Thread(target=together, args=(LOGINS, guess))
    thread.start()
    until(lambda: len(got) == LOGINS - 5, 20.0, "95 answers")
    until(lambda: door.reached == 5, 5.0, "five logins in the application")
    assert set(got) == {429}
    door.answers.set()
    thread.join(30.0)
    assert (got.count(401), got.count(429), door.reached) == (5, 95, 5)


# Settled costs: cost = response:X-Cost

# Nothing to speak of comes back while the test runs.
BUDGET = 100000
BUDGETS = {
    "fixed": fixed("%d/1w" % BUDGET),
    "sliding": {"rate": "%d/1w" % BUDGET},
    "bucket": {"rate": "1/1d burst %d" % BUDGET, "algorithm": "token_bucket"},
}


def spend(gateway, costs):
    """One request after the other on one connection; their statuses."""
    statuses = []
    with gateway.connect(seconds=30.0) as conn:
        for cost in costs:
            items = fcgi.env("/spend?cost=%d" % cost,
                             SCRIPT_FILENAME=APPS + "/says.php")
            got = conn.ask(items, keep=True)
            statuses.append((got.status, got.header("X-Cost")))
    return statuses


def left(gateway, name):
    return gateway.ask("/" + name + "?cost=0",
                       SCRIPT_FILENAME=APPS + "/says.php").limit[1]


def test_what_10000_responses_say_is_what_redis_counts(farm, redis):
    some = four(farm, redis, farm.php(children=4), {
        name: {"key": "global", "cost": "response:X-Cost",
               "path": "/spend, /" + name, **limit}
        for name, limit in BUDGETS.items()})
    draw = random.Random(10000)
    costs = [draw.choice((0, 0, 1, 1, 2, 3, 5, 20))
             for _ in range(SPENDINGS)]
    assert sum(costs) < BUDGET / 2
    got = together(SPENDERS, lambda i: spend(
        some[i % GATEWAYS], costs[i::SPENDERS]))
    assert set(sum(got, [])) == {(200, None)}
    rest = BUDGET - sum(costs)
    for name in BUDGETS:
        until(lambda: left(some[0], name) == rest, 10.0,
              "%d units left of %s" % (rest, name))
    for gateway in some:
        assert {left(gateway, name) for name in BUDGETS} == {rest}
