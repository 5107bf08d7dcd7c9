"""The configurations of examples/limits do what their comments say."""

import os
import subprocess
import threading
import urllib.parse

import pytest

from harness import fcgi
from harness.deadline import until
from harness.gateway import BINARY, ROOT
from harness.recipes import together

EXAMPLES = os.path.join(ROOT, "examples", "limits")
NAMES = ["api-keys", "costs", "downloads", "four-servers", "login", "site"]
RIGHT = "correct horse"


def read(name):
    with open(os.path.join(EXAMPLES, name)) as f:
        return f.read()


def check(path):
    return subprocess.run([BINARY, "check", "-c", path], timeout=10,
                          capture_output=True, text=True, check=False)


def serve(farm, name, redis, application, *changes):
    """A gateway with that file, only its addresses are those of the test."""
    text = read(name + ".ini")
    socket = farm.place / ("g%d" % len(farm.started))
    for was, now in (
            ("unix:/run/sluice/sluice.sock",
             "unix:%s\nsocket_mode = 0666" % socket),
            ("unix:/run/redis/redis-server.sock",
             redis.address + "\ntimeout = 2s"),
            ("redis://10.0.0.5:6379/0", redis.address),
            ("timeout = 50ms", "timeout = 2s"),
            ("unix:/run/php/php-fpm.sock", application.option),
            *changes):
        text = text.replace(was, now)
    for was, _ in changes:
        assert was in read(name + ".ini")
    for file in os.listdir(EXAMPLES):
        if file.endswith(".keys"):
            farm.place.write(file, read(file))
    return farm.gateway(text, listen=socket)


def ok(request):
    request.answer(b"ok")


def one(farm, name, *changes, handler=ok):
    return serve(farm, name, farm.redis(), farm.application(handler),
                 *changes)


@pytest.mark.parametrize("name", NAMES)
def test_check_finds_nothing_wrong(name):
    path = os.path.join(EXAMPLES, name + ".ini")
    got = check(path)
    assert (got.returncode, got.stdout + got.stderr) == (0, path + ": ok\n")


def test_all_of_them_are_tested_and_listed():
    files = sorted(os.listdir(EXAMPLES))
    assert [n[:-4] for n in files if n.endswith(".ini")] == NAMES
    for name in NAMES:
        assert "[%s.ini](%s.ini)" % (name, name) in read("README.md")


# login.ini

def login(request):
    """The application: 401 to a wrong password, a redirect to a right one."""
    form = dict(urllib.parse.parse_qsl(request.body.decode()))
    if form.get("password") != RIGHT:
        request.answer(b"no", "Status: 401 Unauthorized\r\n")
    else:
        request.answer(b"", "Status: 303 See Other\r\nLocation: /home\r\n")


def log_in(gateway, user, password, client="192.0.2.1", uri="/login"):
    body = urllib.parse.urlencode({"user": user, "password": password})
    return gateway.ask(
        uri, body.encode(), method="POST", client=client,
        CONTENT_TYPE="application/x-www-form-urlencoded",
        CONTENT_LENGTH=str(len(body)))


def test_login_wrong_passwords_of_an_account_from_anywhere(farm):
    gateway = one(farm, "login", handler=login)

    def guess(n):
        return log_in(gateway, "anna", "guess %d" % n, "192.0.2.%d" % n)

    assert [guess(n).status for n in range(1, 9)] == [401] * 5 + [429] * 3
    got = log_in(gateway, "anna", RIGHT, "192.0.2.99")
    assert got.status == 429
    assert b"Too many wrong passwords for this account." in got.body
    assert 0 < int(got.header("Retry-After")) <= 15 * 60 * 2
    # Others are none the worse for it, nor is what is no login.
    assert log_in(gateway, "bert", RIGHT).status == 303
    assert gateway.ask("/login").status == 401  # a GET of the form
    assert log_in(gateway, "anna", "x", uri="/else").status == 401


def test_login_right_passwords_count_for_nothing(farm):
    gateway = one(farm, "login", handler=login)
    for _ in range(3):
        for _ in range(10):
            assert log_in(gateway, "anna", RIGHT).status == 303
        assert log_in(gateway, "anna", "wrong").status == 401
    assert [log_in(gateway, "anna", "wrong").status
            for _ in range(3)] == [401, 401, 429]


