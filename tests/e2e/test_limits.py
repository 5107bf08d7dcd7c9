"""Which limits a request meets, and whose count it is."""

import pytest

from harness import fcgi
from harness.gateway import APPS
from harness.recipes import MEMORY, by_key, fastcgi, fixed

LIMITS = {
    # all-or-nothing
    "first": by_key("10/1h", name="X-A"),
    "second": by_key("2/1h", name="X-B"),
    # matching
    "login": fixed("1000/1h", path="/login, /%6Citeral", key="global"),
    "shop": fixed("200/1h", path="/shop/*", except_path="/shop/free/*",
                  key="global"),
    "posts": fixed("300/1h", path="/posts", method="POST", key="global"),
    "gets": fixed("301/1h", path="/gets", method="GET", key="global"),
    "hosts": fixed("302/1h", host="*.example.org", path="/hosts",
                   key="global"),
    "nets": fixed("303/1h", client="203.0.113.0/24, 2001:db8:1::/48",
                  path="/nets", key="global"),
    "regex": fixed("304/1h", path="~^/item/[0-9]+$", key="global"),
    # keys
    "client": fixed("3/1h", path="/client"),
    "pair": fixed("3/1h", path="/pair", key="client+header:X-P",
                  missing_key="skip"),
    "either": fixed("3/1h", path="/either", key="header:X-E | client"),
    "needed": fixed("3/1h", path="/needed", key="header:X-N",
                    missing_key="deny"),
    "twins": fixed("1/1h, 5/2h", path="/twins", key="global"),
    "denied": {"rate": "deny", "path": "/denied", "key": "global"},
    "free": {"rate": "unlimited", "path": "/free", "key": "global"},
}


@pytest.fixture(scope="module")
def gateway(shared):
    return shared.gateway({
        "store": MEMORY,
        **{"limit " + name: limit for name, limit in LIMITS.items()},
        "backend default": fastcgi(shared.php(children=2)),
    })


def ask(gateway, uri, **kwargs):
    kwargs.setdefault("SCRIPT_FILENAME", APPS + "/ok.php")
    return gateway.ask(uri, **kwargs)


def test_several_limits_are_all_or_nothing(gateway):
    both = {"X-A": "aon", "X-B": "aon"}
    assert ask(gateway, "/", headers=both).limit[:2] == (2, 1)
    assert ask(gateway, "/", headers=both).limit[:2] == (2, 0)
    for _ in range(5):
        got = ask(gateway, "/", headers=both)
        assert (got.status, got.limit[0]) == (429, 2)
    # Only two were ever taken from the first limit.
    assert ask(gateway, "/", headers={"X-A": "aon"}).limit[:2] == (10, 7)


def test_headers_speak_for_the_smallest_remaining(gateway):
    for n in range(8):
        assert ask(gateway, "/", headers={"X-A": "min"}).limit[0] == 10
    got = ask(gateway, "/", headers={"X-A": "min", "X-B": "min"})
    assert got.limit[:2] in ((10, 1), (2, 1))
    got = ask(gateway, "/", headers={"X-A": "min", "X-B": "min2"})
    assert got.limit[:2] == (10, 0)


def test_two_rates_of_one_limit_each_count(gateway):
    got = ask(gateway, "/twins")
    assert got.limit[:2] == (1, 0)
    got = ask(gateway, "/twins")
    assert got.status == 429
    assert got.limit[:2] == (1, 0)


def test_B34_deny_and_unlimited_are_words(gateway):
    assert ask(gateway, "/denied").status == 429
    got = ask(gateway, "/free")
    assert (got.status, got.limit) == (200, (None, None, None))


EVASIONS = [
    {"uri": "/login"},
    {"uri": "//login"},
    {"uri": "/%6cogin"},
    {"uri": "/%6Cogin?x=/y"},
    {"uri": "/x/../login"},
    {"uri": "/./login"},
    {"uri": "/../../login"},
    {"uri": "/x/%2e%2e/login"},
    {"uri": "/x%2f..%2flogin"},
    {"uri": "http://localhost/login"},
    {"uri": "/index.php/login", "SCRIPT_NAME": "/login"},
    {"uri": "/index.php/login", "SCRIPT_NAME": "/index.php",
     "PATH_INFO": "/login"},
    {"uri": "/rewritten", "SCRIPT_NAME": "", "PATH_INFO": "/login"},
    {"uri": "/rewritten", "SCRIPT_NAME": "/", "PATH_INFO": "/login"},
]


