"""What a hostile or broken peer may send costs it its connection at most."""

import random
import struct

import pytest

from harness import fcgi
from harness.application import digest
from harness.deadline import Deadline, until
from harness.recipes import fastcgi

SECOND = fcgi.env("/second", headers={"X-Mark": "second"})


@pytest.fixture(scope="module")
def app(shared):
    return shared.application()


@pytest.fixture(scope="module")
def gateway(shared, app):
    return shared.gateway({
        "gateway": {"threads": 8, "head_timeout": "5s"},
        "log": {"access": "denied"},
        "backend default": fastcgi(app),
    })


@pytest.fixture(autouse=True)
def still_serves(gateway):
    """Whatever a test sent, the gateway runs and answers the next one."""
    yield
    got = fcgi.ask(gateway.address, SECOND)
    assert (got.status, got.complete) == (200, True)
    assert gateway.running()


def closed_without_an_answer(gateway, app, data):
    seen = app.seen
    with gateway.connect() as conn:
        conn.try_send(data)
        assert conn.wait_closed() == b""
    assert app.seen == seen


PARAMS_END = fcgi.record(fcgi.PARAMS)
STDIN_END = fcgi.record(fcgi.STDIN)


def with_params(content):
    return (fcgi.begin(keep=True) + fcgi.record(fcgi.PARAMS, content)
            + PARAMS_END + STDIN_END)


def raw_pair(name_len, value_len, rest=b""):
    return struct.pack(">II", name_len | 0x80000000,
                       value_len | 0x80000000) + rest


