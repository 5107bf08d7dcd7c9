"""Sluice's own answers: bodies by Accept, templates, CORS, more headers."""

import email.utils
import json
import threading
import time

import pytest

from harness.gateway import APPS
from harness.recipes import MEMORY, by_key, fastcgi, key
from harness.web import fetch

LIMITS = {
    "site": by_key("1/100s", path="/*"),
    "login": by_key("1/200s, 2/1h", path="/login*",
                    message='Too many <b>attempts</b> & "tries".'),
    "closed": by_key("deny", path="/closed"),
}
QUOTA = "https://iana.org/assignments/http-problem-types#quota-exceeded"
CHROME = ("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,"
          "image/webp,image/apng,*/*;q=0.8")


class Site:
    """A gateway whose [response] each test sets anew."""

    def __init__(self, farm):
        self.php = farm.php(children=2)
        self.gateway = farm.gateway(self.config({}))
        self.place = farm.place
        self.who = 0

    def config(self, response):
        return {
            "store": MEMORY,
            **{"limit " + name: limit for name, limit in LIMITS.items()},
            "backend default": {**fastcgi(self.php), "path": "/*"},
            "response": response,
        }

    def respond(self, **response):
        mark = self.gateway.reload(self.config(response))
        self.gateway.log.wait_for("reloaded", 10.0, mark)

    def refused(self, uri="/", accept=None, method="GET", **headers):
        """The refusal of a second request with a key of its own."""
        self.who += 1
        headers = {**key("k%d" % self.who),
                   **{n.replace("_", "-"): v for n, v in headers.items()}}
        if accept is not None:
            headers["Accept"] = accept
        for _ in range(2):
            got = self.gateway.ask(uri, method=method, headers=headers,
                                   SCRIPT_FILENAME=APPS + "/ok.php")
        assert got.status == 429
        assert got.complete
        return got


@pytest.fixture(scope="module")
def site(shared):
    return Site(shared)


@pytest.fixture(scope="module")
def plain(site):
    site.respond()
    return site


@pytest.mark.parametrize("accept, kind", [
    (None, "text/plain; charset=utf-8"),
    ("*/*", "text/plain; charset=utf-8"),
    (CHROME, "text/html; charset=utf-8"),
    ("application/json", "application/problem+json"),
    ("application/json, text/plain, */*", "application/problem+json"),
    ("text/html;q=0.1, application/problem+json;q=0.2",
     "application/problem+json"),
    ("image/png", "text/plain; charset=utf-8"),
    ("text/html;q=nonsense,,,\"", "text/plain; charset=utf-8"),
])
def test_B56_the_body_is_what_the_client_accepts(plain, accept, kind):
    got = plain.refused(accept=accept)
    assert got.header("content-type") == kind
    assert got.header("vary") == "Accept"
    assert got.header("cache-control") == "no-store"
    assert int(got.header("content-length")) == len(got.body) > 0


def test_B57_a_quota_is_429_and_an_overload_is_503(farm):
    def slow(request):
        entered.set()
        leave.wait(10.0)
        request.answer("slow")

    entered, leave = threading.Event(), threading.Event()
    gateway = farm.gateway({
        "store": MEMORY,
        "limit at-a-time": {"rate": "1", "algorithm": "concurrency",
                            "key": "global", "status": "503"},
        "limit quota": by_key("1/100s"),
        "backend default": fastcgi(farm.application(slow)),
    })
    accept = {"Accept": "application/json"}
    first = threading.Thread(target=gateway.ask, args=("/slow",))
    first.start()
    try:
        assert entered.wait(10.0)
        got = gateway.ask("/", headers=accept)
    finally:
        leave.set()
        first.join(10.0)
    assert got.status == 503
    assert got.header("retry-after") == "1"
    assert got.limit == (1, 0, None)
    problem = json.loads(got.body)
    assert problem["type"] == QUOTA
    assert problem["violated-policies"] == ["at-a-time"]
    assert problem["status"] == 503
    for status in (200, 429):
        got = gateway.ask("/", headers={**accept, **key("b57")})
        assert got.status == status
    assert json.loads(got.body)["violated-policies"] == ["quota"]


@pytest.mark.parametrize("backend", ["whole", "broken"])
def test_who_asks_one_after_the_other_never_runs_twice(farm, backend):
    """The slot is free when the answer is there, ours (502) or another's."""
    def answer(request):
        if backend == "whole":
            request.answer("x")
        else:
            request.conn.close()

    gateway = farm.gateway({
        "store": MEMORY,
        "limit one": {"rate": "1", "algorithm": "concurrency",
                      "key": "global"},
        "backend default": fastcgi(farm.application(answer)),
    })
    seen = {gateway.ask("/").status for _ in range(100)}
    assert seen == {200 if backend == "whole" else 502}


