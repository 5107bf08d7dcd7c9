"""The cgi role, raw: one process, one request, and what becomes of it."""

import hashlib
import os
import signal
import socket
import subprocess
import time

import pytest

from harness.deadline import SCALE
from harness.gateway import APPS, listener
from harness.program import PATIENT, Program, signals
from harness.recipes import by_key, cgi, fixed, key, together

BODY = bytes(range(256)) * 4096  # 1 MiB
TIMEOUT_S = 0.05 * SCALE


@pytest.fixture(scope="module")
def redis(shared):
    return shared.redis()


@pytest.fixture(scope="module")
def root(shared):
    """A root with a script of each kind."""
    root = shared.place / "root"
    os.makedirs(root + "/dir.cgi")
    outside = shared.place.write("outside.cgi", "#!/bin/sh\necho\n", 0o755)
    os.symlink(outside, root + "/link.cgi")
    for name in ("hello", "env", "sha", "self"):
        with open("%s/%s.cgi" % (APPS, name)) as f:
            shared.place.write("root/%s.cgi" % name, f.read(), 0o755)
    write = shared.place.write
    write("root/deaf.cgi", "#!/bin/sh\necho\n", 0o644)
    write("root/lost.cgi", "#!/nowhere/at/all\n", 0o755)
    write("root/script.name", 'print("X-By: name\\n\\nrun by name")\n', 0o644)
    os.mkfifo(root + "/fifo.cgi", 0o755)
    return root


def config(redis, root, **more):
    return {
        "store": {"address": redis.address, **PATIENT},
        "limit keys": by_key("2/1h", message="Not so often."),
        "limit denied": {"rate": "deny", "path": "/denied*"},
        "backend default": cgi(root, interpreter=".name=/usr/bin/python3"),
        **more,
    }


@pytest.fixture(scope="module")
def program(shared, redis, root):
    return Program(shared.place, config(redis, root))


@pytest.fixture
def ask(program, root):
    """Asks for a script of the root."""
    def ask(uri, script=None, **kwargs):
        path = uri.partition("?")[0] if script is None else script
        return program.run(uri, root + path, **kwargs)
    return ask


def test_allowed(ask, request):
    for _ in range(2):
        got = ask("/hello.cgi", headers=key(request.node.name))
        assert (got.code, got.body) == (0, b"hello\n")
        assert got.limit == (None, None, None)
    line = got.logged("request")[0]
    assert line["role"] == "cgi" and line["remaining"] == "0"
    assert line["path"] == "/hello.cgi" and "status" not in line


def test_refused(ask, request):
    for _ in range(2):
        ask("/hello.cgi", headers=key(request.node.name))
    got = ask("/hello.cgi", headers=key(request.node.name))
    assert got.code == 0
    assert got.headers[0] == ("status", "429 Too Many Requests")
    assert got.limit == (2, 0, 3600)
    assert got.header("retry-after") == "3600"
    assert got.header("cache-control") == "no-store"
    assert got.body == (b"429 Too Many Requests\nNot so often.\n"
                        b"Try again in 3600 s.\n")
    assert got.logged("refused")[0]["status"] == "429"
    got = ask("/hello.cgi", method="HEAD", headers=key(request.node.name))
    assert (got.status, got.body) == (429, b"")
    got = ask("/hello.cgi", headers={
        "Accept": "application/json", **key(request.node.name)})
    assert got.header("content-type") == "application/problem+json"


def test_counts_are_those_of_every_gateway(farm, redis, root, ask, request):
    name = key(request.node.name)
    other = farm.gateway(config(redis, root))
    got = other.ask("/hello.cgi", headers=name,
                    SCRIPT_FILENAME=root + "/hello.cgi")
    assert got.limit == (2, 1, 3600)
    assert ask("/hello.cgi", headers=name).status == 200
    assert ask("/hello.cgi", headers=name).status == 429


def test_the_body_is_the_scripts(ask, request):
    got = ask("/sha.cgi", method="POST", body=BODY,
              CONTENT_LENGTH=str(len(BODY)))
    assert got.body.decode().split()[:2] == [
        str(len(BODY)), hashlib.sha256(BODY).hexdigest()]


def test_no_byte_of_a_refused_body_is_read_from_a_pipe(ask):
    its, ours = os.pipe()
    os.write(ours, b"x" * 10000)
    got = ask("/denied", method="POST", stdin=its, CONTENT_LENGTH="10000")
    assert got.status == 429
    os.close(ours)
    with open(its, "rb") as left:
        assert left.read() == b"x" * 10000


