"""The store stops, dies, comes back: the site goes on, and says so once."""

import threading
import time

import pytest

from harness.deadline import SCALE, Deadline, until
from harness.gateway import APPS
from harness.log import OUTAGE, RECOVERY
from harness.recipes import by_key, fastcgi, fixed, key

TIMEOUT_MS = 50 if SCALE == 1 else 300
SLACK_US = 5000 * SCALE
COOLDOWN_MS = 200


def config(farm, redis_address, on_outage="allow", **store):
    return {
        "store": {
            "address": redis_address,
            "timeout": "%dms" % TIMEOUT_MS,
            "breaker_cooldown": "%dms" % COOLDOWN_MS,
            "alert_command":
                'echo "$SLUICE_EVENT $SLUICE_STORE" >>%s/alerts'
                % farm.place.path,
            **store,
        },
        "limit many": fixed("1000000/1h", on_outage=on_outage),
        "limit few": by_key("5/1h", on_outage=on_outage),
        "backend default": fastcgi(farm.php(children=4)),
    }


@pytest.fixture
def redis(farm):
    return farm.redis()


def ask(gateway, who=None, **kwargs):
    return gateway.ask("/x", headers=key(who) if who else None,
                       SCRIPT_FILENAME=APPS + "/ok.php", **kwargs)


def alerts(farm):
    try:
        with open(farm.place / "alerts") as f:
            return [line.split()[0] for line in f]
    except FileNotFoundError:
        return []


class Load:
    """Clients that ask without pause and note what they get."""

    def __init__(self, gateway, count=8):
        self.gateway = gateway
        self.stop = threading.Event()
        self.answers = []  # (time, status, has numbers)
        self.errors = []
        self.threads = [
            threading.Thread(target=self._run) for _ in range(count)]

    def _run(self):
        while not self.stop.is_set():
            try:
                got = ask(self.gateway)
                self.answers.append(
                    (time.monotonic(), got.status, got.limit[0] is not None))
            except Exception as error:
                self.errors.append(error)

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *args):
        self.stop.set()
        for t in self.threads:
            t.join()

    def wait_more(self, count, seconds=5.0):
        want = len(self.answers) + count
        until(lambda: len(self.answers) >= want or self.errors, seconds,
              "more answers")


def limits_hold(gateway, name):
    """A fresh key: exactly five of seven pass."""
    got = [ask(gateway, "%s-%d" % (name, time.monotonic_ns()))]
    if got[0].limit[0] is None:
        return False
    who = "%s-%d" % (name, time.monotonic_ns())
    statuses = [ask(gateway, who).status for _ in range(7)]
    return statuses == [200] * 5 + [429] * 2


def waits_us(gateway, since=0):
    return [int(e["store_us"])
            for e in gateway.log.find("request", since) if "store_us" in e]


