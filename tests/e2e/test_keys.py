"""What a key is made of: cookies, fields, params, and which of them count."""

import hashlib
import hmac
import re
import struct
import subprocess

import pytest

from harness import fcgi
from harness.deadline import until
from harness.gateway import APPS, BINARY
from harness.recipes import MEMORY, fastcgi, fixed
from harness.redis_server import monitored

FORM = "application/x-www-form-urlencoded"
HASH = re.compile("[0-9a-f]{32}")
HEX = "0123456789abcdef0123456789abcdef"


@pytest.fixture(scope="module")
def php(shared):
    return shared.php(children=2)


@pytest.fixture(scope="module")
def known(shared):
    return shared.place.write(
        "api.keys", "# ours\nalpha key\nhash:%s\n%s\n" % (hashed("beta"), HEX),
        0o600)


def hashed(value):
    """What stands in Redis without a key_secret."""
    secret = b"sluice: a public secret, where none is configured"
    data = struct.pack(">Q", len(value)) + value.encode()
    return hmac.new(secret, data, hashlib.sha256).hexdigest()[:32]


@pytest.fixture(scope="module")
def gateway(shared, php, known):
    limits = {
        "query": fixed("3/1h", path="/query", key="query:k"),
        "cookie": fixed("3/1h", path="/cookie", key="cookie:sid"),
        "param": fixed("3/1h", path="/param", key="param:REMOTE_USER"),
        "form": fixed("3/1h", path="/form", key="form:user",
                      missing_key="deny"),
        "pair": fixed("3/1h", path="/pair", key="client+form:user"),
        "ways": fixed("3/1h", path="/ways",
                      key="header:X-Key | query:k | cookie:k | form:k"),
        "spoof": fixed("3/1h", path="/spoof", key="header:X-Key | client"),
        "known": fixed("3/1h", path="/known", key="header:X-Key | client",
                       known_keys="@" + known),
        "strict": fixed("3/1h", path="/strict", key="header:X-Key",
                        missing_key="deny", known_keys="@" + known),
        "plan": fixed("400/1h", path="/plan", key="global",
                      header="X-Plan=free*, X-Plan="),
        "search": fixed("401/1h", path="/search", key="global",
                        query="action=~^(search|find)$"),
    }
    for limit in limits.values():
        limit.setdefault("missing_key", "skip")
    for name in ("plan", "search"):
        del limits[name]["missing_key"]
    return shared.gateway({
        "gateway": {"spool_memory": "4k"},
        "store": MEMORY,
        **{"limit " + name: limit for name, limit in limits.items()},
        "backend default": fastcgi(php),
    })


def ask(gateway, uri, body=b"", **kwargs):
    kwargs.setdefault("SCRIPT_FILENAME", APPS + "/ok.php")
    return gateway.ask(uri, body, **kwargs)


def post(gateway, uri, body, kind=FORM, **kwargs):
    return ask(gateway, uri, body, method="POST", CONTENT_TYPE=kind,
               CONTENT_LENGTH=str(len(body)), **kwargs)


def left(response):
    return response.limit[1]


def test_query(gateway):
    assert left(ask(gateway, "/query?k=one")) == 2
    assert left(ask(gateway, "/query?a=1&k=one")) == 1
    assert left(ask(gateway, "/query?%6b=%6fne")) == 0
    assert ask(gateway, "/query?k=one&k=two").status == 429
    assert left(ask(gateway, "/query?k=two&k=one")) == 2
    assert left(ask(gateway, "/query?k=")) is None
    assert left(ask(gateway, "/query?k=&k=one")) is None
    assert left(ask(gateway, "/query?K=one")) is None


def test_cookie(gateway):
    def sid(text):
        return ask(gateway, "/cookie", headers={"Cookie": text})

    assert left(sid("sid=one")) == 2
    assert left(sid("a=1; sid=\"one\"; b=2")) == 1
    assert left(sid("sid=%6fne; sid=two")) == 0
    assert sid("sid=one").status == 429
    assert left(sid("sid=two")) == 2
    assert left(sid("sid=")) is None
    assert left(sid("SID=one")) is None


def test_40_cookies_in_two_headers_choose_no_count(gateway):
    items = fcgi.env("/cookie", headers={"Cookie": "sid=x"},
                     SCRIPT_FILENAME=APPS + "/ok.php")
    with gateway.connect() as conn:
        got = conn.ask(items + [("HTTP_COOKIE", "sid=y")])
    assert got.status == 400


