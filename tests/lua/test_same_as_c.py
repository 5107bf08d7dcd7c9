"""The scripts and src/pure/algorithm.c decide alike, field by field."""

import os
import random
import struct
import time
from collections import namedtuple

import pytest
from conftest import (
    BUCKET, CALENDAR, EPOCH, FIRST, FIXED, LEAKY, LOG, SLIDING, SLOTS, SPREAD,
    by_request, cut, record, request, settlement,
)

MAX = 2**53 - 1
PERIODS = [1000, 7000, 10**6, 6 * 10**7, 3599999 * 1000, 7 * 86400 * 10**6,
           366 * 86400 * 10**6]

# As decide.c takes it; slot: of the scripts alone.
Check = namedtuple(
    "Check", "algorithm align count period burst cost offset b0 b1 b2 b3 "
    "delay_max full penalty most slot"
)
Step = namedtuple("Step", "what check taken now")


class Trace:
    """Steps of one key."""

    def __init__(self, r, algorithm):
        self.r, self.algorithm = r, algorithm
        self.now = 1_790_000_000_000_000 + r.randrange(10**9)
        self.times = [self.now]
        self.draw_config()
        self.draw_rate()
        self.draw_boundaries()
        self.held = []

    def draw_config(self):
        r = self.r
        self.period = r.choice(PERIODS)
        if r.random() < 0.2:
            self.period = r.randint(1, 10**7) * 1000
        self.align = SPREAD
        if self.algorithm == FIXED:
            self.align = r.choice([SPREAD, EPOCH, FIRST, CALENDAR])
        self.offset = 0
        if self.algorithm == SLIDING:
            self.offset = r.randrange(self.period // 1000) * 1000
        elif self.align == SPREAD:
            self.offset = r.randrange(self.period)
        self.penalty = 0
        if r.random() < 0.3:
            self.penalty = r.choice([1000, self.period // 2, self.period * 3])

    def draw_rate(self):
        """N and B, now and then as large as they may be."""
        r, period = self.r, self.period
        size = r.choice([3, 12, 1000, MAX])
        self.burst, self.delay_max = 1, 0
        if self.algorithm == SLIDING:
            self.count = r.randint(1, min(size, MAX // (period // 1000)))
        elif self.algorithm in (FIXED, SLOTS):
            self.count = r.randint(1, size)
        elif self.algorithm == LOG:
            self.count = r.randint(1, min(size, 10000))
        else:
            self.count = r.randint(1, min(size, 10**9))
            self.burst = r.randint(1, max(1, min(size, MAX // period)))
            self.delay_max = r.choice(
                [0, 1, r.randint(0, 2 * period), period // self.count, 10**15]
            )

    def draw_boundaries(self):
        """Windows of unlike lengths, now mostly within them."""
        r = self.r
        widths = [r.randint(1, 2 * self.period) for _ in range(3)]
        at = self.now - r.randint(-widths[0], 2 * sum(widths))
        self.boundaries = [at]
        for width in widths:
            at += width
            self.boundaries.append(at)

    def draw_cost(self):
        r, limit = self.r, self.count
        if self.algorithm in (BUCKET, LEAKY):
            limit = self.burst
        return r.choice([0, 1, 1, 1, 2, r.randint(1, limit), limit, limit + 1])

    def draw_step(self):
        r, period = self.r, self.period
        if self.algorithm == SLOTS:  # all within 15 s: C does not heal
            return r.randint(-200000, 300000)
        return r.choice([
            0, 1, r.randint(0, 2000), period // self.count,
            r.randint(0, period), r.randint(0, 3 * period),
            -r.randint(0, 2 * period), period,
        ])

    def draw_full(self):
        """Whatever is said of a bucket, or about what it is after a check."""
        r = self.r
        units = r.randint(1, self.burst)
        return r.choice([
            0, 1000, self.period, -(-units * self.period // self.count),
        ])

    def check(self, **more):
        c = Check(
            self.algorithm, self.align, self.count, self.period, self.burst,
            self.draw_cost(), self.offset, *self.boundaries, self.delay_max,
            self.draw_full(), self.penalty, 0, b"",
        )
        return c._replace(most=self.draw_most(c.cost), **more)

    def draw_most(self, cost):
        r = self.r
        if self.penalty or self.algorithm not in (SLIDING, FIXED, BUCKET):
            return 0
        return r.choice([0, 0, cost + 1, r.randint(1, 16), self.count])

    def slot_step(self, i):
        """A slot is only given back by who has it."""
        if self.held and self.r.random() < 0.4:
            slot = self.held.pop(self.r.randrange(len(self.held)))
            return Step("refund", self.check(slot=slot, cost=1), 0, self.now)
        c = self.check(slot=b"slot-%d" % i, penalty=0)
        if c.cost > 0 and len(self.held) < self.count:
            self.held.append(c.slot)
        return Step("check", c, 0, self.now)

    def step(self, i):
        r = self.r
        self.now = max(self.now + self.draw_step(), 10**15)
        if r.random() < 0.1:
            self.draw_rate()
        if r.random() < 0.1:
            self.draw_boundaries()
        if self.algorithm == SLOTS:
            return self.slot_step(i)
        what = r.choices(["check", "refund", "charge"], [7, 1, 2])[0]
        step = Step(what, self.check(), r.choice(self.times[-3:]), self.now)
        self.times.append(self.now)
        return step

    def steps(self):
        return [self.step(i) for i in range(self.r.randint(1, 40))]


def line(step):
    times = [step.now] if step.what == "check" else [step.taken, step.now]
    return "%s %s\n" % (
        step.what, " ".join(str(x) for x in [*step.check[:-1], *times])
    )


def as_record(c, settles=0):
    return record(
        c.algorithm, c.count, c.period, c.burst,
        (settles or 1) * min(c.cost, 2**53), c.offset, c.align,
        boundaries=c[7:11], delay_us=c.delay_max, slot=c.slot,
        penalty_us=0 if settles else c.penalty,
        most=0 if settles else c.most,
    )


def state_of(value, penalty):
    state = [0, 0, 0, 0]
    if isinstance(value, bytes):
        three = struct.unpack("<%dd" % (len(value) // 8), value)
        state = [1] + [int(x) for x in three] + [0] * (3 - len(three))
    return state + [int(struct.unpack("<d", penalty)[0]) if penalty else 0]


def send(pipe, check_at, settle_at, key, step):
    if step.what == "check":
        argument = request(as_record(step.check))
        keys = [key, key + ":p"][: argument[1]]
        pipe.evalsha(check_at.sha, len(keys), *keys, argument, step.now)
    else:
        sign = 1 if step.what == "charge" else -1
        argument = settlement(
            step.taken, as_record(step.check, sign), full_us=step.check.full)
        pipe.evalsha(settle_at.sha, 1, key, argument, step.now)
    pipe.get(key)
    pipe.get(key + ":p")


def compare(step, replies, want):
    reply, value, penalty = replies
    got = state_of(value, penalty)
    assert not isinstance(reply, Exception), (step, reply)
    if step.what == "check":
        reply = by_request(reply, request(as_record(step.check)))
        assert reply[0] == step.now
        got = reply[1] + got
    elif step.what == "charge":
        got = cut(reply) + got
    assert got == want, step


@pytest.mark.parametrize(
    "algorithm", [SLIDING, FIXED, BUCKET, LOG, LEAKY, SLOTS]
)
def test_drawn_traces(db, check_at, settle_at, decide, algorithm):
    seed = int(os.environ.get("SEED", time.time_ns()))
    print("SEED=%d" % seed)
    r = random.Random(seed)
    lines, steps = [], []
    pipe = db.pipeline(transaction=False)
    for i in range(200):
        lines.append("new\n")
        for step in Trace(r, algorithm).steps():
            lines.append(line(step))
            steps.append(step)
            send(pipe, check_at, settle_at, "k%d" % i, step)
    replies = pipe.execute(raise_on_error=False)
    wanted = decide(lines)
    assert len(wanted) == len(steps)
    for i, (step, want) in enumerate(zip(steps, wanted)):
        compare(step, replies[3 * i : 3 * i + 3], want)


def test_a_changed_period_in_lowest_terms(check_at, db):
    """7 tokens of 1/1s are 7 of 3/2s; thirds are cut, never rounded up."""
    now = 10**15
    value = struct.pack("<ddd", now, 7 * 10**6 - 1, 10**6)
    db.set("k", value)
    c = record(BUCKET, 3, 7 * 10**6, burst=10)
    reply = check_at(["k"], request(c), now)
    assert reply[1][1] == 5
    tokens = struct.unpack("<ddd", db.get("k"))
    assert tokens == (now, (7 * 10**6 - 1) * 7 - 7 * 10**6, 7 * 10**6)