def test_stopped_then_killed_and_restarted_under_load(farm, redis):
    gateway = farm.gateway(config(farm, redis.address))
    assert limits_hold(gateway, "before")
    with Load(gateway) as load:
        load.wait_more(50)
        redis.freeze()
        gateway.log.wait_for(OUTAGE, 5.0)
        load.wait_more(200)
        mark = gateway.log.mark()
        load.wait_more(200)
        open_breaker = waits_us(gateway, mark)
        redis.restart()
        restarted = time.monotonic()
        until(lambda: limits_hold(gateway, "after"), 2.0 * SCALE,
              "limits to hold again")
        assert time.monotonic() - restarted < 2.0 * SCALE
        gateway.log.wait_for(RECOVERY, 2.0)
        load.wait_more(50)
    assert load.errors == []
    assert {status for _, status, _ in load.answers} == {200}
    assert max(waits_us(gateway)) <= TIMEOUT_MS * 1000 + SLACK_US
    # While the breaker is open a check costs nothing.
    assert sorted(open_breaker)[len(open_breaker) // 2] < 1000
    until(lambda: len(alerts(farm)) == 2, 2.0, "both alerts")
    assert alerts(farm) == ["outage", "recovery"]
    assert len(gateway.log.find(OUTAGE)) == 1
    assert len(gateway.log.find(RECOVERY)) == 1


def test_B78_stopped(farm, redis):
    """Every wait ends within the budget; afterwards there is none."""
    gateway = farm.gateway(config(farm, redis.address))
    until(lambda: ask(gateway).limit[0] is not None, what="the store")
    redis.freeze()
    for _ in range(15):
        got = ask(gateway)
        assert (got.status, got.limit) == (200, (None, None, None))
    gateway.log.wait_for(OUTAGE)
    gateway.log.wait_for("request", count=16)
    waits = waits_us(gateway)
    assert max(waits) <= TIMEOUT_MS * 1000 + SLACK_US
    assert sum(w > 1000 for w in waits[1:]) <= 8


def test_stopped_and_continued(farm, redis):
    """What was counted stays; a late reply is nobody's."""
    gateway = farm.gateway(config(farm, redis.address))
    assert [ask(gateway, "sc").status for _ in range(3)] == [200] * 3
    redis.freeze()
    gateway_outage(gateway)
    redis.thaw()
    gateway.log.wait_for(RECOVERY)
    until(lambda: ask(gateway, "sc").status == 429, 2.0, "the limit to hold")
    assert limits_hold(gateway, "thawed")
    until(lambda: alerts(farm) == ["outage", "recovery"], 2.0, "the alerts")


def gateway_outage(gateway):
    until(lambda: ask(gateway).status == 200
          and gateway.log.find(OUTAGE), 5.0, "the outage")


def test_killed(farm, redis):
    gateway = farm.gateway(config(farm, redis.address))
    until(lambda: ask(gateway).limit[0] is not None, what="the store")
    redis.kill()
    for _ in range(10):
        assert ask(gateway).status == 200
    gateway.log.wait_for(OUTAGE)
    assert alerts_soon(farm) == ["outage"]
    redis.start()
    until(lambda: limits_hold(gateway, "killed"), 2.0, "limits to hold")
    until(lambda: alerts(farm) == ["outage", "recovery"], 2.0, "the alerts")


def alerts_soon(farm):
    until(lambda: alerts(farm), 2.0, "an alert")
    return alerts(farm)


def test_B74_a_restart_between_two_requests(farm, redis):
    """Counts and scripts are gone; no request fails, limits hold at once."""
    gateway = farm.gateway(config(farm, redis.address))
    assert [ask(gateway, "r").status for _ in range(3)] == [200] * 3
    redis.restart()
    until(lambda: limits_hold(gateway, "again"), 2.0, "limits to hold")


def test_absent_at_the_start(farm):
    address = "unix:" + farm.place / "redis.s"
    gateway = farm.gateway(config(farm, address))
    for _ in range(3):
        assert ask(gateway).status == 200
    farm.redis()
    until(lambda: limits_hold(gateway, "late"), 3.0, "limits to hold")


def test_the_first_request_waits_for_the_first_link(farm, redis):
    """At start a check waits up to `timeout` rather than pass."""
    for _ in range(5):
        gateway = farm.gateway(config(farm, redis.address, timeout="2s"))
        assert ask(gateway).limit[0] == 1000000


@pytest.mark.parametrize("fault", ["freeze", "kill"])
def test_on_outage_deny_is_503(farm, redis, fault):
    gateway = farm.gateway(config(farm, redis.address, on_outage="deny"))
    assert ask(gateway).status == 200
    getattr(redis, fault)()
    for _ in range(10):
        got = ask(gateway)
        assert (got.status, got.complete) == (503, True)
        assert int(got.header("retry-after")) >= 1
        assert got.limit == (None, None, None)
        assert got.header("cache-control") == "no-store"
    redis.restart()
    until(lambda: ask(gateway).status == 200, 2.0, "it to be served again")
    assert limits_hold(gateway, "deny")


def test_one_deny_among_allows_denies(farm, redis):
    sections = config(farm, redis.address)
    sections["limit few"]["on_outage"] = "deny"
    gateway = farm.gateway(sections)
    redis.kill()
    until(lambda: ask(gateway, "d").status == 503, 2.0, "the outage")
    assert ask(gateway).status == 200


def test_an_unanswered_deny_wins_over_a_refusal(farm, redis):
    sections = config(farm, redis.address, on_outage="deny")
    sections["limit guard"] = fixed("2/1h", scope="local", key="global")
    gateway = farm.gateway(sections)
    redis.kill()
    for _ in range(5):
        assert ask(gateway).status == 503


def test_B96_an_outage_is_no_line_per_request(farm, redis):
    sections = config(farm, redis.address)
    sections["log"] = {"access": "denied"}
    gateway = farm.gateway(sections)
    assert ask(gateway).status == 200
    redis.kill()
    gateway_outage(gateway)
    mark = gateway.log.mark()
    for _ in range(100):
        assert ask(gateway).status == 200
    assert gateway.log.mark() - mark < 20


def test_flapping_runs_the_command_once_a_minute_at_most(farm, redis):
    gateway = farm.gateway(config(farm, redis.address))
    for n in range(3):
        mark = gateway.log.mark()
        redis.kill()
        until(lambda: ask(gateway).status == 200
              and gateway.log.find(OUTAGE, mark), 5.0, "the outage")
        redis.start()
        gateway.log.wait_for(RECOVERY, 5.0, mark)
    until(lambda: len(alerts(farm)) >= 2, 2.0, "the first pair")
    assert alerts(farm) == ["outage", "recovery"]


def test_an_alert_that_hangs_holds_nothing_up(farm, redis):
    gateway = farm.gateway(config(
        farm, redis.address, alert_command="exec tail -f /dev/null"))
    until(lambda: ask(gateway).limit[0] is not None, what="the store")
    redis.kill()
    gateway_outage(gateway)
    redis.start()
    deadline = Deadline(3.0, "recovery in spite of the command")
    while not limits_hold(gateway, "hang"):
        deadline.check()
