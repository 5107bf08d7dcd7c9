"""What is found in Redis, in the log and in /proc: no secret, no leftover."""

import re

import pytest

from harness.deadline import until
from harness.gateway import APPS
from harness.recipes import by_key, fastcgi, fixed
from harness.redis_server import monitored

SECRET = "sk-live-VERYSECRET-0123456789"
PASSWORD = "Redis#Pass;word"
KEY_SECRET = "an-hmac-key-that-nobody-sees"
WINDOW_S = 600

LIMITS = {
    "fixed": by_key("5/%ds" % WINDOW_S, name="Authorization"),
    "sliding": by_key("50/%ds" % WINDOW_S, "sliding_window",
                      name="Authorization"),
    "bucket": by_key("70/%ds" % WINDOW_S, "token_bucket",
                     name="Authorization"),
    "spread": {"rate": "1000/%ds" % WINDOW_S, "algorithm": "fixed_window",
               "key": "client"},
    "everyone": fixed("5000/%ds" % WINDOW_S, key="global"),
    "tuple": fixed("6000/%ds" % WINDOW_S, key="client+path"),
}


@pytest.fixture(scope="module")
def redis(shared):
    return shared.redis(options=["--requirepass", PASSWORD])


@pytest.fixture(scope="module")
def gateway(shared, redis):
    place = shared.place
    return shared.gateway({
        "store": {
            "address": redis.address,
            "password_file": place.write("redis.pw", PASSWORD + "\n", 0o600),
            "key_secret": KEY_SECRET,
            "timeout": "2s",
            "deny_cache": 0,
        },
        "log": {"access": "all", "level": "debug"},
        **{"limit " + name: limit for name, limit in LIMITS.items()},
        "backend default": fastcgi(shared.php(children=2)),
    })


def ask(gateway, client="192.0.2.9"):
    return gateway.ask("/x", headers={"Authorization": SECRET},
                       client=client, SCRIPT_FILENAME=APPS + "/ok.php")


def spend(gateway, times=8):
    for _ in range(times):
        assert ask(gateway).status in (200, 429)


def test_B67_no_client_value_is_readable_in_redis(gateway, redis):
    client = redis.client(password=PASSWORD)
    text = monitored(client, lambda: spend(gateway))
    keys = [k.decode("latin-1") for k in client.scan_iter("*")]
    assert keys
    text += "\n".join(keys)
    text += "\n".join(repr(client.dump(k)) for k in keys)
    for word in (SECRET, "VERYSECRET", KEY_SECRET):
        assert word not in text


def test_keys_are_tagged_and_of_bounded_length(gateway, redis):
    client = redis.client(password=PASSWORD)
    spend(gateway, 1)
    keys = [k.decode() for k in client.scan_iter("sluice:{*")]
    tags = {}
    for k in keys:
        tag, limit = re.match(r"sluice:\{([^}]*)\}:([a-z0-9_-]+):", k).groups()
        tags.setdefault(limit, set()).add(tag)
        assert len(k) < 160
    assert tags["everyone"] == {"global"}
    assert tags["spread"] == {"192.0.2.9"}
    for limit in ("fixed", "sliding", "bucket", "tuple"):
        assert all(re.fullmatch("[0-9a-f]{32}", t) for t in tags[limit])


def test_B01_B05_B08_every_key_expires(gateway, redis):
    client = redis.client(password=PASSWORD)
    spend(gateway)
    keys = list(client.scan_iter("sluice:*"))
    assert len(keys) >= len(LIMITS)
    for k in keys:
        ttl = client.pttl(k)
        longest = 86400 if b"fingerprint" in k else 2 * WINDOW_S
        assert 0 < ttl <= longest * 1000 + 2, (k, ttl)


def test_B01_a_key_without_a_ttl_is_given_one(gateway, redis):
    client = redis.client(password=PASSWORD)
    ask(gateway, client="192.0.2.77")
    keys = list(client.scan_iter("sluice:{*"))
    for k in keys:
        client.persist(k)
    ask(gateway, client="192.0.2.77")
    ask(gateway)
    assert [k for k in keys if client.pttl(k) == -1] == []


def test_B94_one_command_a_check(gateway, redis):
    """A request with six limits is one trip."""
    client = redis.client(password=PASSWORD)
    ask(gateway)
    text = monitored(client, lambda: [ask(gateway) for _ in range(5)])
    calls = [line for line in text.split("\n") if line.startswith("EVAL")]
    assert len(calls) == 5


def test_secrets_are_in_no_log_and_no_command_line(gateway, redis):
    spend(gateway)
    gateway.log.wait_for("request", client="192.0.2.9")
    until(lambda: gateway.log.find("refused") or
          gateway.log.find("request", status="429"), what="a refusal")
    text = gateway.output()
    for path in ("cmdline", "environ"):
        with open("/proc/%d/%s" % (gateway.pid, path), "rb") as f:
            text += f.read().decode("latin-1")
    for word in (SECRET, PASSWORD, KEY_SECRET):
        assert word not in text