def test_a_refused_body_is_taken_from_a_socket(ask):
    """mod_cgid's goes both ways: an unread body would cost the answer. And
    no more is read than the body."""
    ours, its = socket.socketpair()
    with ours, its:
        ours.sendall(b"x" * 10000 + b"y")
        got = ask("/denied", method="POST", stdin=its,
                  CONTENT_LENGTH="10000")
        assert got.status == 429
        assert its.recv(20000, socket.MSG_DONTWAIT) == b"y"
        got = ask("/denied", stdin=its)
        assert got.status == 429


# What it becomes.

def test_it_is_the_script(ask, root):
    """Same process; nothing blocked or ignored; no descriptor left over."""
    got = ask("/self.cgi")
    says = got.says
    assert says["PID"] == str(got.pid)
    assert says["PARENT"] == str(os.getpid())
    assert signals(says) == (0, 0)
    # 10 is the script.
    assert set(says["FDS"].split()) <= {"0", "1", "2", "10"}
    assert says["CWD"] == root


def test_what_it_inherits_ends_with_it(farm, ask):
    """Signals that the web server ignored, descriptors it forgot."""
    path = farm.place.write("forgotten", "")
    got = ask("/self.cgi", prologue="trap '' PIPE TERM HUP INT USR1; "
              "exec 7<%s 9>&1" % path)
    assert signals(got.says) == (0, 0)
    assert set(got.says["FDS"].split()) <= {"0", "1", "2", "10"}


def test_blocked_signals_are_not(program, root):
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    try:
        got = program.run("/self.cgi", root + "/self.cgi")
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
    assert signals(got.says) == (0, 0)


def test_a_log_file_is_not_its(farm, redis, root):
    own = Program(farm.place, config(
        redis, root, log={"target": "file:%s/log" % farm.place.path}))
    got = own.run("/self.cgi", root + "/self.cgi")
    assert set(got.says["FDS"].split()) <= {"0", "1", "2", "10"}
    with open(farm.place / "log") as f:
        assert "role=cgi" in f.read()


def test_its_environment(program, ask, root):
    """As it came: no HTTP_PROXY, and what php-cgi wants."""
    given = program.environment(
        "/env.cgi?a=b", root + "/env.cgi", headers={"X-Some": "thing"},
        PATH_INFO="/more", CUSTOM="param", LD_BIND_NOW="1", FCGI_ROLE="x",
        REDIRECT_STATUS=None)
    got = ask("/env.cgi?a=b", headers={"X-Some": "thing", "Proxy": "evil:1"},
              PATH_INFO="/more", CUSTOM="param", LD_BIND_NOW="1",
              FCGI_ROLE="x", REDIRECT_STATUS=None).says
    for own in ("CWD", "FDS", "PWD", "_"):
        got.pop(own, None)
    given.pop("FCGI_ROLE")
    assert got == {**given, "REDIRECT_STATUS": "200"}


def test_an_interpreter(ask):
    got = ask("/script.name")
    assert (got.header("x-by"), got.body) == ("name", b"run by name\n")


# Which script.

@pytest.mark.parametrize("uri, status, why", [
    ("/missing.cgi", 404, "no such script"),
    ("/dir.cgi", 403, ""),
    ("/fifo.cgi", 403, "no regular file"),
    ("/deaf.cgi", 403, "may not be run"),
    ("/link.cgi", 403, "outside root"),
    ("/../outside.cgi", 403, "outside root"),
    ("/lost.cgi", 502, "can not start"),
])
def test_it_runs_nothing_else(ask, uri, status, why, request):
    """What was counted stays so, and the answer says it."""
    got = ask(uri, headers=key(request.node.name))
    assert (got.status, got.code) == (status, 0)
    assert got.limit == (2, 1, 3600)
    line = [e for e in got.logged("request") if "error" in e][0]
    assert why in line["error"] and line["status"] == str(status)


def test_path_info(ask, root):
    got = ask("/env.cgi/more/of/it", SCRIPT_NAME="/env.cgi/more/of/it").says
    assert got["SCRIPT_FILENAME"] == root + "/env.cgi"
    assert got["SCRIPT_NAME"] == "/env.cgi"
    assert got["PATH_INFO"] == "/more/of/it"


def test_only_of_a_backend_for_scripts(farm, redis, root):
    own = Program(farm.place, config(redis, root, **{
        "gateway": {"roles": "responder, cgi"},
        "backend default": {**cgi(root), "path": "/hello*"},
        "backend php": {"address": "127.0.0.1:9", "path": "/self*"},
    }))
    assert own.run("/hello.cgi", root + "/hello.cgi").body == b"hello\n"
    got = own.run("/self.cgi", root + "/self.cgi")
    assert got.status == 404
    assert got.logged("request")[0]["error"] == (
        "backend php is not of type = cgi")
    got = own.run("/env.cgi", root + "/env.cgi")
    assert got.status == 404
    assert got.logged("request")[0]["error"] == "no backend matches"


