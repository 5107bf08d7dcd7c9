"""type = answer, raw: who only asks is told, and no body is awaited.

nginx's auth_request asks so; test_nginx.py has the real one.
"""

import pytest

from harness import fcgi
from harness.deadline import SCALE, timed, until
from harness.recipes import MEMORY, by_key, fastcgi, fixed, key, together

SOON = 0.7 * SCALE
ALLOWED = (b"Status: 204 No Content\r\n"
           b"Cache-Control: no-store\r\n"
           b"X-RateLimit-Limit: 2\r\n"
           b"X-RateLimit-Remaining: 1\r\n"
           b"X-RateLimit-Reset: 3600\r\n"
           b"\r\n")
NOTHING = b"Status: 204 No Content\r\nCache-Control: no-store\r\n\r\n"


def config(denial="429", **sections):
    return {
        "store": MEMORY,
        "limit keys": by_key("2/1h", message="Not so often."),
        "limit none": {"rate": "deny", "path": "/denied"},
        "limit signed": {"rate": "9/1h", "path": "/signed",
                         "key": "header:X-Sign", "missing_key": "deny"},
        "limit held": {"rate": "1/1h burst 3", "path": "/held",
                       "algorithm": "leaky_bucket", "delay_max": "1h"},
        "limit brisk": {"rate": "10/1s burst 3", "path": "/brisk",
                        "algorithm": "leaky_bucket"},
        "backend default": {"type": "answer", "denial": denial},
        **sections,
    }


@pytest.fixture(scope="module")
def gateway(shared):
    return shared.gateway(config())


@pytest.fixture(scope="module")
def forbidding(shared):
    return shared.gateway(config("403"))


def test_allowed(gateway):
    got = gateway.ask(headers=key("allowed"))
    assert (got.out, got.complete) == (ALLOWED, True)
    got = gateway.ask(headers=key("allowed"), method="HEAD")
    assert (got.status, got.limit) == (204, (2, 0, 3600))


def test_nothing_to_say(gateway):
    got = gateway.ask("/anything")
    assert (got.out, got.complete) == (NOTHING, True)


@pytest.mark.parametrize("name, line", [
    ("gateway", "429 Too Many Requests"), ("forbidding", "403 Forbidden")])
def test_refused(request, name, line):
    server = request.getfixturevalue(name)
    for _ in range(2):
        assert server.ask(headers=key("refused")).status == 204
    got = server.ask(headers=key("refused"))
    assert got.complete
    assert got.header("status") == line
    assert got.limit == (2, 0, 3600)
    assert got.header("retry-after") == "3600"
    assert got.body == (line + "\nNot so often.\nTry again in 3600 s.\n"
                        ).encode()
    got = server.ask(headers=key("refused"), method="HEAD")
    assert (got.header("status"), got.body) == (line, b"")
    assert got.header("retry-after") == "3600"



def test_forbidding_says_nothing_else(gateway, forbidding):
    """Who may come again hears when; who has no key does not."""
    got = gateway.ask("/denied")
    assert (got.status, got.header("retry-after")) == (429, "86400")
    got = forbidding.ask("/denied")
    assert (got.status, got.header("retry-after")) == (403, "86400")
    for server in (gateway, forbidding):
        got = server.ask("/signed")
        assert (got.status, got.header("retry-after")) == (403, None)
    twice = fcgi.env("/signed", headers={"X-Sign": "a"}) + [
        ("HTTP_X_SIGN", "b")]
    assert fcgi.ask(gateway.address, twice).status == 400
    got = fcgi.ask(forbidding.address, twice)
    assert (got.status, got.header("retry-after")) == (403, None)


@pytest.mark.parametrize("denial, status", [("429", 503), ("403", 403)])
def test_outage(farm, denial, status):
    gateway = farm.gateway({
        "store": {"address": "unix:" + farm.place / "nobody.s"},
        "limit a": fixed("1/1h"),
        "limit b": fixed("1/1h", path="/strict", on_outage="deny"),
        "backend default": {"type": "answer", "denial": denial},
    })
    for _ in range(3):
        assert gateway.ask().out == NOTHING
    got = gateway.ask("/strict")
    assert (got.status, got.limit) == (status, (None, None, None))
    assert int(got.header("retry-after")) >= 1


STDIN = {
    "none": b"",
    "empty": fcgi.record(fcgi.STDIN),
    "small": fcgi.stream(fcgi.STDIN, b"x" * 1000, padding=7),
    "small_without_end": fcgi.stream(fcgi.STDIN, b"x" * 1000, end=False),
    "large": fcgi.stream(fcgi.STDIN, b"x" * 3_000_000),
    "half_a_record": fcgi.stream(fcgi.STDIN, b"x" * 60_000)[:30_000],
    "half_a_header": fcgi.record(fcgi.STDIN, b"x" * 10)[:5],
}
LENGTHS = {"unsaid": None, "empty": "", "right": "1000", "wrong": "999",
           "above_max_body": str(1 << 40), "no_number": "many"}


