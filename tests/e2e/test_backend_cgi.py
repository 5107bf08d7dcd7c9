"""CGI scripts: found safely, run cleanly, ended with all they started."""

import hashlib
import os
import signal

import pytest

from harness import fcgi
from harness.deadline import SCALE, Deadline, timed, until
from harness.gateway import APPS
from harness.process import alive
from harness.recipes import cgi, script


@pytest.fixture(scope="module")
def gateway(shared):
    root = shared.place / "root"
    os.makedirs(root)
    outside = shared.place.write("outside.cgi", "#!/bin/sh\necho\n", 0o755)
    os.symlink(outside, root + "/link.cgi")
    os.makedirs(root + "/dir.cgi")
    shared.place.write("root/deaf.cgi", "#!/bin/sh\necho\n", 0o644)
    shared.place.write(
        "root/script.name", 'print("X-By: name\\n\\nrun by name")\n', 0o644)
    os.environ["SLUICE_TEST_PASSED"] = "passed on"
    os.environ["SLUICE_TEST_HIDDEN"] = "hidden"
    os.environ["LD_TEST_HIDDEN"] = "hidden"
    return shared.gateway({
        "backend own": {
            **cgi(root, env="SLUICE_TEST_PASSED, SLUICE_TEST_ABSENT",
                  interpreter=".name=/usr/bin/python3"),
            "path": "/own/*",
        },
        "backend short": {**cgi(run_timeout="300ms"), "path": "/short/*"},
        "backend default": cgi(env="SLUICE_TEST_PASSED"),
    })


def environment(gateway, **kwargs):
    lines = gateway.ask("/env.cgi", **kwargs).body.decode().split("\n")
    return dict(line.split("=", 1) for line in lines if "=" in line)


def test_its_environment_is_the_request_and_nothing_else(gateway):
    env = environment(gateway, headers={"X-Some": "thing"},
                      PATH_INFO="/more", CUSTOM="param")
    assert env["REQUEST_METHOD"] == "GET"
    assert env["HTTP_X_SOME"] == "thing"
    assert env["PATH_INFO"] == "/more"
    assert env["CUSTOM"] == "param"
    assert env["GATEWAY_INTERFACE"] == "CGI/1.1"
    assert env["SLUICE_TEST_PASSED"] == "passed on"
    assert "FCGI_ROLE" not in env
    assert not [name for name in env if "HIDDEN" in name]
    assert "HOME" not in env


def test_83_httpoxy(gateway):
    got = gateway.ask("/env.cgi", headers={"Proxy": "evil:1"})
    assert got.status == 200
    assert b"evil" not in got.body


def test_77_98_it_inherits_no_descriptor_and_runs_in_its_directory(gateway):
    env = environment(gateway)
    assert env["CWD"] == APPS
    # 3 may be the directory `ls` itself reads.
    assert set(env["FDS"].split()) <= {"0", "1", "2", "3", "10"}


def test_of_equal_names_a_script_gets_the_first(gateway):
    items = script("/env.cgi") + [("DOUBLE", "one"), ("DOUBLE", "two")]
    got = fcgi.ask(gateway.address, items)
    assert b"DOUBLE=one\n" in got.body
    assert b"DOUBLE=two" not in got.body


def test_the_query_is_no_argument(gateway):
    got = gateway.ask("/env.cgi?--version+-x")
    assert b"QUERY_STRING=--version+-x\n" in got.body


@pytest.mark.parametrize("prefix", [
    "proxy:fcgi://localhost", "proxy:fcgi://127.0.0.1:9000/",
    "proxy:fcgi://[::1]:9000"])
def test_48_apaches_prefix_is_cut(gateway, prefix):
    got = gateway.ask("/hello.cgi",
                      SCRIPT_FILENAME=prefix + APPS + "/hello.cgi")
    assert (got.status, got.body) == (200, b"hello\n")


def test_interpreter_by_the_end_of_the_name(gateway):
    got = own(gateway, "script.name")
    assert (got.status, got.body) == (200, b"run by name\n")


def own(gateway, name):
    root = gateway.place / "root"
    return gateway.ask("/own/x", SCRIPT_FILENAME=root + "/" + name)


@pytest.mark.parametrize("name, status", [
    ("absent.cgi", 404), ("link.cgi", 403), ("../outside.cgi", 403),
    ("dir.cgi", 403), ("", 403), (".", 403), ("deaf.cgi", 403),
    ("../root2/x.cgi", 404), ("deaf.cgi/more", 403)])