# By way of an Action: the script is what follows.

def action(root, uri, script, **more):
    return {"SCRIPT_NAME": "/gate/sluice", "PATH_INFO": uri,
            "PATH_TRANSLATED": root + uri, "DOCUMENT_ROOT": root, **more}


def test_action(program, root):
    got = program.run("/env.cgi", program.path,
                      **action(root, "/env.cgi", "env.cgi")).says
    assert got["SCRIPT_FILENAME"] == root + "/env.cgi"
    assert got["SCRIPT_NAME"] == "/env.cgi"
    assert got["CWD"] == root
    assert "PATH_INFO" not in got and "PATH_TRANSLATED" not in got


def test_action_with_path_info(program, root):
    got = program.run("/env.cgi/more", program.path,
                      **action(root, "/env.cgi/more", "env.cgi")).says
    assert got["SCRIPT_FILENAME"] == root + "/env.cgi"
    assert got["SCRIPT_NAME"] == "/env.cgi"
    assert got["PATH_INFO"] == "/more"
    assert got["PATH_TRANSLATED"] == root + "/more"


def test_action_by_another_name(farm, program, root):
    os.symlink(program.path, farm.place / "name")
    got = program.run("/hello.cgi", farm.place / "name",
                      **action(root, "/hello.cgi", "hello.cgi"))
    assert got.body == b"hello\n"


def test_action_is_counted_by_what_was_asked_for(farm, redis, root):
    own = Program(farm.place, config(redis, root, **{
        "limit all": {"rate": "deny", "except_path": "/env.cgi"},
        "limit info": {"rate": "deny", "path": "/more"}}))

    def status(uri):
        return own.run(uri, own.path, **action(root, uri, "env.cgi")).status

    assert status("/env.cgi") == 200
    assert status("/hello.cgi") == 429
    assert status("/env.cgi/more") == 429


@pytest.mark.parametrize("more, status", [
    ({"REDIRECT_STATUS": None}, 404),  # the address of Sluice itself
    ({"PATH_INFO": None, "PATH_TRANSLATED": None}, 404),
    ({"PATH_TRANSLATED": "/etc/passwd"}, 403),
    ({"PATH_TRANSLATED": "relative"}, 404),
    ({"PATH_INFO": "/missing", "PATH_TRANSLATED": "/missing"}, 404),
])
def test_action_runs_nothing_else(program, root, more, status):
    got = program.run("/hello.cgi", program.path, **{
        **action(root, "/hello.cgi", "hello.cgi"), **more})
    assert (got.status, got.code) == (status, 0)
    assert b"root:" not in got.out


def test_action_does_not_run_sluice_for_ever(farm, redis):
    """Nor anything at all, with Sluice inside its own root."""
    root = farm.place / "own"
    os.makedirs(root)
    own = Program(farm.place, config(redis, root), name="own/sluice")
    got = own.run("/sluice", own.path, **action(root, "/sluice", "sluice"))
    assert (got.status, got.code) == (404, 0)


# What a client says is no command.

ARGUMENTS = [
    ["reset", "keys", "1.2.3.4"], ["-c", "/etc/passwd"], ["--help"],
    ["check"], ["options"], ["serve", "-c", "/dev/null"], ["hash", "x"],
    ["version"], ["set", "keys", "k", "1000"], ["", "--", "-"]]


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=" ".join)
def test_arguments_are_not_read(ask, redis, arguments):
    uri = "/self.cgi?" + "+".join(arguments)
    before = redis.client().dbsize()
    got = ask(uri, arguments=arguments)
    assert (got.code, got.says["ARGUMENTS"]) == (0, "0")
    assert redis.client().dbsize() == before
    assert ask("/denied", arguments=arguments).status == 429


def test_it_is_the_role_only_without_a_listening_socket(farm, redis, root):
    with listener(farm.place / "inherited.s") as sock:
        gateway = farm.gateway(
            config(redis, root), stdin=sock,
            env={**os.environ, "GATEWAY_INTERFACE": "CGI/1.1"})
        got = gateway.ask("/hello.cgi",
                          SCRIPT_FILENAME=root + "/hello.cgi")
    assert got.body == b"hello\n"


# What is wrong is said once, and nothing runs.

def test_not_among_the_roles(farm, redis, root):
    own = Program(farm.place, config(
        redis, root, gateway={"roles": "responder"}))
    got = own.run("/hello.cgi", root + "/hello.cgi")
    assert (got.headers[0], got.code) == (
        ("status", "500 Internal Server Error"), 78)
    assert len(got.entries) == 2 and got.logged("unknown_role")


