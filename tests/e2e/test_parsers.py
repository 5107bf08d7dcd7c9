"""Our rate-limit headers, read by parsers that are not ours.

The tests' own (harness/structured.py) always; those of the npm registry
(structured-headers, ratelimit-header-parser) where tests/run/parsers could
bring them.
"""

import time

import pytest

from harness import readers
from harness.recipes import MEMORY, by_key, fastcgi, key
from harness.structured import parse_list

LIMITS = {
    "site": by_key("100/1m", path="/*"),
    "login_1": by_key("5/10s, 50/1h, 60/1d", path="/login"),
    "bucket": by_key("3/1s burst 10", "token_bucket", path="/bucket"),
    "slow": by_key("1/1d burst 7", "token_bucket", path="/slow"),
    "fast": by_key("1000000/1s", "sliding_window", path="/fast"),
    "short": by_key("2/250ms", path="/short"),
    "exact": by_key("3/1m", "sliding_log", path="/exact"),
    "queue": by_key("1000/1s", "leaky_bucket", path="/queue"),
    "closed": by_key("deny", path="/closed"),
    "huge": by_key("1000000000000/1d", path="/huge"),
}
URIS = ["/", "/login", "/bucket", "/slow", "/fast", "/short", "/exact",
        "/queue", "/closed", "/huge"]
CONCURRENT = {"rate": "3", "algorithm": "concurrency", "key": "header:X-Key",
              "missing_key": "skip"}
FAMILIES = "x-ratelimit, draft-03, draft-11"


@pytest.fixture(scope="module")
def answers(shared):
    """Those of every limit, from the first request to a refusal or two."""
    gateway = shared.gateway({
        "store": MEMORY,
        **{"limit " + name: limit for name, limit in LIMITS.items()},
        "response": {"headers": FAMILIES},
        "backend default": fastcgi(shared.php(children=2)),
    })
    return [gateway.ask(uri, headers=key("p"),
                        SCRIPT_FILENAME=readers.ROOT + "/tests/apps/ok.php")
            for uri in URIS for _ in range(12)]


def check(results):
    """Every family is there and says the same, in its own way."""
    spoken = set()
    for read in results:
        (name, told), = read["rate"]
        policies = dict(read["policy"])
        assert len(policies) == len(read["policy"])
        policy = policies[name]
        assert type(policy["q"]) is int and type(told["r"]) is int
        assert 0 <= told["r"] <= policy["q"]
        if policy["q"] > 0:
            assert told["t"] >= 0 and policy["w"] >= 1
            assert read["quota"] == [
                (policy["q"], {}), (policy["q"], {"w": policy["w"]})]
        assert read["x"][:2] == read["draft03"][:2] == (
            policy["q"], told["r"])
        spoken.add(name)
    assert spoken >= {"site", "login_1-10s", "bucket", "slow", "closed",
                      "exact"}


def test_the_tests_own_parsers_read_all(answers):
    check(readers.read_here(readers.heads(answers)))


def test_the_parsers_of_the_npm_registry_read_all(answers):
    heads = readers.heads(answers)
    here = readers.read_here(heads)
    if not readers.has_npm():
        check(here)
        return
    now = time.time()
    there = readers.read_by_npm(heads)
    for a, b in zip(here, there):
        for name in ("policy", "rate", "quota"):
            assert a[name] == b[name]
        for name in ("x", "draft03"):
            limit, remaining, reset = a[name]
            assert b[name]["limit"] == limit
            assert b[name]["remaining"] == remaining
            assert abs(b[name]["reset"] - now - reset) < 30
    check(here)


def test_concurrency(farm):
    gateway = farm.gateway({
        "store": MEMORY, "limit downloads": CONCURRENT,
        "response": {"headers": FAMILIES},
        "backend default": fastcgi(farm.php(children=2)),
    })
    got = gateway.ask("/ok.php", headers=key("c"))
    read, = readers.read_here(readers.heads([got]))
    assert read["policy"] == [
        ("downloads", {"q": 3, "qu": "concurrent-requests"})]
    assert read["rate"] == [("downloads", {"r": 2})]
    assert read["quota"] == [(3, {})]
    assert read["x"] == read["draft03"] == (3, 2)
    if readers.has_npm():
        there, = readers.read_by_npm(
            [{n: v for n, v in readers.heads([got])[0].items()
              if n in ("ratelimit-policy", "ratelimit", "ratelimit-limit")}])
        assert there["policy"] == read["policy"]


def test_a_moment_as_reset(farm):
    gateway = farm.gateway({
        "store": MEMORY, "limit a": by_key("5/1m"),
        "response": {"reset": "epoch"},
        "backend default": fastcgi(farm.php(children=2)),
    })
    got = gateway.ask("/ok.php", headers=key("e"))
    reset = int(got.header("x-ratelimit-reset"))
    assert 58 <= reset - time.time() <= 61
    if readers.has_npm():
        there, = readers.read_by_npm(readers.heads([got]), "unix")
        assert there["x"] == {"limit": 5, "remaining": 4, "reset": reset}


@pytest.mark.parametrize("text", [
    '"a', 'a b', '"a";', '"a";q=', '"a",', '"a";Q=1', '1.', '1.2345',
    '1234567890123456', '"\\a"', "'a'", '"a" "b"', ";q=1", '"a";q=1.5.5'])
def test_the_tests_own_parser_is_strict(text):
    with pytest.raises(ValueError):
        parse_list(text)


def test_the_tests_own_parser():
    assert parse_list('"a\\"b";q=1; w=2.5;x;y=?0, tok/en, -5, :aGk=:') == [
        ('a"b', {"q": 1, "w": 2.5, "x": True, "y": False}),
        ("tok/en", {}), (-5, {}), (b"hi", {})]
    assert parse_list("") == []