def test_scripts_are_found_safely(gateway, name, status):
    got = own(gateway, name)
    assert (got.status, got.complete) == (status, True)
    assert got.all("retry-after") == []


@pytest.mark.parametrize("value", [None, "", "hello.cgi", "relative/x.cgi"])
def test_no_usable_script_filename(gateway, value):
    got = gateway.ask("/own/x", SCRIPT_FILENAME=value)
    assert got.status in (403, 404)
    assert got.complete


def test_86_early_answer_with_a_big_unread_body(gateway):
    """94: a script that never reads its input is no error."""
    got = gateway.ask("/early.cgi", body=b"b" * 3_000_000, method="POST",
                      CONTENT_LENGTH="3000000")
    assert (got.status, got.body, got.complete) == (200, b"early\n", True)


def test_talks_before_it_listens(gateway):
    """200 KB out before the first byte is read: no dead-lock."""
    body = b"b" * 300_000
    got = gateway.ask("/talker.cgi", body=body, method="POST",
                      CONTENT_LENGTH="300000")
    assert got.body[:204800] == b"x" * 204800
    assert hashlib.sha256(body).hexdigest().encode() in got.body[204800:]
    assert got.complete


def test_a_flood_of_complaints(gateway):
    got = gateway.ask("/noisy.cgi")
    assert (got.status, got.body, got.complete) == (200, b"quiet\n", True)
    text = gateway.log.text()
    assert "\033" not in text and "\r" not in text
    assert len(max(text.split("\n"), key=len)) <= 4096


@pytest.mark.parametrize("case", ["27_no_head", "33_no_output"])
def test_no_head_is_502(gateway, case):
    uri = "/silent.cgi" if "33" in case else "/raw.cgi?" + APPS + "/plain.txt"
    got = gateway.ask(uri)
    assert (got.status, got.complete) == (502, True)


def test_95_a_child_left_behind_delays_nothing(gateway):
    """fcgiwrap 40: the script is over, its child holds the output open."""
    got, took = timed(gateway.ask, "/orphan.cgi")
    os.kill(int(got.body), signal.SIGKILL)
    assert got.complete
    assert took < 3 * SCALE


def short(gateway, uri):
    return gateway.ask("/short/x", SCRIPT_FILENAME=APPS + uri)


def test_95_run_timeout_before_the_head_is_504(gateway):
    got = short(gateway, "/mute.cgi")
    assert (got.status, got.complete) == (504, True)


def pids_of(path):
    until(lambda: os.path.exists(path), what="the script to start")
    with open(path) as f:
        return [int(word) for word in f.read().split()]


def test_93_the_whole_group_ends_when_the_client_goes(gateway):
    path = gateway.place / "hang1"
    with gateway.connect() as conn:
        conn.send(fcgi.request(script("/hang.cgi?" + path)))
        pids = pids_of(path)
        assert all(alive(pid) for pid in pids)
    until(lambda: not any(alive(pid) for pid in pids), 10.0,
          "the script and its child to end")


def test_93_the_whole_group_ends_at_run_timeout_and_the_answer_is_cut(
        gateway):
    path = gateway.place / "hang2"
    with gateway.connect() as conn:
        conn.send(fcgi.request(fcgi.env(
            "/short/x?" + path, SCRIPT_FILENAME=APPS + "/hang.cgi")))
        pids = pids_of(path)
        got = conn.response()
    assert got.status == 200
    assert got.eof and got.end is None
    until(lambda: not any(alive(pid) for pid in pids), 10.0,
          "the script and its child to end")


def test_55_85_events_go_on_one_by_one(gateway):
    """Event n is read before the script is given event n + 1."""
    fifo = gateway.place / "fifo"
    os.mkfifo(fifo)
    with gateway.connect() as conn:
        conn.send(fcgi.request(script("/events.cgi?" + fifo)))
        with open(fifo, "w") as lines:
            seen = b""
            for n in range(10):
                lines.write("event-%d\n" % n)
                lines.flush()
                want = b"data: event-%d\n\n" % n
                deadline = Deadline(2.0, "event %d" % n)
                while want not in seen:
                    kind, _, content = conn.read_record(deadline)
                    assert kind == fcgi.STDOUT
                    seen += content
        assert conn.response().complete


def test_89_no_zombies_after_many_scripts(gateway):
    for _ in range(30):
        assert gateway.ask("/hello.cgi").status == 200
    gateway.wait_idle(gateway.open_descriptors())