def test_a_wrong_configuration(farm, redis, root):
    own = Program(farm.place, config(
        redis, root, store={"address": "memory:"}))
    got = own.run("/hello.cgi", root + "/hello.cgi")
    assert (got.status, got.code) == (500, 78)
    assert b"[store] address: memory: counts would end with each request" \
        in got.err
    assert got.err.count(b"\n") == 1
    got = own.run("/hello.cgi", root + "/hello.cgi",
                  SLUICE_CONFIG="/nowhere.ini")
    assert (got.status, got.code) == (500, 78)
    assert b"/nowhere.ini" in got.err


def test_a_log_that_can_not_be_opened(farm, redis, root):
    own = Program(farm.place, config(
        redis, root, log={"target": "file:/nowhere/log"}))
    got = own.run("/hello.cgi", root + "/hello.cgi")
    assert (got.status, got.code) == (500, 78)
    assert b"/nowhere/log" in got.err


# Redis.

def test_no_redis_is_asked_where_no_limit_applies(farm, root, redis):
    own = Program(farm.place, config(
        redis, root, store={"address": "unix:/nowhere.s"}))
    got = own.run("/hello.cgi", root + "/hello.cgi")
    assert got.body == b"hello\n"
    assert not got.logged("store_outage")


def down(farm):
    """Nobody listens."""
    return "unix:" + farm.place / "none.s"


def mute(farm):
    """Somebody does, and says nothing."""
    farm.mute = listener(farm.place / "mute.s")
    return "unix:" + farm.place / "mute.s"


def frozen(farm):
    redis = farm.redis("frozen")
    redis.freeze()
    return redis.address


@pytest.mark.parametrize("store", [down, mute, frozen])
def test_outage(farm, redis, root, store):
    """Each limit's own on_outage, within timeout, and one line says why."""
    address = store(farm)
    own = Program(farm.place, config(redis, root, **{
        "store": {"address": address,
                  "timeout": "%dms" % (TIMEOUT_S * 1000)},
        "limit keys": fixed("9/1h", path="/hello.cgi"),
        "limit denies": fixed("9/1h", path="/sha.cgi", on_outage="deny"),
        "limit local": fixed("9/1h", path="/self.cgi", on_outage="local",
                             outage_rate="1/1h"),
        "limit none": fixed("9/1h", path="/env.cgi", on_outage="local",
                            outage_rate="deny"),
    }))

    def run(name):
        begun = time.monotonic()
        got = own.run(name, root + name)
        took = time.monotonic() - begun
        assert len(got.logged("store_outage")) == 1
        wait = [int(e["store_us"]) for e in got.entries if "store_us" in e]
        assert wait[0] / 1e6 < TIMEOUT_S + 0.02 * SCALE
        assert took < TIMEOUT_S + 2 * SCALE
        return got

    got = run("/hello.cgi")
    assert (got.body, got.limit) == (b"hello\n", (None, None, None))
    got = run("/sha.cgi")
    assert (got.status, got.limit) == (503, (None, None, None))
    assert int(got.header("retry-after")) >= 1
    for _ in range(2):  # its count ends with it
        assert run("/self.cgi").status == 200
    assert run("/env.cgi").status == 429


def test_a_password(farm, root):
    redis = farm.redis("secret", options=["--requirepass", "xyzzy"])
    sections = config(redis, root)
    sections["store"]["password"] = "xyzzy"
    own = Program(farm.place, sections)
    for status in (200, 200, 429):
        assert own.run("/hello.cgi", root + "/hello.cgi",
                       headers=key("k")).status == status
    sections["store"]["password"] = "wrong"
    own.configure(sections)
    got = own.run("/hello.cgi", root + "/hello.cgi", headers=key("k"))
    assert got.status == 200
    assert "refused the user or password" in got.logged(
        "store_outage")[0]["msg"]
    assert "wrong" not in got.err.decode()


def test_a_redis_that_forgot_the_scripts(ask, redis, request):
    for status in (200, 200, 429):
        redis.client().script_flush()
        assert ask("/hello.cgi",
                   headers=key(request.node.name)).status == status


def test_many_at_once_are_one_count(ask, request):
    """As many processes as a web server likes."""
    got = together(8, lambda i: ask(
        "/hello.cgi", headers=key(request.node.name)).status)
    assert sorted(got) == [200] * 2 + [429] * 6


def test_nobody_reads_the_answer(ask, program, root):
    """A web server that has gone: no complaint, no hang."""
    out, into = os.pipe()
    os.close(out)
    with subprocess.Popen(
            [program.path], env=program.environment("/denied", root + "/x"),
            stdin=subprocess.DEVNULL, stdout=into,
            stderr=subprocess.PIPE) as popen:
        os.close(into)
        _, err = popen.communicate(timeout=10)
    assert popen.returncode == 0
    assert b"event=refused status=0" in err
