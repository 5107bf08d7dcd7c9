"""sluice set and sluice unset: a key's own counts."""

import subprocess

import pytest

from harness.gateway import BINARY, WRAPPER, render
from harness.recipes import MEMORY, by_key, cgi, fixed, key

LIMITS = {
    "limit client": fixed("3/1h", path="/hello.cgi"),
    "limit two": by_key("2/1h, 4/1d", path="/two/*"),
    "limit bucket": by_key("4/1h burst 8", "token_bucket", path="/bucket/*"),
    "limit pair": {"rate": "2/1h", "key": "header:X-Key+path",
                   "missing_key": "skip", "path": "/pair/*"},
    "limit plan": by_key("10/1h, 100/1d", path="/plan/*"),
    "limit small": by_key("4/1h burst 3", "token_bucket", path="/small/*"),
    "limit queue": by_key("4/1h burst 3", "leaky_bucket", path="/queue/*",
                          delay_max="1h"),
    "limit free": by_key("10/1h", path="/free/*"),
    "limit shut": by_key("10/1h", path="/shut/*"),
    "tier weekly": {"when": "param:PLAN=weekly", "plan": "1000/7d"},
    "tier gold": {"when": "param:PLAN=gold", "plan": "2000/1d, 20/1s",
                  "free": "unlimited", "shut": "deny"},
}


def config(store, **more):
    return {"store": store, **LIMITS, "backend default": cgi(),
            "response": {"headers": "x-ratelimit, draft-03, draft-11"},
            **more}


@pytest.fixture(scope="module")
def redis(shared):
    return shared.redis()


@pytest.fixture(scope="module")
def gateway(shared, redis):
    return shared.gateway(config({"address": redis.address, "timeout": "2s"}))


@pytest.fixture
def clean(redis, gateway):
    redis.client().flushall()


def run(gateway, *arguments, text=None):
    """The command's exit code, and what it said."""
    command = arguments[0], "-c", gateway.config_path, *arguments[1:]
    done = subprocess.run([*WRAPPER, BINARY, *command], input=text,
                          capture_output=True, text=True, timeout=60)
    assert done.stdout == ""
    return done.returncode, done.stderr


def good(gateway, *arguments, **kwargs):
    assert run(gateway, *arguments, **kwargs) == (0, "")


def refused(gateway, *arguments, code=1, **kwargs):
    got, said = run(gateway, *arguments, **kwargs)
    assert got == code and said.startswith("sluice: ")
    return said


def ask(gateway, who="k", uri="/two/x", client="192.0.2.1", **params):
    return gateway.ask(uri, headers=key(who), client=client, **params)


def own_keys(redis):
    return sorted(redis.client().keys("*:own"))


def test_more_than_the_limit_and_back(gateway, redis, clean):
    assert ask(gateway, uri="/hello.cgi").limit[:2] == (3, 2)
    good(gateway, "set", "client", "192.0.2.1", "10")
    assert ask(gateway, uri="/hello.cgi").limit[:2] == (10, 8)
    other = ask(gateway, uri="/hello.cgi", client="192.0.2.2")
    assert other.limit[:2] == (3, 2)
    assert own_keys(redis) == [b"sluice:{192.0.2.1}:client:own"]
    assert redis.client().ttl("sluice:{192.0.2.1}:client:own") == -1
    good(gateway, "unset", "client", "192.0.2.1")
    assert own_keys(redis) == []
    assert ask(gateway, uri="/hello.cgi").limit[:2] == (3, 0)
    good(gateway, "unset", "client", "192.0.2.1")


def test_less_than_the_limit_is_in_force_at_once(gateway, clean):
    assert ask(gateway, uri="/hello.cgi").status == 200
    good(gateway, "set", "client", "192.0.2.1", "1")
    got = ask(gateway, uri="/hello.cgi")
    assert (got.status, got.limit[:2]) == (429, (1, 0))


