"""Keys that are a field of a form: what PHP takes for it is counted, whatever
tricks it is written with."""

import urllib.parse

import pytest

from harness.gateway import APPS
from harness.recipes import MEMORY, fastcgi, fixed

FORM = "application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def gateway(shared):
    return shared.gateway({
        "store": MEMORY,
        "limit login": fixed("1000/1h", path="/login", key="form:user_name",
                             missing_key="deny"),
        "backend default": fastcgi(shared.php(children=2, forms=True)),
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
