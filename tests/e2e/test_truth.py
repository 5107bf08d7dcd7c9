"""The coupon story: exactly `limit` pass, whoever asks and wherever."""

import pytest

from harness.gateway import APPS
from harness.recipes import by_key, fastcgi, key, together

ROUNDS = 20
CLIENTS = 8
LIMIT = 20
ASKED = 40  # by all clients together

ALGORITHMS = ("fixed_window", "sliding_window", "token_bucket",
              "sliding_log")


def config(store, php):
    """Rates per hour: nothing refills while the test runs."""
    return {
        "store": store,
        **{"limit " + name: by_key("%d/1h" % LIMIT, name, path="/%s" % name)
           for name in ALGORITHMS},
        "backend default": fastcgi(php),
    }


@pytest.fixture(scope="module")
def php(shared):
    return shared.php(children=4)


@pytest.fixture(scope="module")
def redis(shared):
    return shared.redis()


@pytest.fixture(scope="module")
def four(shared, redis, php):
    """Four gateways that share one Redis."""
    store = {"address": redis.address, "timeout": "2s"}
    return [shared.gateway(config(store, php)) for _ in range(4)]


@pytest.fixture(scope="module")
def memory(shared, php):
    return [shared.gateway(config({"address": "memory:"}, php))]


def fire(gateways, algorithm, who):
    """The statuses of ASKED requests by CLIENTS at once."""
    def client(i):
        gateway = gateways[i % len(gateways)]
        return [
            gateway.ask("/" + algorithm, headers=key(who),
                        SCRIPT_FILENAME=APPS + "/ok.php").status
            for _ in range(ASKED // CLIENTS)
        ]

    return sum(together(CLIENTS, client), [])


def exactly_the_limit(gateways, algorithm, name):
    for n in range(ROUNDS):
        statuses = fire(gateways, algorithm, "%s-%d" % (name, n))
        assert statuses.count(200) == LIMIT, "round %d" % n
        assert statuses.count(429) == ASKED - LIMIT, "round %d" % n


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_truth_one_gateway_memory(memory, algorithm):
    exactly_the_limit(memory, algorithm, "memory")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_truth_one_gateway_redis(four, algorithm):
    exactly_the_limit(four[:1], algorithm, "one")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_truth_four_gateways_redis(four, algorithm):
    exactly_the_limit(four, algorithm, "four")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_B18_one_more_than_the_limit_at_once(four, algorithm):
    def client(i):
        return four[i % 4].ask(
            "/" + algorithm, headers=key("b18"),
            SCRIPT_FILENAME=APPS + "/ok.php").status

    statuses = together(LIMIT + 1, client)
    assert (statuses.count(200), statuses.count(429)) == (LIMIT, 1)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_B14_B16_refusals_change_nothing(four, redis, algorithm):
    """After the limit a hundred refusals, through all: not a bit of it."""
    db = redis.client()
    db.flushall()
    fire(four, algorithm, "b16")
    (name,) = db.scan_iter("sluice:{*}:*")
    before = db.dump(name), db.pexpiretime(name)
    waits = []
    for n in range(100):
        got = four[n % 4].ask("/" + algorithm, headers=key("b16"))
        assert (got.status, got.limit[:2]) == (429, (LIMIT, 0))
        waits.append(int(got.header("retry-after")))
    assert (db.dump(name), db.pexpiretime(name)) == before
    assert waits == sorted(waits, reverse=True)
