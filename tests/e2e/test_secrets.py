"""All that a limit can be, in one Redis: what is there, and in the logs."""

import base64
import subprocess
import threading

import pytest

from harness import fcgi
from harness.deadline import until
from harness.gateway import BINARY
from harness.recipes import fastcgi
from harness.redis_server import monitored

DAY = 86400
VALUES = {
    "api_key": "sk-S3CR3T-1-0123456789", "gold_key": "sk-S3CR3T-2-0123456789",
    "login": "anna-S3CR3T-3:pass-S3CR3T-3", "cookie": "cookie-S3CR3T-4",
    "form": "form-S3CR3T-5", "query": "query-S3CR3T-6",
    "password": "Redis-S3CR3T-7", "key_secret": "hmac-S3CR3T-8",
}
BASIC = base64.b64encode(VALUES["login"].encode()).decode()
BEARER = "bearer-S3CR3T-9"

# Each with the longest time in seconds that a key of it may live.
LIMITS = {
    "sliding": (1200, {"rate": "500/10m", "key": "header:X-Api-Key"}),
    "fixed": (600, {"rate": "600/10m", "algorithm": "fixed_window",
                    "key": "cookie:sid | header:X-Api-Key"}),
    "twice": (DAY, {"rate": "400/10m, 700/1d", "algorithm": "fixed_window",
                    "key": "query:token"}),
    "bucket": (60, {"rate": "10/1s burst 600", "algorithm": "token_bucket",
                    "key": "header:Authorization", "count": "401,5xx"}),
    "log": (600, {"rate": "300/10m", "algorithm": "sliding_log",
                  "key": "form:user", "cost": "response:X-Cost"}),
    "month": (31 * DAY, {"rate": "9000/1month", "algorithm": "fixed_window",
                         "align": "calendar", "timezone": "Europe/Berlin",
                         "key": "header:X-Api-Key + client"}),
    "drip": (1, {"rate": "1000/1s", "algorithm": "leaky_bucket",
                 "key": "cookie:sid"}),
    "slots": (15, {"rate": "4", "algorithm": "concurrency",
                   "key": "header:Authorization + form:user"}),
    "brute": (3600, {"rate": "3/1m", "penalty": "1h", "path": "/brute",
                     "key": "header:X-Api-Key"}),
    "seen": (1200, {"rate": "1/10m", "mode": "observe", "penalty": "20m",
                    "key": "query:token + cookie:sid"}),
    "near": (0, {"rate": "900/10m", "scope": "local",
                 "key": "header:X-Api-Key"}),
}


class Application:
    """Says what the request costs and keeps who asks for /hold."""

    def __init__(self):
        self.may_go = threading.Event()

    def __call__(self, request):
        name = request.param("SCRIPT_NAME")
        if name == "/hold":
            assert self.may_go.wait(30.0)
        status = "401 Unauthorized" if name == "/brute" else "200 OK"
        request.answer(b"ok", "Status: %s\r\nX-Cost: 3\r\n" % status)


@pytest.fixture(scope="module")
def redis(shared):
    return shared.redis(options=["--requirepass", VALUES["password"]])


@pytest.fixture(scope="module")
def application():
    return Application()


@pytest.fixture(scope="module")
def gateway(shared, redis, application):
    place = shared.place
    file = place.write("gold.keys", VALUES["gold_key"] + "\n", 0o600)
    limits = {
        "limit " + name: {"missing_key": "deny", "on_outage": "local",
                          "outage_rate": "7" if name == "slots" else "7/1h",
                          **limit}
        for name, (_, limit) in LIMITS.items()}
    for name in ("outage_rate", "on_outage"):
        del limits["limit near"][name]
    return shared.gateway({
        "store": {
            "address": redis.address, "timeout": "2s",
            "password_file": place.write(
                "redis.password", VALUES["password"] + "\n", 0o600),
            "key_secret_file": place.write(
                "key.secret", VALUES["key_secret"] + "\n", 0o600),
        },
        "log": {"access": "all", "level": "debug"},
        **limits,
        "tier gold": {"when": "header:X-Api-Key=@" + file,
                      "sliding": "2000/10m", "month": "20000/1month",
                      "slots": "8", "drip": "2000/1s"},
        "backend default": fastcgi(shared.application(application)),
    })


@pytest.fixture
def client(redis):
    return redis.client(password=VALUES["password"])


def request(uri="/", api_key="api_key", authorization="Basic " + BASIC,
            more=()):
    body = b"user=%s&x=1" % VALUES["form"].encode()
    items = fcgi.env(
        "%s?token=%s" % (uri, VALUES["query"]), method="POST",
        CONTENT_TYPE="application/x-www-form-urlencoded",
        CONTENT_LENGTH=str(len(body)),
        headers={"X-Api-Key": VALUES[api_key], "Authorization": authorization,
                 "Cookie": "a=b; sid=%s" % VALUES["cookie"]})
    return fcgi.request(items + list(more), body)


