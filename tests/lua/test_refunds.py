"""
What a bucket is when a request gives back what it took: as if it had never
taken it. Drawn histories of one key, in Redis and by src/pure/settlement.c
alike, held against the same history without the request.

SEED: the same draws again.
"""

import os
import random
import struct
import time

import pytest
from conftest import BUCKET, LEAKY, SPREAD, gcd, record, request, settlement

PERIODS = [1000, 7000, 10**6, 3599999 * 1000, 86400 * 10**6]
FOREVER = 10**15  # the longest delay: a queue is bounded by its burst alone


class Level:
    """What a bucket lacks (a queue holds), in units * P."""

    def __init__(self, r, p, burst):
        self.r, self.full = r, burst * p
        self.lacks, self.at = 0, 0

    def go(self, now):
        self.lacks = max(0, self.lacks - self.r * (now - self.at))
        self.at = now

    def take(self, now, units_p):
        self.go(now)
        self.lacks += units_p


class History:
    """Of one key; the time begins at `start`."""

    def __init__(self, draw, algorithm):
        self.draw, self.algorithm = draw, algorithm
        self.period = draw.choice(PERIODS)
        self.count = draw.randint(1, draw.choice([1, 3, 7, 100, 10**6]))
        self.burst = draw.randint(1, draw.choice([1, 5, 20, 1000]))
        g = gcd(self.count, self.period)
        self.r, self.p = self.count // g, self.period // g
        self.now = self.start = 1_790_000_000_000_000 + draw.randrange(10**9)
        self.level = Level(self.r, self.p, self.burst)
        self.taken = []  # when, units
        self.lines = ["new\n"]
        self.wanted = []  # the states that Redis had

    def step(self):
        draw = self.draw
        unit = self.p // self.r
        self.now += draw.choice([
            0, 1, draw.randint(0, 2 * unit + 2), draw.randint(0, unit + 1),
            draw.randint(0, (self.burst * self.p) // self.r + 2),
        ])

    def line(self, what, units, full, *times):
        boundaries = [0] * 4
        self.lines.append(" ".join(str(x) for x in [
            what, self.algorithm, SPREAD, self.count, self.period, self.burst,
            units, 0, *boundaries, FOREVER, full, 0, 0, *times]) + "\n")

    def record(self, units):
        return record(self.algorithm, self.count, self.period, self.burst,
                      units, delay_us=FOREVER)

    def note(self, db):
        value = db.get("k")
        state = [1, *struct.unpack("<ddd", value)] if value else [0] * 4
        self.wanted.append([int(x) for x in state] + [0])

    def take(self, check_at, db):
        """What fits, if anything; the verdict's full."""
        self.level.go(self.now)
        room = (self.level.full - self.level.lacks) // self.p
        units = self.draw.randint(0, min(room, 3))
        if units == 0:
            return None
        reply = check_at(["k"], request(self.record(units)), self.now)[1]
        assert reply[0] == 0
        self.line("check", units, 0, self.now)
        self.note(db)
        self.level.take(self.now, units * self.p)
        self.taken.append((self.now, units))
        return reply[3]

    def give_back(self, settle_at, db, which, units, full):
        taken = self.taken[which][0]
        back = settlement(taken, self.record(-units), full_us=full)
        assert settle_at(["k"], back, self.now) == b"\0" * 8
        self.line("refund", units, full, taken, self.now)
        self.note(db)

    def lacks_without(self, which, units):
        """Now, had those units not been taken."""
        level = Level(self.r, self.p, self.burst)
        for i, (at, taken) in enumerate(self.taken):
            level.take(at, (taken - (units if i == which else 0)) * self.p)
        level.go(self.now)
        return level.lacks

    def would_be_full(self, which, units):
        """When, if nothing had been taken after it either."""
        level = Level(self.r, self.p, self.burst)
        for at, taken in self.taken[: which + 1]:
            level.take(at, taken * self.p)
        return level.at + (level.lacks - units * self.p) // self.r

    def lacks(self):
        """Now, as the state says."""
        exists, at, b = self.wanted[-1][:3]
        if not exists:
            return 0
        level = Level(self.r, self.p, self.burst)
        level.lacks = level.full - b if self.algorithm == BUCKET else b
        level.at = at
        level.go(self.now)
        return level.lacks


def run(history, db, check_at, settle_at):
    """Of some requests one gives back later; is it known for sure?"""
    draw, full = history.draw, None
    for _ in range(draw.randint(0, 6)):
        history.take(check_at, db)
        history.step()
    while full is None:
        full = history.take(check_at, db)
        if full is None:
            history.step()
    which = len(history.taken) - 1
    for _ in range(draw.choice([0, 0, 1, 3])):
        history.step()
        history.take(check_at, db)
    history.step()
    units = draw.randint(1, history.taken[which][1])
    history.give_back(settle_at, db, which, units, full)
    want, got = history.lacks_without(which, units), history.lacks()
    assert got >= want, "too much came back"
    alone = which == len(history.taken) - 1
    exact = alone or history.now <= history.would_be_full(which, units)
    if exact:
        assert got - want < history.r, "too little came back"
    return exact


@pytest.mark.parametrize("algorithm", [BUCKET, LEAKY], ids=str)
def test_as_if_it_had_not_been_taken(
    db, check_at, settle_at, decide, algorithm
):
    seed = int(os.environ.get("SEED", time.time_ns()))
    print("SEED=%d" % seed)
    draw = random.Random(seed)
    lines, wanted, exact = [], [], 0
    for _ in range(600):
        db.delete("k")
        history = History(draw, algorithm)
        exact += run(history, db, check_at, settle_at)
        lines += history.lines
        wanted += history.wanted
    assert exact > 300
    assert [x[-5:] for x in decide(lines)] == wanted


@pytest.mark.parametrize("algorithm", [BUCKET, LEAKY], ids=str)
def test_what_several_took_together_and_give_back(
    db, check_at, settle_at, algorithm
):
    """5/1s: four that last 250 ms each leave it as it was, 1.25 too."""
    now, one = 10**15, record(algorithm, 5, 10**6, delay_us=FOREVER)
    back = record(algorithm, 5, 10**6, cost=-1)
    for _ in range(8):
        full = [check_at(["k"], request(one), now)[1][3] for _ in range(4)]
        assert full == [200_000, 400_000, 600_000, 800_000]
        now += 250_000
        for full_us in full:
            settle_at(
                ["k"], settlement(now - 250_000, back, full_us=full_us), now)
        assert not db.exists("k")
