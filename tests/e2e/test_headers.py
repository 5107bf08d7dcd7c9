"""What an answer carries (SPEC 4, the table of headers)."""

import pytest

from harness.deadline import until
from harness.gateway import APPS
from harness.recipes import MEMORY, by_key, fastcgi, key

TRIPLE = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")
LIMITS = {
    "fixed": by_key("2/100s", path="/fixed"),
    "bucket": by_key("10/100s", "token_bucket", path="/bucket"),
    "sliding": by_key("2/100s", "sliding_window", path="/sliding"),
    "fast": by_key("10/1s burst 1", "token_bucket", path="/fast"),
    "own": by_key("50/100s", path="/own*"),
    "polite": by_key("1/100s", path="/polite", message="Come back later."),
    "short": by_key("1/10s", path="/two"),
    "long": by_key("1/1000s", path="/two"),
}


@pytest.fixture(scope="module")
def gateway(shared):
    return shared.gateway({
        "store": MEMORY,
        **{"limit " + name: limit for name, limit in LIMITS.items()},
        "backend default": fastcgi(shared.php(children=2)),
    })


def ask(gateway, uri, who, script="/ok.php", **kwargs):
    return gateway.ask(
        uri, headers=key(who), SCRIPT_FILENAME=APPS + script, **kwargs)


def refuse(gateway, uri, who, **kwargs):
    """Spends what there is, then the first refusal."""
    for _ in range(100):
        got = ask(gateway, uri, who)
        if got.status != 200:
            break
    return ask(gateway, uri, who, **kwargs)


def refused(gateway, uri, who):
    """The answer, if it is a refusal."""
    got = ask(gateway, uri, who)
    return got if got.status == 429 else None


def test_B43_no_retry_after_on_what_passes(gateway):
    got = ask(gateway, "/fixed", "b43")
    assert got.status == 200
    assert got.limit == (2, 1, 100)
    assert got.all("retry-after") == []
    assert got.all("cache-control") == []


def test_B53_a_429_is_never_stored(gateway):
    got = refuse(gateway, "/fixed", "b53")
    assert got.status == 429
    assert got.header("cache-control") == "no-store"


def test_429_as_the_table_says(gateway):
    got = refuse(gateway, "/fixed", "429")
    assert got.headers[0][0] == "status"
    assert got.header("status").split()[0] == "429"
    assert got.limit[:2] == (2, 0)
    assert 98 <= got.limit[2] <= 100
    assert 98 <= int(got.header("retry-after")) <= 100
    assert got.header("content-type").startswith("text/plain")
    assert got.body.strip()
    assert got.complete


def test_429_to_head_has_no_body(gateway):
    got = refuse(gateway, "/fixed", "head", method="HEAD")
    assert got.status == 429
    assert got.header("retry-after")
    assert got.body == b""


def test_message_is_for_the_client(gateway):
    got = refuse(gateway, "/polite", "m")
    assert b"Come back later." in got.body


@pytest.mark.parametrize("case", ["B38_retry_after_is_never_zero",
                                  "B40_retry_after_is_digits_only"])
def test_retry_after(gateway, case):
    # A token comes back each 100 ms: less than 0.1 s to wait, 1 to print.
    got = until(lambda: refused(gateway, "/fast", case), what="a refusal")
    assert got.all("retry-after") == ["1"]


def test_B39_a_whole_wait_is_not_rounded_up(gateway):
    # Empty at one moment, the bucket gives one token each 10 s: at most 10.
    got = refuse(gateway, "/bucket", "b39")
    assert got.status == 429
    assert 9 <= int(got.header("retry-after")) <= 10


def test_B44_B45_the_longest_wait_of_the_violated(gateway):
    ask(gateway, "/two", "b45")
    got = ask(gateway, "/two", "b45")
    assert got.status == 429
    assert 990 <= int(got.header("retry-after")) <= 1000
    assert got.limit[0] == 1
    assert got.limit[2] >= 990


def test_B47_B48_reset_is_seconds_until_untouched(gateway):
    assert ask(gateway, "/fixed", "r").limit[2] == 100
    assert ask(gateway, "/bucket", "r").limit == (10, 9, 10)
    assert ask(gateway, "/bucket", "r").limit == (10, 8, 20)
    limit, remaining, reset = ask(gateway, "/sliding", "r").limit
    assert (limit, remaining) == (2, 1)
    assert 100 <= reset <= 200


@pytest.mark.parametrize("uri", ["/fixed", "/bucket", "/sliding"])
def test_B51_headers_are_the_verdicts(gateway, uri):
    seen = []
    for _ in range(14):
        got = ask(gateway, uri, "b51")
        assert all(len(got.all(name)) == 1 for name in TRIPLE)
        limit, remaining, reset = got.limit
        assert 0 <= remaining <= limit and reset >= 0
        seen.append((got.status, remaining))
    passed = [remaining for status, remaining in seen if status == 200]
    assert passed == list(range(LIMITS_OF[uri] - 1, -1, -1))
    assert all(remaining == 0 for status, remaining in seen if status == 429)


LIMITS_OF = {"/fixed": 2, "/bucket": 10, "/sliding": 2}


def own(gateway, who, *lines):
    return ask(gateway, "/own.php?" + "&".join(lines), who, "/own.php")


def test_stricter_headers_of_the_application_stay(gateway):
    got = own(gateway, "strict", "X-RateLimit-Limit=3",
              "X-RateLimit-Remaining=1", "X-RateLimit-Reset=7")
    assert got.limit == (3, 1, 7)


def test_ours_replace_laxer_headers_of_the_application(gateway):
    got = own(gateway, "lax", "X-RateLimit-Limit=900",
              "X-RateLimit-Remaining=899", "X-RateLimit-Reset=7")
    assert got.limit == (50, 49, 100)


def test_B44_a_retry_after_of_the_application_stays(gateway):
    got = own(gateway, "b44", "Retry-After=17", "Status=503")
    assert got.header("retry-after") == "17"
    assert got.limit == (50, 49, 100)


def test_no_personal_numbers_on_what_caches_may_share(gateway):
    got = own(gateway, "public", "Cache-Control=public%2C max-age=300")
    assert "public" in got.header("cache-control")
    assert got.limit == (None, None, None)


def test_no_headers_where_no_limit_applies(gateway):
    got = gateway.ask("/ok.php")
    assert got.status == 200
    assert got.limit == (None, None, None)


def test_what_passed_and_can_not_be_served_carries_the_headers(farm):
    gateway = farm.gateway({
        "store": MEMORY,
        "limit all": by_key("5/100s"),
        "backend never": {**fastcgi(farm.application()), "path": "/never"},
    })
    got = gateway.ask("/nowhere", headers=key("a"))
    assert got.status == 404
    assert got.limit == (5, 4, 100)
    assert got.all("retry-after") == []
    assert gateway.ask("/nowhere", headers=key("a")).limit[1] == 3
