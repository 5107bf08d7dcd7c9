"""What a call of check.lua does to Redis, with the server's own clock."""

import struct
import subprocess
import threading
import time

import pytest
import redis
from conftest import (
    BUCKET, EPOCH, FIRST, FIXED, NEVER, NO_STATE, ROOT, SLIDING, expand,
    record, request,
)

MINUTE = 60 * 10**6
HOUR = 60 * MINUTE
NOW = 1_790_000_000_123_457
ALL = [SLIDING, FIXED, BUCKET]


def fixed(count, **more):
    return record(FIXED, count, HOUR, align=FIRST, **more)


def waits(result):
    return result[0::4]


def remaining(result):
    return result[1::4]


def test_law_6_all_or_nothing(check, db):
    asked = request(fixed(10), fixed(1), fixed(10, observe=True))
    keys = ["wide", "narrow", "watched"]
    assert remaining(check(keys, asked)[1]) == [9, 0, 9]
    before = db.get("wide")
    result = check(keys, asked)[1]
    assert waits(result)[0] == 0 and waits(result)[1] > HOUR - 10**7
    assert remaining(result) == [9, 0, 8]
    assert db.get("wide") == before


def test_an_observed_limit_refuses_nobody(check):
    asked = request(fixed(1, observe=True), fixed(9))
    check(["a", "b"], asked)
    result = check(["a", "b"], asked)[1]
    assert waits(result)[0] > 0
    assert waits(result)[1] == 0 and remaining(result) == [0, 7]


@pytest.mark.parametrize("algorithm", ALL)
def test_B20_B21_nothing_asked_writes_nothing(check, db, algorithm):
    peek = request(record(algorithm, 3, HOUR, burst=3, cost=0))
    assert check(["k"], peek)[1] == [0, 3, 0, 0]
    assert db.dbsize() == 0
    for _ in range(4):
        check(["k"], request(record(algorithm, 3, HOUR, burst=3)))
    before = db.get("k")
    result = check(["k"], peek)[1]
    assert result[:2] == [0, 0] and result[2] > 0
    assert db.get("k") == before


@pytest.mark.parametrize("algorithm", ALL)
def test_B14_B15_B16_a_refusal_changes_nothing(check, db, algorithm):
    check(["k"], request(record(algorithm, 5, HOUR, burst=5, cost=3)))
    before = db.get("k"), db.pexpiretime("k")
    for cost, wait in ((3, None), (6, NEVER)):
        result = check(
            ["k"], request(record(algorithm, 5, HOUR, burst=5, cost=cost))
        )[1]
        assert result[0] == wait or (wait is None and result[0] > 0)
        assert result[1] == 2
    assert (db.get("k"), db.pexpiretime("k")) == before