@pytest.mark.parametrize("how", EVASIONS, ids=lambda how: how["uri"])
def test_path_evasion(gateway, how):
    how = dict(how)
    before = ask(gateway, "/login").limit
    got = ask(gateway, how.pop("uri"), **how)
    assert got.limit[0] == 1000
    assert got.limit[1] == before[1] - 1


@pytest.mark.parametrize("uri", ["/login/", "/logins", "/LOGIN", "/%256cogin",
                                 "/?/login", "/a/login"])
def test_other_paths_are_other_paths(gateway, uri):
    assert ask(gateway, uri).limit == (None, None, None)


def test_except_path_exempts_only_if_both_forms_match(gateway):
    free = "/shop/free/x"
    assert ask(gateway, free).limit[0] is None
    assert ask(gateway, "/shop/x").limit[0] == 200
    assert ask(gateway, free, SCRIPT_NAME="/shop/x").limit[0] == 200
    assert ask(gateway, "/shop/x", SCRIPT_NAME=free).limit[0] == 200
    assert ask(gateway, "/shop/free/../x").limit[0] == 200


def test_method_get_includes_head(gateway):
    assert ask(gateway, "/gets", method="GET").limit[:2] == (301, 300)
    assert ask(gateway, "/gets", method="HEAD").limit[:2] == (301, 299)
    assert ask(gateway, "/gets", method="POST").limit[0] is None
    assert ask(gateway, "/posts", method="GET").limit[0] is None
    assert ask(gateway, "/posts", method="POST").limit[0] == 300


@pytest.mark.parametrize("host, limit", [
    ("www.example.org", 302), ("WWW.Example.ORG", 302),
    ("www.example.org:8080", 302), ("example.org", None),
    ("www.example.org.evil.net", None)])
def test_host_is_matched_in_lower_case_without_port(gateway, host, limit):
    got = ask(gateway, "/hosts", headers={"Host": host})
    assert got.limit[0] == limit


@pytest.mark.parametrize("client, limit", [
    ("203.0.113.9", 303), ("::ffff:203.0.113.9", 303), ("203.0.114.9", None),
    ("2001:db8:1:2::3", 303), ("2001:db8:2::3", None)])
def test_client_is_matched_by_network(gateway, client, limit):
    assert ask(gateway, "/nets", client=client).limit[0] == limit


def test_regex_path(gateway):
    assert ask(gateway, "/item/12").limit[0] == 304
    assert ask(gateway, "/item/12/").limit[0] is None
    assert ask(gateway, "/item/x").limit[0] is None


SAME = [
    ("/client", "192.0.2.7", "::ffff:192.0.2.7"),
    ("/client", "2001:db8:a:b::1", "2001:db8:a:b:ffff::2"),
    ("/client", "2001:db8:a:c::1", "2001:DB8:A:C:0:0:0:1"),
]
DIFFERENT = [
    ("/client", "198.18.0.1", "198.18.0.2"),
    ("/client", "2001:db8:d:1::1", "2001:db8:d:2::1"),
]


@pytest.mark.parametrize("uri, one, two", SAME)
def test_B62_one_client(gateway, uri, one, two):
    assert ask(gateway, uri, client=one).limit[:2] == (3, 2)
    assert ask(gateway, uri, client=two).limit[:2] == (3, 1)


@pytest.mark.parametrize("uri, one, two", DIFFERENT)
def test_B62_two_clients(gateway, uri, one, two):
    assert ask(gateway, uri, client=one).limit[:2] == (3, 2)
    assert ask(gateway, uri, client=two).limit[:2] == (3, 2)


def test_B61_forwarding_headers_do_not_choose_the_client(gateway):
    for n in range(4):
        got = ask(gateway, "/client", client="192.0.2.61",
                  headers={"X-Forwarded-For": "10.0.0.%d" % n,
                           "Forwarded": "for=10.0.0.%d" % n,
                           "X-Real-IP": "10.0.0.%d" % n})
    assert got.status == 429


