"""lighttpd (mod_cgi) and Apache (mod_cgid, Action) run Sluice for scripts."""

import hashlib
import os

import pytest

from harness import cgi_servers
from harness.deadline import until
from harness.gateway import APPS
from harness.program import PATIENT, Program, signals
from harness.recipes import by_key, cgi, fixed, key
from harness.web import fetch

BODY = bytes(range(256)) * 4096  # 1 MiB


@pytest.fixture(scope="module")
def redis(shared):
    redis = shared.redis()
    os.chmod(redis.path, 0o777)  # Apache's scripts are www-data's
    return redis


@pytest.fixture(scope="module")
def root(shared):
    root = shared.place / "root"
    os.makedirs(root)
    outside = shared.place.write("outside.cgi", "#!/bin/sh\necho\n", 0o755)
    os.symlink(outside, root + "/link.cgi")
    for name in ("hello", "env", "sha", "self", "early", "download"):
        with open("%s/%s.cgi" % (APPS, name)) as f:
            shared.place.write("root/%s.cgi" % name, f.read(), 0o755)
    shared.place.write("root/deaf.cgi", "#!/bin/sh\necho\n", 0o644)
    shared.place.write("root/plain.txt", "Not a script.\n")
    return root


@pytest.fixture(scope="module")
def program(shared, redis, root):
    return Program(shared.place, {
        "store": {"address": redis.address, **PATIENT},
        "limit keys": by_key("2/1h", message="Not so often."),
        "limit denied": {"rate": "deny", "query": "denied=*"},
        "limit info": {"rate": "deny", "path": "/secret"},
        "backend default": cgi(root),
    })


@pytest.fixture(scope="module")
def lighttpd(shared, program, root):
    return shared.add(cgi_servers.Lighttpd(shared.place, program, root))


@pytest.fixture(scope="module")
def apache(shared, program, root):
    return shared.add(cgi_servers.Apache(shared.place, program, root))


@pytest.fixture(scope="module")
def virtual(shared, program, root):
    return shared.add(cgi_servers.Apache(shared.place, program, root, True))


