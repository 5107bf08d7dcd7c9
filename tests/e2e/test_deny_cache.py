"""Who is known to be refused costs Redis nothing, and is told the same."""

import threading
import time

import pytest

from harness.deadline import until
from harness.recipes import by_key, fastcgi, key

LIMITS = {
    "limit one": by_key("1/1h", path="/one"),
    "limit soon": by_key("1/2500ms", "token_bucket", path="/soon"),
    "limit two": by_key("2/1h, 1/1d", path="/two*"),
    "limit both": by_key("1/2h", path="*b"),
    "limit own": by_key("1/1h", path="/own"),
    "limit kept-out": by_key("1/1s", "token_bucket", path="/kept",
                             penalty="1h"),
    "limit slot": by_key("1", "concurrency", path="/slot"),
    "limit failed": by_key("1/1h", path="/failed", count="404"),
    "limit seen": by_key("1/1h", path="/seen", mode="observe"),
    "limit beside": by_key("1/1h", path="/seen"),
    "limit near": by_key("99/1h", path="/near", scope="local"),
    "limit far": by_key("1/1h", path="/near"),
    "limit short": by_key("1/1m", path="/pair*"),
    "limit pair-count": by_key("1/1h", path="/pair-count", count="200"),
    "limit pair-lease": by_key("1/1h", path="/pair-lease", lease=2),
    "limit pair-cost": by_key("1/1h", path="/pair-cost",
                              cost="response:X-Cost"),
    "limit cost": by_key("9/1h", path="/cost*", cost="/costly=8, *=1"),
}


def config(redis, app, **store):
    return {
        "store": {"address": redis.address, "timeout": "5s",
                  "deny_cache_ttl": "1m", **store},
        **LIMITS,
        "backend default": fastcgi(app),
        "response": {"headers": "x-ratelimit, draft-03, draft-11"},
    }


@pytest.fixture(scope="module")
def redis(shared):
    return shared.redis()


@pytest.fixture(scope="module")
def app(shared):
    return shared.application(lambda request: request.answer(b"ok"))


@pytest.fixture(scope="module")
def gateway(shared, redis, app):
    return shared.gateway(config(redis, app))


@pytest.fixture
def clean(redis, gateway, app):
    """No counts, and nothing remembered of those that were."""
    redis.client().flushall()
    reload(gateway, redis, app)


def reload(gateway, redis, app, **store):
    mark = gateway.reload(config(redis, app, **store))
    gateway.log.wait_for("reloaded", since=mark)


def ask(gateway, uri, who="k"):
    return gateway.ask(uri, headers=key(who))


def commands(redis, work):
    """What it returns, and the commands that Redis ran meanwhile."""
    db = redis.client()

    def count():
        return sum(c["calls"] for name, c in db.info("commandstats").items()
                   if name != "cmdstat_info")

    before = count()
    result = work()
    return result, count() - before


def told(answer):
    """All of its headers that limits make."""
    return [(n, v) for n, v in answer.headers
            if "ratelimit" in n or n == "retry-after"]


def test_a_refused_key_costs_redis_nothing(gateway, redis, clean):
    assert ask(gateway, "/one").status == 200
    first = ask(gateway, "/one")
    mark = gateway.log.mark()
    answers, n = commands(
        redis, lambda: [ask(gateway, "/one") for _ in range(30)])
    assert n == 0
    assert [a.status for a in answers] == [429] * 30
    assert answers[0].body == first.body
    # Each is logged as any other, and says so.
    lines = gateway.log.wait_for("refused", since=mark, count=30, cached="yes")
    assert {(e["limit"], e["store_us"], e["remaining"])
            for e in lines} == {("one", "0", "0")}
    assert ask(gateway, "/one", who="other").status == 200


def test_two_rates_are_told_as_redis_did(gateway, redis, clean):
    assert ask(gateway, "/two").status == 200
    first = told(ask(gateway, "/two"))
    again, n = commands(redis, lambda: ask(gateway, "/two"))
    assert n == 0
    got, want = dict(told(again)), dict(first)
    assert list(got) == list(want)
    assert got["ratelimit-policy"] == want["ratelimit-policy"] == (
        '"two-1h";q=2;w=3600, "two-1d";q=1;w=86400')
    for name in "x-ratelimit-limit", "x-ratelimit-remaining":
        assert got[name] == want[name]
    for name in "x-ratelimit-reset", "retry-after":
        assert int(want[name]) - 5 <= int(got[name]) <= int(want[name])


def test_who_waits_as_told_passes(gateway, redis, clean):
    """And is told less and less, but never too little."""
    assert ask(gateway, "/soon").status == 200
    asked = []
    while True:
        sent = time.monotonic()
        got = ask(gateway, "/soon")
        if got.status == 200:
            break
        told = time.monotonic()
        asked.append((sent, told, int(got.header("Retry-After"))))
        assert len(asked) < 100000
    # Nobody was told to come at a time when one was still refused.
    assert asked[-1][0] <= min(told + wait for _, told, wait in asked)
    waits = [wait for _, _, wait in asked]
    assert waits == sorted(waits, reverse=True) and set(waits) == {3, 2, 1}
    cached = gateway.log.find("refused", path="/soon", cached="yes")
    # The first, and those who came as the wait was over, if not yet in Redis.
    assert len(cached) > len(asked) / 2
    left = [int(e["retry_us"]) for e in cached]
    assert 0 < min(left) < max(left) <= 2500000