def test_a_problem_as_json(plain):
    got = plain.refused("/login", "application/json")
    problem = json.loads(got.body)
    assert set(problem) == {"type", "title", "status", "detail",
                            "violated-policies", "retry-after"}
    assert problem["type"] == QUOTA
    assert problem["status"] == 429
    assert problem["detail"] == 'Too many <b>attempts</b> & "tries".'
    # Of the login limit the rate of 2/1h is not used up.
    assert problem["violated-policies"] == ["site", "login-200s"]
    assert problem["retry-after"] == int(got.header("retry-after"))


def test_a_page_shows_the_message_as_text(plain):
    got = plain.refused("/login", "text/html")
    page = got.body.decode()
    assert page.startswith("<!DOCTYPE html>")
    assert "<p>Too many &lt;b&gt;attempts&lt;/b&gt; &amp; " in page
    assert "<b>" not in page


def test_no_body_for_head(plain):
    for accept in ("application/json", "text/html", "*/*"):
        got = plain.refused(accept=accept, method="HEAD")
        assert got.body == b""
        assert got.all("content-length") == []


def test_answers_that_are_no_refusal(farm):
    gateway = farm.gateway({
        "store": MEMORY, "limit a": by_key("5/1m"),
        "backend never": {**fastcgi(farm.application()), "path": "/never"},
    })
    got = gateway.ask("/nowhere", headers={"Accept": "application/json"})
    assert got.status == 404
    assert json.loads(got.body) == {
        "type": "about:blank", "title": "Not Found", "status": 404}
    assert got.all("retry-after") == []
    assert b"<h1>404 Not Found</h1>" in gateway.ask(
        "/nowhere", headers={"Accept": CHROME}).body


@pytest.fixture(scope="module")
def templates(site):
    place = site.place
    return {
        "body_html": place.write(
            "refused.html",
            '<p title="{message}">{limit}: {retry_after} {request_id}'
            "<style>p { color: red }</style>"),
        "body_json": place.write(
            "refused.json",
            '{"wait": {retry_after}, "by": "{limit}", "why": "{message}"}'),
        "body_text": place.write(
            "refused.txt", "{limit} {message} {request_id}"),
    }


def test_templates(site, templates):
    site.respond(**templates)
    got = site.refused("/closed", "text/html")
    assert got.header("content-type") == "text/html; charset=utf-8"
    assert got.body.decode().startswith(
        '<p title="Too Many Requests">closed: 86400 ')
    assert got.body.decode().endswith("<style>p { color: red }</style>")
    got = site.refused("/login", "application/json")
    assert got.header("content-type") == "application/json"
    told = json.loads(got.body)
    assert told["by"] == "login"
    assert told["why"] == 'Too many <b>attempts</b> & "tries".'
    assert told["wait"] == int(got.header("retry-after"))


@pytest.mark.parametrize("headers, shown", [
    ({"X_Request_Id": "from-the-proxy"}, "from-the-proxy"),
    ({"X_Request_Id": "<b>"}, "&lt;b&gt;"),
    ({"X_Request_Id": "two words"}, None),
    ({"X_Request_Id": "x" * 65}, None),
    ({}, None),
])
def test_request_id_is_escaped_and_logged(site, templates, headers, shown):
    site.respond(**templates)
    mark = site.gateway.log.mark()
    got = site.refused("/closed", "text/html", **headers)
    told = got.body.decode().split("86400 ")[1].split("<style>")[0]
    if shown is not None:
        assert told == shown
    else:
        assert len(told) == 16
        assert int(told, 16) >= 0
    logged = told.replace("&lt;", "<").replace("&gt;", ">")
    site.gateway.log.wait_for("refused", 5.0, mark, request_id=logged)


def test_a_template_is_read_anew_on_reload_and_checked(site, templates):
    site.respond(**templates)
    with open(templates["body_json"], "w") as f:
        f.write('{"wait": {retry_after}')
    mark = site.gateway.reload(site.config(templates))
    site.gateway.log.wait_for("reload_failed", 10.0, mark)
    found = site.gateway.log.find("config_error", mark)
    assert "it is no JSON" in found[0]["msg"]
    got = site.refused("/closed", "application/json")
    assert json.loads(got.body)["by"] == "closed"
    with open(templates["body_json"], "w") as f:
        f.write('[{retry_after}]')
    site.respond(**templates)
    assert json.loads(
        site.refused("/closed", "application/json").body) == [86400]