@pytest.mark.parametrize("name", STDIN)
@pytest.mark.parametrize("said", LENGTHS)
def test_a_body_is_not_awaited(gateway, name, said):
    """nginx announces a body and sends none; others send what they have."""
    head = fcgi.head(fcgi.env(method="POST", CONTENT_LENGTH=LENGTHS[said]))
    for together_with_head in (True, False):
        with gateway.connect() as conn:
            conn.try_send(head + (STDIN[name] if together_with_head else b""))
            got, took = timed(conn.response)
            assert (got.out, got.complete) == (NOTHING, True)
            assert took < SOON
            if not together_with_head:
                conn.try_send(STDIN[name])
            conn.sock.shutdown(1)
            assert conn.wait_closed() == b""


def test_aborted(gateway):
    mark = gateway.log.mark()
    with gateway.connect() as conn:
        conn.send(fcgi.head(fcgi.env("/gone")) + fcgi.record(fcgi.ABORT))
        assert conn.response().out == b""
    line = gateway.log.wait_for("request", since=mark, path="/gone")
    assert line["status"] == "499"


@pytest.mark.parametrize("name", ["empty", "small"])
def test_kept(gateway, name):
    head = fcgi.head(fcgi.env(), keep=True)
    with gateway.connect() as conn:
        for _ in range(3):  # together with the head
            conn.send(head + STDIN[name])
            assert conn.response().out == NOTHING
        for _ in range(3):  # after the answer
            conn.send(head)
            assert conn.response().out == NOTHING
            conn.send(STDIN[name])
        conn.send(fcgi.request(fcgi.env("/denied"), keep=True))
        assert conn.response().status == 429
        conn.send(head)
        assert conn.response().out == NOTHING


@pytest.mark.parametrize("name", STDIN)
def test_held_back(gateway, name):
    """leaky_bucket delays who asks; what comes meanwhile is not looked at."""
    client = "198.51.100.%d" % list(STDIN).index(name)
    head = fcgi.head(fcgi.env("/brisk", method="POST", client=client))
    for _ in range(2):
        with gateway.connect() as conn:
            conn.try_send(head + STDIN[name])
            got = conn.response()
            assert (got.status, got.complete) == (204, True)
            assert got.header("x-ratelimit-limit") == "3"


def test_gone_while_held_back(gateway):
    """What was taken for who has gone is given back."""
    client = "203.0.113.1"
    mark = gateway.log.mark()
    assert gateway.ask("/held", client=client).status == 204
    gateway.log.wait_for("request", since=mark, path="/held")
    for stdin in (STDIN["empty"], STDIN["small_without_end"], b"") * 2:
        mark = gateway.log.mark()
        with gateway.connect() as conn:
            conn.send(fcgi.head(fcgi.env("/held", client=client)) + stdin)
            until(lambda: not conn.unread(), what="it to be read")
        line = gateway.log.wait_for("request", since=mark, path="/held")
        assert line["status"] == "499"


def test_beside_an_application(farm):
    app = farm.application(lambda request: request.answer(b"ok"))
    gateway = farm.gateway(config(**{
        "backend app": fastcgi(app, path="/app"),
        "limit counts": fixed("1/1h", path="/app", count="2xx"),
        "limit slots": {"rate": "1", "algorithm": "concurrency",
                        "backend": "app"},
    }))
    assert gateway.ask("/app").body == b"ok"
    assert gateway.ask("/app").status == 429
    assert gateway.ask("/other").out == NOTHING
    assert app.seen == 1


def test_response_options(farm):
    gateway = farm.gateway(config(response={
        "headers": "x-ratelimit, draft-11", "headers_on": "denied",
        "cors_origin": "https://a.example", "add_header": "X-From: Sluice"}))
    headers = {"Origin": "https://a.example", **key("a")}
    got = gateway.ask(headers=headers)
    assert got.limit == (None, None, None)
    assert got.header("vary") == "Origin"
    assert got.header("access-control-allow-origin") == "https://a.example"
    assert got.header("x-from") == "Sluice"
    gateway.ask(headers=headers)
    got = gateway.ask(headers=headers)
    assert got.limit == (2, 0, 3600)
    assert got.header("ratelimit") == '"keys";r=0;t=3600'


def test_exactly_as_many_pass(gateway):
    answers = together(20, lambda i: gateway.ask(headers=key("race")))
    assert sorted(a.status for a in answers) == [204] * 2 + [429] * 18


def test_log(forbidding):
    mark = forbidding.log.mark()
    for _ in range(3):
        forbidding.ask("/log", headers=key("log"))
    line = forbidding.log.wait_for("request", since=mark, path="/log")
    assert (line["status"], line["backend"]) == ("204", "default")
    assert line["backend_us"] == "0"
    line = forbidding.log.wait_for("refused", since=mark, path="/log")
    assert (line["status"], line["limit"]) == ("403", "keys")