def test_param(gateway):
    assert left(ask(gateway, "/param", REMOTE_USER="joe")) == 2
    assert left(ask(gateway, "/param", REMOTE_USER="joe")) == 1
    assert left(ask(gateway, "/param", REMOTE_USER="Joe")) == 2
    assert left(ask(gateway, "/param", headers={"Remote-User": "joe"})
                ) is None


def test_form(gateway):
    assert left(post(gateway, "/form", b"user=joe&password=x")) == 2
    assert left(post(gateway, "/form", b"user=%6aoe&user=joe",
                     FORM + "; charset=UTF-8")) == 1
    assert left(post(gateway, "/form", b"a=1&us%65r=joe")) == 0
    assert post(gateway, "/form", b"user=joe").status == 429
    assert left(post(gateway, "/form", b"user=ann")) == 2


@pytest.mark.parametrize("body, kind", [
    (b"", FORM), (b"user=", FORM), (b"User=joe", FORM), (b"user", FORM),
    (b"user=joe", "text/plain"), (b"user=joe", None),
    (b'{"user": "joe"}', "application/json")])
def test_form_without_the_field_is_a_missing_key(gateway, body, kind):
    for _ in range(4):
        assert post(gateway, "/form", body, kind).status == 403


def test_a_form_larger_than_spool_memory_is_a_missing_key(gateway):
    body = b"user=large&pad=" + b"x" * 4000
    assert left(post(gateway, "/form", body)) == 2
    assert post(gateway, "/form", body + b"x" * 200).status == 403


def test_a_form_in_many_pieces(gateway):
    """The body decides, whenever it comes: the whole of it is waited for."""
    body = b"user=pieces&x=1"
    items = fcgi.env("/form", method="POST", CONTENT_TYPE=FORM,
                     CONTENT_LENGTH=str(len(body)),
                     SCRIPT_FILENAME=APPS + "/ok.php")
    for n in range(5):
        with gateway.connect() as conn:
            conn.send(fcgi.head(items))
            for i in range(len(body)):
                conn.send(fcgi.record(fcgi.STDIN, body[i:i + 1]))
            conn.send(fcgi.record(fcgi.STDIN))
            got = conn.response()
        assert got.status == (200 if n < 3 else 429)


def test_one_key_however_it_is_sent(gateway):
    assert left(ask(gateway, "/ways", headers={"X-Key": "k 1"})) == 2
    assert left(ask(gateway, "/ways?k=k+1")) == 1
    assert left(ask(gateway, "/ways", headers={"Cookie": "k=k%201"})) == 0
    assert post(gateway, "/ways", b"k=k%201").status == 429


def test_a_header_that_says_anothers_address_is_not_that_client(gateway):
    for n in range(4):
        got = ask(gateway, "/spoof", client="198.51.100.66",
                  headers={"X-Key": "192.0.2.66"})
    assert got.status == 429
    assert left(ask(gateway, "/spoof", client="192.0.2.66")) == 2


def test_known_keys(gateway):
    def key(value, client, uri="/known"):
        return ask(gateway, uri, client=client, headers={"X-Key": value})

    assert left(key("alpha key", "192.0.2.70")) == 2
    assert left(key("alpha key", "192.0.2.71")) == 1
    assert left(key("beta", "192.0.2.70")) == 2
    # Whoever invents keys is counted by address.
    for n in range(3):
        assert left(key("invented-%d" % n, "192.0.2.72")) == 2 - n
    for taken in (hashed("beta"), "hash:" + hashed("beta"), hashed(HEX)):
        assert key(taken, "192.0.2.72").status == 429
    # A key may look as a hash does.
    assert left(key(HEX, "192.0.2.70")) == 2
    assert key("beta", "192.0.2.1", "/strict").status == 200
    assert key("gamma", "192.0.2.1", "/strict").status == 403


def test_a_reload_reads_known_keys_anew(farm, php):
    path = farm.place.write("reloaded.keys", "one\n", 0o600)
    config = {
        "store": {**MEMORY, "key_secret": "s3cret"},
        "limit api": fixed("3/1h", key="header:X-Key", missing_key="deny",
                           known_keys="@" + path),
        "backend default": fastcgi(php),
    }
    gateway = farm.gateway(config)

    def status(value):
        return ask(gateway, "/", headers={"X-Key": value}).status

    assert (status("one"), status("two")) == (200, 403)
    with open(path, "w") as f:
        f.write("other\n")
    with open(path, "a") as f:
        subprocess.run([BINARY, "hash", "-c", gateway.config_path, "two"],
                       check=True, stdout=f, timeout=10)
    with open(path) as f:
        hashed_two = f.read().splitlines()[1]
    assert re.fullmatch("hash:[0-9a-f]{32}", hashed_two)
    gateway.log.wait_for("reloaded", since=gateway.reload(config))
    assert (status("one"), status("two")) == (403, 200)
    assert (status(hashed_two), status(hashed_two[5:])) == (403, 403)


