"""One line an event, that no client can forge, and that tells enough."""

import json
import signal

import pytest

from harness.deadline import until
from harness.gateway import APPS
from harness.log import PIPE_BYTES
from harness.recipes import MEMORY, by_key, cgi, fixed, key


@pytest.fixture(scope="module")
def gateway(shared):
    return shared.gateway({
        "store": MEMORY,
        "limit few": by_key("1/1h"),
        "limit needed": fixed("5/1h", path="/needed", key="header:X-Need",
                              missing_key="deny"),
        "backend gone": {"address": "unix:/nonexistent", "path": "/gone*"},
        "backend scripts": {**cgi(), "path": "/*.cgi"},
    })


def lines_of(gateway, uri, count=1, **kwargs):
    """The entries that asking `count` times has left."""
    mark = gateway.log.mark()
    for _ in range(count):
        gateway.ask(uri, **kwargs)

    def found():
        with gateway.log.changed:
            seen = gateway.log.entries[mark:]
        seen = [e for e in seen if e.get("event") in ("request", "refused")]
        return seen if len(seen) >= count else None

    return until(found, what="the request's line")


def test_an_allowed_request(gateway):
    entry = lines_of(gateway, "/hello.cgi", headers=key("a"))[0]
    assert entry["event"] == "request"
    assert entry["status"] == "200"
    assert entry["client"] == "192.0.2.1"
    assert entry["method"] == "GET"
    assert entry["path"] == "/hello.cgi"
    assert entry["limit"] == "few"
    assert entry["backend"] == "scripts"
    store, backend, total = (
        int(entry[k]) for k in ("store_us", "backend_us", "total_us"))
    assert store >= 0 and backend > 0 and store + backend <= total


def test_a_refused_request(gateway):
    entries = lines_of(gateway, "/hello.cgi", 2, headers=key("r"))
    (entry,) = [e for e in entries if e["event"] == "refused"]
    assert entry["status"] == "429"
    assert entry["limit"] == "few"
    assert entry["remaining"] == "0"
    assert 0 < int(entry["retry_us"]) <= 2 * 3600 * 1000000


def test_a_missing_key_is_a_refusal(gateway):
    entry = lines_of(gateway, "/needed")[0]
    assert (entry["event"], entry["status"]) == ("refused", "403")
    assert entry["limit"] == "needed"


def test_39_a_failure_names_request_and_backend(gateway):
    entry = lines_of(gateway, "/gone/x", headers={"Host": "www.example"})[0]
    assert entry["status"] == "502"
    assert entry["path"] == "/gone/x"
    assert entry["host"] == "www.example"
    assert entry["backend"] == "gone"
    assert "/nonexistent" in entry["error"]


@pytest.mark.parametrize("uri, shown", [
    ("/a%0aevent=forged", "/a\nevent=forged"),
    ("/a%1b[31m", "/a\033[31m"),
    ("/a%22 b=c", '/a" b=c'),
    ("/a%5c%22", '/a\\"'),
])
def test_no_client_can_forge_a_line(gateway, uri, shown):
    mark = gateway.log.mark()
    entry = lines_of(gateway, uri)[0]
    assert entry["path"] == shown
    only_line_is_good(gateway, mark)


def only_line_is_good(gateway, mark):
    """Once another has come behind it: one line, of printable characters."""
    lines_of(gateway, "/behind")
    with gateway.log.changed:
        lines = gateway.log.lines[mark:]
    assert len(lines) == 2 and " path=/behind" in lines[1], lines
    assert lines[0].startswith("time=") and lines[0].isprintable()


def test_a_host_of_any_bytes(gateway):
    host = "x\r\nevent=forged \x7f\x01"
    mark = gateway.log.mark()
    entry = lines_of(gateway, "/x", headers={"Host": host})[0]
    assert entry["host"] == host
    only_line_is_good(gateway, mark)


