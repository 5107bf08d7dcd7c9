"""What a gateway costs its Redis, and what a Redis that is gone costs."""

import http.client
import signal
import time

import redis

from fastcgi import fcgi
from load import checks, steady
from stand import Missing, Stand
from ways import GATEWAYS, plain, start_gateway, start_hello, start_redis, \
    start_way

REFUSALS = 200
OUTAGE_RATE = 1000  # requests a second
BACK_SECONDS = 20


def calls_a_second(figures, rounds, seconds):
    """Checks a second of one Redis, 32 in a call and one in a call."""
    names = ["%s by %d" % (law, n) for law in
             ("fixed_window", "sliding_window") for n in (32, 1)]
    with Stand() as stand, figures.trying(*names):
        path = start_redis(stand)
        for _ in range(rounds):
            for name in names:
                law, _, a_call = name.split()
                figures.add(name, checks(path, law, int(a_call), seconds))


def commands(figures, rounds, _):
    """Commands that Redis has run for each of many refusals of one key that
    was refused just before."""
    for name in ("refused", "refused by Redis"):
        with figures.trying(name), Stand() as stand:
            # A slow moment is no outage, which would let a request pass.
            gateway = GATEWAYS[name]._replace(store="timeout = 5s")
            path, _ = start_gateway(stand, plain(name), gateway,
                                    start_hello(stand, "application"))
            with redis.Redis(unix_socket_path=stand.path("redis.sock"),
                             socket_timeout=5) as db, \
                    fcgi.Connection(path) as gateway:
                gateway.ask(fcgi.env(), keep=True)
                for _ in range(rounds):
                    refuse(gateway, 1)
                    before = commands_of(db)
                    refuse(gateway, REFUSALS)
                    figures.add(name, (commands_of(db) - before) / REFUSALS)


def refuse(gateway, times):
    for _ in range(times):
        status = gateway.ask(fcgi.env(), keep=True).status
        if status != 429:
            raise Missing("answered %d" % status)


def commands_of(db):
    return sum(stats["calls"] for name, stats in
               db.info("commandstats").items() if name != "cmdstat_info")


def outage(figures, rounds, seconds):
    """The longest answer while Redis begins to hang; and how much longer the
    middle one takes from then on than without any limit."""
    ways = ("lighttpd, exact", "lighttpd, unlimited")
    with figures.trying("outage begins", "outage adds"), Stand() as stand:
        ports = [start_way(stand, way) for way in ways]

        def took(at):
            return steady(ways[at], ports[at], OUTAGE_RATE, seconds)

        for _ in range(rounds):
            wait_for_numbers(ports[0])
            stand.redis.send_signal(signal.SIGSTOP)
            try:
                figures.add("outage begins", took(0).max_us / 1000)
                figures.add("outage adds",
                            (took(0).p50_us - took(1).p50_us) / 1000)
            finally:
                stand.redis.send_signal(signal.SIGCONT)


def wait_for_numbers(port):
    """Until answers tell what remains: Redis is there."""
    deadline = time.monotonic() + BACK_SECONDS
    while time.monotonic() < deadline:
        conn = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            conn.request("GET", "/")
            if conn.getresponse().headers["X-RateLimit-Remaining"]:
                return
        finally:
            conn.close()
    raise Missing("no numbers within %d s of Redis' return" % BACK_SECONDS)
