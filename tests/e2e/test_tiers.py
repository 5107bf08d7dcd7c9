"""Groups of clients and keys with rates of their own."""

import subprocess

import pytest

from harness.gateway import APPS, BINARY
from harness.recipes import MEMORY, by_key, fastcgi, fixed


def keys_file(place, name, lines):
    path = str(place / name)
    with open(path, "w") as f:
        f.write("".join(line + "\n" for line in lines))
    return path


@pytest.fixture(scope="module")
def php(shared):
    return shared.php(children=2)


@pytest.fixture(scope="module", params=["memory", "redis"])
def gateway(request, shared, php):
    config = {
        "store": MEMORY,
        "limit api": by_key("10/1h", name="X-Api-Key"),
        "limit pages": fixed("20/1h", path="/pages", key="global"),
        "tier banned": {"when": "client=203.0.113.0/24", "pages": "deny"},
        "tier gold": {"api": "100/1h", "pages": "200/1h"},
        "tier office": {"when": "client=198.51.100.0/24, "
                                "param:REMOTE_USER=eve",
                        "api": "unlimited", "pages": "21/1h"},
        "backend default": fastcgi(php),
    }
    if request.param == "redis":
        config["store"] = {"address": shared.redis().address}
    plain = keys_file(shared.place, "gold.keys", ["# ours", "gold-one", "gold-2"])
    config["tier gold"]["when"] = "header:X-Api-Key=@%s" % plain
    return shared.gateway(config)


def ask(gateway, uri="/", **kwargs):
    kwargs.setdefault("SCRIPT_FILENAME", APPS + "/ok.php")
    return gateway.ask(uri, **kwargs)


def limit(gateway, uri="/", **kwargs):
    return ask(gateway, uri, **kwargs).limit[0]


def test_by_value_of_a_file(gateway):
    assert limit(gateway, headers={"X-Api-Key": "gold-one"}) == 100
    assert limit(gateway, headers={"X-Api-Key": "gold-2"}) == 100
    assert limit(gateway, headers={"X-Api-Key": "gold-3"}) == 10
    assert limit(gateway, headers={"X-Api-Key": "# ours"}) == 10


def test_by_client_and_by_param(gateway):
    assert limit(gateway, "/pages") == 20
    assert limit(gateway, "/pages", REMOTE_ADDR="198.51.100.7") == 21
    assert limit(gateway, "/pages", REMOTE_USER="eve") == 21
    assert limit(gateway, "/pages", REMOTE_USER="adam") == 20
    assert limit(gateway, headers={"X-Api-Key": "k"},
                 REMOTE_ADDR="198.51.100.7") is None


def test_the_first_in_file_order(gateway):
    gold = {"X-Api-Key": "gold-one"}
    assert limit(gateway, "/pages", headers=gold,
                 REMOTE_ADDR="198.51.100.7") == 100
    got = ask(gateway, "/pages", headers=gold, REMOTE_ADDR="203.0.113.9")
    assert got.status == 429
    # `banned` says nothing of the API.
    assert limit(gateway, headers=gold, REMOTE_ADDR="203.0.113.9") == 100


def test_one_count_whatever_the_tier(gateway):
    """A tier changes N, not the count: its period is that of the limit."""
    key = {"X-Api-Key": "gold-2"}
    first = ask(gateway, headers=key).limit[1]
    assert ask(gateway, headers=key).limit[1] == first - 1


def test_hashes_in_the_file(farm):
    config = {
        "store": {**MEMORY, "key_secret": "s3cret"},
        "limit api": by_key("10/1h", name="X-Api-Key"),
        "backend default": fastcgi(farm.php(children=2)),
    }
    gateway = farm.gateway(config)
    printed = subprocess.run(
        [BINARY, "hash", "-c", gateway.config_path, "gold"],
        capture_output=True, text=True, timeout=10, check=True)
    stored = printed.stdout.strip()
    config["tier gold"] = {
        "when": "header:X-Api-Key=@" + keys_file(farm.place, "hashes",
                                                 [stored]),
        "api": "100/1h"}
    mark = gateway.reload(config)
    gateway.log.wait_for("reloaded", since=mark)
    assert limit(gateway, headers={"X-Api-Key": "gold"}) == 100
    # Who has read the file has no key.
    assert limit(gateway, headers={"X-Api-Key": stored}) == 10
    assert limit(gateway, headers={"X-Api-Key": stored[5:]}) == 10
