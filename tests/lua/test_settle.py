"""What a call of settle.lua does to Redis."""

import struct
import threading

import pytest
import redis
from conftest import (
    BUCKET, FIRST, FIXED, SLIDING, cut, record, request, settlement,
)

HOUR = 3600 * 10**6
DAY = 24 * HOUR
ALL = [SLIDING, FIXED, BUCKET]
LOST = -1


def one(algorithm, count, period=HOUR, **more):
    align = {"align": FIRST} if algorithm == FIXED else {}
    return record(algorithm, count, period, burst=count, **align, **more)


def remaining(check, key, algorithm, count, period=HOUR):
    """Now; a question of no cost."""
    reply = check([key], request(one(algorithm, count, period, cost=0)))
    return reply[1][1]


@pytest.mark.parametrize("algorithm", ALL)
def test_a_refund_undoes_a_check(check, settle, db, algorithm):
    two, back = one(algorithm, 5, cost=2), one(algorithm, 5, cost=-2)
    now = check(["k"], request(two))[0]
    assert cut(settle(["k"], settlement(now, back))) == [0]
    if algorithm != BUCKET:
        assert db.dbsize() == 0
    now = check(["k"], request(two))[0]
    check(["k"], request(two))
    assert cut(settle(["k"], settlement(now, back))) == [0]
    assert remaining(check, "k", algorithm, 5) == 3
    assert 0 < db.pttl("k") <= 2 * HOUR // 1000 + 100


@pytest.mark.parametrize("algorithm", ALL)
def test_a_charge_adds(check, settle, db, algorithm):
    now = check(["k"], request(one(algorithm, 50)))[0]
    for _ in range(3):
        charge = settlement(now, one(algorithm, 50, cost=4))
        assert cut(settle(["k"], charge)) == [0]
    assert remaining(check, "k", algorithm, 50) == 50 - 1 - 3 * 4
    assert 0 < db.pttl("k") <= 2 * HOUR // 1000 + 100