def test_retry_after_as_a_date(site):
    site.respond(retry_after="date")
    before = time.time()
    text = site.refused().header("retry-after")
    after = time.time()
    until = email.utils.parsedate_to_datetime(text)
    assert text.endswith(" GMT")
    assert before + 99 < until.timestamp() < after + 102
    assert email.utils.format_datetime(until, usegmt=True) == text


def test_jitter_only_adds(site):
    site.respond(retry_after_jitter="50%")
    waits = {int(site.refused().header("retry-after")) for _ in range(40)}
    assert all(99 <= wait <= 150 for wait in waits)
    assert len(waits) > 5
    told = site.refused(accept="application/json")
    assert json.loads(told.body)["retry-after"] == int(
        told.header("retry-after"))


def test_retry_after_max_is_for_what_never_passes(site):
    site.respond(retry_after_max="7s")
    assert site.refused("/closed").header("retry-after") == "7"
    assert int(site.refused("/").header("retry-after")) > 90


EXPOSED = ("Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, "
           "X-RateLimit-Reset")


def cors(got):
    return (got.header("access-control-allow-origin"),
            got.header("access-control-expose-headers"), got.header("vary"))


def test_B55_a_preflight_is_not_counted(site):
    site.respond(cors_origin="*")
    preflight = {**key("b55"), "Origin": "https://a.example",
                 "Access-Control-Request-Method": "POST"}
    for _ in range(3):
        got = site.gateway.ask("/ok.php", method="OPTIONS", headers=preflight)
        assert got.status == 200
        assert got.limit == (None, None, None)
    assert site.refused(Origin="https://a.example").status == 429


def test_B54_a_script_of_any_origin_may_read_a_refusal(site):
    site.respond(cors_origin="*")
    assert cors(site.refused(Origin="https://a.example")) == (
        "*", EXPOSED, "Accept")


def test_B54_a_script_of_a_listed_origin_may_read_a_refusal(site):
    site.respond(cors_origin="https://a.example, https://b.example",
                 headers="draft-11")
    assert cors(site.refused(Origin="https://b.example")) == (
        "https://b.example", "Retry-After, RateLimit-Policy, RateLimit",
        "Accept, Origin")
    assert cors(site.refused(Origin="https://c.example")) == (
        None, None, "Accept, Origin")
    assert cors(site.refused()) == (None, None, "Accept, Origin")


def test_added_headers(site):
    site.respond(add_header="X-Frame-Options: DENY, X-Why: a limit")
    got = site.refused()
    assert got.header("x-frame-options") == "DENY"
    assert got.header("x-why") == "a limit"


@pytest.mark.parametrize("server", ["lighttpd", "apache"])
def test_through_a_web_server(farm, server):
    php = farm.php(children=2)
    gateway = farm.gateway({
        "store": MEMORY,
        "limit site": by_key("1/100s"),
        "limit api": by_key("1/1h, 5/1d"),
        "response": {"headers": "x-ratelimit, draft-03, draft-11",
                     "cors_origin": "https://a.example",
                     "add_header": "X-Frame-Options: DENY",
                     "retry_after": "date"},
        "backend default": fastcgi(php),
    })
    web = getattr(farm, server)(gateway.address)
    asked = {"X-Key": server, "Accept": "application/json",
             "Origin": "https://a.example"}
    passed = fetch(web, "/ok.php", headers=asked)
    assert passed.status == 200
    assert passed.header("ratelimit-policy") == (
        '"site";q=1;w=100, "api-1h";q=1;w=3600, "api-1d";q=5;w=86400')
    assert passed.header("ratelimit") == '"api-1h";r=0;t=3600'
    assert passed.limit == (1, 0, 3600)
    assert passed.header("ratelimit-limit") == "1, 1;w=3600"
    assert passed.all("retry-after") == []
    got = fetch(web, "/ok.php", headers=asked)
    assert got.status == 429
    assert got.header("content-type") == "application/problem+json"
    assert json.loads(got.body)["violated-policies"] == ["site", "api-1h"]
    assert got.header("access-control-allow-origin") == "https://a.example"
    assert got.header("x-frame-options") == "DENY"
    assert got.header("cache-control") == "no-store"
    assert "Accept" in got.header("vary")
    assert email.utils.parsedate_to_datetime(got.header("retry-after"))
    head = fetch(web, "/ok.php", "HEAD", headers=asked)
    assert head.status == 429
    assert head.body == b""
