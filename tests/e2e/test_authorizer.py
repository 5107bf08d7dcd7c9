"""The authorizer role, raw: what it says, and that it awaits no STDIN.

CASES: #3106 and #3272, a web server whose authorizer hung or swallowed a body.
"""

import time

import pytest

from harness import fcgi
from harness.deadline import SCALE, timed
from harness.recipes import MEMORY, by_key, fastcgi, fixed, key, together

BOTH = {"roles": "responder, authorizer"}
SOON = 0.7 * SCALE
ROLE = {"role": fcgi.AUTHORIZER}


def env(uri="/", **kwargs):
    """What lighttpd and Apache tell an authorizer: no SCRIPT_NAME."""
    return fcgi.env(uri, SCRIPT_NAME=None, **kwargs)


def ask(gateway, uri="/", **kwargs):
    """A head without a STDIN, and its answer."""
    with gateway.connect() as conn:
        conn.send(fcgi.head(env(uri, **kwargs), **ROLE))
        return conn.response()


@pytest.fixture(scope="module")
def app(shared):
    return shared.application()


@pytest.fixture(scope="module")
def gateway(shared, app):
    return shared.gateway({
        "gateway": BOTH,
        "store": MEMORY,
        "limit keys": by_key("2/1h"),
        "limit none": {"rate": "deny", "path": "/denied",
                       "message": "Not here."},
        "limit signed": {"rate": "9/1h", "path": "/signed",
                         "key": "header:X-Sign", "missing_key": "deny"},
        "response": {"add_header": "X-From: Sluice"},
        "backend api": fastcgi(app, path="/api/*"),
    })


def variables(limit, remaining, reset):
    return ("Status: 200 OK\r\n"
            "Variable-RATELIMIT_LIMIT: %d\r\n"
            "Variable-RATELIMIT_REMAINING: %d\r\n"
            "Variable-RATELIMIT_RESET: %d\r\n"
            "\r\n" % (limit, remaining, reset)).encode()


def test_16_allowed_without_a_stdin(gateway):
    for remaining in (1, 0):
        got, took = timed(ask, gateway, headers=key("allowed"))
        assert got.out == variables(2, remaining, 3600)
        assert got.complete
        assert took < SOON


def test_nothing_to_say(gateway):
    """No limit applies: 200 without numbers, and no backend is missed."""
    got = ask(gateway, "/anything")
    assert got.out == b"Status: 200 OK\r\n\r\n"
    assert got.complete


def test_refused(gateway):
    for _ in range(2):
        assert ask(gateway, headers=key("refused")).status == 200
    got = ask(gateway, headers=key("refused"))
    assert got.complete
    # lighttpd drops what stands before it.
    assert got.headers[0] == ("status", "429 Too Many Requests")
    assert got.limit == (2, 0, 3600)
    assert got.header("retry-after") == "3600"
    assert got.header("x-from") == "Sluice"
    assert got.body == b"429 Too Many Requests\nTry again in 3600 s.\n"
    got = ask(gateway, headers=key("refused"), method="HEAD")
    assert (got.status, got.body) == (429, b"")


def test_other_refusals(gateway):
    got = ask(gateway, "/denied")
    assert got.headers[0] == ("status", "429 Too Many Requests")
    assert b"Not here." in got.body
    got = ask(gateway, "/signed")
    assert got.headers[0] == ("status", "403 Forbidden")
    got = ask(gateway, headers={"X-Large": "x" * 140_000})
    assert got.headers[0] == (
        "status", "431 Request Header Fields Too Large")


def test_paths_are_those_of_the_request(gateway):
    """Without a SCRIPT_NAME there is no second form of a path."""
    for uri in ("//denied", "/%64enied", "/x/../denied?a"):
        assert ask(gateway, uri).status == 429
    assert ask(gateway, "/denied/x").status == 200


def test_backends_are_of_responders(gateway, app):
    seen = app.seen
    with gateway.connect() as conn:
        assert conn.ask(fcgi.env("/other")).status == 404
    assert ask(gateway, "/other").status == 200
    assert ask(gateway, "/api/x").status == 200
    assert app.seen == seen
    with gateway.connect() as conn:
        assert conn.ask(fcgi.env("/api/x")).status == 200
    assert app.seen == seen + 1


