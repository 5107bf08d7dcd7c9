"""A store that announces more than there is, or says what no script says."""

import math

import pytest

from harness.deadline import SCALE, elapse, until
from harness.fake_redis import (
    NOW, OK, FakeRedis, array, bulk, decision, doubles)
from harness.log import OUTAGE
from harness.recipes import fastcgi, fixed

TIMEOUT_MS = 100 if SCALE == 1 else 500
SLACK_US = 20000 * SCALE
BROKE = ("the connection to Redis broke",)
LATE = ("Redis did not answer in time",)
EITHER = BROKE + LATE  # it takes a moment to read so much

GOOD = decision(0, 4, 3.6e9, 3.6e9)
NEVER = 2.0 ** 53  # of any figure


def flood(announced):
    """Announces, and then sends without end."""
    def say(sock, words):
        sock.sendall(announced)
        while True:
            sock.sendall(b"x" * 65536)
    return say


def drip(sock, words):
    """Something comes all the time, and it is never the end."""
    sock.sendall(b"$1000\r\n")
    while True:
        sock.sendall(b"x")
        elapse(0.01)


# What it says, and what is told of it.
LIES = {
    "2^31 elements": (b"*2147483648\r\n", BROKE),
    "2^31 - 1 elements": (b"*2147483647\r\n", BROKE),
    "65537 elements": (b"*65537\r\n", BROKE),
    "2^31 elements in an array": (b"*2\r\n*2147483648\r\n", BROKE),
    "elements beyond 64 bits": (b"*99999999999999999999\r\n", BROKE),
    "-2 elements": (b"*-2\r\n", BROKE),
    "no array": (b"*-1\r\n", BROKE),
    "an empty array": (b"*0\r\n", BROKE),
    "arrays without end": (b"*2\r\n" * 64, BROKE),
    "a string of 2^31 bytes": (b"$2147483648\r\n", LATE),
    "a string of 2^31 bytes that come": (flood(b"$2147483648\r\n"), EITHER),
    "a line that does not end": (flood(b"+"), EITHER),
    "an array of 2^31 bytes": (flood(b"*2\r\n$2147483648\r\n"), EITHER),
    "a string of -2 bytes": (b"$-2\r\n", BROKE),
    "a string beyond 64 bits": (b"$99999999999999999999\r\n", BROKE),
    "a string that comes byte by byte": (drip, LATE),
    "no string": (b"$-1\r\n", BROKE),
    "a number": (b":0\r\n", BROKE),
    "another protocol": (b"HTTP/1.1 400 Bad Request\r\n\r\n", BROKE),
    "no decision": (array(bulk(doubles(NOW))), BROKE),
    "numbers in place of figures": (array(b":1\r\n", b":0\r\n"), BROKE),
    "three figures": (decision(0, 4, 1), BROKE),
    "five figures": (decision(0, 4, 1, 1, 0), BROKE),
    "half a figure": (
        array(bulk(doubles(NOW)), bulk(doubles(0, 4, 1, 1)[:-1])), BROKE),
    "a time before time": (decision(0, 4, 1, 1, now=-3), BROKE),
    "a time that is none": (decision(0, 4, 1, 1, now=math.nan), BROKE),
    "a wait of -3": (decision(-3, 4, 1, 1), BROKE),
    "a wait without end": (decision(math.inf, 4, 1, 1), BROKE),
    "less than nothing remains": (decision(0, -1, 1, 1), BROKE),
    "more remains than there is": (decision(0, 6, 1, 1), BROKE),
    "no number remains": (decision(0, math.nan, 1, 1), BROKE),
    "next in the past": (decision(0, 4, -1, 1), BROKE),
    "full beyond all time": (decision(0, 4, 1, 2 * NEVER), BROKE),
    "a negative delay": (decision(0, 4, 1, 1, -1, 5), BROKE),
    "a delay of 142 years": (decision(0, 4, 1, 1, NEVER / 2, 5), BROKE),
    "a limit below what remains": (decision(0, 4, 1, 1, 0, 3), BROKE),
    "a negative limit": (decision(0, 0, 1, 1, 0, -1), BROKE),
}


def start(farm, say, **peer):
    peer = farm.add(FakeRedis(farm.place, say, **peer))
    app = farm.application(lambda request: request.answer(b"ok"))
    return peer, farm.gateway({
        "store": {"address": peer.address, "timeout": "%dms" % TIMEOUT_MS,
                  "breaker_failures": 1, "breaker_cooldown": "100ms"},
        "limit five": fixed("5/1h"),
        "backend default": fastcgi(app),
    })


@pytest.mark.parametrize("lie", LIES)
def test_is_an_outage_and_harms_nothing(farm, lie):
    peer, gateway = start(farm, GOOD)
    until(lambda: gateway.ask("/").limit[:2] == (5, 4), what="the store")
    memory = {what: gateway.memory_kb(what) for what in ("VmHWM", "VmPeak")}
    peer.say, reasons = LIES[lie]
    got = gateway.ask("/lie")
    assert (got.status, got.limit) == (200, (None, None, None))
    entry = gateway.log.wait_for("request", path="/lie")
    assert entry["outage"] in reasons
    assert int(entry["store_us"]) <= TIMEOUT_MS * 1000 + SLACK_US
    assert gateway.log.wait_for(OUTAGE)["msg"] == entry["outage"]
    grown = gateway.memory_kb("VmHWM") - memory["VmHWM"]
    assert grown < 16 * 1024
    # A heap for each of a few threads may be reserved.
    assert gateway.memory_kb("VmPeak") - memory["VmPeak"] < 1024 * 1024
    peer.say = GOOD
    until(lambda: gateway.ask("/").limit[:2] == (5, 4), 5.0, "recovery")


@pytest.mark.parametrize("lie", [
    "2^31 elements", "a string of 2^31 bytes that come",
    "a string that comes byte by byte"])
def test_the_same_while_it_is_logged_in_to(farm, lie):
    peer, gateway = start(farm, GOOD, greet=LIES[lie][0])
    assert gateway.ask("/").limit == (None, None, None)
    gateway.log.wait_for(OUTAGE, msg="Redis can not be reached")
    assert gateway.memory_kb("VmHWM") < 64 * 1024
    peer.greet = OK
    until(lambda: gateway.ask("/").limit[:2] == (5, 4), 5.0, "recovery")