def test_a_very_long_path_is_cut_in_its_value(gateway):
    mark = gateway.log.mark()
    entry = lines_of(gateway, "/long/" + "y" * 20000)[0]
    assert entry["path"].strip("y") == "/long/"
    with gateway.log.changed:
        (line,) = gateway.log.lines[mark:]
    assert line.startswith("time=") and 4000 < len(line) <= 4096


def test_what_a_script_complains_of(gateway):
    gateway.ask("/noisy.cgi")
    entry = gateway.log.wait_for("backend_stderr")
    assert entry["backend"] == "scripts"
    assert entry["path"] == "/noisy.cgi"
    assert "news" in entry["msg"]


@pytest.mark.parametrize("access, events", [
    ("off", []), ("denied", ["refused"]),
    ("all", ["request", "refused"])])
def test_access(farm, access, events):
    gateway = farm.gateway({
        "store": MEMORY, "limit few": by_key("1/1h"),
        "backend default": cgi(), "log": {"access": access}})
    for status in (200, 429):
        assert gateway.ask("/hello.cgi", headers=key("x")).status == status
    gateway.stop()
    seen = [e["event"] for e in gateway.log.entries
            if e.get("event") in ("request", "refused")]
    # Written once the answer is out, so a later request may come first.
    assert sorted(seen) == sorted(events)


def test_json(farm):
    path = farm.place / "log"
    gateway = farm.gateway({
        "store": MEMORY, "limit few": by_key("1/1h"),
        "backend default": cgi(),
        "log": {"format": "json", "access": "all", "target": "file:" + path},
    }, wait=False)
    gateway.wait_listening(gateway.address)
    gateway.ask("/a%0a\"b\\%1f\u00fc", headers=key("x"),
                SCRIPT_FILENAME=APPS + "/hello.cgi")
    gateway.stop()
    with open(path, encoding="utf-8") as f:
        entries = [json.loads(line) for line in f]
    events = [e["event"] for e in entries]
    assert events[0] == "ready" and events[-1] == "stopped"
    request = entries[events.index("request")]
    assert request["status"] == 200
    assert request["path"] == "/a\n\"b\\\x1f\u00fc"


def counters_of(gateway):
    """As it says them when it ends."""
    out = {}
    for entry in gateway.log.find("counters"):
        out.update(entry)
    return out


def test_nobody_reads_the_log(farm):
    """No request waits; what is lost is counted, and told in its place."""
    gateway = farm.gateway({
        "store": MEMORY, "limit few": by_key("1/1h"),
        "backend default": cgi()})
    assert gateway.ask("/hello.cgi", headers=key("x")).status == 200
    gateway.log.stop_reading()
    for n in range(PIPE_BYTES // 3000 + 200):
        got = gateway.ask("/%d/%s" % (n, "y" * 3000), headers=key("x"))
        assert got.status == 429
    gateway.log.go_on_reading()
    until(lambda: gateway.ask("/", headers=key("x")).status == 429
          and gateway.log.find("log_lines_lost"), what="the gap to be told")
    until(lambda: gateway.ask("/after", headers=key("x")).status == 429
          and gateway.log.find("refused", path="/after"), what="a line")
    gateway.stop()
    lost = sum(int(e["lines"]) for e in gateway.log.find("log_lines_lost"))
    assert lost > 100
    counters = counters_of(gateway)
    assert int(counters["log_lines_lost"]) == lost
    seen = len(gateway.log.find("refused"))
    assert seen + lost == int(counters["requests_refused"])


def test_it_ends_though_nobody_reads_the_log(farm):
    gateway = farm.gateway({
        "store": MEMORY, "limit few": by_key("1/1h"),
        "backend default": cgi()})
    gateway.log.stop_reading()
    for _ in range(PIPE_BYTES // 3000 + 50):
        gateway.ask("/" + "y" * 3000, headers=key("x"))
    gateway.signal(signal.SIGTERM)
    assert gateway.wait_exit() == 0
    gateway.stop()