STDIN = {
    "none": b"",
    "empty": fcgi.record(fcgi.STDIN),
    "small": fcgi.stream(fcgi.STDIN, b"x" * 1000, padding=7),
    "small_without_end": fcgi.stream(fcgi.STDIN, b"x" * 1000, end=False),
    "large": fcgi.stream(fcgi.STDIN, b"x" * 3_000_000),
    "half_a_record": fcgi.stream(fcgi.STDIN, b"x" * 60_000)[:30_000],
    "half_a_header": fcgi.record(fcgi.STDIN, b"x" * 10)[:5],
    "abort": fcgi.record(fcgi.ABORT),
}


@pytest.mark.parametrize("name", STDIN)
@pytest.mark.parametrize("said", [None, "1000"])
def test_15_stdin_is_thrown_away(gateway, name, said):
    """At once or later, announced or not: the answer is the same."""
    head = fcgi.head(env(method="POST", CONTENT_LENGTH=said), **ROLE)
    with gateway.connect() as conn:
        conn.try_send(head + STDIN[name])
        got = conn.response()
        assert (got.out, got.complete) == (b"Status: 200 OK\r\n\r\n", True)
        assert conn.wait_closed() == b""
    with gateway.connect() as conn:
        conn.send(head)
        assert conn.response().complete
        conn.try_send(STDIN[name])
        assert conn.wait_closed() == b""


@pytest.mark.parametrize("name", [
    "none", "empty", "small", "small_without_end", "abort"])
def test_kept(gateway, name):
    """What a finished request still sends is skipped between two of them."""
    head = fcgi.head(env(), keep=True, **ROLE)
    with gateway.connect() as conn:
        for _ in range(3):  # together with the head
            conn.send(head + STDIN[name])
            assert conn.response().complete
        for _ in range(3):  # after the answer
            conn.send(head)
            assert conn.response().complete
            conn.send(STDIN[name])
        conn.send(fcgi.request(fcgi.env("/api/x"), keep=True))
        assert conn.response().status == 200
        conn.send(head)
        assert conn.response().complete


def test_kept_with_a_large_stdin(gateway):
    """That much is no leftover: it has its answer, and no second one."""
    with gateway.connect() as conn:
        conn.try_send(fcgi.head(env(), keep=True, **ROLE) + STDIN["large"])
        got = conn.response()
        assert (got.status, got.complete) == (200, True)
        assert conn.wait_closed() == b""


def test_exactly_as_many_pass(gateway):
    answers = together(20, lambda i: ask(gateway, headers=key("race")))
    assert sorted(a.status for a in answers) == [200] * 2 + [429] * 18


def test_log(gateway):
    mark = gateway.log.mark()
    ask(gateway, "/api/log?q", headers=key("log"))
    line = gateway.log.wait_for("request", since=mark, path="/api/log")
    assert (line["role"], line["status"]) == ("authorizer", "200")
    assert (line["limit"], line["remaining"]) == ("keys", "1")
    assert "backend" not in line
    ask(gateway, "/denied")
    line = gateway.log.wait_for("refused", since=mark, path="/denied")
    assert (line["role"], line["status"]) == ("authorizer", "429")


@pytest.mark.parametrize("response, reset", [
    ({"headers": "none"}, 3600),
    ({"headers": "draft-11", "headers_on": "denied"}, 3600),
    ({"reset": "epoch"}, None),
], ids=["none", "denied", "epoch"])
def test_variables_are_no_headers(farm, response, reset):
    """Clients do not see them; reset says how they count the time."""
    gateway = farm.gateway({
        "gateway": {"roles": "authorizer"}, "store": MEMORY,
        "limit a": fixed("1/1h"), "response": response})
    got = ask(gateway)
    said = int(got.header("variable-ratelimit_reset"))
    if reset is None:
        assert abs(said - time.time() - 3600) < 60
    assert got.out == variables(1, 0, reset or said)
    got = ask(gateway)
    assert got.status == 429
    if response.get("headers") == "none":
        assert got.limit == (None, None, None)
    assert got.header("variable-ratelimit_limit") is None


