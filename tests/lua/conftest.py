"""A redis-server of our own, and the scripts as the gateway sends them."""

import os
import pathlib
import shutil
import struct
import subprocess
import tempfile

import pytest
import redis

ROOT = pathlib.Path(__file__).resolve().parents[2]

SLIDING, FIXED, BUCKET, LOG, LEAKY, SLOTS = range(6)
SPREAD, EPOCH, FIRST, CALENDAR = range(4)
WIDE_CALENDAR = 6  # as the scripts number it
KIND_FIRST, KIND_OBSERVE, KIND_OWN, KIND_PENALTY = 8, 16, 32, 64
KIND_LEASE = 128
NEVER, NO_STATE = -1, -2

# Another clock: an argument. What is kept outlives the test, as the server's
# own clock goes on meanwhile.
TEST_NOW = """
local server = redis
local redis = setmetatable({ pcall = function(command, key, value, ...)
	if command == 'SET' then
		return server.pcall('SET', key, value, 'PX', 600000)
	elseif command == 'PEXPIRE' then
		return server.pcall('PEXPIRE', key, 600000)
	elseif value then
		return server.pcall(command, key, value, ...)
	end
	return server.pcall(command, key)
end }, { __index = server })
local function now_us() return tonumber(ARGV[#ARGV]) end
"""


def expand(name, now=None):
    """The text of a script, its fragments pasted in; now: other clock."""
    text = ""
    for line in (ROOT / "lua" / name).read_text().splitlines(keepends=True):
        if line.startswith("--@include "):
            part = line.split()[1]
            if now is not None and part == "now.lua":
                text += now
            else:
                text += (ROOT / "lua" / part).read_text()
        else:
            text += line
    return text


def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