def ask(gateway, *args, **kwargs):
    with gateway.connect() as conn:
        conn.send(request(*args, **kwargs))
        return conn.response().status


def set_own(gateway, value, *arguments):
    subprocess.run([BINARY, "set", "-c", gateway.config_path, "sliding", "-",
                    *arguments], input=value, text=True, timeout=10,
                   check=True)


def use_all(gateway, application):
    """Every law, allowed and refused, settled, held and penalised."""
    application.may_go.clear()
    set_own(gateway, VALUES["api_key"], "450", "--for", "10m")
    set_own(gateway, VALUES["gold_key"], "470")
    for api_key in ("api_key", "gold_key"):
        for authorization in ("Basic " + BASIC, "Bearer " + BEARER):
            assert ask(gateway, "/", api_key, authorization) == 200
        got = [ask(gateway, "/brute", api_key) for _ in range(5)]
        assert got == [401] * 3 + [429] * 2
    # Which of two is the key, nobody can say.
    assert ask(gateway, more=[("HTTP_X_API_KEY", VALUES["gold_key"])]) == 400


def held(gateway, client):
    """A request inside the application, and its slot in Redis."""
    conn = gateway.connect()
    conn.send(request("/hold"))
    until(lambda: slots(client) == 1, 5.0, "a slot")
    return conn


def slots(client):
    return sum(client.zcard(k) for k in client.scan_iter("*:slots:*"))


def dumped(client):
    """All names and values."""
    names = list(client.scan_iter("*"))
    return "\n".join("%r %r" % (n, client.dump(n)) for n in names)


def secrets():
    return list(VALUES.values()) + [BASIC, BEARER, "S3CR3T"] + [
        value.encode().hex() for value in VALUES.values()]


def leaked(text):
    return [s for s in secrets() if s.lower() in text.lower()]


def limits_of(names):
    """{limit: keys}, as keys are named PREFIX:{TAG}:LIMIT:..."""
    found = {}
    for name in names:
        text = name.decode()
        if "{" in text:
            found.setdefault(text.split("}:")[1].split(":")[0],
                             []).append(name)
    return found


@pytest.fixture(scope="module")
def used(shared, gateway, redis, application):
    """What MONITOR said meanwhile, and the gateway's log then."""
    client = redis.client(password=VALUES["password"])
    inside = []

    def work():
        use_all(gateway, application)
        inside.append(held(gateway, client))
        inside.append(dumped(client))

    text = monitored(client, work)
    yield text, inside[1]
    application.may_go.set()
    assert inside[0].response().status == 200
    inside[0].close()


def test_B67_no_client_value_is_readable_in_redis(used):
    commands, contents = used
    assert "EVALSHA" in commands
    for name in LIMITS:
        assert (":%s:" % name in commands) == (name != "near"), name
    assert leaked(commands) == leaked(contents) == []


def test_B01_every_key_of_every_limit_expires_in_time(used, client):
    found = limits_of(client.scan_iter("*"))
    found.setdefault("drip", [])  # a queue that is empty is no key
    assert set(found) == set(LIMITS) - {"near"}
    assert len(found["brute"]) == 4  # a count and a penalty for each key
    own = []
    for name, keys in found.items():
        for k in keys:
            ttl = client.pttl(k)
            if k.endswith(b":own"):
                own.append(ttl)
                continue
            assert 0 < ttl <= LIMITS[name][0] * 1000 + 2, (k, ttl)
    assert -1 in own and 0 < max(own) <= 600000 and len(own) == 2
    rest = [k for k in client.scan_iter("*") if b"{" not in k]
    assert all(0 < client.ttl(k) <= DAY for k in rest), rest


def test_keys_are_of_bounded_length(used, client):
    for name in client.scan_iter("*"):
        assert len(name) < 160


def test_nor_in_logs_nor_in_an_outage(used, gateway, redis, client):
    gateway.log.wait_for("refused", status=400)
    assert leaked(gateway.log.text()) == []
    redis.freeze()
    try:
        for n in range(9):
            assert ask(gateway, "/other") in (200, 429)
        gateway.log.wait_for("store_outage", seconds=10.0)
    finally:
        redis.thaw()
    gateway.log.wait_for("store_recovered", seconds=10.0)
    text = gateway.log.text()
    for path in ("cmdline", "environ"):
        with open("/proc/%d/%s" % (gateway.pid, path), "rb") as f:
            text += f.read().decode("latin-1")
    assert leaked(text) == []
    assert leaked(dumped(client)) == []