def test_limits_of_one_role(farm, app):
    gateway = farm.gateway({
        "gateway": BOTH,
        "store": MEMORY,
        "limit r": fixed("1/1h", role="responder"),
        "limit a": fixed("2/1h", role="authorizer"),
        "limit both": fixed("4/1h"),
        "limit slots": {"rate": "1", "algorithm": "concurrency",
                        "role": "responder"},
        "backend default": fastcgi(app),
    })
    assert gateway.ask().status == 200
    assert ask(gateway).out == variables(2, 1, 3600)
    assert ask(gateway).out == variables(2, 0, 3600)
    assert ask(gateway).limit == (2, 0, 3600)
    got = gateway.ask()
    assert (got.status, got.limit) == (429, (1, 0, 3600))


def test_outage(farm):
    """Who lets pass says no numbers; who denies says when to come back."""
    gateway = farm.gateway({
        "gateway": {"roles": "authorizer"},
        "store": {"address": "unix:" + farm.place / "nobody.s"},
        "limit a": fixed("1/1h"),
        "limit b": fixed("1/1h", path="/strict", on_outage="deny"),
        "limit c": fixed("9/1h", path="/local", on_outage="local",
                         outage_rate="1/1h"),
    })
    for _ in range(3):
        assert ask(gateway).out == b"Status: 200 OK\r\n\r\n"
    got = ask(gateway, "/strict")
    assert got.headers[0] == ("status", "503 Service Unavailable")
    assert int(got.header("retry-after")) >= 1
    assert ask(gateway, "/local").out == b"Status: 200 OK\r\n\r\n"
    assert ask(gateway, "/local").status == 429


def test_redis(farm):
    redis = farm.redis()
    gateways = [farm.gateway({
        "gateway": {"roles": "authorizer"},
        "store": {"address": redis.address},
        "limit a": fixed("3/1h"),
    }) for _ in range(2)]
    for i in range(3):
        assert ask(gateways[i % 2]).out == variables(3, 2 - i, 3600)
    assert [ask(g).status for g in gateways] == [429, 429]


def unknown_role(gateway, role):
    mark = gateway.log.mark()
    with gateway.connect() as conn:
        conn.send(fcgi.request(env(), role=role))
        got = conn.response()
        assert (got.end, got.out) == ((0, fcgi.UNKNOWN_ROLE), b"")
    gateway.log.wait_for("unknown_role", since=mark)
    return len(gateway.log.find("unknown_role", mark)) == 1


def test_authorizer_alone(farm):
    """It needs no backend, and serves no other role."""
    gateway = farm.gateway({
        "gateway": {"roles": "authorizer"}, "store": MEMORY,
        "limit a": fixed("1/1h")})
    for role in (fcgi.RESPONDER, fcgi.FILTER, 0, 258, 65535):
        assert unknown_role(gateway, role)
    assert ask(gateway).out == variables(1, 0, 3600)
    assert not gateway.log.find("config_warning")


def test_reload(farm, app):
    """roles is in force for the next head, on kept connections too."""
    def config(roles):
        return {"gateway": {"roles": roles}, "store": MEMORY,
                "limit a": fixed("9/1h"), "backend default": fastcgi(app)}

    gateway = farm.gateway(config("responder"))
    with gateway.connect() as conn:
        assert conn.ask(fcgi.env(), keep=True).status == 200
        assert unknown_role(gateway, fcgi.AUTHORIZER)
        mark = gateway.reload(config("responder, authorizer"))
        gateway.log.wait_for("reloaded", since=mark)
        conn.send(fcgi.head(env(), keep=True, **ROLE))
        assert conn.response().out == variables(9, 7, 3600)
    mark = gateway.reload(config("responder"))
    gateway.log.wait_for("reloaded", since=mark)
    assert unknown_role(gateway, fcgi.AUTHORIZER)
