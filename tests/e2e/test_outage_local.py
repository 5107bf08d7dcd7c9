"""on_outage = local: while the store is out each gateway counts alone."""

import json

from harness.gateway import APPS
from harness.log import OUTAGE, RECOVERY
from harness.recipes import by_key, fastcgi, key


def ask(gateway, who):
    return gateway.ask("/x", headers={**key(who),
                                      "Accept": "application/json"},
                       SCRIPT_FILENAME=APPS + "/ok.php")


def test_each_gateway_counts_alone(farm):
    """B80."""
    redis = farm.redis()
    config = {
        "store": {"address": redis.address, "breaker_cooldown": "200ms"},
        "limit few": by_key("10/1h", on_outage="local",
                            outage_rate="3/1h"),
        "backend default": fastcgi(farm.php(children=2)),
    }
    one, two = farm.gateway(config), farm.gateway(config)
    assert ask(one, "a").limit[:2] == (10, 9)
    assert ask(two, "a").limit[:2] == (10, 8)
    redis.kill()
    for gateway in (one, two):
        while not gateway.log.find(OUTAGE):
            ask(gateway, "trip")
    for gateway in (one, two):
        for _ in range(3):
            got = ask(gateway, "a")
            # Numbers would be lies.
            assert (got.status, got.limit) == (200, (None, None, None))
        got = ask(gateway, "a")
        assert (got.status, got.limit) == (429, (None, None, None))
        assert 3500 <= int(got.header("Retry-After")) <= 3600
        assert json.loads(got.body)["violated-policies"] == ["few"]
        assert ask(gateway, "b").status == 200
    marks = [g.log.mark() for g in (one, two)]
    redis.start()
    for gateway, mark in zip((one, two), marks):
        gateway.log.wait_for(RECOVERY, since=mark)
    # The shared count again, which died with the store.
    assert ask(one, "a").limit[:2] == (10, 9)
    assert ask(two, "a").limit[:2] == (10, 8)