def record(
    algorithm, count, period_us, burst=None, cost=1, offset_us=0,
    align=SPREAD, observe=False, boundaries=None, delay_us=0, slot=b"",
    penalty_us=0, own_at=None, most=0,
):
    """
    A check; delay_us: the longest. own_at: the key may have its own counts,
    of which this is the check's. most: a lease, if it is above the cost.
    """
    kind, more = algorithm, b""
    if algorithm in (BUCKET, LEAKY):
        g = gcd(count, period_us)
        four = (count // g, period_us // g, cost, burst or count)
    elif algorithm == SLIDING:
        four = (count, period_us // 1000, cost, offset_us // 1000)
    elif algorithm == FIXED and align == CALENDAR:
        kind = WIDE_CALENDAR
        four = (count, boundaries[0], cost, boundaries[1])
        more = struct.pack("<dd", *boundaries[2:])
    else:
        four = (count, period_us, cost, offset_us)
    if algorithm == LEAKY:
        more = struct.pack("<d", delay_us)
    elif algorithm == SLOTS:
        more = bytes([len(slot)]) + slot
    if algorithm == FIXED and align == FIRST:
        kind += KIND_FIRST
    if own_at is not None:
        kind += KIND_OWN
        more += struct.pack("<Bd", own_at, count)
    if penalty_us:
        kind += KIND_PENALTY
        more += struct.pack("<d", penalty_us)
    if most > cost >= 0:
        kind += KIND_LEASE
        more += struct.pack("<d", most)
    kind += KIND_OBSERVE * observe
    return struct.pack("<Bdddd", kind, *four) + more


def request(*records):
    keys = sum(
        1 + bool(r[0] & KIND_OWN) + bool(r[0] & KIND_PENALTY)
        for r in records)
    all_of_them = b"".join(records)
    return struct.pack(
        "<BBH", len(records), keys, len(all_of_them)
    ) + all_of_them


def settlement(taken, *records, full_us=0):
    """full_us: of buckets, as the check said."""
    parts = [struct.pack("<Bd", len(records), taken)]
    for r in records:
        if r[0] % KIND_FIRST == BUCKET:
            r = r[:33] + struct.pack("<d", full_us) + r[33:]
        elif r[0] % KIND_FIRST == LEAKY:
            r = r[:33] + struct.pack("<d", full_us) + r[41:]
        parts.append(r)
    return b"".join(parts)


def cut(reply):
    """What a settlement has cut off each check."""
    return [int(x) for x in struct.unpack("<%dd" % (len(reply) // 8), reply)]


@pytest.fixture(scope="session")
def server():
    directory = tempfile.mkdtemp(prefix="sluice-lua-")
    path = os.path.join(directory, "redis.sock")
    process = subprocess.Popen(
        ["redis-server", "--port", "0", "--unixsocket", path, "--save", "",
         "--appendonly", "no", "--dir", directory],
        stdout=subprocess.PIPE, text=True,
    )
    for line in process.stdout:
        if "accept connections" in line:
            break
    yield path
    process.kill()
    process.wait(10)
    process.stdout.close()
    shutil.rmtree(directory)


@pytest.fixture
def db(server):
    client = redis.Redis(unix_socket_path=server, socket_timeout=10)
    client.flushall()
    client.config_set("maxmemory", 0)
    yield client
    client.close()


class Script:
    def __init__(self, db, name, now=None):
        self.text = expand(name, now)
        self.db = db
        self.sha = db.script_load(self.text)

    def __call__(self, keys, *args, on=None):
        reply = (on or self.db).evalsha(self.sha, len(keys), *keys, *args)
        if not isinstance(reply, list):
            return reply
        return by_request(reply, args[0])


def kinds(records):
    """The kinds of a request's checks."""
    found = []
    while records:
        kind, size = records[0], 33
        size += {LEAKY: 8, WIDE_CALENDAR: 16}.get(kind % KIND_FIRST, 0)
        if kind % KIND_FIRST == SLOTS:
            size += 1 + records[33]
        size += 9 * bool(kind & KIND_OWN)
        size += 8 * bool(kind & KIND_PENALTY) + 8 * bool(kind & KIND_LEASE)
        found.append(kind)
        records = records[size:]
    return found


def without_penalty(figures, kind):
    if not kind & KIND_PENALTY or len(figures) == 8 * 4:
        return figures
    figures = figures[:-8]
    if len(figures) == 8 * 7 and not any(figures[48:]):
        return figures[:48]
    return figures


def by_request(reply, argument):
    """
    [now, request, ...], each an error or 4 (6 to 8) numbers a check; what is
    left of a penalty (test_laws has an eye on it) is dropped.
    """
    parts, at = [int(struct.unpack("<d", reply[0])[0])], 1
    while argument:
        n, _, size = struct.unpack("<BBH", argument[:4])
        asked, argument = argument[4 : 4 + size], argument[4 + size :]
        if isinstance(reply[at], Exception):
            parts.append(reply[at])
            at += 1
            continue
        figures = b"".join(
            map(without_penalty, reply[at : at + n], kinds(asked)))
        part = struct.unpack("<%dd" % (len(figures) // 8), figures)
        assert all(x == int(x) for x in part)
        parts.append([int(x) for x in part])
        at += n
    assert at == len(reply)
    return parts


@pytest.fixture
def check(db):
    return Script(db, "check.lua")


@pytest.fixture
def settle(db):
    return Script(db, "settle.lua")


@pytest.fixture
def check_at(db):
    """Takes now, in microseconds, as its last argument."""
    return Script(db, "check.lua", TEST_NOW)


@pytest.fixture
def settle_at(db):
    return Script(db, "settle.lua", TEST_NOW)


@pytest.fixture(scope="session")
def decide(tmp_path_factory):
    """src/pure/algorithm.c as a program: see decide.c."""
    program = tmp_path_factory.mktemp("decide") / "decide"
    subprocess.run(
        [os.environ.get("CC", "cc"), "-std=gnu17", "-O1", "-I", ROOT / "src",
         "-o", program, ROOT / "tests/lua/decide.c",
         *(ROOT / "src/pure").glob("law_*.c"), ROOT / "src/pure/algorithm.c",
         ROOT / "src/pure/settlement.c", ROOT / "src/pure/sliding_log.c"],
        check=True,
    )

    def run(lines):
        done = subprocess.run(
            [program], input="".join(lines), text=True, check=True,
            capture_output=True, timeout=60,
        )
        return [
            [int(x) for x in line.split()]
            for line in done.stdout.splitlines()
        ]

    return run
