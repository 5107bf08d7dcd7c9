"""
The laws of section 4 in Redis: drawn traces of requests with one to three
limits, decided as the store in memory does (and the oracle says, see laws.c),
field by field; each key written with exactly its TTL, and none that is not to
be.

STEPS: one in twenty of them for each algorithm. SEED: the same draws again.
"""

import os
import pathlib
import struct
import subprocess
import time

import pytest
from conftest import KIND_LEASE, KIND_PENALTY, ROOT, Script, kinds

BUILD = pathlib.Path(os.environ.get("SLUICE", ROOT / "build/sluice")).parent
LAWS = BUILD / "tests/lua/laws"
STEPS = int(os.environ.get("STEPS", 100000)) // 20
KINDS = ["first", "epoch", "spread", "calendar", "sliding_window",
         "token_bucket", "sliding_log", "leaky_bucket", "concurrency"]
SENT_AT_ONCE = 2000

# The clock is the last argument, before it what laws.c says of each key.
# What is kept outlives the test, as the server's own clock goes on.
NOW = """
local server = redis
local function written(key, ms)
	for i = 1, #KEYS do
		local want = tonumber(ARGV[1 + i])
		if KEYS[i] == key and ms > 0 and
			(ms == want or ms <= -want) then
			return
		end
	end
	error('written for ' .. ms .. ' ms: ' .. key)
end
local redis = setmetatable({ pcall = function(command, key, value, ...)
	if command == 'SET' then
		local _, ms = ...
		written(key, ms)
		return server.pcall('SET', key, value, 'PX', 600000)
	elseif command == 'PEXPIRE' then
		written(key, value)
		return server.pcall('PEXPIRE', key, 600000)
	elseif value then
		return server.pcall(command, key, value, ...)
	end
	return server.pcall(command, key)
end }, { __index = server })
local function now_us() return tonumber(ARGV[#ARGV]) end
"""


class Replay:
    """Sends what laws.c prints, and holds the replies against it."""

    def __init__(self, db):
        self.sha = {
            "ask": Script(db, "check.lua", NOW).sha,
            "renew": Script(db, "renew.lua", NOW).sha,
            "settle": Script(db, "settle.lua", NOW).sha,
        }
        self.pipe = db.pipeline(transaction=False)
        self.wanted = []
        self.asked = self.traces = 0

    def key(self, name):
        return b"%d:%s" % (self.traces, name)

    def take(self, line):
        what, *words = line.split()
        if what == b"new":
            self.traces += 1
        elif what == b"drop":
            if words:
                self.pipe.delete(*map(self.key, words))
                self.wanted.append((line, None))
        else:
            self.call(what.decode(), words, line)
        if len(self.wanted) >= SENT_AT_ONCE:
            self.flush()

    def call(self, what, words, line):
        now, argument, n = words[0], words[1], int(words[2])
        keys = words[3 : 3 + 2 * n : 2]
        lasts = words[4 : 3 + 2 * n : 2]
        self.pipe.evalsha(
            self.sha[what], n, *map(self.key, keys),
            bytes.fromhex(argument.decode()), *lasts, now,
        )
        figures = [int(x) for x in words[3 + 2 * n :]]
        self.wanted.append((line, figures if what == "ask" else what))
        self.asked += what == "ask"

    def flush(self):
        replies = self.pipe.execute(raise_on_error=False)
        for (line, want), reply in zip(self.wanted, replies):
            assert not isinstance(reply, Exception), (line, reply)
            if want == "settle":
                assert not any(reply), line
            elif want == "renew":
                assert reply == int(line.split()[3]), line
            elif want is not None:
                compare(line, want, reply)
        self.wanted = []


def kinds_in(line):
    """Of the checks that the line asks for."""
    return kinds(bytes.fromhex(line.split()[2].decode())[4:])


def compare(line, want, reply):
    now, *checks = reply
    assert struct.unpack("<d", now) == (int(line.split()[1]),), line
    assert len(want) == 8 * len(checks), line
    for i, (figures, kind) in enumerate(zip(checks, kinds_in(line))):
        assert not isinstance(figures, Exception), (line, figures)
        got = list(struct.unpack("<%dd" % (len(figures) // 8), figures))
        expected = want[8 * i : 8 * i + 8]
        left = got.pop() if kind & KIND_PENALTY else 0
        taken = got.pop() if kind & KIND_LEASE else 0
        if len(got) == 4:
            got += [0, expected[5]]
        got[6:] = [left, taken]
        assert got == expected, (line, i)


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=KINDS)
def test_laws(db, kind):
    seed = int(os.environ.get("SEED", time.time_ns() // 1000))
    print("SEED=%d" % seed)
    replay = Replay(db)
    with subprocess.Popen(
        [LAWS, str(kind), str(seed), str(STEPS)], stdout=subprocess.PIPE
    ) as laws:
        try:
            for line in laws.stdout:
                replay.take(line)
        finally:
            laws.kill()
    replay.flush()
    assert replay.asked >= STEPS
