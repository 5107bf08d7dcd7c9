"""Whose address a request comes from: proxies that are trusted, and not."""

import pytest

from harness import fcgi
from harness.deadline import until
from harness.gateway import APPS
from harness.recipes import MEMORY, fastcgi, fixed

PROXY = "10.0.0.1"


def start(farm, php, gateway=None, **limit):
    return farm.gateway({
        "gateway": dict(gateway or {}),
        "store": MEMORY,
        "limit all": fixed("3/1h", **limit),
        "backend default": fastcgi(php),
    })


@pytest.fixture(scope="module")
def php(shared):
    return shared.php(children=2)


@pytest.fixture(scope="module")
def listed(shared, php):
    return start(shared, php, {"client_address": "x-forwarded-for",
                               "trusted_proxies": "10.0.0.0/8, fd00::/8"})


@pytest.fixture(scope="module")
def rfc7239(shared, php):
    return start(shared, php, {"client_address": "forwarded",
                               "trusted_proxies": "10.0.0.0/8, fd00::/8"})


@pytest.fixture(scope="module")
def named(shared, php):
    return start(shared, php, {"client_address": "header:X-Real-IP",
                               "trusted_proxies": PROXY})


def ask(gateway, client=PROXY, **headers):
    return gateway.ask(
        "/", client=client, SCRIPT_FILENAME=APPS + "/ok.php",
        headers={n.replace("_", "-"): v for n, v in headers.items()})


def whose(gateway, mark):
    """The client of the one request since, as the log says."""
    def lines():
        return (gateway.log.find("request", mark)
                + gateway.log.find("refused", mark))

    until(lines, what="the request's line")
    return lines()[0]["client"]


def asked_as(gateway, client=PROXY, **headers):
    mark = gateway.log.mark()
    ask(gateway, client, **headers)
    return whose(gateway, mark)


def test_each_client_behind_a_proxy_has_its_count(listed):
    for n in range(5):
        forwarded = "192.0.2.%d" % (10 + n)
        assert ask(listed, X_Forwarded_For=forwarded).limit[1] == 2
        assert ask(listed, X_Forwarded_For=forwarded).limit[1] == 1


def test_B59_what_a_client_writes_before_it_is_no_other_client(listed):
    for n in range(5):
        got = ask(listed, X_Forwarded_For="198.51.100.%d, 192.0.2.30" % n)
        assert got.status == (200 if n < 3 else 429)


@pytest.mark.parametrize("junk", [
    "unknown", "_hidden", "", "\"", "192.0.2.1;", ",,", "127.0.0.1",
    "10.0.0.5", "\\", "for=\"", "\u00e4"])
def test_B59_junk_to_the_left_is_not_read(listed, rfc7239, junk):
    assert asked_as(listed, X_Forwarded_For=junk + ", 192.0.2.31, 10.1.1.1"
                    ) == "192.0.2.31"
    assert asked_as(rfc7239, Forwarded=junk + ", for=192.0.2.31, for=10.1.1.1"
                    ) == "192.0.2.31"


def test_B59_a_peer_that_is_no_proxy_is_not_believed(listed, rfc7239, named):
    for n in range(5):
        spoofed = "198.51.100.%d" % n
        for gateway in (listed, rfc7239, named):
            got = ask(gateway, "192.0.2.40", X_Forwarded_For=spoofed,
                      Forwarded="for=" + spoofed, X_Real_IP=spoofed)
            assert got.status == (200 if n < 3 else 429)


@pytest.mark.parametrize("header, client", [
    ("192.0.2.50, unknown", PROXY),
    ("192.0.2.50, unknown, 10.3.3.3", "10.3.3.3"),
    ("192.0.2.50, 10.3.3.3, fd00::1", "192.0.2.50"),
    ("10.4.4.4, 10.3.3.3", "10.4.4.4"),
    ("192.0.2.50:4711", "192.0.2.50"),
    ("[2001:db8::5]:4711", "2001:db8::5"),
    ("::ffff:192.0.2.50", "192.0.2.50"),
    ("", PROXY)])
def test_B59_the_walk_stops(listed, header, client):
    assert asked_as(listed, X_Forwarded_For=header) == client


@pytest.mark.parametrize("header, client", [
    ("for=192.0.2.51;proto=https, for=10.2.2.2", "192.0.2.51"),
    ("for=\"[2001:db8::6]:1\"", "2001:db8::6"),
    ("for=192.0.2.51, for=unknown", PROXY),
    ("for=192.0.2.51, proto=http", PROXY),
    ("192.0.2.51", PROXY)])
def test_rfc7239(rfc7239, header, client):
    assert asked_as(rfc7239, Forwarded=header,
                    X_Forwarded_For="198.51.100.9") == client


def test_a_header_of_ones_own_choice(named):
    assert asked_as(named, X_Real_IP="192.0.2.60") == "192.0.2.60"
    assert asked_as(named, X_Forwarded_For="192.0.2.61") == PROXY
    assert asked_as(named, client="10.0.0.2", X_Real_IP="192.0.2.62"
                    ) == "10.0.0.2"


