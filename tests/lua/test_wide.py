"""Logs, queues, slots, calendars and penalties, as a call of check.lua."""

import random
import struct
import threading

import pytest
import redis
from conftest import (
    BUCKET, CALENDAR, EPOCH, FIRST, FIXED, LEAKY, LOG, NEVER, NO_STATE,
    SLIDING, SLOTS, Script, TEST_NOW, cut, record, request, settlement,
)

SECOND = 10**6
HOUR = 3600 * SECOND
HOLD = 15 * SECOND  # a slot, if nobody renews it
NOW = 1_790_000_000_000_000
ALL = ["log", "leaky", "slots", "calendar"]


def one(law, count, period=HOUR, slot=b"me", **more):
    """count of them pass at once."""
    if law == "log":
        return record(LOG, count, period, **more)
    if law == "leaky":
        return record(LEAKY, count, period, delay_us=period, **more)
    if law == "slots":
        return record(SLOTS, count, 0, slot=slot, **more)
    start = NOW - period
    return record(FIXED, count, period, align=CALENDAR, boundaries=[
        start, start + period, start + 2 * period, start + 3 * period
    ], **more)


@pytest.fixture
def renew_at(db):
    return Script(db, "renew.lua", TEST_NOW)


def names(*slots):
    return b"".join(bytes([len(slot)]) + slot for slot in slots)


def remaining(result):
    return result[1]


@pytest.mark.parametrize("law", ALL)
def test_so_many_pass_and_then_none(check, law):
    asked = [request(one(law, 3, slot=b"%d" % i)) for i in range(5)]
    results = [check(["k"], ask)[1] for ask in asked]
    assert [r[0] == 0 for r in results] == [True] * 3 + [False] * 2
    assert [remaining(r) for r in results] == [2, 1, 0, 0, 0]


@pytest.mark.parametrize("law", ALL)
def test_a_refusal_and_a_free_question_change_nothing(check, db, law):
    ask = one(law, 2, cost=0)
    assert check(["k"], request(ask))[1][:4] == [0, 2, 0, 0]
    assert db.dbsize() == 0
    check(["k"], request(one(law, 2, slot=b"a")))
    check(["k"], request(one(law, 2, slot=b"b")))
    before = db.dump("k"), db.pexpiretime("k")
    refused = check(["k"], request(one(law, 2, slot=b"c")))[1]
    assert refused[0] > 0 and remaining(refused) == 0
    assert remaining(check(["k"], request(ask))[1]) == 0
    if law != "slots":
        never = check(["k"], request(one(law, 2, cost=3)))[1]
        assert never[0] == NEVER
    assert (db.dump("k"), db.pexpiretime("k")) == before


@pytest.mark.parametrize("law", ALL)
def test_every_key_has_a_ttl(check, settle, db, law):
    bound = 15 * SECOND if law == "slots" else 3 * HOUR
    now = check(["k"], request(one(law, 5, penalty_us=HOUR)))[0]
    settle(["k"], settlement(now, one(law, 5, cost=3)))
    for i in range(9):
        check(["k", "k:p"], request(
            one(law, 5, slot=b"%d" % i, penalty_us=HOUR)))
    assert 0 < db.pttl("k") <= bound // 1000 + 100
    assert 0 < db.pttl("k:p") <= HOUR // 1000 + 100
    for key in "k", "k:p":
        db.persist(key)
    check(["k", "k:p"], request(one(law, 5, penalty_us=HOUR)))
    assert 0 < db.pttl("k") <= bound // 1000 + 100
    assert 0 < db.pttl("k:p") <= HOUR // 1000 + 100


@pytest.mark.parametrize("law", ALL)
@pytest.mark.parametrize("kind", ["string", "hash", "zset"])
def test_a_key_of_another_kind_spoils_only_its_check(
    check, settle, db, law, kind
):
    if kind == "string":
        db.set("k", "x")
    elif kind == "hash":
        db.hset("k", "x", "y")
    else:
        db.zadd("k", {"x": 1e300})
    before = db.dump("k")
    ask = request(one(law, 5), record(FIXED, 5, HOUR, align=FIRST))
    result = check(["k", "other"], ask)[1]
    assert result[:4] == [NO_STATE, 0, 0, 0] and result[4:6] == [0, 4]
    back = one(law, 5, cost=-1)
    assert cut(settle(["k"], settlement(NOW, back))) in ([-1], [0])
    assert db.dump("k") == before