@pytest.fixture(params=["lighttpd", "apache"])
def server(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def name(request):
    """A key of this test's own."""
    return key(request.node.name)


def says(answer):
    return dict(line.split("=", 1)
                for line in answer.body.decode().split("\n") if "=" in line)


def test_allowed_then_refused(server, name):
    for _ in range(2):
        got = fetch(server, "/hello.cgi", headers=name)
        assert (got.status, got.body) == (200, b"hello\n")
    got = fetch(server, "/hello.cgi", headers=name)
    assert got.status == 429
    assert got.header("retry-after") == "3600"
    assert got.limit == (2, 0, 3600)
    assert got.header("cache-control") == "no-store"
    assert got.header("content-type") == "text/plain; charset=utf-8"
    assert got.body == (b"429 Too Many Requests\nNot so often.\n"
                        b"Try again in 3600 s.\n")


def test_head(server, name):
    for status in (200, 200, 429):
        got = fetch(server, "/hello.cgi", "HEAD", headers=name)
        assert (got.status, got.body) == (status, b"")


def test_a_body(server, name):
    for _ in range(2):
        got = fetch(server, "/sha.cgi", "POST", BODY, name)
        assert got.body.decode().split()[:2] == [
            str(len(BODY)), hashlib.sha256(BODY).hexdigest()]
    got = fetch(server, "/sha.cgi", "POST", BODY, name)
    assert (got.status, got.limit) == (429, (2, 0, 3600))


def test_a_large_response(server, program):
    path = program.place.write("large", BODY)
    assert fetch(server, "/download.cgi?" + path).body == BODY


def test_the_process_is_the_script(server, root):
    """The web server's own child, with what it would have without Sluice."""
    got = says(fetch(server, "/self.cgi"))
    parent = int(got["PARENT"])
    while parent not in (server.pid, 1):
        with open("/proc/%d/stat" % parent) as f:
            line = f.read()
        assert "apache2" in line  # its cgid
        parent = int(line.rpartition(")")[2].split()[1])
    assert parent == server.pid
    assert signals(got) == (0, 0)
    assert set(got["FDS"].split()) <= {"0", "1", "2", "10"}
    assert got["CWD"] == root


def test_its_environment(server, root, program):
    got = says(fetch(server, "/env.cgi/more/of?it=1", headers={
        "Proxy": "evil:1", "X-Some": "thing"}))
    assert got["SCRIPT_FILENAME"] == root + "/env.cgi"
    assert got["SCRIPT_NAME"] == "/env.cgi"
    assert got["PATH_INFO"] == "/more/of"
    assert got["PATH_TRANSLATED"] == root + "/more/of"
    assert got["QUERY_STRING"] == "it=1"
    assert got["REQUEST_URI"] == "/env.cgi/more/of?it=1"
    assert got["REDIRECT_STATUS"] == "200"
    assert got["HTTP_X_SOME"] == "thing"
    assert "HTTP_PROXY" not in got
    got = says(fetch(server, "/env.cgi"))
    assert "PATH_INFO" not in got and "PATH_TRANSLATED" not in got


@pytest.mark.parametrize("query", [
    "reset+keys+1.2.3.4", "-c+/etc/passwd", "--help", "check", "version",
    "options", "set+keys+x+1000", "hash+x", "-c%20/etc/passwd", "%2Dc+x"])
def test_arguments_are_not_read(server, redis, query):
    before = redis.client().dbsize()
    got = fetch(server, "/self.cgi?" + query)
    assert (got.status, says(got)["ARGUMENTS"]) == (200, "0")
    assert redis.client().dbsize() == before


@pytest.mark.parametrize("uri", ["/link.cgi", "/deaf.cgi"])
def test_outside_its_root_or_not_executable(server, uri):
    assert fetch(server, uri).status == 403


def test_missing(server, virtual):
    assert fetch(server, "/missing.cgi").status == 404  # theirs
    got = fetch(virtual, "/missing.cgi")
    assert got.status == 404
    assert got.header("cache-control") == "no-store"  # and ours


def test_what_is_no_script_is_the_web_servers(server):
    assert fetch(server, "/plain.txt?denied=1").body == b"Not a script.\n"
    assert fetch(server, "/hello.cgi?denied=1").status == 429


def test_paths(server):
    """An application's own path behind a script is one of the request."""
    assert fetch(server, "/env.cgi/secret").status == 429
    assert fetch(server, "/env.cgi/x/../secret").status == 429
    assert fetch(server, "/env.cgi/%73ecret").status == 429
    assert fetch(server, "/env.cgi/other").status == 200


def test_apaches_address_of_sluice_runs_nothing(apache):
    for uri in ("/gate/sluice", "/gate/sluice/hello.cgi",
                "/gate/sluice?check", "/gate/sluice/hello.cgi?-c+/etc/passwd",
                "/gate/sluice/plain.txt"):
        assert fetch(apache, uri).status == 404


def test_redis_is_down(farm, root):
    own = Program(farm.place, {
        "store": {"address": "unix:/nowhere.s"},
        "limit allows": fixed("1/1h", path="/hello.cgi"),
        "limit denies": fixed("9/1h", path="/env.cgi", on_outage="deny"),
        "backend default": cgi(root),
    })
    for server in (cgi_servers.Lighttpd(farm.place, own, root),
                   cgi_servers.Apache(farm.place, own, root)):
        farm.add(server)
        for _ in range(2):
            got = fetch(server, "/hello.cgi")
            assert (got.status, got.limit) == (200, (None, None, None))
        got = fetch(server, "/env.cgi")
        assert (got.status, got.header("retry-after")) == (503, "1")
        until(lambda s=server: "event=store_outage" in s.output(),
              what="a line in the web server's own log")


def test_the_role_is_not_served(farm, redis, root):
    own = Program(farm.place, {
        "gateway": {"roles": "responder"},
        "store": {"address": redis.address}, "backend default": cgi(root)})
    for server in (cgi_servers.Lighttpd(farm.place, own, root),
                   cgi_servers.Apache(farm.place, own, root)):
        farm.add(server)
        assert fetch(server, "/hello.cgi").status == 500
        until(lambda s=server: "event=unknown_role" in s.output(),
              what="a line in the web server's own log")
