"""Keys that are a field of a form: what PHP takes for it is counted, whatever
tricks it is written with."""

import urllib.parse

import pytest

from harness import fcgi
from harness.gateway import APPS
from harness.recipes import MEMORY, fastcgi, fixed

FORM = "application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def php(shared):
    return shared.php(children=2, forms=True)


@pytest.fixture(scope="module")
def gateway(shared, php):
    return shared.gateway({
        "store": MEMORY,
        "limit login": fixed("1000/1h", path="/login", key="form:user_name",
                             missing_key="deny"),
        "backend default": fastcgi(php),
    })


def post(gateway, uri, body, kind=FORM):
    return gateway.ask(uri, body, method="POST", CONTENT_TYPE=kind,
                       CONTENT_LENGTH=str(len(body)),
                       SCRIPT_FILENAME=APPS + "/form.php")


@pytest.mark.parametrize("body", [
    b"user_name=joe", b"x=1&user_name=j%6fe", b"+user_name=joe",
    b"%20%20+ user_name=joe", b"user.name=joe", b"user+name=joe",
    b"user%20name=joe", b"user[name=joe", b"%75ser%5Bname=joe",
    b"user_name%00=joe", b"user_name%00x=joe", b"user_name=joe&user_name=joe",
    b"user_name=joe&+user.name=j%6fe", b"user_name=", b"user_name",
    b"User_name=joe", b"user_name+=joe", b"%09user_name=joe",
    b"user-name=joe", b"user%00_name=joe", b"user[name]=joe",
    b"user_name[]=joe", b"=joe", b"&&user_name=a=b&&",
])
def test_a_name_is_what_PHP_makes_of_it(gateway, body):
    php = post(gateway, "/open", body).body.decode()
    got = post(gateway, "/login", body)
    if php == "":
        assert got.status == 403
        return
    same = urllib.parse.urlencode({"user_name": php}).encode()
    assert (got.status, got.body.decode()) == (200, php)
    assert post(gateway, "/login", same).limit[1] == got.limit[1] - 1


@pytest.mark.parametrize("kind", [
    FORM, FORM.upper(), FORM + "; charset=UTF-8", FORM + ";x", FORM + ",x",
    FORM + " x", FORM + ", text/plain", FORM + "x", FORM + "/x", "text/plain",
    "text/plain;" + FORM, "application/json", "",
])
def test_a_type_is_what_PHP_makes_of_it(gateway, kind):
    php = post(gateway, "/open", b"user_name=joe", kind).body
    got = post(gateway, "/login", b"user_name=joe", kind)
    assert got.status == (200 if php == b"joe" else 403)


@pytest.mark.parametrize("body", [
    b"user_name=joe&user_name=ann", b"user_name=joe&x=1&user_name=",
    b"user_name=joe&user_name", b"user_name=joe&+user_name=ann",
    b"user_name=joe&user.name=ann", b"user_name=joe&user_name%00=ann",
])
def test_two_values_choose_no_count(gateway, body):
    """PHP takes the last, others the first."""
    assert post(gateway, "/login", body).status == 400
    assert post(gateway, "/open", body).status == 200


@pytest.fixture(scope="module")
def waiting(shared, php):
    """Beside the form's limit another one, which waits with it."""
    return shared.gateway({
        "gateway": {"spool_memory": "4k", "max_body": "1g",
                    "body_timeout": "300ms"},
        "store": MEMORY,
        "limit login": fixed("1000/1h", path="/login*", key="form:user",
                             missing_key="skip"),
        "limit all": fixed("2/1h", key="client"),
        "backend none": {**fastcgi(php), "path": "/login"},
    })


def head(client, length=None, uri="/login", **kwargs):
    return fcgi.head(fcgi.env(
        uri, method="POST", client=client, CONTENT_TYPE=FORM,
        CONTENT_LENGTH=None if length is None else str(length),
        SCRIPT_FILENAME=APPS + "/form.php", **kwargs))


def stdin(body):
    return fcgi.record(fcgi.STDIN, body)


CHUNKED = {"HTTP_TRANSFER_ENCODING": "chunked"}
END = stdin(b"")
# What is sent, and what it gets as long as it is allowed.
UNSERVED = {
    "slow": (lambda who: head(who, 9) + stdin(b"user="), 408),
    "silent": (lambda who: head(who, 9), 408),
    "chunked": (lambda who: head(who, **CHUNKED), 408),
    "longer": (lambda who: head(who, 5) + stdin(b"user=x"), 400),
    "shorter": (lambda who: head(who, 5) + stdin(b"user") + END, 400),
    "lengths": (lambda who: fcgi.begin() + fcgi.stream(
        fcgi.PARAMS, fcgi.pairs(fcgi.env(
            "/login", client=who, CONTENT_TYPE=FORM, CONTENT_LENGTH="4")
            + [("CONTENT_LENGTH", "5")])), 400),
    "too large": (lambda who: head(who, 2 << 30), 413),
    "no backend": (lambda who: head(who, 6, "/login2") + stdin(b"user=x")
                   + END, 404),
    "large": (lambda who: head(who, 4097), 408),
}


@pytest.mark.parametrize("how", UNSERVED)
def test_what_can_not_be_served_is_counted_too(waiting, how):
    make, status = UNSERVED[how]
    who = "198.51.100.%d" % (1 + list(UNSERVED).index(how))
    seen = []
    for _ in range(3):
        with waiting.connect() as conn:
            conn.send(make(who))
            got = conn.response()
            seen.append((got.status, got.limit[1]))
    assert seen == [(status, 1), (status, 0), (429, 0)]


def spend(gateway, who):
    for _ in range(2):
        assert gateway.ask("/x", client=who).status == 404
    assert gateway.ask("/x", client=who).status == 429


def test_a_form_too_large_to_be_looked_at_is_refused_at_once(waiting):
    """Its field counts as missing anyway: nothing is uploaded for a 429."""
    spend(waiting, "192.0.2.1")
    with waiting.connect() as conn:
        conn.send(head("192.0.2.1", 50 << 20))
        assert conn.response().status == 429


def test_a_form_that_grows_too_large_is_refused_then(waiting):
    spend(waiting, "192.0.2.2")
    with waiting.connect() as conn:
        conn.send(head("192.0.2.2", **CHUNKED))
        for _ in range(5):
            conn.send(stdin(b"x" * 1000))
        assert conn.response().status == 429


def test_a_form_that_is_too_large_is_served(waiting):
    """Allowed, it goes on as any other body does."""
    body = b"user_name=joe&pad=" + b"x" * 100000
    with waiting.connect() as conn:
        got = conn.ask(fcgi.env(
            "/login", method="POST", client="192.0.2.3", CONTENT_TYPE=FORM,
            SCRIPT_FILENAME=APPS + "/form.php", **CHUNKED), body)
        assert (got.status, got.body, got.limit[1]) == (200, b"joe", 1)


def test_a_client_that_leaves_before_its_form_is_there_is_not_counted(waiting):
    with waiting.connect() as conn:
        conn.send(head("192.0.2.4", 9) + stdin(b"user="))
    waiting.log.wait_for("request", client="192.0.2.4", status="499")
    assert waiting.ask("/x", client="192.0.2.4").limit[1] == 1
