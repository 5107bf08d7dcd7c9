"""Response heads: taken strictly, passed on unharmed."""

import json

import pytest

from harness.gateway import APPS
from harness.recipes import cgi, fastcgi

BAD = {
    "57_status_404_colon": b"Status: 404: Not Found\r\n\r\n",
    "57_status_of_2_digits": b"Status: 20\r\n\r\n",
    "57_status_of_4_digits": b"Status: 2000\r\n\r\n",
    "57_status_of_letters": b"Status: OK\r\n\r\n",
    "57_status_099": b"Status: 099\r\n\r\n",
    "two_statuses": b"Status: 200\r\nStatus: 404\r\n\r\n",
    "bare_cr": b"X-A: b\rSet-Cookie: evil\r\n\r\n",
    "nul": b"X-A: b\0c\r\n\r\n",
    "folded": b"X-A: b\r\n c\r\n\r\n",
    "no_colon": b"X-A: b\r\nnonsense\r\n\r\n",
    "space_in_name": b"X A: b\r\n\r\n",
    "empty_name": b": b\r\n\r\n",
    "24_content_length_of_letters": b"Content-Length: 5x\r\n\r\n12345",
    "24_content_length_negative": b"Content-Length: -5\r\n\r\n12345",
    "24_two_content_lengths":
        b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n12345",
    "50_a_head_of_100_kib": b"X-A: " + b"a" * 102400 + b"\r\n\r\nbody",
    "50_many_fields": b"X-A: a\r\n" * 20000 + b"\r\nbody",
    "never_ends": b"X-A: b\r\n",
    "body_only": b"hello there",
}

GOOD = {
    # name: (raw, status, some header lines, body)
    "96_lf_only": (b"Content-Type: text/plain\nX-A: b\n\nbody", 200,
                   [("x-a", "b")], b"body"),
    "96_mixed": (b"Content-Type: text/plain\r\nX-A: b\n\r\nbody", 200,
                 [("x-a", "b")], b"body"),
    "57_status_without_reason": (b"Status: 404\r\n\r\n", 404, [], b""),
    "57_status_with_reason": (b"Status: 418 I am a teapot\r\n\r\nx", 418,
                              [], b"x"),
    "nph": (b"HTTP/1.1 202 Accepted\r\nX-A: b\r\n\r\nbody", 202,
            [("x-a", "b")], b"body"),
    "26_local_path": (b"Location: /other\r\n\r\n", 302,
                      [("location", "/other")], b""),
    "26_301_stays": (b"Status: 301\r\nLocation: /other\r\n\r\n", 301,
                     [("location", "/other")], b""),
    "38_x_sendfile": (b"X-Sendfile: /some/file\r\n\r\n", 200,
                      [("x-sendfile", "/some/file")], b""),
    "x_accel": (b"X-Accel-Buffering: no\r\n\r\nx", 200,
                [("x-accel-buffering", "no")], b"x"),
    "long_but_sound": (b"X-A: " + b"a" * 60000 + b"\r\n\r\nbody", 200,
                       [("x-a", "a" * 60000)], b"body"),
    "content_length": (b"Content-Length: 4\r\n\r\nbody", 200,
                       [("content-length", "4")], b"body"),
}


@pytest.fixture(scope="module")
def gateway(shared):
    return shared.gateway({
        "backend fcgi": {**fastcgi(shared.application(replay)),
                         "path": "/fcgi/*"},
        "backend php": {**fastcgi(shared.php(children=2)),
                        "path": "/*.php"},
        "backend default": cgi(),
    })


def replay(request):
    """The file named by the query, in small padded records."""
    with open(request.param("QUERY_STRING"), "rb") as f:
        raw = f.read()
    how = request.param("REQUEST_URI").split("/")[2]
    if how.startswith("bytes"):
        request.write(raw[:300], chunk=1, padding=3)
        raw = raw[300:]
    if how.startswith("noise"):
        request.raw(b"".join([
            b"\x01\x07\0\1\0\4\0\0oops", b"\x01\x07\0\1\0\0\0\0",
            b"\x01\x63\0\1\0\0\0\0", b"\x01\x63\0\1\0\3\0\0bad"]))
    request.write(raw, padding=255 if how.startswith("bytes") else 0)
    request.end()


def through(gateway, how, name, raw):
    path = gateway.place.write("raw-" + name, raw)
    if how == "cgi":
        return gateway.ask("/raw.cgi?" + path)
    return gateway.ask("/fcgi/%s?%s" % (how, path))


@pytest.mark.parametrize("how", ["cgi", "whole"])
@pytest.mark.parametrize("name", BAD)
def test_bad_head_is_502(gateway, name, how):
    got = through(gateway, how, name, BAD[name])
    assert (got.status, got.complete) == (502, True)
    assert b"evil" not in got.out
    assert got.all("retry-after") == []


@pytest.mark.parametrize("how", ["cgi", "whole", "bytes", "noise"])
@pytest.mark.parametrize("name", GOOD)
def test_88_good_head_arrives(gateway, name, how):
    raw, status, lines, body = GOOD[name]
    got = through(gateway, how, name, raw)
    assert (got.status, got.body, got.complete) == (status, body, True)
    for line in lines:
        assert line in got.headers
    assert got.headers[0][0] == "status" or status == 200


def test_59_every_set_cookie_arrives(gateway):
    got = gateway.ask("/cookies.php")
    assert got.status == 201
    assert got.all("set-cookie") == ["c%d=v%d" % (n, n) for n in range(1, 21)]
    assert got.header("x-mark") == "one"


def test_1xx_is_never_the_last_word(gateway):
    raw = (b"Status: 103 Early Hints\r\nLink: </x>\r\n\r\n"
           b"Status: 404\r\nX-A: b\r\n\r\nbody")
    got = through(gateway, "whole", "1xx", raw)
    assert (got.status, got.body) == (404, b"body")


def test_hop_by_hop_fields_are_dropped(gateway):
    raw = (b"Connection: close\r\nTransfer-Encoding: chunked\r\n"
           b"Keep-Alive: timeout=5\r\nX-A: b\r\n\r\nbody")
    got = through(gateway, "whole", "hop", raw)
    assert got.header("x-a") == "b"
    for name in ("connection", "transfer-encoding", "keep-alive"):
        assert got.all(name) == []


def test_61_php_sees_the_request_as_it_is(gateway):
    got = gateway.ask("/env.php?a=%2f&b=c+d", headers={"X-Odd": "ü \"q\" $x"})
    server = json.loads(got.body)
    assert server["QUERY_STRING"] == "a=%2f&b=c+d"
    assert server["REQUEST_URI"] == "/env.php?a=%2f&b=c+d"
    assert server["HTTP_X_ODD"] == "ü \"q\" $x"
    assert server["SCRIPT_FILENAME"] == APPS + "/env.php"
    assert server["FCGI_ROLE"] == "RESPONDER"  # php-fpm's own, not ours


def test_83_httpoxy_php(gateway):
    got = gateway.ask("/env.php", headers={"Proxy": "evil:1"})
    assert got.status == 200
    assert b"evil" not in got.body


def test_redirect_status_is_added_if_absent(gateway):
    got = gateway.ask("/env.php", REDIRECT_STATUS=None)
    assert json.loads(got.body)["REDIRECT_STATUS"] == "200"
    got = gateway.ask("/env.php", REDIRECT_STATUS="404")
    assert json.loads(got.body)["REDIRECT_STATUS"] == "404"
