"""nginx asks Sluice by auth_request (type = answer) before it serves.

It takes 2xx, 401 and 403, and calls anything else an error of its own; so
the denial is 403, and its configuration makes a 429 of that.
"""

import hashlib
import json

import pytest

from harness.recipes import MEMORY, by_key, fixed, key, together
from harness.web import fetch

BODY = bytes(range(256)) * 4096  # 1 MiB


@pytest.fixture(scope="module")
def php(shared):
    return shared.php(children=2)


def config(denial="403", **limits):
    return {
        "store": MEMORY,
        "limit keys": by_key("2/1h", message="Not so often."),
        "limit signed": {"rate": "9/1h", "path": "/signed*",
                         "key": "header:X-Sign", "missing_key": "deny"},
        "limit queries": fixed("2/1h", key="query:who", missing_key="skip"),
        "backend default": {"type": "answer", "denial": denial},
        **limits,
    }


@pytest.fixture(scope="module")
def gateway(shared):
    return shared.gateway(config())


@pytest.fixture(scope="module")
def nginx(shared, gateway, php):
    return shared.nginx(gateway.address, application=php.address)


@pytest.fixture
def name(request):
    """A key of this test's own."""
    return key(request.node.name)


def test_allowed(nginx, name):
    """With the numbers, whatever is served: a script, a file, nothing."""
    got = fetch(nginx, "/ok.php", headers=name)
    assert (got.status, got.limit) == (200, (2, 1, 3600))
    assert got.header("retry-after") is None
    got = fetch(nginx, "/plain.txt", headers=name)
    assert (got.status, got.limit) == (200, (2, 0, 3600))
    assert got.body == b"Not a script.\n"
    got = fetch(nginx, "/nothing", headers=key("another"))
    assert (got.status, got.limit) == (404, (2, 1, 3600))


def test_nothing_to_say(nginx):
    got = fetch(nginx, "/ok.php")
    assert (got.status, got.limit) == (200, (None, None, None))


