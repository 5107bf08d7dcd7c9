"""SIGHUP and SIGUSR1: what changes, what stays, what is said."""

import os
import signal
import threading

import pytest

from harness import fcgi
from harness.deadline import until
from harness.gateway import APPS
from harness.recipes import MEMORY, by_key, cgi, fastcgi, key


def config(rate="3/1h", store=MEMORY, **more):
    return {"store": store, "limit keyed": by_key(rate),
            "backend default": cgi(), **more}


def ask(gateway, who="k", uri="/hello.cgi"):
    return gateway.ask(uri, headers=key(who))


@pytest.mark.parametrize("kind", ["memory", "redis"])
def test_B88_B98_a_changed_limit_is_in_force_and_counts_go_on(farm, kind):
    store = MEMORY
    if kind == "redis":
        store = {"address": farm.redis().address, "timeout": "2s"}
    gateway = farm.gateway(config("3/1h", store))
    assert [ask(gateway).status for _ in range(4)] == [200] * 3 + [429]
    gateway.log.wait_for(
        "reloaded", since=gateway.reload(config("5/1h", store)))
    assert ask(gateway).limit[:2] == (5, 1)
    assert ask(gateway).limit[:2] == (5, 0)
    assert ask(gateway).status == 429
    gateway.log.wait_for(
        "reloaded", since=gateway.reload(config("2/1h", store)))
    got = ask(gateway)
    assert (got.status, got.limit[:2]) == (429, (2, 0))


@pytest.mark.parametrize("change", [
    {"prefix": "other"}, {"key_secret": "another"}], ids=lambda c: list(c)[0])
def test_the_names_of_counts_take_a_restart(farm, change):
    gateway = farm.gateway(config("3/1h"))
    assert [ask(gateway).status for _ in range(4)] == [200] * 3 + [429]
    for _ in range(2):  # what is told does not depend on what was told
        mark = gateway.reload(config("3/1h", {**MEMORY, **change}))
        gateway.log.wait_for("reloaded", since=mark)
        warnings = gateway.log.find("config_warning", mark)
        assert any(list(change)[0] in w["msg"] for w in warnings)
        assert ask(gateway).status == 429
    mark = gateway.reload(config("3/1h"))
    gateway.log.wait_for("reloaded", since=mark)
    assert not any("restart" in w["msg"]
                   for w in gateway.log.find("config_warning", mark))


@pytest.mark.parametrize("change", [
    {"algorithm": "sliding_window"}, {"rate": "3/2h"},
    {"key": "header:X-Key+method"}], ids=lambda c: list(c)[0])
def test_a_new_count_is_told(farm, change):
    changed = config("3/1h")
    changed["limit keyed"] = {**changed["limit keyed"], **change}
    if "algorithm" in change:
        changed["limit keyed"].pop("align")
    gateway = farm.gateway(config("3/1h"))
    assert [ask(gateway).status for _ in range(4)] == [200] * 3 + [429]
    mark = gateway.reload(changed)
    gateway.log.wait_for("reloaded", since=mark)
    told = gateway.log.find("limit_counts_anew", mark)
    assert len(told) == 1 and "[limit keyed]" in told[0]["msg"]
    assert ask(gateway).status == 200
    mark = gateway.reload({**changed, "limit keyed": {
        **changed["limit keyed"], "message": "slowly"}})
    gateway.log.wait_for("reloaded", since=mark)
    assert not gateway.log.find("limit_counts_anew", mark)


@pytest.mark.parametrize("bad", [
    "[limit keyed]\nrate = nonsense\n", "", "[gateway\n",
    "[nowhere]\na = b\n", "[gateway]\nunknown = 1\n"])
def test_a_bad_file_changes_nothing_and_says_so(farm, bad):
    gateway = farm.gateway(config())
    assert ask(gateway).limit[:2] == (3, 2)
    good = open(gateway.config_path).read()
    mark = gateway.reload(bad)
    gateway.log.wait_for("reload_failed", since=mark)
    assert gateway.config_path in gateway.log.text()
    assert ask(gateway).limit[:2] == (3, 1)
    with open(gateway.config_path, "w") as f:
        f.write(good)
    mark = gateway.log.mark()
    gateway.signal(signal.SIGHUP)
    gateway.log.wait_for("reloaded", since=mark)
    assert ask(gateway).limit[:2] == (3, 0)


def test_a_missing_file_changes_nothing(farm):
    gateway = farm.gateway(config())
    os.unlink(gateway.config_path)
    mark = gateway.log.mark()
    gateway.signal(signal.SIGHUP)
    gateway.log.wait_for("reload_failed", since=mark)
    assert ask(gateway).status == 200