def test_another_limit_that_is_known_to_refuse_is_enough(
        gateway, redis, clean):
    """Of what was not asked nothing is taken, and nothing told."""
    assert ask(gateway, "/two").status == 200
    assert ask(gateway, "/two").status == 429
    got, n = commands(redis, lambda: ask(gateway, "/two-and-b"))
    assert (got.status, n) == (429, 0)
    assert "both" not in got.header("RateLimit-Policy")
    assert ask(gateway, "/b").status == 200


def test_what_a_local_limit_took_goes_back(gateway, redis, clean):
    assert ask(gateway, "/near").status == 200
    for _ in range(5):
        assert ask(gateway, "/near").status == 429
    redis.client().flushall()
    clean_again = ask(gateway, "/near", who="other")
    assert clean_again.status == 200
    policy = clean_again.header("RateLimit-Policy")
    assert policy.startswith('"near";q=99') and '"far";q=1' in policy


@pytest.mark.parametrize("path", ["/slot", "/failed", "/seen"])
def test_who_is_always_asked(farm, redis, path):
    """Slots come free, responses are awaited, observed ones count."""
    runs, over = threading.Event(), threading.Event()

    def answer(request):
        if path == "/slot":
            runs.set()
            over.wait(10.0)
        request.answer(b"", "Status: 404 Not Found\r\n")

    gateway = farm.gateway(config(redis, farm.application(answer)))
    first = threading.Thread(target=ask, args=(gateway, path, path))
    first.start()
    if path == "/slot":
        assert runs.wait(10.0)
    else:
        first.join(10.0)
    for _ in range(3):
        got, n = commands(redis, lambda: ask(gateway, path, path))
        assert got.status == 429 and n > 0
    over.set()
    first.join(10.0)
    assert not gateway.log.find("refused", cached="yes")


@pytest.mark.parametrize("path", ["/pair-count", "/pair-lease", "/pair-cost"])
def test_the_longest_wait_is_told(gateway, redis, clean, path):
    """Also when the limit that has it is remembered for less, or not."""
    assert ask(gateway, path).status == 200

    def asked():
        got, n = commands(redis, lambda: ask(gateway, path))
        assert got.status == 429
        assert int(got.header("Retry-After")) > 3000
        return n > 0

    assert asked()
    until(asked, 10.0, "another question to Redis")


def test_a_penalty_is_set_once(gateway, redis, clean):
    db = redis.client()
    assert ask(gateway, "/kept").status == 200
    assert ask(gateway, "/kept").status == 429
    (name,) = [k for k in db.keys("*") if k.endswith(b":p")]
    begun = db.get(name)
    (got, n) = commands(redis, lambda: ask(gateway, "/kept"))
    assert (got.status, n) == (429, 0)
    assert 3590 <= int(got.header("Retry-After")) <= 3600
    assert db.get(name) == begun


def test_what_a_cheap_request_takes_is_known(gateway, redis, clean):
    assert ask(gateway, "/cost").status == 200
    assert ask(gateway, "/cost").status == 200
    assert ask(gateway, "/costly").limit[:2] == (9, 7)
    got, n = commands(redis, lambda: ask(gateway, "/costly"))
    assert (got.status, got.limit[:2], n) == (429, (9, 7), 0)
    assert ask(gateway, "/cost").limit[:2] == (9, 6)
    assert ask(gateway, "/costly").limit[:2] == (9, 6)


def test_a_reload_forgets(gateway, redis, app, clean):
    assert ask(gateway, "/one").status == 200
    assert ask(gateway, "/one").status == 429
    assert commands(redis, lambda: ask(gateway, "/one"))[1] == 0
    redis.client().flushall()
    assert ask(gateway, "/one").status == 429
    reload(gateway, redis, app)
    assert ask(gateway, "/one").status == 200


def test_not_longer_than_the_ttl(gateway, redis, app, clean):
    reload(gateway, redis, app, deny_cache_ttl="50ms")
    assert ask(gateway, "/one").status == 200
    assert ask(gateway, "/one").status == 429
    redis.client().flushall()
    until(lambda: ask(gateway, "/one").status == 200, 5.0, "the ttl")


def test_off(farm, redis, app):
    settings = config(redis, app, deny_cache=0)
    del settings["store"]["deny_cache_ttl"]
    gateway = farm.gateway(settings)
    assert ask(gateway, "/one", "off").status == 200
    for _ in range(3):
        got, n = commands(redis, lambda: ask(gateway, "/one", "off"))
        assert got.status == 429 and n > 0


def test_counted(farm, redis, app):
    gateway = farm.gateway(config(redis, app))
    for _ in range(5):
        ask(gateway, "/one", "counted")
    gateway.stop()
    counters = gateway.log.wait_for("counters")
    assert counters["requests_refused"] == "4"
    assert counters["requests_refused_cached"] == "3"
    assert counters["checks"] == "2"
