"""The scripts and src/pure/algorithm.c decide alike, field by field."""

import os
import random
import struct
import time

from conftest import (
    BUCKET, EPOCH, FIRST, FIXED, SLIDING, SPREAD, by_request, cut, record,
    request, settlement,
)

MAX = 2**53 - 1
PERIODS = [1000, 7000, 10**6, 6 * 10**7, 3599999 * 1000, 7 * 86400 * 10**6,
           366 * 86400 * 10**6]


def draw_config(r):
    algorithm = r.choice([SLIDING, FIXED, BUCKET])
    period = r.choice(PERIODS)
    if r.random() < 0.2:
        period = r.randint(1, 10**7) * 1000
    align = r.choice([SPREAD, EPOCH, FIRST]) if algorithm == FIXED else SPREAD
    offset = 0
    if algorithm == SLIDING:
        offset = r.randrange(period // 1000) * 1000
    elif align == SPREAD:
        offset = r.randrange(period)
    return algorithm, align, period, offset


def draw_rate(r, algorithm, period):
    """N and B, now and then as large as they may be."""
    size = r.choice([3, 12, 1000, MAX])
    if algorithm == SLIDING:
        return r.randint(1, min(size, MAX // (period // 1000))), 1
    if algorithm == FIXED:
        return r.randint(1, size), 1
    count = r.randint(1, min(size, 10**9))
    return count, r.randint(1, max(1, min(size, MAX // period)))


def draw_cost(r, algorithm, count, burst):
    limit = burst if algorithm == BUCKET else count
    return r.choice([0, 1, 1, 1, 2, r.randint(1, limit), limit, limit + 1])


def draw_step(r, period, count):
    return r.choice([
        0, 1, r.randint(0, 2000), period // count, r.randint(0, period),
        r.randint(0, 3 * period), -r.randint(0, 2 * period), period,
    ])


def trace(r):
    """Steps of one key: (what, check, taken, now)."""
    algorithm, align, period, offset = draw_config(r)
    count, burst = draw_rate(r, algorithm, period)
    now = 1_790_000_000_000_000 + r.randrange(10**9)
    times = [now]
    for _ in range(r.randint(1, 40)):
        now = max(now + draw_step(r, period, count), 10**15)
        if r.random() < 0.1:
            count, burst = draw_rate(r, algorithm, period)
        cost = draw_cost(r, algorithm, count, burst)
        c = (algorithm, align, count, period, burst, cost, offset)
        what = r.choices(["check", "refund", "charge"], [7, 1, 2])[0]
        yield what, c, r.choice(times[-3:]), now
        times.append(now)


def numbers(c):
    return " ".join(str(x) for x in c)


def as_record(c, sign=1):
    algorithm, align, count, period, burst, cost, offset = c
    return record(algorithm, count, period, burst, sign * min(cost, 2**53),
                  offset, align)


def state_of(c, value):
    if value is None:
        return [0, 0, 0, 0]
    three = struct.unpack("<%dd" % (len(value) // 8), value)
    return [1] + [int(x) for x in three] + [0] * (3 - len(three))


def send(pipe, check_at, settle_at, key, step):
    what, c, taken, now = step
    if what == "check":
        pipe.evalsha(check_at.sha, 1, key, request(as_record(c)), now)
    else:
        sign = 1 if what == "charge" else -1
        argument = settlement(taken, as_record(c, sign))
        pipe.evalsha(settle_at.sha, 1, key, argument, now)
    pipe.get(key)


def test_drawn_traces(db, check_at, settle_at, decide):
    seed = int(os.environ.get("SEED", time.time_ns()))
    print("SEED=%d" % seed)
    r = random.Random(seed)
    lines, steps = [], []
    pipe = db.pipeline(transaction=False)
    for i in range(600):
        lines.append("new\n")
        for step in trace(r):
            what, c, taken, now = step
            times = [now] if what == "check" else [taken, now]
            lines.append("%s %s %s\n" % (what, numbers(c), numbers(times)))
            steps.append(step)
            send(pipe, check_at, settle_at, "k%d" % i, step)
    replies = pipe.execute(raise_on_error=False)
    wanted = decide(lines)
    assert len(wanted) == len(steps)
    for i, (step, want) in enumerate(zip(steps, wanted)):
        reply, value = replies[2 * i : 2 * i + 2]
        got = state_of(step[1], value)
        if step[0] == "check":
            assert not isinstance(reply, Exception), (step, reply)
            reply = by_request(reply, request(as_record(step[1])))
            assert reply[0] == step[3]
            got = reply[1] + got
        elif step[0] == "charge":
            got = cut(reply) + got
        assert got == want, (i, step)


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
