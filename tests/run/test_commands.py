"""The commands of the README, typed as it says, on a port of their own."""

import contextlib
import http.client
import os
import re
import socket

import pytest

from command import ROOT, Command
from harness.process import free_port


def ask(port, method="GET", path="/", body=None):
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    with contextlib.closing(conn):
        conn.request(method, path, body)
        response = conn.getresponse()
        response.text = response.read().decode()
        return response


def test_make_run_allows_five_then_refuses_then_allows_again():
    port = free_port()
    with Command("make", "run", "PORT=%d" % port) as run:
        run.read_until("Ctrl-C")
        assert "curl -i http://127.0.0.1:%d/" % port in run.text

        for remaining in (4, 3, 2, 1, 0):
            response = ask(port)
            assert response.status == 200, response.text
            assert response.headers["X-RateLimit-Limit"] == "5"
            assert response.headers["X-RateLimit-Remaining"] == \
                str(remaining)
            assert "Hello" in response.text

        response = ask(port)
        assert response.status == 429
        seconds = int(response.headers["Retry-After"])
        assert 1 <= seconds <= 10
        run.passes(seconds)
        assert ask(port).status == 200


def test_make_run_says_that_its_port_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with Command("make", "run", "PORT=%d" % port) as run:
            assert run.wait() != 0
            assert "Port %d is taken" % port in run.text
            assert "PORT=8081" in run.text


def test_make_demo_shows_400_of_400_then_100_of_400():
    with Command("make", "demo") as run:
        assert run.wait() == 0, run.text
        assert re.search(r"each server +400 +400 +0\n", run.text)
        assert re.search(r"Redis +400 +100 +300\n", run.text)
        assert "Retry-After: " in run.text


@pytest.mark.parametrize("name", ["lighttpd-spawn-fcgi", "apache-proxy-fcgi"])
def test_example(name):
    port = free_port()
    with Command("examples/%s/run" % name, PORT=str(port)) as run:
        run.read_until("Ctrl-C")
        response = ask(port, path="/some/page?a=b")
        assert response.status == 200
        assert response.text == "GET /some/page?a=b from 127.0.0.1\n"
        assert response.headers["X-RateLimit-Limit"] == "100"
        assert response.headers["X-RateLimit-Remaining"] == "99"

        for path in ("/login", "//login", "/%6cogin"):
            assert ask(port, "POST", path, "user=me").status == 200
        response = ask(port, "POST", "/x/../login", "user=me")
        assert response.status == 429
        # A sliding window of 3: up to its end, and a third of the next.
        assert 1 <= int(response.headers["Retry-After"]) <= 80
        assert "Too many attempts to log in." in response.text
        assert ask(port).status == 200


def directives(path):
    """Its lines without comments, blanks and indentation."""
    with open(os.path.join(ROOT, path)) as f:
        lines = [line.strip() for line in f]
    return [line for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("snippet, example, socket_there", [
    ("conf/lighttpd/sluice.conf", "examples/lighttpd-spawn-fcgi/lighttpd.conf",
     'env.RUN + "/sluice.sock"'),
    ("conf/apache/sluice.conf", "examples/apache-proxy-fcgi/apache2.conf",
     "${RUN}/sluice.sock"),
    ("conf/nginx/sluice.conf", "examples/nginx-auth-request/nginx.conf",
     "${RUN}/sluice.sock"),
])
def test_snippet_says_what_the_example_says(snippet, example, socket_there):
    socket_here = "/run/sluice/sluice.sock"
    if snippet.startswith("conf/lighttpd"):
        socket_here = '"%s"' % socket_here
    tested = [line.replace(socket_there, socket_here)
              for line in directives(example)]
    said = [line for line in directives(snippet)
            if not line.startswith("server.modules")]
    assert len(said) > 2 and socket_here in "\n".join(said)
    for line in said:
        assert line in tested