def test_login_one_password_on_every_account(farm):
    gateway = one(farm, "login", handler=login)
    got = [log_in(gateway, "user%d" % n, "123456",
                  "2001:db8:0:1::%x" % n) for n in range(22)]
    assert [g.status for g in got] == [401] * 20 + [429] * 2
    assert b"from your address" in got[-1].body
    assert log_in(gateway, "user99", RIGHT, "2001:db8:0:2::1").status == 303


def test_login_names_that_are_made_up(farm):
    gateway = one(farm, "login", ("100/1m", "100/1h"), handler=login)
    statuses = sum(together(4, lambda i: [
        log_in(gateway, "x%d-%d" % (i, n), RIGHT).status
        for n in range(30)]), [])
    assert (statuses.count(303), statuses.count(429)) == (100, 20)


def test_login_without_a_name(farm):
    gateway = one(farm, "login", handler=login)
    assert gateway.ask("/login", method="POST",
                       CONTENT_LENGTH="0").status == 403


# api-keys.ini

def api(gateway, api_key=None, client="192.0.2.1", uri="/api/x"):
    headers = {} if api_key is None else {"X-Api-Key": api_key}
    return gateway.ask(uri, headers=headers, client=client)


def test_api_keys_have_what_their_tier_says(farm):
    gateway = one(farm, "api-keys")
    assert api(gateway, "example-1").limit[:2] == (100, 99)
    assert api(gateway, "example-2").limit[:2] == (100, 99)
    assert api(gateway, "example-gold-1").limit[:2] == (1000, 999)
    assert api(gateway, "example-leaked-1").status == 429
    assert api(gateway).status == 403
    assert api(gateway, "made-up").status == 403
    assert api(gateway, uri="/about").limit == (None, None, None)
    office = api(gateway, "example-1", "2001:db8:1:ffff::1")
    assert office.limit == (None, None, None)
    # A key that is not welcome is so from there too.
    assert api(gateway, "example-leaked-1", "198.51.100.9").status == 429


def test_api_keys_a_hundred_a_minute(farm):
    gateway = one(farm, "api-keys")
    statuses = sum(together(4, lambda i: [
        api(gateway, "example-1", "192.0.2.%d" % i).status
        for _ in range(30)]), [])
    assert (statuses.count(200), statuses.count(429)) == (100, 20)
    assert api(gateway, "example-gold-1").status == 200


# site.ini

def test_site_by_address_and_by_64(farm):
    gateway = one(farm, "site", ("10/1s burst 50", "1/1h burst 50"))

    def ask(i):
        return [gateway.ask("/", client="2001:db8:7:1:%x::%x" % (i, n)).status
                for n in range(20)]

    statuses = sum(together(4, ask), [])
    assert (statuses.count(200), statuses.count(429)) == (50, 30)
    assert gateway.ask("/", client="2001:db8:7:2::1").limit[1] == 49
    assert gateway.ask("/", client="192.0.2.1").limit[1] == 49
    assert gateway.ask("/", client="192.0.2.2").limit[1] == 49
    assert gateway.ask("/", client="::ffff:192.0.2.2").limit[1] == 48


def test_site_by_48_and_24(farm):
    gateway = one(farm, "site", ("3000/1m", "5/1h"))

    def statuses(form):
        return [gateway.ask("/", client=form % n).status for n in range(7)]

    few = [200] * 5 + [429] * 2
    assert statuses("2001:db8:7:%x::1") == few
    assert statuses("2001:db8:8:%x::1") == few
    assert statuses("192.0.2.%d") == few
    assert statuses("198.51.100.%d") == few


def test_site_what_is_not_counted(farm):
    gateway = one(farm, "site")
    none = (None, None, None)
    assert gateway.ask("/static/logo.png").limit == none
    assert gateway.ask("/static/../page").limit != none
    assert gateway.ask("/", client="127.0.0.1").limit == none
    assert gateway.ask("/", client="::1").limit == none


# costs.ini

