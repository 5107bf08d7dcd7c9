"""mode = observe: counted, logged, and seen by nobody."""

import pytest

from harness.gateway import APPS
from harness.recipes import MEMORY, by_key, fastcgi, fixed, key


@pytest.fixture(scope="module")
def php(shared):
    return shared.php(children=2)


@pytest.fixture(scope="module", params=["memory", "redis"])
def gateway(request, shared, php):
    store = MEMORY
    if request.param == "redis":
        store = {"address": shared.redis().address}
    return shared.gateway({
        "store": store,
        "limit seen": by_key("2/1h, 4/2h", mode="observe"),
        "limit kept": by_key("3/1h"),
        "limit gone": {"rate": "deny", "path": "/gone", "mode": "observe"},
        "limit named": fixed("5/1h", path="/named", key="header:X-Name",
                             missing_key="deny", mode="observe"),
        "backend default": fastcgi(php),
    })


def ask(gateway, uri, **kwargs):
    kwargs.setdefault("SCRIPT_FILENAME", APPS + "/ok.php")
    return gateway.ask(uri, **kwargs)


def test_neither_status_nor_headers(gateway):
    mark = gateway.log.mark()
    for left in (2, 1, 0):
        got = ask(gateway, "/", headers=key("a"))
        assert (got.status, got.limit[:2]) == (200, (3, left))
    assert ask(gateway, "/", headers=key("a")).status == 429
    # The third would have been refused, and so would the fourth.
    found = gateway.log.wait_for("would_refuse", since=mark, count=2)
    assert [(e["limit"], e["path"], e["client"]) for e in found] == [
        ("seen", "/", "192.0.2.1")] * 2
    # Nothing more comes.
    ask(gateway, "/gone")
    gateway.log.wait_for("would_refuse", since=mark, limit="gone")
    assert len(gateway.log.find("would_refuse", mark)) == 3


def test_once_a_request_however_many_rates(gateway):
    mark = gateway.log.mark()
    for n in range(6):
        ask(gateway, "/", headers=key("b"))
    # Its 2/1h refuses from the third on; nothing more comes.
    gateway.log.wait_for("would_refuse", since=mark, count=4)
    ask(gateway, "/gone")
    gateway.log.wait_for("would_refuse", since=mark, limit="gone")
    assert len(gateway.log.find("would_refuse", mark, limit="seen")) == 4


def test_what_needs_no_store(gateway):
    mark = gateway.log.mark()
    got = ask(gateway, "/gone")
    assert (got.status, got.limit) == (200, (None, None, None))
    gateway.log.wait_for("would_refuse", since=mark, limit="gone",
                         reason="its rate is deny")
    got = ask(gateway, "/named")
    assert (got.status, got.limit) == (200, (None, None, None))
    gateway.log.wait_for("would_refuse", since=mark, limit="named",
                         reason="its key is missing")
