"""Replies that are answers, not outages; and replies that come late."""

import random
import threading

import pytest

from harness.deadline import SCALE, until
from harness.gateway import APPS
from harness.process import free_port
from harness.log import OUTAGE
from harness.recipes import by_key, fastcgi, fixed, key, together

TIMEOUT_MS = 50 if SCALE == 1 else 300


@pytest.fixture
def redis(farm):
    return farm.redis()


def start(farm, redis, store=(), **sections):
    return farm.gateway({
        "store": {"address": redis.address,
                  "timeout": "%dms" % TIMEOUT_MS,
                  "breaker_cooldown": "200ms", **dict(store)},
        **(sections or {"limit few": by_key("5/1h")}),
        "backend default": fastcgi(farm.php(children=4)),
    })


def ask(gateway, who=None, uri="/x", **kwargs):
    return gateway.ask(uri, headers=key(who) if who else None,
                       SCRIPT_FILENAME=APPS + "/ok.php", **kwargs)


def test_B74_noscript_after_a_flush(farm, redis):
    gateway = start(farm, redis)
    client = redis.client()
    for remaining in (4, 3, 2, 1, 0):
        assert ask(gateway, "ns").limit[:2] == (5, remaining)
        client.script_flush()
    assert ask(gateway, "ns").status == 429
    assert not gateway.log.find(OUTAGE)


def test_a_key_of_the_wrong_type_is_that_limits_outage(farm, redis):
    sections = {
        "limit one": by_key("5/1h"),
        "limit two": by_key("7/1h", name="X-Two", on_outage="deny"),
        "limit all": fixed("1000/1h", key="global"),
    }
    gateway = start(farm, redis, **sections)
    client = redis.client()
    assert ask(gateway, "wt").limit[0] == 5
    assert gateway.ask("/x", headers={"X-Two": "wt"},
                       SCRIPT_FILENAME=APPS + "/ok.php").limit[0] == 7
    for name in client.scan_iter("*:one:*"):
        client.delete(name)
        client.lpush(name, "not a count")
    # The broken limit allows; the others go on counting.
    assert [ask(gateway, "wt").status for _ in range(3)] == [200] * 3
    assert ask(gateway).limit[:2] == (1000, 1000 - 2 - 3 - 1)
    for name in client.scan_iter("*:two:*"):
        client.delete(name)
        client.lpush(name, "not a count")
    got = gateway.ask("/x", headers={"X-Two": "wt"},
                      SCRIPT_FILENAME=APPS + "/ok.php")
    assert got.status == 503
    assert int(got.header("retry-after")) >= 1
    # Other keys of the same limit, and the store as a whole, are well.
    assert ask(gateway, "other").limit[0] == 5
    assert not gateway.log.find(OUTAGE)
    client.flushall()


def test_one_bad_key_does_not_spoil_its_batch(farm, redis):
    gateway = start(farm, redis, {"timeout": "2s"})
    client = redis.client()
    assert ask(gateway, "bad").limit[0] == 5
    name = next(client.scan_iter("*:few:*"))
    client.delete(name)
    client.lpush(name, "not a count")

    def run(i):
        who = "bad" if i % 2 else "good-%d" % i
        return [ask(gateway, who).limit[:2] for _ in range(5)]

    for i, seen in enumerate(together(8, run)):
        if i % 2:
            assert seen == [(None, None)] * 5
        else:
            assert seen == [(5, n) for n in (4, 3, 2, 1, 0)]
    client.delete(name)


def keep_busy(redis):
    """A script of somebody else's that does not end."""
    client = redis.client()
    client.config_set("lua-time-limit", 1)

    def run():
        with pytest.raises(Exception):
            redis.client().eval("while true do end", 0)

    def is_busy():
        try:
            client.ping()
        except Exception as error:
            return "busy running" in str(error)

    thread = threading.Thread(target=run)
    thread.start()
    until(is_busy, 5.0, "it to be busy")
    return thread


def new_password(redis):
    client = redis.client()
    client.config_set("requirepass", "new")
    client.execute_command("CLIENT", "KILL", "TYPE", "normal")


def wrong_type(redis):
    for name in redis.client().scan_iter("sluice:{*"):
        redis.client().delete(name)
        redis.client().lpush(name, "not a count")


