"""[response]: the families of rate-limit headers, and whose are sent."""

import time

import pytest

from harness.deadline import Deadline
from harness.gateway import APPS
from harness.recipes import MEMORY, by_key, fastcgi, key

LIMITS = {
    "site": by_key("100/1m", path="/*"),
    "login": by_key("5/10s, 50/1h", path="/login"),
    "bucket": by_key("3/1s burst 10", "token_bucket", path="/bucket"),
    "slow": by_key("1/1h burst 10", "token_bucket", path="/slow"),
    "closed": by_key("deny", path="/closed"),
}
X = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"]
DRAFT_03 = ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"]
DRAFT_11 = ["ratelimit-policy", "ratelimit"]


class Site:
    """A gateway whose [response] each test sets anew."""

    def __init__(self, farm):
        self.php = farm.php(children=2)
        self.gateway = farm.gateway(self.config({}))

    def config(self, response, **sections):
        return {
            "store": MEMORY,
            **{"limit " + name: limit for name, limit in LIMITS.items()},
            "backend default": fastcgi(self.php),
            "response": response,
            **sections,
        }

    def respond(self, **response):
        mark = self.gateway.reload(self.config(response))
        self.gateway.log.wait_for("reloaded", 10.0, mark)

    def ask(self, uri, who, script="/ok.php", **kwargs):
        headers = {**key(who), **kwargs.pop("headers", {})}
        return self.gateway.ask(
            uri, headers=headers, SCRIPT_FILENAME=APPS + script, **kwargs)

    def refused(self, uri, who, **kwargs):
        for _ in range(12):
            got = self.ask(uri, who, **kwargs)
            if got.status != 200:
                return got
        raise AssertionError("never refused")


@pytest.fixture(scope="module")
def site(shared):
    return Site(shared)


def families(got):
    return [name for name, _ in got.headers if "ratelimit" in name]


@pytest.mark.parametrize("value, names", [
    ("x-ratelimit", X),
    ("draft-03", DRAFT_03),
    ("draft-11", DRAFT_11),
    ("draft-11, x-ratelimit, draft-03", X + DRAFT_03 + DRAFT_11),
    ("none", []),
])
def test_B49_families_are_switched_separately(site, value, names):
    site.respond(headers=value)
    assert families(site.ask("/", value)) == names
    assert families(site.ask("/", value, method="HEAD")) == names
    got = site.refused("/login", value)
    assert got.status == 429
    assert families(got) == names
    assert got.header("retry-after")


def test_headers_on_denied(site):
    site.respond(headers_on="denied")
    assert families(site.ask("/login", "denied")) == []
    assert families(site.refused("/login", "denied")) == X


def test_draft_11_lists_all_limits_in_file_order(site):
    site.respond(headers="draft-11")
    got = site.ask("/login", "policies")
    assert got.header("ratelimit-policy") == (
        '"site";q=100;w=60, "login-10s";q=5;w=10, "login-1h";q=50;w=3600')
    assert got.header("ratelimit") == '"login-10s";r=4;t=10'
    got = site.ask("/bucket", "policies")
    assert got.header("ratelimit-policy") == (
        '"site";q=100;w=60, "bucket";q=10;w=4')
    assert got.header("ratelimit") == '"bucket";r=9;t=3'


def test_draft_11_of_what_never_passes(site):
    site.respond(headers="draft-11")
    got = site.ask("/closed", "never")
    assert got.status == 429
    assert got.header("ratelimit-policy") == '"closed";q=0'
    assert got.header("ratelimit") == '"closed";r=0'


def test_B50_what_is_left_is_told_with_the_time_it_is_for(site):
    """r=9;t=1 would invite 9 requests a second under 1 an hour."""
    site.respond(headers="draft-11")
    for left in range(9, 0, -1):
        assert site.ask("/slow", "b50").header("ratelimit") == (
            '"slow";r=%d;t=%d' % (left, left * 3600))
    assert site.ask("/slow", "b50").header("ratelimit") == '"slow";r=0;t=3600'


def test_B41_the_wait_is_that_of_the_shared_count(farm):
    redis = farm.redis()
    php = farm.php(children=2)
    first, second = [farm.gateway({
        "store": {"address": redis.address, "timeout": "1s"},
        "limit a": by_key("2/100s"),
        "response": {"headers": "x-ratelimit, draft-11"},
        "backend default": fastcgi(php)}) for _ in range(2)]
    told = []
    for gateway in (first, second, first, second):
        got = gateway.ask("/ok.php", headers=key("b41"))
        told.append((got.status, got.header("ratelimit").split(";")[1]))
    assert told == [(200, "r=1"), (200, "r=0"), (429, "r=0"), (429, "r=0")]
    assert 98 <= int(got.header("retry-after")) <= 100
    assert 98 <= got.limit[2] <= 100


def test_draft_03(site):
    site.respond(headers="draft-03")
    got = site.ask("/", "03")
    assert got.header("ratelimit-limit") == "100, 100;w=60"
    assert got.header("ratelimit-remaining") == "99"
    assert got.header("ratelimit-reset") == "60"


def test_B48_reset_as_a_moment(site):
    site.respond(reset="epoch", headers="x-ratelimit, draft-03")
    before = time.time()
    got = site.ask("/", "epoch")
    after = time.time()
    assert before + 60 <= int(got.header("x-ratelimit-reset")) < after + 61
    assert got.header("ratelimit-reset") == "60"


@pytest.mark.parametrize("store", ["memory", "redis"])
def test_a_moment_is_the_end_of_the_window_exactly(farm, store):
    """Not the second after it, as it would be by a later look at a clock."""
    address = MEMORY if store == "memory" else {
        "address": farm.redis().address, "timeout": "5s"}
    gateway = farm.gateway({
        "store": address,
        "limit a": {"rate": "9/1s", "key": "global", "align": "epoch",
                    "algorithm": "fixed_window"},
        "response": {"reset": "epoch"},
        "backend default": fastcgi(farm.application(
            lambda request: request.answer("ok")))})
    told = []
    deadline = Deadline(60, "five in their second")
    while len(told) < 5:
        deadline.check()
        before = time.time()
        got = gateway.ask("/")
        after = time.time()
        # The same second for all clocks there are.
        if got.status == 200 and int(before - 0.001) == int(after + 0.001):
            told.append(got.limit[2] - int(before))
    assert told == [1] * 5


def own(site, who, *lines):
    return site.ask("/own.php?" + "&".join(lines), who, "/own.php")


def test_no_mixture_with_the_applications_headers(site):
    site.respond(headers="draft-11, x-ratelimit")
    got = own(site, "mix", "X-RateLimit-Remaining=3", "X-RateLimit-Used=97")
    assert families(got) == ["x-ratelimit-remaining", "x-ratelimit-used"]
    got = own(site, "mix", "RateLimit=%22b%22%3Br%3D100",
              "X-RateLimit-Used=97")
    assert families(got) == X + DRAFT_11
    assert got.header("ratelimit") == '"site";r=98;t=60'
    got = own(site, "mix", "RateLimit=%22b%22%3Br%3D1")
    assert got.headers.count(("ratelimit", '"b";r=1')) == 1
    assert families(got) == ["ratelimit"]


def test_nothing_personal_on_what_caches_may_share(site):
    site.respond(headers="draft-11, x-ratelimit, draft-03")
    got = own(site, "public", "Cache-Control=s-maxage%3D60")
    assert got.header("cache-control") == "s-maxage=60"
    assert families(got) == []


def test_a_redirect_carries_them(site):
    site.respond()
    got = own(site, "redirect", "Location=/elsewhere")
    assert got.status == 302
    assert families(got) == X
