"""A key's own counts, read in the call that reads the count."""

import struct
from math import gcd

import pytest
import redis
from conftest import (
    BUCKET, CALENDAR, FIRST, FIXED, LEAKY, LOG, NO_STATE, SLIDING, SLOTS,
    cut, record, request, settlement,
)

HOUR = 3600 * 10**6
KINDS = {
    "sliding": {"algorithm": SLIDING},
    "fixed": {"algorithm": FIXED, "align": FIRST},
    "calendar": {"algorithm": FIXED, "align": CALENDAR,
                 "boundaries": (0, 10**15, 10**16 // 2, 6 * 10**15)},
    "bucket": {"algorithm": BUCKET},
    "log": {"algorithm": LOG},
    "leaky": {"algorithm": LEAKY, "delay_us": 10**13},
    "slots": {"algorithm": SLOTS, "slot": b"a"},
}


def one(kind, count=5, period=HOUR, own_at=0, **more):
    given = {"burst": count, **KINDS[kind], **more}
    return record(count=count, period_us=period, own_at=own_at, **given)


def parts(result, n=7):
    return [result[i : i + n] for i in range(0, len(result), n)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("penalty_us", [0, 10**6])
def test_own_counts_replace_n(check, db, kind, penalty_us):
    db.set("own", "9")
    asked = request(one(kind, penalty_us=penalty_us))
    keys = ["k", "own"] + (["p"] if penalty_us else [])
    result = check(keys, asked)[1]
    assert result[:2] == [0, 8] and result[5:] == [9, 9]
    assert db.pttl("own") == -1


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "slots"])
def test_less_than_the_limit_refuses_sooner(check, db, kind):
    db.set("own", "2")
    reply = check(["k", "own"] * 3, request(one(kind)) * 3)
    assert [r[0] > 0 for r in reply[1:]] == [False, False, True]
    assert [r[1] for r in reply[1:]] == [1, 0, 0]
    assert {tuple(r[5:]) for r in reply[1:]} == {(2, 2)}


@pytest.mark.parametrize("kind", KINDS)
def test_without_any_it_is_as_ever(check, db, kind):
    result = check(["k", "own"], request(one(kind)))[1]
    assert result[:2] == [0, 4]
    plain = check(["k2"], request(one(kind, own_at=None)))[1]
    assert plain[:2] == result[:2] and len(plain) == len(result)


def test_each_rate_has_its_own(check, db):
    db.set("own", "7,70")
    asked = request(one("sliding"), one("fixed", 50, own_at=1),
                    one("bucket", 6, own_at=2))
    result = parts(check(["a", "own", "b", "own", "c", "own"], asked)[1][:14])
    assert [r[1] for r in result] == [6, 69]
    assert [r[5:] for r in result] == [[7, 7], [70, 70]]
    # There is no third: that one is as configured.
    assert check(["a", "own", "b", "own", "c", "own"], asked)[1][14:16] == [
        0, 4]


def test_keys_of_a_batch_keep_their_order(check, db):
    db.set("own", "3")
    batch = (request(one("fixed")) + request(one("fixed", own_at=None)) +
             request(one("log"), one("fixed", penalty_us=10)) +
             request(one("fixed", own_at=None)))
    reply = check(["a", "own", "b", "c", "none", "d", "own", "p", "e"], batch)
    assert [reply[1][1], reply[2][1], reply[4][1]] == [2, 4, 4]
    assert reply[3][1] == 4 and reply[3][4:6] == [0, 2]
    assert reply[3][9:] == [3, 3]
    assert sorted(db.keys("*")) == [b"a", b"b", b"c", b"d", b"e", b"own"]


@pytest.mark.parametrize("count,burst,own,want", [
    (10, 10, 25, 25), (10, 30, 25, 75), (10, 30, 1, 3), (3, 1, 1, 1),
    (7, 20, 3, 8), (10, 5, 1, 1), (10**9, 10**9, 7, 7),
])
def test_a_burst_keeps_its_proportion(check, db, count, burst, own, want):
    db.set("own", own)
    result = check(["k", "own"], request(
        one("bucket", count, burst=burst, cost=0)))[1]
    assert result[1] == want and result[5:] == [want, own]


def test_a_bucket_fills_at_its_own_rate(check_at, db):
    now = 10**15
    db.set("own", "3")
    asked = request(one("bucket", 7, 10**6, cost=3))
    assert check_at(["k", "own"], asked, now)[1][1] == 0
    one_more = request(one("bucket", 7, 10**6))
    result = check_at(["k", "own"], one_more, now)[1]
    assert result[0] == 333334 and result[3] == 10**6


def test_set_and_unset_are_in_force_at_once(check, db):
    asked = request(one("fixed"))
    assert check(["k", "own"], asked)[1][1] == 4
    db.set("own", "10")
    assert check(["k", "own"], asked)[1][1] == 8
    db.set("own", "1")
    assert check(["k", "own"], asked)[1][:2][1] == 0
    db.delete("own")
    assert check(["k", "own"], asked)[1][1] == 2


@pytest.mark.parametrize("value", [
    "", "x", "0", "-1", "1.5", "nan", "inf", "1e300", ",9", "9x", b"\xff"])
def test_what_is_no_count_is_none(check, db, value):
    """B34: 0 is none."""
    db.set("own", value)
    result = check(["k", "own"], request(one("fixed")))[1]
    assert result[:2] == [0, 4] or value == ",9"


def test_keys_of_another_type(check, db):
    """Those own counts are none, that count is an error as ever."""
    db.lpush("list", "9")
    db.set("own", "9")
    asked = request(one("fixed"), one("fixed"), one("log"))
    result = check(["k", "list", "list", "own", "l", "list"], asked)[1]
    assert result[:2] == [0, 4]
    assert result[4:8] == [NO_STATE, 0, 0, 0]
    assert result[8:10] == [0, 4]
    assert db.lrange("list", 0, -1) == [b"9"]


def test_what_would_not_be_exact_is_cut(check, db):
    db.set("own", str(10**12))
    year = 366 * 24 * HOUR
    result = check(["s", "own"], request(one("sliding", 5, year, cost=0)))[1]
    assert result[5] == (2**53 - 1) // (year // 1000)
    result = check(["b", "own"], request(one("bucket", 7, year, cost=0)))[1]
    assert result[5] == (2**53 - 1) // (year // gcd(10**12, year))
    result = check(["l", "own"], request(one("log", 5, year, cost=0)))[1]
    assert result[5] == 10000


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "slots"])
def test_settlements_go_by_them_too(check, settle, db, kind):
    """Twice the own limit is the end, not twice the limit."""
    db.set("own", "20")
    now = check(["k", "own"], request(one(kind)))[0]
    keys, charge = ["k", "own"] * 2, one(kind, cost=10)
    got = cut(settle(keys, settlement(now, charge, charge)))
    assert got == [0, 0]
    assert check(["k", "own"], request(one(kind, cost=0)))[1][1] == 0
    got = cut(settle(keys, settlement(now, charge, charge)))
    assert got == [0, 1]


def test_an_own_bucket_is_not_converted_by_a_settlement(
    check_at, settle_at, db
):
    db.set("own", "3")
    now, kind = 10**15, {"kind": "bucket", "count": 7, "period": 10**6}
    check_at(["k", "own"], request(one(**kind)), now)
    settle_at(["k", "own"], settlement(now, one(**kind)), now)
    assert struct.unpack("<ddd", db.get("k")) == (now, 10**6, 10**6)


def test_a_user_without_mget(check, server, db):
    db.set("own", "9")
    db.acl_setuser("plain", enabled=True, nopass=True, keys=["*"],
                   commands=["+@all", "-mget"])
    plain = redis.Redis(unix_socket_path=server, username="plain",
                        password="any", socket_timeout=10)
    result = check(["k", "own"], request(one("fixed")), on=plain)[1]
    plain.close()
    db.acl_deluser("plain")
    assert result[1] == 8 and result[5] == 9
