"""What responses say is what is counted: exactly, over four gateways."""

import random
import time

import pytest

from harness.deadline import SCALE, until
from harness.gateway import APPS
from harness.recipes import by_key, fastcgi, together

GATEWAYS = 4
CLIENTS = 8
REQUESTS = int(10000 / SCALE)
BUDGET = 1000000
USER = {"X-User": "u"}


def ask(gateway, query, headers):
    return gateway.ask("/says.php?" + query, headers=headers,
                       SCRIPT_FILENAME=APPS + "/says.php",
                       QUERY_STRING=query)


@pytest.mark.parametrize("algorithm", ["fixed_window", "sliding_window"])
def test_the_sum_of_what_was_said(farm, algorithm):
    requests = REQUESTS if algorithm == "fixed_window" else REQUESTS // 10
    redis = farm.redis()
    config = {
        "store": {"address": redis.address, "timeout": "5s"},
        "limit points": by_key("%d/7d" % BUDGET, algorithm, name="X-Points",
                               cost="response:X-Cost"),
        "backend default": fastcgi(farm.php(children=4)),
    }
    gateways = [farm.gateway(config) for _ in range(GATEWAYS)]
    points = {"X-Points": "p"}
    seed = int(time.time())
    print("seed", seed)

    def client(number):
        draw = random.Random(seed + number)
        gateway = gateways[number % GATEWAYS]
        said = 0
        for _ in range(requests // CLIENTS):
            cost = draw.choice([0, 1, 1, 2, 7, draw.randrange(100)])
            got = ask(gateway, "cost=%d" % cost, points)
            assert (got.status, got.header("X-Cost")) == (200, None)
            said += cost
        return said

    total = sum(together(CLIENTS, client))
    assert total > 0

    def left():
        return ask(gateways[0], "cost=0", points).limit[1]

    until(lambda: left() == BUDGET - total, 10.0,
          "%d left, not %s" % (BUDGET - total, left()))
    assert not any(g.log.find("settlement_cut") for g in gateways)


def test_failed_logins_reach_the_application_five_times(farm):
    """100 in parallel over four gateways, each answered with a 401."""
    redis = farm.redis()
    app = farm.application(lambda request: request.answer(
        "no", head="Status: 401 Unauthorized\r\n"))
    config = {
        "store": {"address": redis.address, "timeout": "5s"},
        "limit login": by_key("5/1h", name="X-User", count="401, 403"),
        "backend default": fastcgi(app),
    }
    gateways = [farm.gateway(config) for _ in range(GATEWAYS)]
    got = together(100, lambda i: gateways[i % GATEWAYS].ask(
        "/login", method="POST", headers=USER, seconds=30.0).status)
    assert sorted(got) == [401] * 5 + [429] * 95
    assert app.seen == 5