def test_B06_whatever_it_comes_to_a_window_ends_when_it_began_to(
    check, settle, db
):
    """By units that differ, come back, and come to the same sum again."""
    half = HOUR // 2
    offset = (check([], b"")[0] - half) % HOUR  # half of it is over

    def units(cost):
        return record(FIXED, 90, HOUR, cost=cost, offset_us=offset)

    now = check(["k"], request(units(3)))[0]
    end = db.pexpiretime("k")
    assert abs(end - (now + half) // 1000) < 1000
    for cost in (3, -3, 1, -1, 5, -5, 3, -3, 2):
        settle(["k"], settlement(now, units(cost)))
        assert abs(db.pexpiretime("k") - end) < 100
        check(["k"], request(units(abs(cost))))
        assert abs(db.pexpiretime("k") - end) < 100
    # All of it back, and it begins anew, with a time again.
    settle(["k"], settlement(now, units(-90)))
    assert not db.exists("k")
    check(["k"], request(units(90)))
    assert abs(db.pexpiretime("k") - end) < 100


@pytest.mark.parametrize("algorithm", ALL)
def test_a_charge_of_what_has_gone_goes_to_the_current(
    check, settle, db, algorithm
):
    charge = settlement(10**15, one(algorithm, 50, cost=4))
    assert cut(settle(["k"], charge)) == [0]
    assert remaining(check, "k", algorithm, 50) == 46
    assert db.pttl("k") > 0


@pytest.mark.parametrize("algorithm", ALL)
def test_no_count_goes_beyond_twice_its_limit(check, settle, algorithm):
    now = check(["k"], request(one(algorithm, 10, DAY)))[0]
    charge = settlement(now, one(algorithm, 10, DAY, cost=15))
    assert cut(settle(["k"], charge)) == [0]
    left = 11 if algorithm == BUCKET else 0  # a bit may have flowed in
    assert cut(settle(["k"], charge))[0] in (11, 11 - (left > 0))
    wait = check(["k"], request(one(algorithm, 10, DAY)))[1][0]
    assert wait > (DAY if algorithm == BUCKET else 0)
    assert cut(settle(["k"], charge))[0] in (14, 15)


@pytest.mark.parametrize("algorithm", ALL)
def test_no_cost_is_not_refused_whatever_is_owed(check, settle, algorithm):
    now = check(["k"], request(one(algorithm, 3)))[0]
    settle(["k"], settlement(now, one(algorithm, 3, cost=5)))
    free, paid = one(algorithm, 3, cost=0), one(algorithm, 3)
    reply = check(["k"] * 2, request(free) + request(paid))
    assert reply[1][:2] == [0, 0] and reply[1][2] > 0
    assert reply[2][0] > 0 and reply[2][1] == 0
    assert reply[2][0] == reply[2][2]


def test_a_bucket_in_debt_fills_in_time(check_at, settle_at, db):
    """4/4s, burst 4: after 8 at once, 4 s until 0 and 1 more for one."""
    now, bucket = 10**15, lambda **more: record(BUCKET, 4, 4 * 10**6, **more)
    check_at(["k"], request(bucket(cost=4)), now)
    settle_at(["k"], settlement(now, bucket(cost=4)), now)
    reply = check_at(["k"], request(bucket()), now)[1]
    assert reply == [5 * 10**6, 0, 5 * 10**6, 8 * 10**6]
    assert check_at(["k"], request(bucket()), now + 5 * 10**6 - 1)[1][0] == 1
    assert check_at(["k"], request(bucket()), now + 5 * 10**6)[1][0] == 0


def test_B09_the_key_of_a_debt_lasts_until_it_is_paid(check, settle, db):
    """4/4h, burst 4: 8 units come back in 8 hours, not in 4."""
    def bucket(**more):
        return record(BUCKET, 4, 4 * HOUR, **more)

    now = check(["k"], request(bucket(cost=4)))[0]
    paid = (now + 8 * HOUR) // 1000
    settle(["k"], settlement(now, bucket(cost=4)))
    assert paid <= db.pexpiretime("k") <= paid + 100
    assert check(["k"], request(bucket()))[1][0] > 4 * HOUR
    assert paid <= db.pexpiretime("k") <= paid + 100
    db.persist("k")
    check(["k"], request(bucket()))
    assert paid <= db.pexpiretime("k") <= paid + 100
    # What is given back shortens it.
    settle(["k"], settlement(now, bucket(cost=-1)))
    assert abs(db.pexpiretime("k") - paid + HOUR // 1000) < 100


def test_a_charge_goes_to_the_window_of_its_check(check_at, settle_at, db):
    """Sliding, 10 s: from the bucket before, half faded, half is left."""
    now = 10**15
    c = record(SLIDING, 100, 10**7, cost=10)
    check_at(["k"], request(c), now)
    later = now + 15 * 10**6
    more = record(SLIDING, 100, 10**7, cost=20)
    assert cut(settle_at(["k"], settlement(now, more), later)) == [0]
    assert struct.unpack("<ddd", db.get("k"))[1:] == (0, 30)
    free = record(SLIDING, 100, 10**7, cost=0)
    assert check_at(["k"], request(free), later)[1][1] == 85


def test_a_refund_too_late_is_dropped(check, settle, db):
    back = one(FIXED, 5, cost=-1)
    now = check(["k"], request(one(FIXED, 5)))[0]
    assert cut(settle(["k"], settlement(now - 1, back))) == [0]
    assert cut(settle(["gone"], settlement(now, back))) == [0]
    assert remaining(check, "k", FIXED, 5) == 4
    assert db.dbsize() == 1


@pytest.mark.parametrize("algorithm", ALL)
def test_what_can_not_be_taken_is_that_checks_alone(
    check, settle, db, algorithm
):
    db.lpush("list", "x")
    db.set("text", "x")
    now = check(["k"], request(one(algorithm, 50)))[0]
    charge = one(algorithm, 50, cost=4)
    keys = ["list", "k", "text", "k"]
    parts = settlement(now, charge, charge) + settlement(now, charge, charge)
    assert cut(settle(keys, parts)) == [LOST, 0, LOST, 0]
    assert remaining(check, "k", algorithm, 50) == 41
    assert db.type("list") == b"list" and db.get("text") == b"x"
    db.config_set("maxmemory", 1)
    assert cut(settle(["k"], settlement(now, charge))) == [LOST]
    db.config_set("maxmemory", 0)


@pytest.mark.parametrize("algorithm", ALL)
def test_racing_settlements_sum_up(check, settle, server, algorithm):
    """4 connections, 2500 settlements each, exactly."""
    period, count = 366 * DAY, 10**5
    now = check(["k"], request(one(algorithm, count, period)))[0]

    def race():
        own = redis.Redis(unix_socket_path=server, socket_timeout=10)
        pipe = own.pipeline(transaction=False)
        for i in range(2500):
            charge = one(algorithm, count, period, cost=i % 5 + 1)
            pipe.evalsha(settle.sha, 1, "k", settlement(now, charge))
        assert pipe.execute() == [b"\0" * 8] * 2500
        own.close()

    threads = [threading.Thread(target=race) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert remaining(check, "k", algorithm, count, period) == (
        count - 1 - 4 * 2500 * 3
    )