@pytest.mark.parametrize("algorithm", ALL)
@pytest.mark.parametrize("count", [1, 3, 1000])
@pytest.mark.parametrize("period", [10**3, 10**6, HOUR, 7 * 24 * HOUR])
def test_law_4_every_key_has_a_ttl(check, db, algorithm, count, period):
    """B01, B02, B05, B08, B33."""
    now = check(["k"], request(record(algorithm, count, period)))[0]
    expires = db.pexpiretime("k")
    bound = {SLIDING: 2 * period, FIXED: period, BUCKET: -(-period // count)}
    if expires == -2 and bound[algorithm] <= 2 * 10**3:
        return  # gone already
    assert 0 < expires - now // 1000 <= bound[algorithm] // 1000 + 100


@pytest.mark.parametrize("algorithm", ALL)
def test_the_key_goes_a_millisecond_after_its_end(check, db, algorithm):
    now, result = check(["k"], request(record(algorithm, 7, HOUR)))
    end = now + result[3]
    if algorithm == SLIDING:
        assert result[3] > HOUR
    # Redis 7.0 adds PX to its clock, which goes on while a script runs.
    assert 0 <= db.pexpiretime("k") - (-(-end // 1000) + 1) < 100


@pytest.mark.parametrize("algorithm", ALL)
def test_B01_a_key_without_a_ttl_is_given_one(check, db, algorithm):
    one = request(record(algorithm, 1, HOUR))
    check(["k"], one)
    db.persist("k")
    assert check(["k"], one)[1][0] > 0
    assert 0 < db.pttl("k") <= 2 * HOUR // 1000 + 100
    check(["k2"], request(record(algorithm, 2, HOUR, burst=2)))
    db.persist("k2")
    check(["k2"], request(record(algorithm, 2, HOUR, burst=2)))
    assert 0 < db.pttl("k2") <= 2 * HOUR // 1000 + 100


def test_B11_a_bucket_in_use_is_kept(check, db):
    """Its time is counted from its last use: an hour more for each unit."""
    now, result = check(["k"], request(record(BUCKET, 10, 10 * HOUR)))
    first = db.pexpiretime("k")
    for n in range(1, 10):
        check(["k"], request(record(BUCKET, 10, 10 * HOUR)))
        moved = db.pexpiretime("k") - first
        assert abs(moved - n * HOUR // 1000) < 100
    # Refusals are no use.
    before = db.pexpiretime("k")
    assert check(["k"], request(record(BUCKET, 10, 10 * HOUR)))[1][0] > 0
    assert db.pexpiretime("k") == before


@pytest.mark.parametrize("more", [{}, {"penalty_us": 1000}, {"own_at": 0}],
                         ids=["plain", "penalty", "own"])
def test_B10_a_refusal_by_a_smaller_n_outlives_the_ttl_of_the_larger(
    check, db, more
):
    """10 units a minute are back in a minute; 1 a minute in ten."""
    keys = ["k", "k:%s" % "".join(more)][: 1 + len(more)]

    def bucket(count, cost=1):
        now, result = check(keys, request(record(
            BUCKET, count, MINUTE, burst=10, cost=cost, **more)))
        return (now + result[3]) // 1000

    bucket(10, cost=10)
    assert 59000 < db.pttl("k") <= 60100
    whole = bucket(1)
    assert 590000 < db.pttl("k") <= 600100
    assert whole <= db.pexpiretime("k") <= whole + 100
    # And one that asks for nothing, or is refused again, changes nothing.
    before = db.pexpiretime("k")
    bucket(1, cost=0)
    bucket(1)
    assert db.pexpiretime("k") == before
    bucket(10)
    assert db.pexpiretime("k") == before


@pytest.mark.parametrize("algorithm", ALL)
def test_a_key_of_another_type_spoils_only_its_check(check, db, algorithm):
    db.lpush("list", "x")
    one = record(algorithm, 5, HOUR)
    batch = request(one) + request(one, one, one) + request(one)
    reply = check(["a", "b", "list", "c", "d"], batch)
    assert waits(reply[1]) == [0]
    assert reply[2][4:8] == [NO_STATE, 0, 0, 0]
    assert waits(reply[2]) == [0, NO_STATE, 0]
    assert remaining(reply[2]) == [4, 0, 4]
    assert waits(reply[3]) == [0]
    assert db.type("list") == b"list" and db.lrange("list", 0, -1) == [b"x"]


@pytest.mark.parametrize("algorithm", ALL)
@pytest.mark.parametrize(
    "value",
    [b"", b"7", b"x" * 15, b"x" * 17, b"x" * 25,
     struct.pack("<dd", float("nan"), 1), struct.pack("<ddd", 1, 1, -1),
     struct.pack("<ddd", 1, 0.5, 1), struct.pack("<dd", 1e300, 1),
     struct.pack("<dd", 1, float("inf"))],
)
def test_a_value_not_ours_is_that_checks_error(check, db, algorithm, value):
    db.set("k", value)
    one = record(algorithm, 5, HOUR)
    reply = check(["k", "other"], request(one, one))
    assert waits(reply[1]) == [NO_STATE, 0]
    assert db.get("k") == value


def test_an_error_of_one_request_leaves_the_batch(check, db):
    """OOM: the request that had to write has it, the others stand."""
    one = request(fixed(5))
    db.config_set("maxmemory", 1)
    reply = check(["a", "b"], request(fixed(5, cost=0)) + one)
    db.config_set("maxmemory", 0)
    assert reply[1] == [0, 5, 0, 0]
    assert isinstance(reply[2], redis.ResponseError)
    assert str(reply[2]).startswith(("OOM", "command not allowed"))


def test_readonly_is_an_error_of_the_request(check, db):
    db.execute_command("REPLICAOF", "127.0.0.1", "1")
    try:
        reply = check(["a"], request(fixed(5)))
    finally:
        db.execute_command("REPLICAOF", "NO", "ONE")
    assert isinstance(reply[1], redis.ResponseError)


@pytest.mark.parametrize("step_us", [1, 999, 7000, 99_999])
def test_B25_what_is_less_than_a_token_adds_up(check_at, step_us):
    """3 a second, asked for far more often than one comes: none is lost."""
    ask = request(record(BUCKET, 3, 10**6))
    steps, passed = 1000, 0
    for n in range(steps):
        passed += check_at(["k"], ask, NOW + n * step_us)[1][0] == 0
    assert passed == 3 + 3 * (steps - 1) * step_us // 10**6


def test_B27_no_unit_is_lost_up_to_2_53(check_at, db):
    most = 2**53 - 1

    def ask(key, cost, **law):
        return check_at([key], request(record(cost=cost, **law)), NOW)[1]

    whole = {"algorithm": FIXED, "count": most, "period_us": HOUR}
    assert ask("f", most - 2, **whole)[:2] == [0, 2]
    assert ask("f", 1, **whole)[:2] == [0, 1]
    assert ask("f", 2, **whole)[1] == 1
    assert ask("f", 1, **whole)[:2] == [0, 0]
    assert ask("f", 1, **whole)[1] == 0
    assert struct.unpack("<dd", db.get("f"))[1] == most
    # A thousand years of tokens: their sum, times and waits are exact too.
    slow = {"algorithm": BUCKET, "count": 1, "period_us": 366 * 24 * HOUR,
            "burst": most // (366 * 24 * HOUR)}
    full = slow["burst"] * slow["period_us"]
    assert ask("b", slow["burst"], **slow)[2:] == [slow["period_us"], full]
    assert ask("b", 1, **slow)[0] == slow["period_us"]
    assert struct.unpack("<ddd", db.get("b")) == (NOW, 0, slow["period_us"])


def test_B28_what_comes_back_has_its_microseconds(check_at, db):
    """7 a second, and one is missing: 142857.1 us."""
    ask = request(record(BUCKET, 7, 10**6, burst=1))
    assert check_at(["k"], ask, NOW)[1] == [0, 0, 142858, 142858]
    assert check_at(["k"], ask, NOW + 1)[1] == [142857, 0, 142857, 142857]
    reply = db.evalsha(check_at.sha, 1, "k", ask, NOW + 2)
    assert all(isinstance(part, bytes) for part in reply)


def test_B29_B30_the_two_parts_of_the_time_are_added(db, check):
    """As they come from TIME, without zeros in front of them."""
    text = (
        "local redis = { call = function() return ARGV end }\n%s"
        "return string.format('%%.0f', now_us())"
    ) % (ROOT / "lua/now.lua").read_text()
    seen = [
        int(db.eval(text, 0, seconds, microseconds))
        for seconds, microseconds in [
            ("1790000000", "5"), ("1790000000", "70"),
            ("1790000000", "100000"), ("1790000000", "999999"),
            ("1790000001", "0")]]
    assert seen == [1790000000 * 10**6 + n
                    for n in (5, 70, 100000, 999999, 10**6)]
    # And with the server's own: no whole seconds.
    assert any(check([], b"")[0] % 10**6 for _ in range(3))


def test_no_requests_only_tell_the_time(check):
    (now,) = check([], b"")
    assert abs(now - time.time() * 10**6) < 5 * 10**6


def test_requests_of_a_batch_see_each_other(check):
    reply = check(["k"] * 5, request(fixed(3)) * 5)
    assert [r[1] for r in reply[1:]] == [2, 1, 0, 0, 0]
    assert [r[0] > 0 for r in reply[1:]] == [0, 0, 0, 1, 1]


@pytest.mark.parametrize("algorithm", ALL)
def test_law_2_racing(check, server, algorithm):
    """B18: 4 connections, 400 requests on a fresh key, 100 pass."""
    passed = []

    def race():
        own = redis.Redis(unix_socket_path=server, socket_timeout=10)
        one = request(record(algorithm, 100, 24 * HOUR))
        for _ in range(100):
            if check(["k"], one, on=own)[1][0] == 0:
                passed.append(1)
        own.close()

    threads = [threading.Thread(target=race) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(30)
    assert len(passed) == 100


def test_B02_B03_at_the_windows_edge(check, db):
    """A window of 5 ms over and over: never more than its limit in one."""
    one = request(record(FIXED, 3, 5000, align=EPOCH))
    counts = {}
    for _ in range(200):
        reply = check(["k"] * 10, one * 10)
        window = reply[0] // 5000
        passed = sum(r[0] == 0 for r in reply[1:])
        counts[window] = counts.get(window, 0) + passed
        assert db.pttl("k") != -1
    assert max(counts.values()) == 3


def test_the_header_holds_the_scripts(db, tmp_path):
    """embed.sh: the text that C has is the text that Redis hashes."""
    header = subprocess.run(
        [ROOT / "lua/embed.sh", ROOT / "lua/check.lua",
         ROOT / "lua/settle.lua", ROOT / "lua/renew.lua"],
        check=True, capture_output=True,
    ).stdout
    (tmp_path / "scripts.h").write_bytes(header)
    (tmp_path / "print.c").write_text(
        '#include <stdio.h>\n#include "scripts.h"\n'
        'int main(void) { printf("%s\\n%s\\n%s\\n%s%s%s", LUA_check_SHA1, '
        "LUA_settle_SHA1, LUA_renew_SHA1, lua_check, lua_settle, "
        "lua_renew); }\n"
    )
    subprocess.run(
        ["cc", "-o", tmp_path / "print", tmp_path / "print.c"], check=True
    )
    said = subprocess.run(
        [tmp_path / "print"], check=True, capture_output=True, text=True
    ).stdout
    texts = [expand(s) for s in ("check.lua", "settle.lua", "renew.lua")]
    shas = [db.script_load(text) for text in texts]
    assert said == "\n".join(shas + ["".join(texts)])