@pytest.mark.parametrize("uri", ["/ok.php", "/plain.txt", "/nothing"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_refused(nginx, name, uri, method):
    """The page is nginx's, the headers are all there."""
    for _ in range(2):
        fetch(nginx, uri, headers=name)
    got = fetch(nginx, uri, method, headers=name,
                body=BODY if method == "POST" else None)
    assert (got.status, got.limit) == (429, (2, 0, 3600))
    assert got.header("retry-after") == "3600"
    assert got.header("cache-control") == "no-store"
    assert (b"429 Too Many Requests" in got.body) == (method != "HEAD")
    assert b"Not so often." not in got.body


def test_forbidden_stays_forbidden(nginx):
    """Who has no key is not told to come again."""
    got = fetch(nginx, "/signed.txt")
    assert (got.status, got.header("retry-after")) == (403, None)


def test_a_body_is_for_the_application(nginx, gateway, name):
    mark = gateway.log.mark()
    for _ in range(2):
        got = fetch(nginx, "/sha.php", "POST", BODY, name)
        assert got.body.decode().split() == [
            str(len(BODY)), hashlib.sha256(BODY).hexdigest()]
    assert fetch(nginx, "/sha.php", "POST", b"x", name).status == 429
    lines = gateway.log.find("request", mark)
    assert [line["method"] for line in lines] == ["POST"] * 2


def test_a_body_of_unknown_length(nginx, name):
    got = fetch(nginx, "/sha.php", "POST", iter([BODY, BODY]), name,
                chunked=True)
    assert got.body.decode().split() == [
        str(2 * len(BODY)), hashlib.sha256(BODY + BODY).hexdigest()]


def test_announced_and_not_sent(farm, gateway, php):
    """With all of fastcgi_params it announces a body that it keeps back."""
    lines = "location = /sluice { internal; fastcgi_pass sluice;\n%s }"
    params = ("fastcgi_param REQUEST_URI $request_uri;\n"
              "fastcgi_param REQUEST_METHOD $request_method;\n"
              "fastcgi_param CONTENT_LENGTH $content_length;\n")
    for body in ("fastcgi_pass_request_body off;\n", ""):
        server = farm.nginx(
            gateway.address, application=php.address,
            name="all" if body else "none", asking=lines % (params + body))
        for _ in range(2):
            got = fetch(server, "/sha.php", "POST", BODY)
            assert got.body.decode().split() == [
                str(len(BODY)), hashlib.sha256(BODY).hexdigest()]


def test_by_what_was_asked_for(nginx, gateway, name):
    """Not by what nginx calls the question."""
    mark = gateway.log.mark()
    fetch(nginx, "/a/../b/%63.php?x=y", headers=name)
    line = gateway.log.wait_for("request", since=mark, path="/b/c.php")
    assert (line["status"], line["client"]) == ("204", "127.0.0.1")


@pytest.mark.parametrize("uri", [
    "/plain.txt?a=b&who=%s", "/ok.php?who=%s", "/nothing?who=%s#?who=else",
    "/plain.txt?x=/y?z&who=%s"])
def test_by_the_query(nginx, request, uri):
    """That of the request: the question has none."""
    uri %= "".join(c for c in request.node.name if c.isalnum())
    for remaining in (1, 0):
        got = fetch(nginx, uri)
        assert (got.status == 429, got.limit) == (False, (2, remaining, 3600))
    assert fetch(nginx, uri).status == 429
    assert fetch(nginx, uri.replace("who=", "who=another")).status != 429
    assert fetch(nginx, "/plain.txt#?who=x").limit == (None, None, None)


def test_the_question_is_not_for_clients(nginx):
    assert fetch(nginx, "/sluice").status == 404


def test_asked_once(nginx, gateway):
    mark = gateway.log.mark()
    for uri in ("/env.php", "/plain.txt", "/nothing"):
        fetch(nginx, uri)
    fetch(nginx, "/last")
    gateway.log.wait_for("request", since=mark, path="/last")
    assert len(gateway.log.find("request", mark)) == 4


@pytest.mark.parametrize("uri", ["/front/x?y", "/front/", "/twice"])
def test_asked_once_however_it_is_served(farm, gateway, php, name, uri):
    """nginx begins anew with what it is redirected to inside."""
    nginx = farm.nginx(gateway.address, application=php.address, lines="""
location /front { try_files /none /front2$is_args$args; }
location = /front2 { rewrite ^ /env.php last; }
location /twice { try_files /none /front; }
""")
    for remaining in (1, 0):
        got = fetch(nginx, uri, headers=name)
        assert (got.status, got.limit) == (200, (2, remaining, 3600))
        assert json.loads(got.body)["REQUEST_URI"] == uri
    got = fetch(nginx, uri, headers=name)
    assert (got.status, got.limit) == (429, (2, 0, 3600))


def test_exactly_as_many_pass(nginx, name):
    answers = together(20, lambda i: fetch(nginx, "/plain.txt", headers=name))
    assert sorted(a.status for a in answers) == [200] * 2 + [429] * 18


def test_outage(farm, php):
    """Who is denied then is told when to come back, too."""
    gateway = farm.gateway({
        "store": {"address": "unix:" + farm.place / "nobody.s"},
        "limit a": fixed("1/1h"),
        "limit b": fixed("1/1h", path="/strict", on_outage="deny"),
        "backend default": {"type": "answer", "denial": "403"},
    })
    nginx = farm.nginx(gateway.address, application=php.address)
    for _ in range(3):
        got = fetch(nginx, "/plain.txt")
        assert (got.status, got.limit) == (200, (None, None, None))
    got = fetch(nginx, "/strict")
    assert (got.status, got.limit) == (429, (None, None, None))
    assert int(got.header("retry-after")) >= 1


def test_429_is_an_error_to_nginx(farm, php):
    """What denial = 403 is for."""
    gateway = farm.gateway(config("429"))
    nginx = farm.nginx(gateway.address, application=php.address)
    for status in (200, 200, 500):
        got = fetch(nginx, "/plain.txt", headers=key("a"))
        assert got.status == status
    assert "auth request unexpected status: 429" in nginx.output()


def test_without_sluice(farm, php):
    nginx = farm.nginx(farm.place / "nobody.s", application=php.address)
    assert fetch(nginx, "/plain.txt").status == 500