def test_header_and_query_say_what_a_limit_applies_to(gateway):
    def plan(value):
        return ask(gateway, "/plan",
                   headers={} if value is None else {"X-Plan": value})

    assert plan("free-2").limit[0] == 400
    assert plan("paid").limit[0] is None
    assert plan("").limit[0] == 400
    assert plan(None).limit[0] == 400
    assert ask(gateway, "/search?action=find").limit[0] == 401
    assert ask(gateway, "/search?x=1&action=s%65arch").limit[0] == 401
    assert ask(gateway, "/search?action=findx").limit[0] is None
    assert ask(gateway, "/search?action=x&action=find").limit[0] is None
    assert ask(gateway, "/search").limit[0] is None


def test_B72_a_key_that_never_comes_is_told_of_once(farm, php):
    gateway = farm.gateway({
        "store": MEMORY,
        "limit bearer": fixed("3/1h", key="header:Authorization",
                              missing_key="skip", path="/bearer"),
        "limit other": fixed("900/1h", key="header:X-Key",
                             missing_key="skip"),
        "backend default": fastcgi(php),
    })
    for n in range(150):
        headers = {"X-Key": "x"} if n == 50 else {}
        assert ask(gateway, "/bearer", headers=headers).status == 200
    told = gateway.log.wait_for("key_always_missing")
    assert told["limit"] == "bearer"
    assert told["name"] == "HTTP_AUTHORIZATION"
    assert "CGIPassAuth" in told["msg"]
    assert len(gateway.log.find("key_always_missing")) == 1
    # And with it, by either of its names, the limit is one.
    for name in ("HTTP_AUTHORIZATION", "REDIRECT_HTTP_AUTHORIZATION") * 2:
        got = ask(gateway, "/bearer", **{name: "Bearer x"})
    assert got.status == 429


SECRETS = {
    "header": "hd-SECRETSECRET-1", "auth": "Bearer SECRETSECRET-2",
    "cookie": "ck-SECRETSECRET-3", "query": "qy-SECRETSECRET-4",
    "form": "fm-SECRETSECRET-5", "user": "us-SECRETSECRET-6",
}


@pytest.fixture
def redis(farm):
    return farm.redis()


def test_B67_secrets_are_nowhere(farm, redis, php):
    """In no key, no value and no command of Redis, and in no log."""
    keys = {
        "header": "header:X-Key", "auth": "header:Authorization",
        "cookie": "cookie:sid", "query": "query:k", "form": "form:user",
        "user": "param:REMOTE_USER", "all": "client + header:X-Key + query:k"
    }
    limits = {"limit " + name: fixed("3/1h", key=key, missing_key="deny")
              for name, key in keys.items()}
    limits["limit known"] = fixed(
        "3/1h", key="cookie:sid", missing_key="skip",
        known_keys="@" + farm.place.write(
            "sessions", SECRETS["cookie"] + "\n", 0o600))
    gateway = farm.gateway({
        "store": {"address": redis.address, "timeout": "2s"},
        "log": {"access": "all", "level": "debug"},
        **limits,
        "backend default": fastcgi(php),
    })

    def work():
        for n in range(5):
            got = post(
                gateway, "/x?k=" + SECRETS["query"],
                b"user=" + SECRETS["form"].encode(),
                headers={"X-Key": SECRETS["header"],
                         "Authorization": SECRETS["auth"],
                         "Cookie": "sid=" + SECRETS["cookie"]},
                REMOTE_USER=SECRETS["user"])
            assert got.status == (200 if n < 3 else 429)
        assert post(gateway, "/x?k=" + SECRETS["query"],
                    b"user=" + SECRETS["form"].encode()).status == 403

    client = redis.client()
    text = monitored(client, work)
    names = [k.decode("latin-1") for k in client.scan_iter("*")]
    tags = {re.match(r"sluice:\{(.*?)\}", n).group(1)
            for n in names if "{" in n}
    assert len(tags) == 7  # `known` counts by the same cookie
    assert all(HASH.fullmatch(tag) for tag in tags)
    text += "\n".join(names) + "\n".join(repr(client.dump(n)) for n in names)
    until(lambda: len(gateway.log.find("refused")) >= 3, what="the refusals")
    for secret in SECRETS.values():
        assert secret not in text
    assert "SECRETSECRET" not in text + gateway.output()