def test_costs_one_budget(farm):
    gateway = one(farm, "costs", ("100/1m", "100/1h"))

    def left(uri, method="GET"):
        got = gateway.ask(uri, method=method, CONTENT_LENGTH="0")
        return got.status, got.limit[1]

    assert left("/export", "POST") == (200, 50)
    assert left("/search?q=x") == (200, 40)
    assert left("/search/images") == (200, 30)
    assert left("/export") == (200, 29)
    assert left("/export", "POST") == (429, 29)
    assert [left("/search")[1] for _ in range(2)] == [19, 9]
    assert left("/search") == (429, 9)
    assert [left("/")[1] for _ in range(9)] == list(range(8, -1, -1))
    assert left("/") == (429, 0)
    assert left("/health") == (200, 0)
    assert gateway.ask("/", client="192.0.2.2").limit[1] == 99


# downloads.ini

class Downloads:
    """Sends the first piece of a file; the rest when it may end."""

    def __init__(self):
        self.may_end = threading.Event()

    def __call__(self, request):
        request.write(b"Content-Type: text/plain\r\n\r\nfirst ")
        if request.param("SCRIPT_NAME").endswith("/slow"):
            assert self.may_end.wait(30.0)
        request.write(b"last")
        request.end()


class Download:
    """A client in the middle of one, or refused."""

    def __init__(self, gateway, client):
        self.conn = gateway.connect(seconds=30.0)
        self.conn.send(fcgi.request(fcgi.env("/download/slow", client=client)))
        _, _, content = self.conn.read_record()
        self.refused = content.startswith(b"Status: 429")


def begin(gateway, client="192.0.2.1"):
    """One more download, as soon as there is a place for it."""
    while True:
        got = Download(gateway, client)
        if not got.refused:
            return got
        got.conn.close()


def download(gateway, client="192.0.2.1", uri="/download/quick"):
    return gateway.ask(uri, client=client)


def test_downloads_two_at_a_time(farm):
    handler = Downloads()
    gateway = one(farm, "downloads", handler=handler)
    first, second = begin(gateway), begin(gateway)
    got = download(gateway)
    assert (got.status, got.header("Retry-After")) == (429, "1")
    assert b"Two downloads at a time, please." in got.body
    # Others have their own, and pages are no downloads.
    assert download(gateway, "192.0.2.2").status == 200
    assert download(gateway, uri="/page").status == 200
    # A client that goes away frees its place, one that has it all as well.
    first.conn.close()
    until(lambda: download(gateway).status == 200, 5.0, "a free place")
    third = begin(gateway)
    assert download(gateway).status == 429
    handler.may_end.set()
    for conn in (second.conn, third.conn):
        assert conn.response().out.endswith(b"last")
        conn.close()
    until(lambda: download(gateway).status == 200, 5.0, "a free place")


def test_downloads_twenty_of_all(farm):
    handler = Downloads()
    gateway = one(farm, "downloads", handler=handler)
    some = [begin(gateway, "192.0.2.%d" % n) for n in range(20)]
    got = download(gateway, "192.0.2.99")
    assert (got.status, got.header("Retry-After")) == (503, "1")
    assert download(gateway, uri="/page").status == 200
    handler.may_end.set()
    for each in some:
        assert each.conn.response().complete
        each.conn.close()


# four-servers.ini

@pytest.fixture
def four(farm):
    redis = farm.redis()
    application = farm.application(ok)
    return [serve(farm, "four-servers", redis, application,
                  ("rate = 100/1m", "rate = 100/1h"),
                  ("outage_rate = 25/1m", "outage_rate = 25/1h"))
            for _ in range(4)], redis


def visits(gateways, times, **kwargs):
    """The statuses of so many requests to each at once."""
    return sum(together(len(gateways), lambda i: [
        gateways[i].ask("/", **kwargs).status for _ in range(times)]), [])


def test_four_servers_are_one_limit(four):
    gateways, _ = four
    for who in ({"client": "192.0.2.1"}, {"client": "192.0.2.2"},
                {"REMOTE_USER": "anna"}):
        statuses = visits(gateways, 30, **who)
        assert (statuses.count(200), statuses.count(429)) == (100, 20)


def test_four_servers_without_redis_have_a_quarter_each(four):
    gateways, redis = four
    assert visits(gateways, 1) == [200] * 4
    redis.kill()
    statuses = visits(gateways, 30)
    assert (statuses.count(200), statuses.count(429)) == (100, 20)
