"""Leases where it matters which key is asked for: half of the requests spend
one hot key, the other half one of very many that are hardly asked for twice."""

import re
import statistics

from load import CONNECTIONS, run
from stand import Missing, Stand
from ways import (LEASE, WAYS, Gateway, must_know, start_gateway,
                  start_hello, start_lighttpd)

COLD_KEYS = 100000
SIZES = ("0", "4", "16", "64", "auto")
BEST_FIXED = "best fixed lease, mixed"
WARM_SECONDS = 1

ASK = """
-- Each thread draws keys of its own.
local threads = 0
setup = function(thread)
	threads = threads + 1
	thread:set("seed", threads)
end
init = function()
	math.randomseed(seed)
end
request = function()
	local key = math.random(2) == 1 and "hot" or math.random(%d)
	return wrk.format("GET", "/?k=" .. key)
end
""" % COLD_KEYS
LIMIT = """[limit mixed]
key = query:k
missing_key = deny
rate = 1000000000/1h
lease = %s
"""


def name_of(size):
    return "lease %s, mixed" % size


def saturate(stand, port, seconds):
    """Requests a second; none of them is refused."""
    script = stand.path("mixed.lua")
    with open(script, "w") as f:
        f.write(ASK)
    said = run(["wrk", "-t2", "-c%d" % CONNECTIONS, "-d%ds" % seconds,
                "--timeout", "10s", "-s", script,
                "http://127.0.0.1:%d/" % port], seconds)
    if "Non-2xx" in said or "Socket errors" in said:
        raise Missing("unexpected answers: " + " ".join(said.split())[:200])
    return float(re.search(r"Requests/sec:\s+([\d.]+)", said).group(1))


def start(stand, size):
    must_know(stand, (LEASE + ": auto",))
    name = "mixed-" + size
    path, _ = start_gateway(
        stand, name, Gateway(limited=False, store=LIMIT % size),
        start_hello(stand, name))
    return start_lighttpd(stand, name, WAYS["lighttpd"], path)


def mixed(figures, rounds, seconds):
    """Requests a second by each size of a lease, and by that of the fixed ones
    which was best over all."""
    names = [name_of(size) for size in SIZES] + [BEST_FIXED]
    with figures.trying(*names), Stand() as stand:
        ports = {size: start(stand, size) for size in SIZES}
        for port in ports.values():
            saturate(stand, port, WARM_SECONDS)
        rates = {size: [] for size in SIZES}
        for _ in range(rounds):
            for size, port in ports.items():
                rates[size].append(saturate(stand, port, seconds))
                figures.add(name_of(size), rates[size][-1])
        best = max((size for size in SIZES if size.isdigit()),
                   key=lambda size: statistics.median(rates[size]))
        for rate in rates[best]:
            figures.add(BEST_FIXED, rate)
