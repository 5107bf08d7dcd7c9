"""What the gateway asks of Redis, whatever its limits: keys by their names."""

import os
import re
import subprocess

import pytest

from harness.deadline import until
from harness.gateway import APPS, BINARY, ROOT
from harness.log import OUTAGE
from harness.process import free_port
from harness.recipes import fastcgi, fixed

with open(os.path.join(ROOT, "README.md")) as f:
    RIGHTS = re.search(
        r"^user sluice on >CHANGE-ME (.*)$", f.read(), re.M).group(1).split()

# One of each kind, all of one client.
LIMITS = {
    "sliding": {"rate": "500/10m"},
    "fixed": fixed("600/10m"),
    "twice": fixed("700/10m, 800/1h"),
    "year": {"rate": "900/1year", "algorithm": "fixed_window",
             "align": "calendar"},
    "bucket": {"rate": "1000/10m", "algorithm": "token_bucket"},
    "log": {"rate": "1100/10m", "algorithm": "sliding_log"},
    "drip": {"rate": "1000/1s", "algorithm": "leaky_bucket"},
    "slots": {"rate": "50", "algorithm": "concurrency"},
    "points": fixed("1200/10m", cost="response:X-Cost"),
    "failures": fixed("1300/10m", count="401"),
    "seen": fixed("1/10m", mode="observe"),
    "few": fixed("4/10m", path="/few", penalty="1h"),
}


@pytest.fixture(scope="module")
def redis(shared):
    """Alone in its cluster, so that it minds in which slot a key is."""
    port, bus = free_port(), free_port()
    while bus == port:
        bus = free_port()
    redis = shared.redis(options=[
        "--bind", "127.0.0.1", "--port", str(port), "--cluster-enabled",
        "yes", "--cluster-port", str(bus)])
    redis.tcp = "redis://127.0.0.1:%d" % port
    client = redis.client()
    client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    until(lambda: b"cluster_state:ok" in client.execute_command(
        "CLUSTER", "INFO"), 20.0, "the cluster")
    client.execute_command("ACL", "SETUSER", "sluice", "on", ">pw", *RIGHTS)
    return redis


@pytest.fixture(scope="module")
def gateway(shared, redis):
    return shared.gateway({
        "store": {"address": redis.tcp, "username": "sluice",
                  "password": "pw", "timeout": "5s"},
        **{"limit " + name: limit for name, limit in LIMITS.items()},
        "backend default": fastcgi(shared.php(children=2)),
    })


def ask(gateway, client, uri="/?cost=3", **kwargs):
    return gateway.ask(uri, client=client,
                       SCRIPT_FILENAME=APPS + "/says.php",
                       QUERY_STRING=uri.partition("?")[2], **kwargs)


def own_counts(gateway, *arguments):
    subprocess.run([BINARY, arguments[0], "-c", gateway.config_path,
                    *arguments[1:]], check=True, timeout=20)


def use_all(gateway, client):
    """Taken, refused, settled, given back, own counts set and unset."""
    own_counts(gateway, "set", "fixed", client, "650")
    for status in ("200", "401"):
        assert ask(gateway, client, "/?cost=3&status=" + status).status == (
            int(status))
    got = [ask(gateway, client, "/few").status for _ in range(6)]
    assert got == [200] * 4 + [429] * 2
    own_counts(gateway, "unset", "fixed", client)
    for limit in LIMITS:
        own_counts(gateway, "reset", limit, "192.0.2.9")
    assert ask(gateway, client).status == 200
    assert not gateway.log.find(OUTAGE)


def keys_of(redis, client):
    return [k.decode() for k in redis.client().scan_iter("*")
            if "{%s}" % client in k.decode()]


def test_B35_B91_the_rights_of_the_readme_are_enough(gateway, redis):
    """None of them can look for keys, and nothing else was tried."""
    assert not {"+keys", "+scan", "+sort", "+@all", "+@read", "+@dangerous",
                "+@keyspace", "+dbsize", "+randomkey"} & set(RIGHTS)
    assert "-@all" in RIGHTS
    redis.client().execute_command("ACL", "LOG", "RESET")
    use_all(gateway, "192.0.2.35")
    assert redis.client().execute_command("ACL", "LOG") == []


def test_B76_B92_what_one_client_has_is_in_one_slot(gateway, redis):
    use_all(gateway, "192.0.2.76")
    keys = keys_of(redis, "192.0.2.76")
    found = {re.match(r"sluice:\{192\.0\.2\.76\}:([a-z]+):", k).group(1)
             for k in keys}
    assert found >= set(LIMITS) - {"drip", "slots"}  # empty ones are no keys
    slot = redis.client().execute_command
    assert len({slot("CLUSTER", "KEYSLOT", k) for k in keys}) == 1


def test_B35_300000_other_keys_make_no_difference(gateway, redis):
    client = "192.0.2.135"
    made = redis.client().eval(
        "for i = 1, ARGV[1] do redis.call('SET', KEYS[1] .. i, i) end "
        "return ARGV[1]", 1, "sluice:{%s}:few:" % client, 300000)
    try:
        assert int(made) == 300000
        use_all(gateway, client)
    finally:
        redis.client().flushall()


def test_B91_unset_takes_one_key_away(gateway, redis):
    db = redis.client()
    others = ["sluice:{192.0.2.91}:few:own", "sluice:{192.0.2.9}:fixed:own",
              "sluice:{192.0.2.91}:fixed", "fixed:own", "sluice:", "*", ""]
    for name in others:
        db.set(name, "7", px=600000)
    own_counts(gateway, "set", "fixed", "192.0.2.91", "650")
    assert len(keys_of(redis, "192.0.2.91")) == 3
    own_counts(gateway, "unset", "fixed", "192.0.2.91")
    assert not db.exists("sluice:{192.0.2.91}:fixed:own")
    assert [db.get(name) for name in others] == [b"7"] * len(others)
