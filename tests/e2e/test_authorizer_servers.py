"""lighttpd and Apache ask Sluice, as their authorizer, before they serve."""

import hashlib
import json

import pytest

from harness import fcgi, process
from harness.recipes import MEMORY, by_key, fastcgi, key
from harness.web import fetch

BODY = bytes(range(256)) * 4096  # 1 MiB
DIGEST = hashlib.sha256(BODY).hexdigest()


@pytest.fixture(scope="module")
def php(shared):
    return shared.php(children=2)


@pytest.fixture(scope="module")
def gateway(shared):
    """mod_authnz_fcgi knows no unix sockets."""
    return shared.gateway({
        "gateway": {"roles": "authorizer"},
        "store": MEMORY,
        "limit keys": by_key("2/1h", message="Not so often."),
    }, listen=("127.0.0.1", process.free_port()))


@pytest.fixture(scope="module")
def lighttpd(shared, gateway, php):
    return shared.lighttpd(php.address, authorizer=gateway.address)


@pytest.fixture(scope="module")
def streaming(shared, gateway, php):
    return shared.lighttpd(php.address, authorizer=gateway.address, stream=1,
                           name="streaming")


@pytest.fixture(scope="module")
def apache(shared, gateway, php):
    return shared.apache(php.address, authorizer=gateway.address)


