"""What one Sluice takes: memory and time."""

import contextlib
import hashlib
import os
import re
import resource
import subprocess
import time

import stand as stands
from fastcgi import fcgi
from stand import Missing, Stand
from ways import GATEWAYS, configure, must_know, start_gateway, start_hello

IDLE, IDLE_SECONDS = 10000, 60
STARTS = 5  # a round
SCRIPTS = 5  # a round
BLOCKS, BLOCK = 64, 32768  # of what is carried, again and again
CARRIED = int(os.environ.get("CARRIED", str(1 << 30)))
CARRY_SECONDS = 120
APPS = os.path.join(stands.HERE, "../apps")


def memory_mb(server, field):
    with open("/proc/%d/status" % server.pid) as f:
        kb = re.search(r"^%s:\s+(\d+) kB" % field, f.read(), re.M).group(1)
    return int(kb) / 1024


def allow_files(n):
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < n:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))
        except (ValueError, OSError):
            raise Missing("RLIMIT_NOFILE is %d at most" % most) from None
    else:
        resource.setrlimit(resource.RLIMIT_NOFILE, (n, most))


def idle(figures, *_):
    """Resident memory with 10,000 kept connections, each of which has had an
    answer."""
    with figures.trying("idle"), Stand() as stand, \
            contextlib.ExitStack() as open_ones:
        allow_files(IDLE + 2100)
        path, server = start_gateway(stand, "idle", GATEWAYS["idle"],
                                     start_hello(stand, "application"))
        deadline = time.monotonic() + IDLE_SECONDS
        for number in range(IDLE):
            if time.monotonic() > deadline:
                raise Missing("%d connections within %d s" % (
                    number, IDLE_SECONDS))
            conn = open_ones.enter_context(fcgi.Connection(path))
            got = conn.ask(fcgi.env(), keep=True)
            if got.status != 200:
                raise Missing("answered %d" % got.status)
        figures.add("idle", memory_mb(server, "VmRSS"))


def start_up(figures, rounds, _):
    """From the start of the process to its first answer. It inherits its
    socket, where the request waits for it."""
    with figures.trying("start-up"), Stand() as stand:
        hello = start_hello(stand, "application")
        config, _ = configure(stand, "start", GATEWAYS["exact"],
                              "type = fastcgi\naddress = unix:" + hello)
        for number in range(rounds * STARTS):
            path = stand.path("start-%d.sock" % number)
            with stands.listen(path) as listener, \
                    fcgi.Connection(path) as conn:
                conn.send(fcgi.request(fcgi.env()))
                begun = time.monotonic()
                with subprocess.Popen(
                        [stands.SLUICE, "serve", "-c", config],
                        stdin=listener, stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL) as server:
                    try:
                        status = conn.response().status
                        took = time.monotonic() - begun
                    finally:
                        server.terminate()
            if status != 200:
                raise Missing("answered %d" % status)
            figures.add("start-up", took * 1000)


def cgi(figures, rounds, _):
    """What the cgi role adds to running a script directly."""
    script = os.path.realpath(os.path.join(APPS, "hello.cgi"))
    with figures.trying("cgi"), Stand() as stand:
        must_know(stand, ("[gateway] roles: cgi",))
        config, _ = configure(
            stand, "cgi", GATEWAYS["exact"]._replace(gateway="roles = cgi"),
            "type = cgi\nroot = " + os.path.dirname(script))
        env = dict(fcgi.env("/hello.cgi"), SCRIPT_FILENAME=script,
                   SLUICE_CONFIG=config, PATH=os.environ["PATH"])
        for _ in range(rounds * SCRIPTS):
            through = run_script([stands.SLUICE], env)
            figures.add("cgi", (through - run_script([script], env)) * 1000)


def run_script(argv, env):
    begun = time.monotonic()
    said = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=10)
    took = time.monotonic() - begun
    if said.returncode != 0 or b"hello" not in said.stdout:
        raise Missing("the script did not run: %r" % said.stderr[:200])
    return took


def carry(figures, *_):
    """By how much memory grows over 1 GB up, and 1 GB down; byte by byte."""
    for way in (upload, download):
        with figures.trying(way.__name__), Stand() as stand:
            gateway = GATEWAYS["memory"]._replace(gateway="max_body = 2g")
            config, path = configure(
                stand, "carry", gateway, "type = cgi\nroot = " +
                os.path.realpath(APPS))
            server = stand.start(
                "carry", [stands.SLUICE, "serve", "-c", config], path)
            ask(path, "hello.cgi").response()
            before = memory_mb(server, "VmRSS")
            blocks = [os.urandom(BLOCK) for _ in range(BLOCKS)]
            way(stand, path, blocks)
            figures.add(way.__name__, memory_mb(server, "VmHWM") - before)


def ask(path, script, length=0, query=""):
    """The head of a request; its connection."""
    conn = fcgi.Connection(path, CARRY_SECONDS)
    conn.send(fcgi.head(fcgi.env(
        "/%s?%s" % (script, query), "POST" if length else "GET",
        SCRIPT_FILENAME=os.path.realpath(os.path.join(APPS, script)),
        CONTENT_LENGTH=str(length) if length else None)))
    if not length:
        conn.send(fcgi.record(fcgi.STDIN))
    return conn


def repeats():
    return CARRIED // (BLOCKS * BLOCK)


def digest_of(blocks):
    whole, digest = b"".join(blocks), hashlib.sha256()
    for _ in range(repeats()):
        digest.update(whole)
    return digest.hexdigest()


def upload(_, path, blocks):
    records = b"".join(fcgi.record(fcgi.STDIN, block) for block in blocks)
    length = repeats() * BLOCKS * BLOCK
    with ask(path, "sha.cgi", length) as conn:
        for _ in range(repeats()):
            conn.send(records)
        conn.send(fcgi.record(fcgi.STDIN))
        said = conn.response().body.decode().split()
    if said[:2] != [str(length), digest_of(blocks)]:
        raise Missing("not the bytes that were sent")


def download(stand, path, blocks):
    source, digest = stand.path("source"), hashlib.sha256()
    with open(source, "wb") as f:
        for _ in range(repeats()):
            f.writelines(blocks)
    with ask(path, "download.cgi", query=source) as conn:
        head = b""
        while True:
            record = conn.read_record()
            if record is None or record[0] == fcgi.END:
                break
            content = record[2]
            if head is not None:
                head += content
                if b"\r\n\r\n" not in head:
                    continue
                content, head = head.partition(b"\r\n\r\n")[2], None
            digest.update(content)
    if record is None or digest.hexdigest() != digest_of(blocks):
        raise Missing("not the bytes that were there")
