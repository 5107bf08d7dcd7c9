"""What a request takes from a limit."""

import pytest

from harness.deadline import elapse, until
from harness.gateway import APPS
from harness.recipes import MEMORY, by_key, fastcgi, key, together

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
        "limit points": by_key("100/1h", name="X-Points",
                               cost="response:X-Cost"),
        "limit failures": by_key("5/1h", name="X-User", count="401, 5xx"),
        "backend gone": {"address": "unix:/nonexistent", "path": "/gone"},
        "backend default": fastcgi(php),
    })


def ask(gateway, uri, **kwargs):
    kwargs.setdefault("SCRIPT_FILENAME", APPS + "/ok.php")
    return gateway.ask(uri, **kwargs)


def test_one_budget_many_costs(gateway):
    """B15, B19: a refusal takes nothing, and more than is left is one."""
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
    """B21."""
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


@pytest.mark.parametrize("info", [{}, {"PATH_INFO": "/free"}])
def test_cheap_behind_one_script(gateway, info):
    """What all is rewritten to is no reason to pay for all."""
    who = key("front" + str(info))
    for left in (100, 100):
        assert ask(gateway, "/free", headers=who, SCRIPT_NAME="/index.php",
                   **info).limit[1] == left
    assert ask(gateway, "/index.php/free", headers=who,
               SCRIPT_NAME="/index.php", PATH_INFO="/free").limit[1] == 99


def say(gateway, query, **kwargs):
    return gateway.ask("/says.php?" + query, SCRIPT_FILENAME=APPS + "/says.php",
                       QUERY_STRING=query, **kwargs)


def left(gateway, name, who):
    """What remains, once all is settled: asked for with a request that the
    log says the end of, and that takes itself back or is counted in."""
    return say(gateway, "status=200&cost=0", headers={name: who}).limit[1]


def test_the_response_says_the_cost(gateway):
    who = {"X-Points": "a"}
    got = say(gateway, "cost=7", headers=who)
    # Its own cost is in what is printed, and the header is ours alone.
    assert (got.status, got.limit[:2]) == (200, (100, 93))
    assert got.header("X-Cost") is None
    # Nothing is held: a second later or at once, it is the same.
    until(lambda: left(gateway, "X-Points", "a") == 93, 5.0, "93 left")
    got = say(gateway, "cost=1000", headers=who)
    assert (got.status, got.limit[:2]) == (200, (100, 0))
    until(lambda: say(gateway, "cost=0", headers=who).status == 429, 5.0,
          "a refusal")


def test_a_response_that_costs_nothing_leaves_it_untouched(gateway):
    got = say(gateway, "cost=0", headers={"X-Points": "free"})
    assert (got.status, got.limit) == (200, (100, 100, 0))


@pytest.mark.parametrize("cost", ["", "-1", "x", "1.5", "1000001", "7,7"])
def test_nonsense_costs_what_was_held(gateway, cost):
    """B20, B23."""
    who = "nonsense" + cost
    mark = gateway.log.mark()
    got = say(gateway, "cost=" + cost, headers={"X-Points": who})
    assert (got.status, got.limit[1]) == (200, 99)
    assert got.header("X-Cost") is None
    gateway.log.wait_for("bad_cost", since=mark, limit="points",
                         header="X-Cost", value=cost)


def test_nothing_said_costs_what_was_held(gateway):
    got = say(gateway, "status=200", headers={"X-Points": "silent"})
    assert (got.status, got.limit[1]) == (200, 99)
    until(lambda: left(gateway, "X-Points", "silent") == 99, 5.0, "99 left")


def test_only_failures_count(gateway):
    who = {"X-User": "eve"}
    for _ in range(20):
        got = say(gateway, "status=200", headers=who)
        assert got.status == 200
        until(lambda: left(gateway, "X-User", "eve") == 4, 5.0,
              "it to be given back")
    for n in range(5):
        assert say(gateway, "status=401", headers=who).status == 401
    got = say(gateway, "status=200", headers=who)
    assert (got.status, got.limit[:2]) == (429, (5, 0))


def test_our_own_failures_have_a_status_too(gateway):
    who = {"X-User": "unlucky"}
    for _ in range(5):
        got = gateway.ask("/gone", headers=who)
        assert got.status == 502
    assert gateway.ask("/gone", headers=who).status == 429


def test_parallel_failures_reach_the_application_n_times(gateway):
    who = {"X-User": "many"}
    got = together(40, lambda i: say(gateway, "status=401",
                                     headers=who).status)
    assert sorted(got) == [401] * 5 + [429] * 35


@pytest.mark.parametrize("store", ["memory", "redis"])
@pytest.mark.parametrize("settled", [
    {"count": "401"}, {"cost": "response:X-Cost"}], ids=["count", "cost"])
def test_what_is_not_counted_does_not_empty_a_bucket(farm, store, settled):
    """4 clients, 5/1s burst 8, each request takes as long as 1.25 units. A
    response goes out before it is settled: each may have two in flight."""
    address = MEMORY if store == "memory" else {
        "address": farm.redis().address, "timeout": "5s"}

    def slow(request):
        elapse(0.25)
        request.answer("ok", head="X-Cost: 0\r\n")

    gateway = farm.gateway({
        "store": address,
        "limit login": by_key("5/1s burst 8", "token_bucket", name="X-User",
                              **settled),
        "backend default": fastcgi(farm.application(slow)),
    })
    got = together(4, lambda i: [
        gateway.ask("/", headers={"X-User": "u"}, seconds=30.0).status
        for _ in range(8)])
    assert got == [[200] * 8] * 4