def test_key_of_two_parts(gateway):
    one = {"client": "192.0.2.50", "headers": {"X-P": "p"}}
    assert ask(gateway, "/pair", **one).limit[1] == 2
    assert ask(gateway, "/pair", **one).limit[1] == 1
    one["headers"] = {"X-P": "q"}
    assert ask(gateway, "/pair", **one).limit[1] == 2
    one["client"] = "192.0.2.51"
    assert ask(gateway, "/pair", **one).limit[1] == 2


def test_key_with_an_alternative(gateway):
    for n in range(3):
        got = ask(gateway, "/either", headers={"X-E": "same"},
                  client="192.0.2.%d" % (80 + n))
        assert got.limit[1] == 2 - n
    # Missing or empty: the client it is.
    assert ask(gateway, "/either", client="192.0.2.90").limit[1] == 2
    assert ask(gateway, "/either", client="192.0.2.90",
               headers={"X-E": ""}).limit[1] == 1


@pytest.mark.parametrize("headers", [{}, {"X-N": ""}], ids=["none", "empty"])
def test_B65_missing_key_deny_is_403(gateway, headers):
    for _ in range(5):
        got = ask(gateway, "/needed", headers=headers)
        assert got.status == 403
        assert got.complete
    value = "v%d" % len(headers)
    assert ask(gateway, "/needed", headers={"X-N": value}).limit[1] == 2


@pytest.mark.parametrize("headers", [{}, {"X-A": ""}], ids=["none", "empty"])
def test_B65_missing_key_skip_passes(gateway, headers):
    for _ in range(12):
        got = ask(gateway, "/", headers=headers)
        assert (got.status, got.limit[0]) == (200, None)


@pytest.mark.parametrize("first, second", [
    ("twice", "other"), ("other", "twice"), ("", "twice")])
def test_40_a_header_of_two_values_chooses_no_count(gateway, first, second):
    """X_B beside X-B, folded into one name by the web server: applications
    differ in which one they take, so neither request is served."""
    items = fcgi.env("/", headers={"X-B": first},
                     SCRIPT_FILENAME=APPS + "/ok.php")
    for _ in range(4):
        with gateway.connect() as conn:
            got = conn.ask(items + [("HTTP_X_B", second)])
            assert (got.status, got.complete) == (400, True)
            assert got.all("retry-after") == []
    with gateway.connect() as conn:
        assert conn.ask(items + [("HTTP_X_B", first)]).status == 200


def test_scope_local_counts_in_each_process(farm):
    php = farm.php(children=2)
    config = {
        "limit guard": fixed("3/1h", scope="local"),
        "backend default": fastcgi(php),
    }
    for gateway in [farm.gateway(config) for _ in range(2)]:
        statuses = [ask(gateway, "/").status for _ in range(5)]
        assert statuses == [200, 200, 200, 429, 429]


def test_local_units_come_back_if_the_shared_limit_refuses(farm):
    gateway = farm.gateway({
        "store": MEMORY,
        "limit guard": fixed("5/1h", scope="local", key="global"),
        "limit shared": by_key("1/1h"),
        "backend default": fastcgi(farm.php(children=2)),
    })
    headers = {"X-Key": "one"}
    assert ask(gateway, "/", headers=headers).status == 200
    for _ in range(10):
        got = ask(gateway, "/", headers=headers)
        assert (got.status, got.limit[0]) == (429, 1)
    assert ask(gateway, "/").limit[:2] == (5, 3)


def test_gateway_prefixes_are_configured(farm):
    gateway = farm.gateway({
        "gateway": {"ipv4_prefix": 24, "ipv6_prefix": 48},
        "store": MEMORY,
        "limit all": fixed("3/1h"),
        "backend default": fastcgi(farm.php(children=2)),
    })
    assert ask(gateway, "/", client="192.0.2.1").limit[1] == 2
    assert ask(gateway, "/", client="192.0.2.255").limit[1] == 1
    assert ask(gateway, "/", client="2001:db8:5:1::1").limit[1] == 2
    assert ask(gateway, "/", client="2001:db8:5:2::1").limit[1] == 1
    assert ask(gateway, "/", client="192.0.3.1").limit[1] == 2
    assert ask(gateway, "/", client="2001:db8:6::1").limit[1] == 2
