"""Connections that web servers keep, and long lives."""

import pytest

from harness import fcgi
from harness.gateway import APPS
from harness.recipes import MEMORY, by_key, cgi, fastcgi, key, script, together
from harness.web import fetch


@pytest.fixture(scope="module")
def gateway(shared):
    """php-fpm has two children: who held one would be missed."""
    return shared.gateway({
        "store": MEMORY,
        "log": {"access": "denied"},
        "limit one": by_key("1/1h"),
        "backend php": {**fastcgi(shared.php(children=2)), "path": "/*.php"},
        "backend default": cgi(),
    })


def test_65_kept_connections_hold_no_child(gateway):
    kept = [gateway.connect() for _ in range(20)]
    for _ in range(3):
        for conn in kept:
            assert conn.ask(script("/ok.php"), keep=True).body == b"ok\n"
    assert gateway.ask("/ok.php").body == b"ok\n"
    for conn in kept:
        conn.close()


def test_73_memory_is_flat_over_thousands_of_requests(gateway):
    refused = script("/ok.php", headers=key("m"))
    post = script("/ok.php", method="POST", CONTENT_LENGTH="1000")

    def many(count):
        with gateway.connect() as conn:
            for _ in range(count):
                conn.ask(script("/ok.php"), keep=True)
                conn.ask(refused, keep=True)
                conn.ask(post, b"x" * 1000, keep=True)
            conn.ask(script("/nowhere.cgi"), keep=True)

    many(500)
    before = gateway.memory_kb()
    many(1500)
    assert gateway.memory_kb() - before < 512


def test_B95_no_key_leaves_anything_in_the_process(farm):
    """Allowed and refused, in Redis and, up to max_keys, in this process."""
    gateway = farm.gateway({
        "store": {"address": farm.redis().address, "timeout": "5s",
                  "max_keys": 500, "deny_cache": 500},
        "log": {"access": "off"},
        "limit shared": by_key("1/1h"),
        "limit near": {"rate": "1/1h", "scope": "local"},
        "backend never": {**fastcgi(farm.application()), "path": "/never"},
    })

    def many(first, count):
        statuses = set()
        with gateway.connect() as conn:
            for n in range(first, first + count):
                items = script(
                    "/nowhere", headers=key("%01000d" % n),
                    client="10.%d.%d.7" % (n // 250, n % 250))
                for _ in range(2):
                    statuses.add(conn.ask(items, keep=True).status)
        assert statuses == {404, 429}

    many(0, 2000)
    before = gateway.memory_kb()
    many(2000, 10000)
    assert gateway.memory_kb() - before < 512


def test_answers_of_every_kind_keep_the_connection(gateway):
    with gateway.connect() as conn:
        assert conn.ask(script("/ok.php", headers=key("kinds")),
                        keep=True).status == 200
        for items, status in (
                (script("/ok.php", headers=key("kinds")), 429),
                (script("/absent.cgi"), 404),
                (script("/plain.txt"), 403),
                (script("/absent.php"), 404),
                (script("/hello.cgi"), 200),
                (script("/early.cgi"), 200)) * 3:
            got = conn.ask(items, keep=True)
            assert (got.status, got.complete) == (status, True)


def test_not_kept_unless_asked(gateway):
    with gateway.connect() as conn:
        assert conn.ask(script("/ok.php")).status == 200
        assert conn.wait_closed() == b""


@pytest.mark.parametrize("reuse", [False, True], ids=["plain", "enablereuse"])
def test_49_apache_under_load(gateway, farm, reuse):
    server = farm.apache(gateway.address, reuse=reuse)

    def client(i):
        seen = []
        for n in range(25):
            if n % 5 == 4:
                seen.append(fetch(server, "/sha.cgi", "POST", b"b" * 20000))
            else:
                seen.append(fetch(server, "/ok.php?%d" % n))
        return [got.status for got in seen]

    assert sum(together(6, client), []) == [200] * 150


def test_lighttpd_under_load(gateway, farm):
    server = farm.lighttpd(gateway.address)

    def client(i):
        return [fetch(server, "/ok.php").body for _ in range(40)]

    assert sum(together(6, client), []) == [b"ok\n"] * 240


def test_92_pipelined_requests_are_answered_in_order(gateway):
    """A peer need not wait for END before it sends the next BEGIN."""
    with gateway.connect() as conn:
        for rid in (1, 2, 3):
            conn.send(fcgi.request(
                fcgi.env("/env.php", SCRIPT_FILENAME=APPS + "/env.php",
                         MARK="m%d" % rid), rid=rid, keep=True))
        for rid in (1, 2, 3):
            got = conn.response(rid)
            assert b'"MARK":"m%d"' % rid in got.body