HOSTILE = {
    "1_name_of_2_gigabytes": with_params(
        struct.pack(">IB", 0xFFFFFFFE, 0) + b"abc"),
    "1_value_of_2_gigabytes": with_params(
        b"\x01" + struct.pack(">I", 0xFFFFFFFF) + b"abc"),
    "1_both": with_params(raw_pair(0x7FFFFFFF, 0x7FFFFFFF, b"abc")),
    "a_length_cut": with_params(b"\x01\x80\x00"),
    "a_length_one_beyond": with_params(b"\x01\x05A1234"),
    "80_nul_in_a_value": with_params(fcgi.pair("A", "x\0y")),
    "80_nul_in_a_name": with_params(fcgi.pair("A\0B", "x")),
    "empty_name": with_params(fcgi.pair("", "x")),
    "equals_in_a_name": with_params(fcgi.pair("A=B", "x")),
    "stdin_before_begin": STDIN_END + fcgi.request(SECOND),
    "params_before_begin": PARAMS_END + fcgi.request(SECOND),
    "begin_of_7_bytes": fcgi.record(fcgi.BEGIN, b"\0\1\1\0\0\0\0")
    + PARAMS_END + STDIN_END,
    "begin_of_9_bytes": fcgi.record(fcgi.BEGIN, b"\0\1\1\0\0\0\0\0\0")
    + PARAMS_END + STDIN_END,
    "empty_begin": fcgi.record(fcgi.BEGIN) + PARAMS_END + STDIN_END,
    "70_begin_of_id_0": fcgi.begin(rid=0) + fcgi.request(SECOND),
    "params_of_another_id": fcgi.begin() + fcgi.record(
        fcgi.PARAMS, b"", 2) + STDIN_END,
    "stdin_within_the_head": fcgi.begin() + STDIN_END + PARAMS_END,
    "data_within_the_head": fcgi.begin() + fcgi.record(fcgi.DATA, b"x")
    + PARAMS_END,
    "stdout_within_the_head": fcgi.begin() + fcgi.record(fcgi.STDOUT, b"x")
    + PARAMS_END,
    "second_begin_within_the_head": fcgi.begin() + fcgi.begin()
    + PARAMS_END,
    "second_begin_of_another_id": fcgi.begin() + fcgi.begin(rid=2)
    + PARAMS_END,
    "abort_within_the_head": fcgi.begin() + fcgi.record(fcgi.ABORT)
    + PARAMS_END,
    "version_2": fcgi.record(fcgi.BEGIN, b"\0\1\1\0\0\0\0\0", version=2),
    "version_0": fcgi.record(fcgi.BEGIN, b"\0\1\1\0\0\0\0\0", version=0),
    "http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x55" * 600,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_closed_without_an_answer(gateway, app, name):
    closed_without_an_answer(gateway, app, HOSTILE[name])


@pytest.mark.parametrize("name", ["1_name_of_2_gigabytes", "version_2",
                                  "80_nul_in_a_value"])
def test_closed_on_a_kept_connection_too(gateway, name):
    with gateway.connect() as conn:
        assert conn.ask(SECOND, keep=True).status == 200
        conn.try_send(HOSTILE[name])
        assert conn.wait_closed() == b""


def test_noise_in_a_sound_request(gateway, app):
    seed = random.SystemRandom().randrange(2**32)
    print("seed", seed)
    rng = random.Random(seed)
    seen = app.seen
    for _ in range(200):
        with gateway.connect() as conn:
            data = bytearray(fcgi.request(SECOND, b"x" * 50))
            for _ in range(rng.randrange(1, 5)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            conn.try_send(bytes(data))
    assert app.seen - seen <= 200


def test_2_get_values_with_repeated_names(gateway):
    names = [("FCGI_MPXS_CONNS", "")] * 500 + [("FCGI_MAX_CONNS", "")]
    ask = fcgi.record(fcgi.GET_VALUES, fcgi.pairs(names), 0)
    with gateway.connect() as conn:
        conn.send(ask)
        kind, rid, content = conn.read_record()
        assert (kind, rid) == (fcgi.GET_VALUES_RESULT, 0)
        values = dict(fcgi.read_pairs(content))
        assert values[b"FCGI_MPXS_CONNS"] == b"0"
        assert int(values[b"FCGI_MAX_CONNS"]) >= 1
        assert len(values) == 2
        # And the connection goes on.
        assert conn.ask(SECOND, keep=True).status == 200


@pytest.mark.parametrize("padding", [0, 1, 255])
def test_74_get_values_alone_is_answered_at_once(gateway, padding):
    with gateway.connect(2.0) as conn:
        conn.send(fcgi.record(fcgi.GET_VALUES, fcgi.pair(
            "FCGI_MPXS_CONNS", ""), 0, padding))
        assert conn.read_record()[0] == fcgi.GET_VALUES_RESULT


def unknown_records(conn, count):
    batch = 1000
    for _ in range(0, count, batch):
        conn.send(fcgi.record(99, b"x" * 10, 0) * batch)
        for _ in range(batch):
            kind, rid, content = conn.read_record()
            assert (kind, rid, content[0]) == (fcgi.UNKNOWN_TYPE, 0, 99)


def test_3_100000_unknown_management_records_leave_memory_flat(gateway):
    with gateway.connect() as conn:
        unknown_records(conn, 10000)
    before = gateway.memory_kb()
    with gateway.connect() as conn:
        unknown_records(conn, 100000)
    assert gateway.memory_kb() - before < 1024


def test_management_answers_nobody_reads_end_the_connection(gateway):
    """A peer that asks and does not read costs a bounded amount."""
    before = gateway.memory_kb()
    flood = fcgi.record(99, b"", 0) * 1000
    with gateway.connect(2.0) as conn:
        deadline = Deadline(1.0)
        sent = 0
        while deadline.left() > 0 and sent < 50_000_000:
            try:
                if not conn.try_send(flood):
                    break
            except OSError:  # it no longer reads: just as well
                break
            sent += len(flood)
    assert gateway.memory_kb() - before < 4096


def test_49_late_empty_stdin_of_a_finished_request(gateway):
    """Apache with enablereuse sends the last STDIN after our END."""
    with gateway.connect() as conn:
        for _ in range(5):
            assert conn.ask(SECOND, keep=True).status == 200
            conn.send(fcgi.record(fcgi.STDIN))
            conn.send(fcgi.record(fcgi.STDIN, b"late" * 100))
            conn.send(fcgi.record(fcgi.ABORT))


def test_too_much_of_a_finished_request_ends_the_connection(gateway):
    with gateway.connect() as conn:
        assert conn.ask(SECOND, keep=True).status == 200
        for _ in range(3):
            conn.try_send(fcgi.record(fcgi.STDIN, b"s" * 60000))
        assert conn.wait_closed() == b""


def test_leftovers_of_another_id_end_the_connection(gateway):
    with gateway.connect() as conn:
        assert conn.ask(SECOND, keep=True).status == 200
        conn.try_send(fcgi.record(fcgi.STDIN, b"x", 2))
        assert conn.wait_closed() == b""


def test_two_connections_interleaved_byte_by_byte(gateway):
    one = fcgi.request(fcgi.env("/one"), b"1" * 90, keep=True)
    two = fcgi.request(fcgi.env("/twoo"), b"2" * 90, rid=7, keep=True)
    with gateway.connect() as a, gateway.connect() as b:
        for _ in range(3):
            for x, y in zip(one, two):
                a.send(bytes([x]))
                b.send(bytes([y]))
            a.send(one[len(two):])
            b.send(two[len(one):])
            assert a.response(1).body.decode().startswith(
                digest(fcgi.env("/one")) + " 90 ")
            assert b.response(7).body.decode().startswith(
                digest(fcgi.env("/twoo")) + " 90 ")


@pytest.mark.parametrize("role", [0, fcgi.AUTHORIZER, fcgi.FILTER, 4, 65535])
def test_unknown_role(gateway, app, role):
    """Only the responder is served unless `roles` says more."""
    seen = app.seen
    with gateway.connect() as conn:
        conn.try_send(fcgi.request(SECOND, role=role))
        got = conn.response()
        assert got.end == (0, fcgi.UNKNOWN_ROLE)
        assert got.out == b""
    assert app.seen == seen


def half_a_body(**kwargs):
    items = fcgi.env("/body", method="POST", CONTENT_LENGTH="1000", **kwargs)
    return fcgi.head(items, keep=True) + fcgi.record(
        fcgi.STDIN, b"x" * 100)


@pytest.mark.parametrize("what", [
    fcgi.record(fcgi.ABORT), fcgi.begin(rid=2), fcgi.begin(rid=1),
    fcgi.record(fcgi.PARAMS, b"", 1), fcgi.record(fcgi.STDOUT, b"x", 1),
    fcgi.record(fcgi.STDIN, b"x", 2), fcgi.record(fcgi.STDIN, version=3),
], ids=["abort", "begin_2", "begin_1", "params", "stdout", "stdin_of_2",
        "version_3"])
def test_within_the_body_it_never_reaches_the_application(gateway, app, what):
    seen = app.seen
    with gateway.connect() as conn:
        conn.send(half_a_body())
        conn.try_send(what)
        conn.wait_closed()
        assert b" 1000 " not in conn.buffer
    assert app.seen == seen


def test_71_a_peer_that_leaves_within_a_record(gateway, app):
    whole = half_a_body()
    seen = app.seen
    for at in list(range(1, len(whole), 7)):
        with gateway.connect() as conn:
            conn.send(whole[:at])
    assert app.seen == seen
    until(lambda: gateway.open_descriptors() < 60, what="they are closed")
