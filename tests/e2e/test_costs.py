"""What a request takes from a limit."""

import pytest

from harness.gateway import APPS
from harness.recipes import MEMORY, by_key, fastcgi, key

COSTS = "/search*=10, POST /export=50, /free=0, *=1"


@pytest.fixture(scope="module")
def php(shared):
    return shared.php(children=2)


@pytest.fixture(scope="module", params=["memory", "redis"])
def gateway(request, shared, php):
    store = MEMORY
    if request.param == "redis":
        store = {"address": shared.redis().address}
    return shared.gateway({
        "store": store,
        "limit budget": by_key("100/1h", cost=COSTS),
        "limit bucket": by_key("1/1h burst 20", algorithm="token_bucket",
                               name="X-Bucket", cost=7),
        "backend default": fastcgi(php),
    })


def ask(gateway, uri, **kwargs):
    kwargs.setdefault("SCRIPT_FILENAME", APPS + "/ok.php")
    return gateway.ask(uri, **kwargs)


def test_one_budget_many_costs(gateway):
    who = key("patterns")
    assert ask(gateway, "/", headers=who).limit[:2] == (100, 99)
    assert ask(gateway, "/search?q=1", headers=who).limit[1] == 89
    assert ask(gateway, "//search/x", headers=who).limit[1] == 79
    assert ask(gateway, "/export", headers=who).limit[1] == 78
    assert ask(gateway, "/export", method="POST",
               headers=who).limit[1] == 28
    assert ask(gateway, "/free", headers=who).limit[1] == 28
    got = ask(gateway, "/export", method="POST", headers=who)
    # Too little is left for this one, but not for others.
    assert (got.status, got.limit[1]) == (429, 28)
    assert ask(gateway, "/search", headers=who).limit[1] == 18


def test_what_costs_nothing_is_never_refused(gateway):
    who = key("free")
    for left in (50, 0):
        assert ask(gateway, "/export", method="POST",
                   headers=who).limit[1] == left
    assert ask(gateway, "/", headers=who).status == 429
    got = ask(gateway, "/free", headers=who)
    assert (got.status, got.limit[1]) == (200, 0)


def test_fixed_cost_of_a_bucket(gateway):
    who = {"X-Bucket": "b"}
    assert ask(gateway, "/", headers=who).limit[:2] == (20, 13)
    assert ask(gateway, "/", headers=who).limit[:2] == (20, 6)
    got = ask(gateway, "/", headers=who)
    assert (got.status, got.limit[:2]) == (429, (20, 6))
    # One unit an hour, and one is missing.
    assert 3590 <= int(got.header("Retry-After")) <= 3600


@pytest.mark.parametrize("how", [
    {"uri": "/index.php/search", "SCRIPT_NAME": "/index.php",
     "PATH_INFO": "/search"},
    {"uri": "/%73earch"},
    {"uri": "/x/../search"},
    {"uri": "/y", "SCRIPT_NAME": "/search"},
])
def test_expensive_by_any_of_its_paths(gateway, how):
    how = dict(how)
    uri = how.pop("uri")
    who = key("any " + uri)
    assert ask(gateway, uri, headers=who, **how).limit[1] == 90
