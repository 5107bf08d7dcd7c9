"""align = calendar: windows that the clock on the wall begins and ends."""

import calendar
import datetime
import zoneinfo

import pytest

from harness.gateway import APPS
from harness.recipes import MEMORY, by_key, fastcgi

ZONE = "Europe/Berlin"


def dated(rate, name, **options):
    return by_key(rate, name=name, align="calendar", **options)


@pytest.fixture(scope="module")
def php(shared):
    return shared.php(children=2)


@pytest.fixture(scope="module", params=["memory", "redis"])
def gateway(request, shared, php):
    store = MEMORY
    if request.param == "redis":
        store = {"address": shared.redis().address}
    return shared.gateway({
        "store": store,
        "limit day": dated("2/1d", "X-Day"),
        "limit local": dated("2/1d", "X-Local", timezone=ZONE),
        "limit month": dated("2/month", "X-Month", timezone=ZONE),
        "limit year": dated("2/year", "X-Year"),
        "limit week": dated("2/1w", "X-Week"),
        "backend default": fastcgi(php),
    })


def next_day(now):
    return (now + datetime.timedelta(days=1)).replace(
        hour=0, minute=0, second=0, microsecond=0)


def next_month(now):
    days = calendar.monthrange(now.year, now.month)[1]
    first = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return first + datetime.timedelta(days=days)


def next_year(now):
    return now.replace(year=now.year + 1, month=1, day=1, hour=0, minute=0,
                       second=0, microsecond=0)


def next_week(now):
    return next_day(now) + datetime.timedelta(days=6 - now.weekday())


# Arithmetic on aware datetimes of one zone is that of the wall.
@pytest.mark.parametrize("name,zone,end", [
    ("X-Day", "UTC", next_day),
    ("X-Local", ZONE, next_day),
    ("X-Month", ZONE, next_month),
    ("X-Year", "UTC", next_year),
    ("X-Week", "UTC", next_week),
])
def test_until_the_end_of_the_window(gateway, name, zone, end):
    def left():
        now = datetime.datetime.now(zoneinfo.ZoneInfo(zone))
        return end(now).timestamp() - now.timestamp()

    # Not across midnight, nor a test that begins just before it.
    before = left()
    got = [gateway.ask("/", headers={name: "a"},
                       SCRIPT_FILENAME=APPS + "/ok.php") for _ in range(3)]
    after = left()
    if after > before:
        pytest.skip("the window ended in the middle")
    assert [g.status for g in got] == [200, 200, 429]
    assert [g.limit[1] for g in got] == [1, 0, 0]
    for g in got:
        assert after <= int(g.header("X-RateLimit-Reset")) <= before + 1
    assert after <= int(got[2].header("Retry-After")) <= before + 1
