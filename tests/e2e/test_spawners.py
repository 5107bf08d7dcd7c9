"""lighttpd's bin-path and Apache's mod_fcgid: several gateways at once."""

import hashlib
import os
import signal
import subprocess
import time

import pytest

from harness import process
from harness.deadline import SCALE, until
from harness.gateway import BINARY
from harness.recipes import MEMORY, cgi, fixed, together
from harness.spawners import SPAWNERS, ApacheFcgid
from harness.web import fetch

BODY = bytes(range(256)) * 4096  # 1 MiB
DIGEST = hashlib.sha256(BODY).hexdigest()
ONLY_MEMORY = "each counts for itself"


@pytest.fixture(params=SPAWNERS)
def spawn(farm, request):
    """Starts that web server."""
    def start(config, **kwargs):
        return farm.add(SPAWNERS[request.param](farm.place, config, **kwargs))
    start.name = request.param
    return start


@pytest.fixture
def redis(farm):
    return farm.redis(options=["--unixsocketperm", "777"])


def shared_limit(redis, rate, **store):
    return {"store": {"address": redis.address, "timeout": "2s", **store},
            "limit all": fixed(rate)}


def links(redis):
    """The clients of Redis that are gateways."""
    return [c for c in redis.client().client_list() if c["name"] == "sluice"]


def threads(pid):
    return len(os.listdir("/proc/%d/task" % pid))


def busy(server, count=8):
    """As many at once; the statuses."""
    return together(count, lambda i: fetch(server, "/hello.cgi").status)


def test_allowed_and_refused(spawn, redis):
    server = spawn(shared_limit(redis, "3/1h"))
    for remaining in (2, 1):
        got = fetch(server, "/hello.cgi")
        assert (got.status, got.body) == (200, b"hello\n")
        assert got.limit == (3, remaining, 3600)
    got = fetch(server, "/sha.cgi", "POST", BODY)
    assert got.body.decode().split()[:2] == [str(len(BODY)), DIGEST]
    for method, body in (("GET", None), ("POST", BODY)):
        got = fetch(server, "/sha.cgi", method, body)
        assert (got.status, got.limit) == (429, (3, 0, 3600))
        assert got.header("retry-after") == "3600"
        assert got.body == b"429 Too Many Requests\nTry again in 3600 s.\n"
    got = fetch(server, "/hello.cgi", "HEAD")
    assert (got.status, got.body) == (429, b"")


def test_several_processes_are_one_limit_with_redis(spawn, redis):
    """Each has one link to Redis, and few threads."""
    server = spawn(shared_limit(redis, "40/1h"))
    statuses = sum(together(8, lambda i: [
        fetch(server, "/hello.cgi").status for _ in range(10)]), [])
    assert (statuses.count(200), statuses.count(429)) == (40, 40)
    pids = server.spawned()
    assert len(pids) > 1
    until(lambda: len(links(redis)) == len(pids), 5.0, "a link each")
    # Main, maintenance, and workers for what came at once, not all 64.
    assert max(threads(pid) for pid in pids) <= 2 + 8


def test_memory_is_each_processs_own(spawn):
    """It is said in the log, and by check."""
    server = spawn({"store": MEMORY, "limit all": fixed("1/1h")},
                   processes=2)
    allowed = []

    def one_each():
        allowed.extend(s for s in busy(server) if s == 200)
        return len(allowed) == len(server.spawned()) == 2

    until(one_each, 20.0, "one each")
    for _ in range(4):
        assert busy(server) == [429] * 8
    assert server.output().count(ONLY_MEMORY) == 2
    said = subprocess.run(
        [BINARY, "check", "-c", server.config], capture_output=True,
        text=True, check=True, timeout=10 * SCALE).stdout
    assert ONLY_MEMORY in said


FAULTS = {"none": lambda redis: None, "gone": lambda redis: redis.kill(),
          "frozen": lambda redis: redis.freeze()}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_ends_promptly(spawn, redis, fault):
    """Idle, whatever Redis does; connect_timeout is no reason to wait."""
    server = spawn(shared_limit(
        redis, "9/1h", timeout="50ms", connect_timeout="20s"))
    assert fetch(server, "/hello.cgi").status == 200
    FAULTS[fault](redis)
    assert fetch(server, "/hello.cgi").status == 200
    pids = server.spawned()
    assert pids
    for pid in pids:
        start = time.monotonic()
        os.kill(pid, signal.SIGTERM)
        until(lambda: not process.alive(pid), 10.0, "it to end")
        assert time.monotonic() - start < 1.0 * SCALE
    # A lighttpd that is ended while it replaces them can miss one itself.
    if spawn.name == "bin-path":
        until(lambda: len(server.spawned()) == len(pids), 10.0, "others")


def test_a_gateway_that_ended_is_replaced(spawn, redis):
    server = spawn(shared_limit(redis, "9/1h"), processes=1)
    assert fetch(server, "/hello.cgi").limit[1] == 8
    [pid] = server.spawned()
    os.kill(pid, signal.SIGTERM)
    until(lambda: not process.alive(pid), 5.0, "it to end")
    # lighttpd starts it anew within its next second, and says 503 until then.
    until(lambda: fetch(server, "/hello.cgi").status == 200, 10.0, "another")
    assert pid not in server.spawned()


def test_mod_fcgid_makes_a_401_of_what_an_authorizer_refuses(farm, redis):
    """Which is why mod_authnz_fcgi is for that."""
    server = farm.add(ApacheFcgid(
        farm.place, {"gateway": {"roles": "authorizer"},
                     **shared_limit(redis, "1/1h")},
        asked="FcgidAccessChecker %s"))
    got = fetch(server, "/plain.txt")
    assert (got.status, got.body) == (200, b"Not a script.\n")
    got = fetch(server, "/plain.txt")
    assert (got.status, got.header("retry-after")) == (401, "3600")


def test_a_graceful_restart_starts_new_ones(farm, redis):
    """As `systemctl reload apache2` does it."""
    server = farm.add(ApacheFcgid(farm.place, shared_limit(redis, "9/1h")))
    assert fetch(server, "/hello.cgi").status == 200
    [old] = server.spawned()
    server.signal(signal.SIGUSR1)
    until(lambda: not process.alive(old), 15.0, "the old one to end")
    until(lambda: fetch(server, "/hello.cgi").status == 200, 5.0, "another")


EARLY = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>
int FCGX_Init(void)
{
	int (*init)(void) = (int (*)(void))dlsym(RTLD_NEXT, "FCGX_Init");
	int rc = init();

	kill(getpid(), SIGTERM);
	return rc;
}
"""


def test_sigterm_at_the_worst_moment_of_the_start(farm):
    """libfcgi has just begun to handle it; a server that ends spawns and
    kills within milliseconds."""
    source = farm.place.write("early.c", EARLY)
    library = farm.place / "early.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"],
                   check=True, timeout=60)
    gateway = farm.gateway(
        {"store": MEMORY, "limit all": fixed("1/1h"),
         "backend default": cgi()}, wait=False,
        env=dict(os.environ, LD_PRELOAD=library,
                 ASAN_OPTIONS="verify_asan_link_order=0"))
    assert gateway.wait_exit() == 0