def test_two_rates_and_an_end(gateway, redis, clean):
    good(gateway, "set", "two", "k", "7,9", "--for", "30d")
    (name,) = own_keys(redis)
    assert 29 * 86400 < redis.client().ttl(name) <= 30 * 86400
    assert redis.client().get(name) == b"7,9"
    assert b"{k}" not in name
    statuses = [ask(gateway).limit[:2] for _ in range(7)]
    assert statuses == [(7, 6 - i) for i in range(7)]
    assert ask(gateway).status == 429
    assert ask(gateway, who="other").limit[0] == 2
    # Set again without --for, they stay.
    good(gateway, "set", "two", "k", "8,9")
    assert redis.client().ttl(name) == -1


def test_a_burst_keeps_its_proportion(gateway, clean):
    good(gateway, "set", "bucket", "k", "6")
    assert ask(gateway, uri="/bucket/x").limit[:2] == (12, 11)


def test_under_a_tier_only_rates_of_the_same_periods(gateway, clean):
    good(gateway, "set", "plan", "k", "5,50")
    assert ask(gateway, uri="/plan/x").limit[:2] == (5, 4)
    got = ask(gateway, uri="/plan/x", PLAN="weekly")
    assert got.limit[:2] == (1000, 999)
    # 20/1s is the tier's, and of the two own counts that of the day.
    got = ask(gateway, uri="/plan/x", PLAN="gold")
    assert got.limit[:2] == (20, 19)
    assert got.header("RateLimit-Policy") == (
        '"plan-1d";q=50;w=86400, "plan-1s";q=20;w=1')


def test_a_tier_without_counts_stands_before_them(gateway, clean):
    for name in "free", "shut":
        good(gateway, "set", name, "k", "5")
        assert ask(gateway, uri="/%s/x" % name).limit[:2] == (5, 4)
    got = ask(gateway, uri="/free/x", PLAN="gold")
    assert got.status != 429 and got.limit == (None, None, None)
    assert ask(gateway, uri="/shut/x", PLAN="gold").status == 429


@pytest.mark.parametrize("name", ["small", "queue"])
def test_what_is_told_of_a_bucket_is_its_own(gateway, clean, name):
    """3/1h: of a burst of 2.25 there are 2."""
    assert ask(gateway, uri="/%s/x" % name, who="other").header(
        "RateLimit-Policy") == '"%s";q=3;w=2700' % name
    good(gateway, "set", name, "k", "3")
    got = ask(gateway, uri="/%s/x" % name)
    assert got.header("RateLimit-Policy") == '"%s";q=2;w=2400' % name
    assert got.header("RateLimit") == '"%s";r=1;t=1200' % name
    assert got.header("RateLimit-Limit") == "2, 2;w=2400"


def test_keys_of_several_parts(gateway, clean):
    good(gateway, "set", "pair", "k+/pair/x", "6")
    assert ask(gateway, uri="/pair/x").limit[:2] == (6, 5)
    assert ask(gateway, uri="/pair/y").limit[:2] == (2, 1)
    assert "2 parts" in refused(gateway, "set", "pair", "k", "6", code=64)


def test_a_secret_key_comes_by_standard_input(gateway, clean):
    good(gateway, "set", "two", "-", "5,6", text="my+key\n")
    assert ask(gateway, who="my+key").limit[:2] == (5, 4)
    good(gateway, "unset", "two", "-", text="my+key")
    assert ask(gateway, who="my+key").limit[:2] == (2, 0)


@pytest.mark.parametrize("arguments,said", [
    (("set", "no-such", "k", "5"), "no such limit"),
    (("unset", "no-such", "k"), "no such limit"),
    (("set", "client", "192.0.2.1", "0"), "1 to 10^12"),
    (("set", "client", "192.0.2.1", "5,6"), "1 rate"),
    (("set", "two", "k", "5"), "2 rates"),
], ids=str)
def test_what_is_refused(gateway, redis, clean, arguments, said):
    """B34: 0 is no count; who is to have none has a tier that says deny."""
    assert said in refused(gateway, *arguments)
    assert redis.client().keys("*:own") == []