@pytest.mark.parametrize("law", ALL)
def test_all_or_nothing_with_the_other_laws(check, db, law):
    plain = record(BUCKET, 10, HOUR, burst=10)

    def ask(i):
        return check(["wide", "plain", "watched"], request(
            one(law, 1, slot=b"%d" % i), plain,
            record(SLIDING, 10, HOUR, observe=True)))[1]

    def numbers(result):
        size = 6 if law == "leaky" else 4
        return result[1], result[size + 1], result[size + 5]

    assert numbers(ask(0)) == (0, 9, 9)
    assert numbers(ask(1)) == (0, 9, 8)
    # And the other way round.
    full = record(FIXED, 1, HOUR, align=FIRST)
    check(["full"], request(full))
    result = check(["other", "full"], request(one(law, 3), full))[1]
    assert result[0] == 0 and remaining(result) == 3
    assert not db.exists("other")
    # One that is observed counts, and refuses nobody.
    for i in range(3):
        result = check(["seen", "plain"], request(
            one(law, 2, observe=True, slot=b"%d" % i), plain))[1]
    assert result[0] > 0
    assert check(["plain"], request(record(BUCKET, 10, HOUR, burst=10, cost=0))
                 )[1][1] == 6


@pytest.mark.parametrize("law", ALL)
def test_law_2_racing(check, server, law):
    """4 connections, 200 requests on a fresh key, 50 pass."""
    passed = []

    def race(who):
        own = redis.Redis(unix_socket_path=server, socket_timeout=10)
        for i in range(50):
            ask = request(one(law, 50, 24 * HOUR, slot=b"%d-%d" % (who, i)))
            if check(["k"], ask, on=own)[1][0] == 0:
                passed.append(1)
        own.close()

    threads = [threading.Thread(target=race, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(30)
    assert len(passed) == 50


def test_entries_of_one_microsecond_are_all_counted(check_at, db):
    for _ in range(7):
        assert check_at(["k"], request(one("log", 9)), NOW)[1][0] == 0
    assert db.zcount("k", NOW, NOW) == 7
    assert remaining(check_at(["k"], request(one("log", 9)), NOW)[1]) == 1


@pytest.mark.parametrize("law", ["log", "slots"])
def test_B13_what_is_out_denies_nobody(check_at, law):
    """Nothing has come meanwhile that would have cleared it away."""
    for i in range(5):
        held = request(one(law, 5, HOLD, slot=b"%d" % i))
        assert check_at(["k"], held, NOW)[1][0] == 0
    ask = request(one(law, 5, HOLD, slot=b"new"))
    assert check_at(["k"], ask, NOW + HOLD - 1)[1][0] > 0
    assert check_at(["k"], ask, NOW + HOLD)[1][:2] == [0, 4]


@pytest.mark.parametrize("law", ["log", "slots"])
def test_B27_times_are_kept_to_the_microsecond(check_at, db, law):
    odd = NOW + 123_457
    ask = [request(one(law, 1, HOLD, slot=b"%d" % i)) for i in range(2)]
    assert check_at(["k"], ask[0], odd)[1][0] == 0
    times = [score for _, score in db.zrange("k", 0, -1, withscores=True)]
    assert max(times) == odd + (HOLD if law == "slots" else 0)
    assert check_at(["k"], ask[1], odd + HOLD - 1)[1][0] > 0
    assert check_at(["k"], ask[1], odd + HOLD)[1][0] == 0


def test_B37_a_slot_is_held_by_the_clock_of_the_server(check, db):
    """What the gateway sends has no time in it: its clock may be wrong."""
    def server_us():
        seconds, microseconds = db.time()
        return seconds * 10**6 + microseconds

    before = server_us()
    for i in range(3):
        check(["k"], request(one("slots", 3, slot=b"%d" % i)))
    renew = Script(db, "renew.lua")
    assert renew(["k"], names(b"0")) == 1
    after = server_us()
    held = db.zrange("k", 0, -1, withscores=True)
    assert {name for name, _ in held} == {b"0", b"1", b"2"}
    assert all(before <= until - HOLD <= after for _, until in held)


def test_a_log_forgets_what_is_out(check_at, db):
    for i in range(500):
        check_at(["k"], request(one("log", 10, SECOND)), NOW + i * 60_000)
    assert db.zcard("k") <= 10 + 2


def test_a_log_without_its_first_entries_is_walked(check_at):
    """retry of a large cost: when enough of many small ones are out."""
    for i in range(350):
        check_at(["k"], request(one("log", 350)), NOW + i)
    ask = request(one("log", 350, cost=301))
    assert check_at(["k"], ask, NOW + 350)[1][0] == HOUR + 300 - 350


def test_a_leaky_bucket_tells_delay_and_limit(check_at):
    ask = request(record(LEAKY, 10, SECOND, burst=20, delay_us=SECOND))
    results = [check_at(["k"], ask, NOW)[1] for _ in range(12)]
    assert [r[4] for r in results] == [i * 100_000 for i in range(11)] + [0]
    assert [r[0] for r in results] == [0] * 11 + [100_000]
    assert {r[5] for r in results} == {11}


def test_slots_are_free_15_s_after_a_crash(check_at, renew_at, settle_at):
    for i in range(2):
        check_at(["k"], request(one("slots", 2, slot=b"%d" % i)), NOW)
    third = request(one("slots", 2, slot=b"third"))
    late = NOW + 15 * SECOND - 1
    assert check_at(["k"], third, late)[1][0] == SECOND
    assert renew_at(["k"], names(b"1"), NOW + 5 * SECOND) == 1
    assert remaining(check_at(["k"], third, late + 1)[1]) == 0
    fourth = request(one("slots", 2, slot=b"fourth"))
    assert check_at(["k"], fourth, NOW + 20 * SECOND - 1)[1][0] > 0
    assert check_at(["k"], fourth, NOW + 20 * SECOND)[1][0] == 0
    # Given back twice, or by who has none: nothing.
    for slot in b"third", b"third", b"1", b"nobody":
        settle_at(["k"], settlement(0, one("slots", 2, slot=slot, cost=-1)),
                  NOW + 20 * SECOND)
    free = request(one("slots", 2, cost=0))
    assert remaining(check_at(["k"], free, NOW + 20 * SECOND)[1]) == 1


def test_a_renewal_puts_back_what_was_lost(check, db):
    renew = Script(db, "renew.lua")
    db.set("text", "x")
    assert renew(["a", "text", "b", "a"], names(b"1", b"2", b"3", b"4")) == 3
    assert db.zcard("a") == 2 and db.zcard("b") == 1
    assert all(14000 < db.pttl(key) <= 15002 for key in "ab")
    assert check(["a"], request(one("slots", 2, slot=b"5")))[1][0] > 0
    assert db.get("text") == b"x"


@pytest.mark.parametrize("law", ALL + [SLIDING, FIXED, BUCKET], ids=str)
def test_B32_a_clock_set_back_gives_nothing_and_takes_nothing(
    check_at, db, law
):
    def ask(now, cost=1, slot=b"a"):
        if law in ALL:
            check = one(law, 3, cost=cost, slot=slot)
        else:
            check = record(law, 3, HOUR, burst=3, cost=cost)
        return check_at(["k"], request(check), now)[1]

    assert ask(NOW, slot=b"a")[:2] == [0, 2]
    for back in 1, SECOND, HOUR, 1000 * HOUR:
        assert ask(NOW - back, cost=0)[1] == 2
    assert ask(NOW - SECOND, slot=b"b")[:2] == [0, 1]
    assert ask(NOW - 1000 * HOUR, slot=b"c")[:2] == [0, 0]
    full = db.dump("k")
    for back in 1, SECOND, HOUR, 1000 * HOUR:
        refused = ask(NOW - back, slot=b"d")
        assert refused[0] > 0 and refused[1] == 0
    assert db.dump("k") == full
    # Nor is there anything to make up for, once it is where it was.
    assert ask(NOW, cost=0)[1] == 0


@pytest.mark.parametrize(
    "law", ALL + [SLIDING, FIXED, BUCKET], ids=str
)
def test_a_penalty_is_set_once_by_a_refusal(check_at, db, law):
    def ask(now, cost=1, slot=b"a", penalty=60 * SECOND):
        more = {"cost": cost, "penalty_us": penalty}
        if law in ALL:
            check = one(law, 1, SECOND, slot=slot, **more)
        else:
            check = record(law, 1, SECOND, burst=1, align=EPOCH, **more)
        return check_at(["k", "k:p"], request(check), now)[1]

    assert ask(NOW)[0] == 0
    assert not db.exists("k:p")
    assert ask(NOW + 1, slot=b"b")[:2] == [60 * SECOND, 0]
    begun = db.get("k:p")
    assert struct.unpack("<d", begun) == (NOW + 1,)
    assert ask(NOW + 20 * SECOND, slot=b"c")[0] == 40 * SECOND + 1
    # A free question sees it: nothing is left.
    assert ask(NOW + 20 * SECOND, cost=0)[:2] == [0, 0]
    assert ask(NOW - HOUR, cost=0)[:3] == [0, 0, 60 * SECOND]
    if law != "slots":
        assert ask(NOW + 30 * SECOND, cost=2)[0] == NEVER
    assert db.get("k:p") == begun
    # As long as it is now, whatever it was then.
    assert ask(NOW + 20 * SECOND, penalty=21 * SECOND)[0] == SECOND + 1
    assert ask(NOW + 60 * SECOND, slot=b"d")[0] == 1
    assert ask(NOW + 60 * SECOND + 1, slot=b"e")[0] == 0


def test_a_penalty_of_each_limit_that_is_violated(check, db):
    full = record(FIXED, 1, HOUR, align=FIRST, penalty_us=HOUR)
    seen = record(BUCKET, 1, HOUR, penalty_us=HOUR, observe=True)
    free = one("log", 9, penalty_us=HOUR)
    keys = ["full", "full:p", "seen", "seen:p", "free", "free:p"]
    for _ in range(2):
        result = check(keys, request(full, seen, free))[1]
    assert [result[i] > 0 for i in (0, 4, 8)] == [True, True, False]
    assert {k for k in db.keys("*:p")} == {b"full:p", b"seen:p"}
    assert remaining(result[8:]) == 8


def test_a_penalty_not_ours_is_that_checks_error(check, db):
    plain = record(BUCKET, 9, HOUR, penalty_us=HOUR)
    for value in b"x", b"x" * 9, struct.pack("<d", float("nan")):
        db.set("k:p", value)
        result = check(["k", "k:p", "o", "o:p"], request(plain, plain))[1]
        assert result[0] == NO_STATE and result[4] == 0
        assert db.get("k:p") == value
    db.delete("k:p")
    db.lpush("k:p", "x")
    assert check(["k", "k:p"], request(plain))[1][0] == NO_STATE


def test_an_error_leaves_the_batch_where_it_was(check, db):
    """Requests of unlike lengths behind one that fails stand."""
    r = random.Random(1)
    parts, keys, laws = [], [], []
    for i in range(20):
        law = r.choice(ALL)
        penalty = r.choice([0, HOUR])
        laws.append(law)
        parts.append(request(
            one(law, 5, slot=b"s" * r.randint(1, 60), penalty_us=penalty)))
        keys += ["%s-%d" % (law, i)] + ["p-%d" % i] * (penalty > 0)
    reply = check(keys, b"".join(parts))
    assert [remaining(part) for part in reply[1:]] == [4] * 20
    db.flushall()
    db.config_set("maxmemory", 1)
    parts.append(request(one("log", 5, cost=0)))
    reply = check(keys + ["last"], b"".join(parts))
    db.config_set("maxmemory", 0)
    assert all(isinstance(x, redis.ResponseError) for x in reply[1:-1])
    assert reply[-1] == [0, 5, 0, 0]