FAULTS = {
    "stopped": lambda redis: redis.freeze(),
    "killed": lambda redis: redis.kill(),
    "full": lambda redis: redis.client().config_set("maxmemory", 1),
    "a replica": lambda redis: redis.client().execute_command(
        "REPLICAOF", "127.0.0.1", "1"),
    "no rights": lambda redis: redis.client().execute_command(
        "ACL", "SETUSER", "default", "-eval", "-evalsha"),
    "no password": new_password,
    "busy": keep_busy,
    "wrong type": wrong_type,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_B79_B80_no_fault_of_the_store_is_a_500(farm, redis, fault):
    """Nor does it let all pass: each limit has the answer that it says."""
    store = {"timeout": "1s", "breaker_failures": "1"}
    gateway = start(farm, redis, store, **{
        "limit allow": fixed("5/1h", path="/allow"),
        "limit deny": fixed("5/1h", path="/deny", on_outage="deny"),
        "limit local": fixed("5/1h", path="/local", on_outage="local",
                             outage_rate="2/1h"),
    })
    for uri in ("/allow", "/deny", "/local"):
        assert ask(gateway, uri=uri).limit[0] == 5
    thread = FAULTS[fault](redis)
    try:
        wanted = {"/allow": [200] * 9, "/deny": [503] * 9,
                  "/local": [200] * 2 + [429] * 7}
        for uri, statuses in wanted.items():
            got = [ask(gateway, uri=uri) for _ in range(9)]
            assert [g.status for g in got] == statuses
            assert all(g.complete for g in got)
    finally:
        if fault == "busy":
            redis.client().execute_command("SCRIPT", "KILL")
            thread.join(10.0)
        if fault not in ("killed", "stopped"):
            redis.restart()


@pytest.mark.parametrize("fault", ["wrong", "absent"])
def test_B83_wrong_password(farm, fault):
    redis = farm.redis(options=["--requirepass", "right"])
    store = {"password": "wrong"} if fault == "wrong" else {}
    gateway = start(farm, redis, store)
    until(lambda: ask(gateway, "p").status == 200
          and gateway.log.find(OUTAGE), 5.0, "the outage")
    for _ in range(10):
        assert ask(gateway, "p").limit == (None, None, None)
    assert "password" in gateway.log.find(OUTAGE)[0]["msg"]
    assert "right" not in gateway.log.text()
    # One line, and it does not hammer: a few tries, not hundreds.
    assert len(gateway.log.find(OUTAGE)) == 1
    client = redis.client(password="right")
    assert client.info("stats")["total_connections_received"] < 20
    # And finds out by itself when the password is right.
    redis.password = "wrong" if fault == "wrong" else ""
    client.config_set("requirepass", redis.password)
    until(lambda: ask(gateway, "p2").limit[0] == 5, 20.0, "recovery")


def test_right_password_and_database(farm):
    redis = farm.redis(options=["--requirepass", "a#b;c d"])
    gateway = start(farm, redis, {"password": "a#b;c d"})
    assert ask(gateway, "p").limit[:2] == (5, 4)


def test_acl_user(farm, redis):
    client = redis.client()
    client.execute_command(
        "ACL", "SETUSER", "sluice", "on", ">pw", "~sluice:*", "+@all",
        "-@dangerous", "+info")
    client.config_set("requirepass", "other")
    redis.password = "other"
    gateway = start(farm, redis, {"username": "sluice", "password": "pw"})
    assert ask(gateway, "p").limit[:2] == (5, 4)


def test_redis_over_tcp_with_a_database(farm):
    port = free_port()
    redis = farm.redis(options=["--port", str(port),
                                "--bind", "127.0.0.1"])
    gateway = farm.gateway({
        "store": {"address": "redis://127.0.0.1:%d/3" % port,
                  "timeout": "2s"},
        "limit few": by_key("5/1h"),
        "backend default": fastcgi(farm.php(children=2)),
    })
    assert ask(gateway, "p").limit[:2] == (5, 4)
    assert list(redis.client(db=3).scan_iter("sluice:{*"))
    assert not list(redis.client(db=0).scan_iter("*"))


def test_out_of_memory_is_an_outage_with_its_message(farm, redis):
    gateway = start(farm, redis)
    assert ask(gateway, "oom").limit[0] == 5
    redis.client().config_set("maxmemory", "1")
    for _ in range(10):
        got = ask(gateway, "oom")
        assert got.status == 200
    redis.client().config_set("maxmemory", "0")
    until(lambda: ask(gateway, "oom2").limit[0] == 5, 5.0, "recovery")


def test_101_late_replies_are_nobody_elses(farm, redis):
    """Redis stands still at random for longer than `timeout`. Each limit
    has a number of its own: an answer with another's number is a reply
    that went astray; none is lost; service goes on."""
    seed = random.SystemRandom().randrange(2**32)
    print("seed", seed)
    rng = random.Random(seed)
    limits = {
        "limit n%d" % i: fixed("%d/1h" % (100000 + i), path="/n/%d" % i)
        for i in range(8)
    }
    gateway = start(farm, redis, {"breaker_failures": "3",
                                  "breaker_cooldown": "50ms"}, **limits)
    done = threading.Event()

    def stall():
        client = redis.client()
        while not done.wait(rng.uniform(0.05, 0.3)):
            client.execute_command("CLIENT", "PAUSE", 2 * TIMEOUT_MS, "ALL")

    def run(i):
        numbers = set()
        for _ in range(400):
            got = ask(gateway, uri="/n/%d" % i)
            assert got.status == 200
            numbers.add(got.limit[0])
        return numbers

    thread = threading.Thread(target=stall)
    thread.start()
    try:
        results = together(8, run)
    finally:
        done.set()
        thread.join()
    for i, numbers in enumerate(results):
        assert numbers <= {100000 + i, None}
    until(lambda: ask(gateway, uri="/n/1").limit[0] == 100001, 5.0,
          "service to go on")