@pytest.mark.parametrize("verb,more", [
    ("set", ["5"]), ("unset", []), ("reset", [])])
@pytest.mark.parametrize("limit,written,said", [
    ("client", "", "empty"),
    ("client", "192.0.2", "client: an IPv4 or IPv6 address"),
    ("client", "192.0.2.0/24", "cut to /32"),
    ("bucket", "hash:k", "32 digits"),
    ("pair", "secret+a", "path: it begins with /"),
], ids=str)
def test_a_key_that_no_request_has(
        gateway, redis, clean, verb, more, limit, written, said):
    redis.client().set("sluice:{%s}:%s:own" % (written, limit), "7")
    before = sorted(redis.client().keys())
    text = refused(gateway, verb, limit, written, *more, code=64)
    assert said in text and "secret" not in text
    assert sorted(redis.client().keys()) == before


def test_a_key_by_its_hash(gateway, redis, clean):
    hashed = subprocess.run(
        [*WRAPPER, BINARY, "hash", "-c", gateway.config_path, "hashed"],
        capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    good(gateway, "set", "two", hashed, "5,6")
    assert ask(gateway, who="hashed").limit[:2] == (5, 4)
    assert ask(gateway, who="other").limit[:2] == (2, 1)
    good(gateway, "reset", "two", hashed)
    assert ask(gateway, who="hashed").limit[:2] == (5, 4)
    good(gateway, "unset", "two", hashed)
    assert own_keys(redis) == []


@pytest.mark.parametrize("arguments", [
    ("set",), ("set", "client"), ("set", "client", "192.0.2.1"),
    ("set", "client", "192.0.2.1", "5", "6"),
    ("set", "client", "192.0.2.1", "many"),
    ("set", "client", "192.0.2.1", "-5"),
    ("set", "client", "192.0.2.1", "5", "--for"),
    ("set", "client", "192.0.2.1", "5", "--for", "soon"),
    ("set", "client", "192.0.2.1", "5", "--for", "0"),
    ("unset", "client"), ("unset", "client", "k", "5"),
    ("unset", "client", "k", "--for", "5d"),
], ids=str)
def test_usage(gateway, redis, clean, arguments):
    refused(gateway, *arguments, code=64)
    assert redis.client().keys("*:own") == []


class File:
    """A configuration that nobody serves."""

    def __init__(self, place, config):
        self.config_path = place.write("own.ini", render(config), 0o600)


def test_no_store_that_others_reach(shared):
    said = refused(File(shared.place, config(MEMORY)),
                   "set", "client", "192.0.2.1", "5")
    assert "memory:" in said
    local = {"limit near": fixed("3/1h", scope="local")}
    said = refused(File(shared.place, config(MEMORY, **local)),
                   "set", "near", "192.0.2.1", "5")
    assert "local" in said


def test_no_store_at_all(shared):
    nowhere = File(shared.place, config(
        {"address": "unix:" + shared.place / "nobody.s"}))
    refused(nowhere, "set", "client", "192.0.2.1", "5", code=69)
    refused(nowhere, "unset", "client", "192.0.2.1", code=69)


def test_a_store_that_does_not_answer(farm):
    redis = farm.redis()
    redis.freeze()
    try:
        refused(File(farm.place, config({"address": redis.address})),
                "set", "client", "192.0.2.1", "5", code=69)
    finally:
        redis.thaw()


def test_a_store_that_does_not_let_it_in(farm):
    redis = farm.redis(options=["--requirepass", "secret-of-redis"])
    wrong = {"address": redis.address, "password": "not-the-secret"}
    said = refused(File(farm.place, config(wrong)),
                   "set", "client", "192.0.2.1", "5", code=69)
    assert "secret" not in said


def test_a_configuration_with_an_error(shared):
    code, said = run(
        File(shared.place, config(MEMORY, **{"limit client": {}})),
        "set", "client", "192.0.2.1", "5")
    assert code == 78 and "[limit client] rate" in said
