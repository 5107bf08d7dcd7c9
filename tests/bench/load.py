"""The clients: each bounded in time, each refusing answers that are not those
of the way it measures: a figure of errors is none."""

import re
import subprocess
from typing import NamedTuple

from stand import Missing, program
from ways import REFUSED, WAYS, path_of

CONNECTIONS = 32
GRACE_SECONDS = 20
# Of a way that refuses: the first, and of a limiter by the minute the next.
MAY_PASS = 5


def run(argv, seconds):
    try:
        said = subprocess.run(
            [program(argv[0])] + argv[1:], stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=seconds + GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        raise Missing("%s did not end" % argv[0]) from None
    if said.returncode != 0:
        raise Missing("%s: %s" % (
            argv[0], " ".join((said.stderr or said.stdout).split())[:200]))
    return said.stdout


def check(name, answered, refused, errors):
    wrong = refused < answered - MAY_PASS if \
        WAYS[name].answers == REFUSED else refused > 0
    if wrong or errors or not answered:
        raise Missing("unexpected answers: %d, of them %d not 2xx; %s" % (
            answered, refused, errors or "no errors"))


class Wrk(NamedTuple):
    answered: int
    others: int  # of them, those not 2xx or 3xx
    errors: str
    rate: float


def wrk(name, port, seconds, connections):
    said = run(["wrk", "-t2", "-c%d" % connections, "-d%ds" % seconds,
                "--timeout", "10s", "http://127.0.0.1:%d%s" % (
                    port, path_of(name, WAYS[name]))], seconds)
    others = re.search(r"Non-2xx or 3xx responses: (\d+)", said)
    errors = re.search(r"Socket errors: .*", said)
    return Wrk(int(re.search(r"(\d+) requests in", said).group(1)),
               int(others.group(1)) if others else 0,
               errors.group() if errors else "",
               float(re.search(r"Requests/sec:\s+([\d.]+)", said).group(1)))


def saturate(name, port, seconds):
    """Requests a second."""
    got = wrk(name, port, seconds, CONNECTIONS)
    check(name, got.answered, got.others, got.errors)
    return got.rate


class Steady(NamedTuple):
    answered: int
    errors: int
    refused: int
    p50_us: float
    p99_us: float
    max_us: float


def steady(name, port, rate, seconds):
    """Latencies at a constant rate."""
    said = run(["steady", str(port), "%.1f" % rate, str(seconds),
                str(CONNECTIONS)], seconds).split()
    took = Steady(*map(int, said[:3]), *map(float, said[3:]))
    check(name, took.answered, took.refused,
          "%d without an answer" % took.errors if took.errors else "")
    return took


def checks(redis_path, algorithm, a_call, seconds):
    """Checks a second, straight from Redis."""
    return float(run(["checks", redis_path, algorithm, str(a_call),
                      str(seconds)], seconds))