@pytest.mark.parametrize("second", ["198.51.100.1", "192.0.2.70"])
def test_40_a_header_that_comes_twice_chooses_no_client(listed, second):
    """X_Forwarded_For beside X-Forwarded-For, folded by the web server."""
    items = fcgi.env("/", client=PROXY, SCRIPT_FILENAME=APPS + "/ok.php",
                     headers={"X-Forwarded-For": "192.0.2.70"})
    mark = listed.log.mark()
    with listed.connect() as conn:
        assert conn.ask(
            items + [("HTTP_X_FORWARDED_FOR", second)]).status in (200, 429)
    assert whose(listed, mark) == PROXY


def test_40_nor_does_it_make_the_proxy_of_a_client(farm):
    """What is allowed to the proxy itself is not had by a header."""
    gateway = farm.gateway({
        "gateway": {"client_address": "x-forwarded-for",
                    "trusted_proxies": "10.0.0.0/8"},
        "store": MEMORY,
        "limit all": fixed("2/1h", except_client="10.0.0.0/8"),
        "backend default": {"type": "answer"},
    })
    items = fcgi.env("/", client=PROXY,
                     headers={"X-Forwarded-For": "192.0.2.70"})
    statuses = []
    for n in range(4):
        with gateway.connect() as conn:
            statuses.append(conn.ask(items + [
                ("HTTP_X_FORWARDED_FOR", "198.51.100.%d" % n)]).status)
    assert statuses == [204, 204, 429, 429]
    assert gateway.ask("/", client=PROXY).status == 204


def test_B62_forwarded_ipv6_is_cut_to_its_64(listed):
    for n, left in enumerate((2, 1, 0)):
        got = ask(listed, X_Forwarded_For="2001:db8:9:1:%d::%d" % (n, n))
        assert got.limit[1] == left
    assert ask(listed, X_Forwarded_For="2001:db8:9:1:ffff::").status == 429
    assert ask(listed, X_Forwarded_For="2001:db8:9:2::1").limit[1] == 2


def test_B62_a_limit_of_a_site_by_its_own_prefixes(farm, php):
    gateway = start(farm, php, key="client/24,48")
    assert ask(gateway, "2001:db8:5:1::1").limit[1] == 2
    assert ask(gateway, "2001:db8:5:2::1").limit[1] == 1
    assert ask(gateway, "2001:db8:6:2::1").limit[1] == 2
    assert ask(gateway, "198.51.100.1").limit[1] == 2
    assert ask(gateway, "198.51.100.254").limit[1] == 1
    assert ask(gateway, "::ffff:198.51.100.9").limit[1] == 0
    assert ask(gateway, "198.51.101.1").limit[1] == 2


def test_client_and_except_client_are_of_who_is_forwarded_for(farm, php):
    gateway = start(
        farm, php, {"client_address": "x-forwarded-for",
                    "trusted_proxies": PROXY},
        client="192.0.2.0/24", except_client="192.0.2.9", key="global")
    assert ask(gateway).limit == (None, None, None)
    assert ask(gateway, X_Forwarded_For="192.0.2.1").limit[1] == 2
    assert ask(gateway, X_Forwarded_For="192.0.2.9").limit[1] is None
    assert ask(gateway, X_Forwarded_For="198.51.100.1").limit[1] is None


def test_a_reload_changes_who_is_trusted(farm, php):
    config = {
        "store": MEMORY,
        "limit all": fixed("3/1h"),
        "backend default": fastcgi(php),
    }
    gateway = farm.gateway(config)
    assert asked_as(gateway, X_Forwarded_For="192.0.2.1") == PROXY
    config["gateway"] = {"client_address": "x-forwarded-for",
                         "trusted_proxies": PROXY}
    gateway.log.wait_for("reloaded", since=gateway.reload(config))
    assert asked_as(gateway, X_Forwarded_For="192.0.2.1") == "192.0.2.1"


def test_B61_a_proxy_nobody_named_is_told_of_once(farm, php):
    gateway = start(farm, php, path="/nowhere")
    for n in range(60):
        ask(gateway, "10.0.0.%d" % (n % 2), X_Forwarded_For="192.0.2.%d" % n)
    gateway.log.wait_for("proxy_not_trusted")
    found = gateway.log.find("proxy_not_trusted")
    assert len(found) == 1
    assert found[0]["remote_addr"] in ("10.0.0.0", "10.0.0.1")
    assert "trusted_proxies" in found[0]["msg"]


def test_a_proxy_that_is_named_is_not_told_of(farm, php):
    gateway = start(farm, php, {"trusted_proxies": "10.9.9.9"},
                    path="/nowhere")
    for n in range(30):
        ask(gateway, X_Forwarded_For="192.0.2.%d" % n)
    assert gateway.log.find("proxy_not_trusted") == []