def test_what_needs_a_restart_is_said(farm):
    gateway = farm.gateway(config())
    mark = gateway.reload(config(gateway={"threads": 3}))
    gateway.log.wait_for("reloaded", since=mark)
    told = gateway.log.find("config_warning", mark)
    with open(gateway.config_path) as f:
        line = f.read().split("\n").index("threads = 3") + 1
    place = "%s:%d: [gateway] threads: " % (gateway.config_path, line)
    assert any(entry["msg"].startswith(place) for entry in told)


def test_requests_in_flight_keep_their_configuration(farm):
    go = threading.Event()

    def handler(request):
        go.wait(20.0)
        request.answer("old")

    app = farm.application(handler)
    gateway = farm.gateway(config(**{"backend default": fastcgi(app)}))
    with gateway.connect() as running, gateway.connect() as half:
        running.send(fcgi.request(fcgi.env("/", headers=key("f"))))
        whole = fcgi.request(fcgi.env("/hello.cgi", headers=key("f"),
                                      SCRIPT_FILENAME=APPS + "/hello.cgi"))
        half.send(whole[:40])
        until(lambda: app.seen == 1)
        for n in range(5):
            mark = gateway.reload(config("%d/1h" % (10 + n)))
            gateway.log.wait_for("reloaded", since=mark)
        half.send(whole[40:])
        got = half.response()
        assert (got.body, got.limit[0]) == (b"hello\n", 14)
        go.set()
        got = running.response()
        assert (got.body, got.limit[0]) == (b"old", 3)


def test_many_reloads_under_load_lose_nothing(farm):
    gateway = farm.gateway(config("100000/1h"))
    stop = threading.Event()
    seen = []

    def client():
        while not stop.is_set():
            seen.append(ask(gateway, "load", "/plain").limit[1])

    threads = [threading.Thread(target=client) for _ in range(3)]
    for t in threads:
        t.start()
    for n in range(15):
        mark = gateway.reload(config("100000/1h"))
        gateway.log.wait_for("reloaded", since=mark)
    stop.set()
    for t in threads:
        t.join()
    # Each took one: no two the same, none skipped.
    assert sorted(seen) == list(range(100000 - len(seen), 100000))


def test_sigusr1_reopens_the_log(farm):
    path = farm.place / "log"
    gateway = farm.gateway(config(log={"target": "file:" + path,
                                       "access": "all"}), wait=False)
    gateway.wait_listening(gateway.address)
    ask(gateway)
    until(lambda: "event=request" in open(path).read())
    os.rename(path, path + ".1")
    gateway.signal(signal.SIGUSR1)
    until(lambda: os.path.exists(path), what="the new log")
    ask(gateway, "later")
    until(lambda: "event=request" in open(path).read())
    assert open(path + ".1").read().count("event=request") == 1


def test_signals_in_a_burst_do_no_harm(farm):
    gateway = farm.gateway(config("100000/1h"))
    for n in range(30):
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGPIPE):
            gateway.signal(number)
        assert ask(gateway, "b").status == 200
    assert gateway.running()


def test_another_kind_of_store_takes_a_restart_however_often_it_is_asked(farm):
    gateway = farm.gateway(config("3/1h"))
    other = {"address": farm.redis().address}
    assert [ask(gateway).status for _ in range(3)] == [200] * 3
    for store in (other, other, MEMORY, other):
        mark = gateway.reload(config("3/1h", store))
        gateway.log.wait_for("reloaded", since=mark)
        assert ask(gateway).status == 429
    gateway.stop()


def test_a_failed_reload_leaves_the_store_as_it_was(farm):
    """A log that can not be opened, and a password beside it."""
    redis = farm.redis()
    store = {"address": redis.address, "timeout": "2s"}
    gateway = farm.gateway(config("3/1h", store))
    assert ask(gateway).limit[:2] == (3, 2)
    mark = gateway.reload(config(
        "3/1h", {**store, "password": "wrong"},
        log={"target": "file:/nowhere/at/all.log"}))
    gateway.log.wait_for("reload_failed", since=mark)
    admin = redis.client()
    links = [c for c in admin.client_list() if c["name"] == "sluice"]
    assert links
    for link in links:
        admin.client_kill_filter(_id=link["id"])
    until(lambda: ask(gateway, "other").limit[:1] == (3,), 5.0,
          what="the link to be made anew with the old password")