@pytest.fixture(params=["lighttpd", "streaming", "apache"])
def server(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def name(request):
    """A key of this test's own."""
    return key(request.node.name)


def variables(environment):
    return {n: v for n, v in environment.items() if n.startswith("RATELIMIT_")}


def says(remaining):
    return {"RATELIMIT_LIMIT": "2", "RATELIMIT_REMAINING": str(remaining),
            "RATELIMIT_RESET": "3600"}


def asked(gateway, work):
    """How often the gateway was asked during work()."""
    mark = gateway.log.mark()
    work()
    with gateway.connect() as conn:  # its line is the last
        conn.send(fcgi.head(fcgi.env("/last"), role=fcgi.AUTHORIZER))
        conn.response()
    gateway.log.wait_for("request", since=mark, path="/last")
    return len(gateway.log.find("request", mark)) - 1


def test_17_allowed(server, name):
    """The application has the numbers, and nobody else."""
    for remaining in (1, 0):
        got = fetch(server, "/env.php", headers=name)
        assert got.status == 200
        assert got.limit == (None, None, None)
        assert not [h for h in got.headers if "ratelimit" in h[0].lower()]
        assert variables(json.loads(got.body)) == says(remaining)


def test_nothing_to_say(server):
    got = fetch(server, "/env.php", headers={"Ratelimit-Limit": "9"})
    assert got.status == 200
    assert variables(json.loads(got.body)) == {}


def test_refused(server, name):
    for _ in range(2):
        assert fetch(server, "/ok.php", headers=name).status == 200
    got = fetch(server, "/ok.php", headers=name)
    assert got.status == 429
    assert got.header("retry-after") == "3600"
    assert got.limit == (2, 0, 3600)
    assert got.header("cache-control") == "no-store"
    assert got.body == (b"429 Too Many Requests\nNot so often.\n"
                        b"Try again in 3600 s.\n")


def test_head(server, name):
    for _ in range(2):
        got = fetch(server, "/ok.php", "HEAD", headers=name)
        assert (got.status, got.body) == (200, b"")
    got = fetch(server, "/ok.php", "HEAD", headers=name)
    assert (got.status, got.body) == (429, b"")
    assert got.header("retry-after") == "3600"


def test_files_count_too(server, name):
    for _ in range(2):
        got = fetch(server, "/plain.txt", headers=name)
        assert (got.status, got.body) == (200, b"Not a script.\n")
    assert fetch(server, "/plain.txt", headers=name).status == 429
    assert fetch(server, "/missing.txt", headers=name).status == 429


def test_52_a_body_is_for_the_application(server, name):
    for _ in range(2):
        got = fetch(server, "/sha.php", "POST", BODY, name)
        assert got.status == 200
        assert got.body.decode().split() == [str(len(BODY)), DIGEST]
    got = fetch(server, "/sha.php", "POST", b"small", name)
    assert got.status == 429


def test_a_body_of_unknown_length(lighttpd, name):
    got = fetch(lighttpd, "/sha.php", "POST", iter([BODY, BODY]), name,
                chunked=True)
    assert got.body.decode().split() == [
        str(2 * len(BODY)), hashlib.sha256(BODY + BODY).hexdigest()]


def test_cgi(lighttpd, name):
    """mod_cgi: neither the variables nor the body need FastCGI."""
    got = fetch(lighttpd, "/env.cgi", headers=name)
    lines = dict(line.split("=", 1) for line in got.body.decode().split("\n")
                 if "=" in line)
    assert variables(lines) == says(1)
    got = fetch(lighttpd, "/sha.cgi", "POST", BODY, name)
    assert got.body.decode().split()[:2] == [str(len(BODY)), DIGEST]
    assert fetch(lighttpd, "/env.cgi", headers=name).status == 429


def test_accept(server, name):
    """Apache calls a body text/html, whatever it is."""
    for _ in range(3):
        got = fetch(server, "/plain.txt",
                    headers={"Accept": "application/json", **name})
    assert got.status == 429
    assert json.loads(got.body)["detail"] == "Not so often."
    kind = ("text/html" if server.name == "apache"
            else "application/problem+json")
    assert got.header("content-type").split(";")[0] == kind


@pytest.mark.parametrize("uri", [
    "/env.php", "/env.php/info/path", "/plain.txt", "/nothing", "/rewritten"])
def test_asked_once(server, gateway, uri):
    assert asked(gateway, lambda: fetch(server, uri)) == 1


def test_37_by_what_was_asked_for(lighttpd, gateway, name):
    """Not by what lighttpd makes of it."""
    mark = gateway.log.mark()
    got = fetch(lighttpd, "/rewritten/x?y", headers=name)
    assert variables(json.loads(got.body)) == says(1)
    gateway.log.wait_for("request", since=mark, path="/rewritten/x")


def test_without_sluice(farm, php):
    """What it can not ask, a web server does not serve."""
    address = ("127.0.0.1", process.free_port())
    lighttpd = farm.lighttpd(php.address, authorizer=address)
    assert fetch(lighttpd, "/plain.txt").status == 503
    apache = farm.apache(php.address, authorizer=address)
    assert fetch(apache, "/plain.txt").status == 500


def test_apache_gives_everybody_a_name(apache):
    got = json.loads(fetch(apache, "/env.php").body)
    assert got["REMOTE_USER"] == "anybody"


def test_both_roles_for_one_request(farm, php):
    """lighttpd asks Sluice about everything, and passes .php through it."""
    host, port = "127.0.0.1", process.free_port()
    unix = farm.place / "both.s"
    farm.gateway({
        "gateway": {"roles": "responder, authorizer", "socket_mode": "0666",
                    "listen": "unix:%s, %s:%d" % (unix, host, port)},
        "store": MEMORY,
        "limit all": by_key("3/1h", role="authorizer"),
        "limit scripts": by_key("1/1h", role="responder"),
        "backend default": fastcgi(php),
    })
    server = farm.lighttpd(unix, authorizer=(host, port))
    got = fetch(server, "/env.php", headers=key("a"))
    assert (got.status, got.limit) == (200, (1, 0, 3600))
    assert variables(json.loads(got.body)) == {
        "RATELIMIT_LIMIT": "3", "RATELIMIT_REMAINING": "2",
        "RATELIMIT_RESET": "3600"}
    got = fetch(server, "/ok.php", "POST", BODY, key("a"))
    assert (got.status, got.limit) == (429, (1, 0, 3600))
    assert fetch(server, "/plain.txt", headers=key("a")).status == 200
    got = fetch(server, "/plain.txt", headers=key("a"))
    assert (got.status, got.limit) == (429, (3, 0, 3600))
