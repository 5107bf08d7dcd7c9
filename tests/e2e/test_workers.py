"""Few workers wait for events; whoever waits for a peer is replaced."""

import os
import threading

from harness import fcgi
from harness.deadline import until
from harness.recipes import MEMORY, by_key, fastcgi, key

FULL_WATCH = 4  # at most, whatever the machine has
SLOW = 16


def threads_of(gateway):
    return len(os.listdir("/proc/%d/task" % gateway.pid))


def test_threads_come_on_demand(farm):
    """Refusals need no more than a watch; relays one more each."""
    go = threading.Event()

    def wait(request):
        go.wait(60.0)
        request.answer("at last")

    app = farm.application(wait)
    gateway = farm.gateway({
        "gateway": {"threads": 64},
        "store": MEMORY,
        "limit keyed": by_key("1/1h"),
        "backend default": fastcgi(app),
    })
    at_first = threads_of(gateway)
    conns = []
    try:
        for i in range(SLOW + 1):
            conns.append(gateway.connect(30.0))
            conns[-1].send(fcgi.request(fcgi.env("/", headers=(
                key("k") if i == 0 else {}))))
        until(lambda: app.seen == SLOW + 1, what="all inside")
        for _ in range(50):
            assert gateway.ask("/", headers=key("k")).status == 429
        assert SLOW < threads_of(gateway) - at_first + 1 <= \
            SLOW + 1 + FULL_WATCH
    finally:
        go.set()
        for conn in conns:
            assert conn.response().body == b"at last"
            conn.close()


def test_few_threads_refuse(farm):
    gateway = farm.gateway({
        "gateway": {"threads": 64},
        "store": MEMORY,
        "limit all": {"rate": "deny"},
        "backend default": fastcgi(farm.application()),
    })
    at_first = threads_of(gateway)
    for _ in range(50):
        assert gateway.ask("/").status == 429
    assert threads_of(gateway) <= at_first - 1 + FULL_WATCH
