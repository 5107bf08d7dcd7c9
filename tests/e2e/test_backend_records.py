"""What an application sends as FastCGI records: taken at any cut, and what
is not as it should be costs that one request at most."""

import os
import random
import socket
import threading

import pytest

from harness import fcgi
from harness.application import Request
from harness.deadline import SCALE, Deadline, timed, until
from harness.gateway import APPS
from harness.recipes import fastcgi, together

OK = APPS + "/ok.php"
HEAD = b"Content-Type: text/plain\r\n\r\n"


def out(data, **kwargs):
    return fcgi.record(fcgi.STDOUT, data, **kwargs)


def end(app_status=0, protocol_status=0, **kwargs):
    body = app_status.to_bytes(4, "big") + bytes([protocol_status, 0, 0, 0])
    return fcgi.record(fcgi.END, body, **kwargs)


STDOUT_END = fcgi.record(fcgi.STDOUT)
SMALL = out(HEAD + b"small", padding=3) + STDOUT_END + end()


class Script:
    """Sends the pieces that a test left for it; the next one once what was
    sent has been read. Then it hangs up, or half."""

    def __init__(self):
        self.pieces = [SMALL]
        self.closes = True
        self.go = threading.Event()

    def __call__(self, request):
        for piece in self.pieces:
            request.raw(piece)
            until(lambda: not request.conn.unread(), 10.0, "it to be read")
        if not self.closes:
            request.conn.read_record(Deadline(20.0))


@pytest.fixture(scope="module")
def app():
    return Script()


@pytest.fixture(scope="module")
def gateway(shared, app):
    return shared.gateway({
        "backend default": fastcgi(
            shared.application(app), first_byte_timeout="10s",
            idle_timeout="10s")})


@pytest.fixture(autouse=True)
def still_serves(gateway, app):
    """Whatever came, the next request is served."""
    yield
    app.pieces, app.closes = [SMALL], True
    got = gateway.ask("/next")
    assert (got.status, got.body, got.complete) == (200, b"small", True)


def answered(gateway, app, *pieces, closes=False, **kwargs):
    app.pieces, app.closes = pieces, closes
    return gateway.ask("/asked", **kwargs)


def test_88_a_response_cut_at_every_byte(gateway, app):
    for at in range(1, len(SMALL)):
        got = answered(gateway, app, SMALL[:at], SMALL[at:])
        assert (at, got.status, got.body, got.complete) == (
            at, 200, b"small", True)


def test_64_54_largest_records_with_most_padding(gateway, app):
    bodies = [bytes([n]) * 65535 for n in b"abc"]
    records = out(HEAD) + b"".join(
        out(body, padding=255) for body in bodies)
    got = answered(gateway, app, records + STDOUT_END + end(padding=255))
    assert (got.status, got.body, got.complete) == (
        200, b"".join(bodies), True)


@pytest.mark.parametrize("padding", [0, 1, 7, 254, 255])
@pytest.mark.parametrize("size", [1, 8, 247, 32767, 65528, 65535])
def test_54_sizes_and_paddings(gateway, app, size, padding):
    got = answered(
        gateway, app, out(HEAD, padding=padding)
        + out(b"x" * size, padding=padding) * 2
        + fcgi.record(fcgi.STDOUT, padding=padding) + end(padding=padding))
    assert (got.status, len(got.body), got.complete) == (200, 2 * size, True)


NOISE = {
    "empty_stderr": fcgi.record(fcgi.STDERR),
    "stderr": fcgi.record(fcgi.STDERR, b"oops\n" * 13000),
    "padded_stderr": fcgi.record(fcgi.STDERR, b"oops", padding=255),
    "unknown_type": fcgi.record(99, b"what?" * 1000),
    "type_0": fcgi.record(0, b"what?"),
    "empty_unknown_type": fcgi.record(255),
    "data": fcgi.record(fcgi.DATA, b"x"),
    "params": fcgi.record(fcgi.PARAMS, fcgi.pair("A", "b")),
    "unknown_type_answer": fcgi.record(fcgi.UNKNOWN_TYPE, b"\x63" + b"\0" * 7),
    "get_values_result": fcgi.record(fcgi.GET_VALUES_RESULT, b""),
}


@pytest.mark.parametrize("noise", NOISE)
def test_88_noise_anywhere(gateway, app, noise):
    """Before the head, within it, behind it, behind the body."""
    n = NOISE[noise]
    got = answered(gateway, app, n + out(HEAD[:5]) + n + out(HEAD[5:]) + n
                   + out(b"small") + n + STDOUT_END + n + end())
    assert (got.status, got.body, got.complete) == (200, b"small", True)


BROKEN = {
    "nothing": b"",
    "one_byte": b"\x01",
    "half_a_record_header": out(HEAD)[:4],
    "half_a_record": out(HEAD)[:20],
    "half_a_head": out(HEAD[:10]) + STDOUT_END + end(),
    "end_before_the_head": end(),
    "end_behind_an_empty_stdout": STDOUT_END + end(),
    "stderr_alone": fcgi.record(fcgi.STDERR, b"oops") + end(),
    "empty_stdout_alone": STDOUT_END,
    "short_end": fcgi.record(fcgi.END, b"\0" * 7),
    "empty_end": fcgi.record(fcgi.END),
    "of_id_0": out(HEAD + b"x", rid=0) + end(rid=0),
    "of_id_2": out(HEAD + b"x", rid=2) + end(rid=2),
    "version_0": fcgi.record(fcgi.STDOUT, HEAD, version=0) + end(),
    "version_2": fcgi.record(fcgi.STDOUT, HEAD, version=2) + end(),
    "http": b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhi",
    "text": b"no such thing",
    "tls_alert": b"\x15\x03\x01\x00\x02\x02\x46",
}


@pytest.mark.parametrize("closes", [True, False])
@pytest.mark.parametrize("how", BROKEN)
def test_66_70_71_90_broken_before_the_head_is_502(gateway, app, how, closes):
    """At once if it can be known; else when the application hangs up."""
    whole = how not in (
        "nothing", "one_byte", "half_a_record_header", "half_a_record",
        "empty_stdout_alone", "tls_alert")
    if not closes and not whole:
        return
    got, took = timed(answered, gateway, app, BROKEN[how], closes=closes)
    assert (got.status, got.complete) == (502, True)
    assert took < 2.0 * SCALE


@pytest.mark.parametrize("status, want", [(1, 503), (2, 503), (3, 502),
                                          (4, 503), (255, 503)])
def test_protocol_status_before_the_head(gateway, app, status, want):
    got = answered(gateway, app, end(0, status))
    assert (got.status, got.complete) == (want, True)


@pytest.mark.parametrize("status", [1, 2, 3])
def test_protocol_status_behind_a_whole_response(gateway, app, status):
    """It is too late to refuse; the log tells of it."""
    mark = gateway.log.mark()
    got = answered(gateway, app, out(HEAD + b"small"),
                   STDOUT_END + end(0, status))
    assert (got.status, got.body, got.complete) == (200, b"small", True)
    entry = gateway.log.wait_for("request", since=mark, path="/asked")
    assert entry["error"] == "ended with protocol status %d" % status


def test_66_the_stream_ended_and_then_the_connection(gateway, app):
    """A legal end, though no END came."""
    got = answered(gateway, app, out(HEAD + b"small") + STDOUT_END,
                   closes=True)
    assert (got.status, got.body, got.complete) == (200, b"small", True)


def test_66_an_end_without_the_streams_end(gateway, app):
    got = answered(gateway, app, out(HEAD + b"small") + end())
    assert (got.status, got.body, got.complete) == (200, b"small", True)


CUT = {
    "in_the_body": out(HEAD + b"sma"),
    "in_a_record": out(HEAD + b"small")[:-2],
    "in_a_record_header": out(HEAD + b"small") + b"\x01\x06\0",
    "in_the_end": out(HEAD + b"small") + end()[:12],
    "short_of_its_length": out(
        b"Content-Length: 9\r\n\r\nsmall") + STDOUT_END + end(),
    "broken_behind_the_head": out(HEAD + b"small") + b"HTTP/1.1 200",
    "another_id_behind_the_head": out(HEAD + b"small") + end(rid=7),
}


@pytest.mark.parametrize("how", CUT)
def test_71_23_no_ending_is_invented(gateway, app, how):
    got = answered(gateway, app, CUT[how], closes=True)
    if got.out and got.status == 502:  # known before anything went out
        assert got.complete
        return
    assert got.eof and got.end is None


@pytest.mark.parametrize("more", [b"body and more", b"body" + b"x" * 200000])
def test_58_what_is_beyond_the_length_is_cut(gateway, app, more):
    records = out(b"Content-Length: 4\r\n\r\n") + b"".join(
        out(more[i:i + 60000]) for i in range(0, len(more), 60000))
    got = answered(gateway, app, records + STDOUT_END + end())
    assert (got.status, got.body, got.complete) == (200, b"body", True)


@pytest.mark.parametrize("status", ["200 OK", "204 No Content",
                                    "304 Not Modified"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_63_what_has_no_body_gets_none(gateway, app, method, status):
    """And keeps its length, which tells of the body a GET would get."""
    head = b"Status: %s\r\nContent-Length: 5\r\n\r\n" % status.encode()
    for body in (b"", b"small"):
        if method == "GET" and status[:3] == "200" and not body:
            continue
        got = answered(gateway, app, out(head + body) + STDOUT_END + end(),
                       method=method)
        assert (got.status, got.complete) == (int(status[:3]), True)
        has_body = method == "GET" and status[:3] == "200"
        assert got.body == (b"small" if has_body else b"")
        assert got.all("content-length") == (
            [] if status[:3] == "204" else ["5"])


def test_24_a_coding_of_the_application_is_none_of_the_client(gateway, app):
    """A length and a Transfer-Encoding at once smuggle nothing."""
    got = answered(gateway, app, out(
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nsmall")
        + STDOUT_END + end())
    assert (got.body, got.complete) == (b"small", True)
    assert got.all("transfer-encoding") == []
    assert got.header("content-length") == "5"


def drawn(rng):
    """(bytes, status, body) of a sound response, however it is cut."""
    body = rng.randbytes(rng.choice((0, 1, 100, 5000, 70000, 200000)))
    status = rng.choice((200, 201, 302, 404, 500))
    has_length = rng.random() < 0.5
    head = "Status: %d\nX-A: %s\n" % (status, "a" * rng.choice((1, 20000)))
    if has_length:
        head += "Content-Length: %d\r\n" % len(body)
    text = head.encode() + b"\n" + body
    more = rng.randbytes(50) if has_length and rng.random() < 0.3 else b""
    records = []
    left = text + more
    while left:
        size = rng.choice((1, 7, 8, 100, 8192, 65535))
        if len(left) > 3000:
            size = max(size, 8192)
        records.append(out(left[:size], padding=rng.randrange(256)))
        left = left[size:]
        if rng.random() < 0.2:
            records.append(rng.choice(list(NOISE.values())))
    return b"".join(records) + rng.choice((STDOUT_END, b"")) + end(
        rng.choice((0, 0, 1)), padding=rng.randrange(256)), status, body


def seeded():
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(2**32)))
    print("seed", seed)
    return random.Random(seed)


def test_drawn_responses(gateway, app):
    rng = seeded()
    for _ in range(60):
        data, status, body = drawn(rng)
        cuts = sorted(rng.randrange(len(data) + 1) for _ in range(3))
        pieces = [data[a:b] for a, b in zip([0] + cuts, cuts + [len(data)])]
        got = answered(gateway, app, *[p for p in pieces if p])
        assert (got.status, got.complete) == (status, True)
        assert got.body == body


def test_damaged_responses(gateway, app):
    """Some bytes are others. The client has an answer or none: its end is
    never that of another, and nobody waits."""
    rng = seeded()
    for _ in range(150):
        data = bytearray(drawn(rng)[0][:30000])
        for _ in range(rng.randrange(1, 6)):
            data[rng.randrange(min(len(data), 400))] = rng.randrange(256)
        got, took = timed(answered, gateway, app, bytes(data), closes=True)
        assert took < 2.0 * SCALE
        assert got.complete or (got.eof and got.end is None)
        if got.complete:
            assert 100 <= got.status <= 999


@pytest.mark.parametrize("family", ["unix", "tcp"])
@pytest.mark.parametrize("reads", [0, 1000, 100000])
def test_94_22_answers_and_leaves_while_the_body_goes_up(
        farm, family, reads):
    """Whatever it has read, the answer reaches the client."""
    if family == "unix":
        server = socket.socket(socket.AF_UNIX)
        server.bind(farm.place / "early.s")
        option = "unix:" + farm.place / "early.s"
    else:
        server = socket.create_server(("127.0.0.1", 0))
        option = "127.0.0.1:%d" % server.getsockname()[1]
    server.listen(5)
    server.settimeout(10.0)

    def serve():
        conn, _ = server.accept()
        left = reads
        while left > 0:
            left -= len(conn.recv(left))
        conn.sendall(SMALL)
        conn.close()

    thread = threading.Thread(target=serve)
    thread.start()
    gateway = farm.gateway({"backend default": {"address": option}})
    got = gateway.ask("/", b"b" * 3_000_000, method="POST",
                      CONTENT_LENGTH="3000000")
    thread.join()
    server.close()
    assert (got.status, got.body, got.complete) == (200, b"small", True)


def test_94_an_answer_larger_than_any_buffer_before_a_byte_is_read(farm):
    """And then the body is read after all."""
    answer = b"x" * 3_000_000

    server = socket.socket(socket.AF_UNIX)
    server.bind(farm.place / "early.s")
    server.listen(5)
    seen = []

    def serve():
        sock, _ = server.accept()
        conn = fcgi.Connection.__new__(fcgi.Connection)
        conn.sock, conn.buffer, conn.ended, conn.seconds = sock, b"", False, 20
        conn.send(out(HEAD) + fcgi.stream(fcgi.STDOUT, answer, end=False))
        request = Request(conn)
        request.receive()
        seen.append(len(request.body))
        conn.send(STDOUT_END + end())
        conn.close()

    thread = threading.Thread(target=serve)
    thread.start()
    gateway = farm.gateway({
        "backend default": {"address": "unix:" + farm.place / "early.s"}})
    got = gateway.ask("/", b"b" * 3_000_000, method="POST",
                      CONTENT_LENGTH="3000000", seconds=20.0)
    thread.join()
    server.close()
    assert (got.status, got.complete) == (200, True)
    assert got.body == answer
    assert seen == [3_000_000]


def test_46_leaves_without_a_word_while_the_body_goes_up(farm):
    def handler(conn):
        conn.recv(1000)
        conn.close()

    server = socket.socket(socket.AF_UNIX)
    server.bind(farm.place / "gone.s")
    server.listen(5)
    thread = threading.Thread(target=lambda: handler(server.accept()[0]))
    thread.start()
    gateway = farm.gateway({
        "backend default": {"address": "unix:" + farm.place / "gone.s"}})
    got = gateway.ask("/", b"b" * 3_000_000, method="POST",
                      CONTENT_LENGTH="3000000")
    thread.join()
    server.close()
    assert (got.status, got.complete) == (502, True)


def test_75_many_params_reach_php(farm):
    """Four records of them, and the largest value that a pair can hold."""
    many = [("HTTP_X_%d" % n, "v" * 900) for n in range(200)]
    largest = "w" * (65527 - 4 - 1 - len("HTTP_X_LARGEST"))
    gateway = farm.gateway({
        "gateway": {"max_head": "1m"},
        "backend default": fastcgi(farm.php(children=1))})
    got = gateway.ask("/env.php", **dict(many), HTTP_X_LARGEST=largest)
    assert got.status == 200
    text = got.body.decode()
    assert text.count("v" * 900) == 200
    assert largest in text


def test_90_a_short_backlog_under_load(farm):
    """Who can not be connected to for the moment is waited for."""
    lock = threading.Lock()

    def handler(request):
        with lock:
            request.answer("one by one")

    app = farm.application(handler, backlog=1)
    gateway = farm.gateway({"backend default": fastcgi(app)})

    def client(i):
        got = gateway.ask("/", seconds=30.0)
        return got.status, got.body

    assert together(60, client) == [(200, b"one by one")] * 60


def test_76_php_that_starts_its_children_on_demand(farm):
    """Its first child finds the request there when it accepts."""
    gateway = farm.gateway({
        "backend default": fastcgi(farm.php(children=2, pm="ondemand"))})
    for _ in range(3):
        got, took = timed(gateway.ask, "/hello.php", SCRIPT_FILENAME=OK)
        assert (got.status, got.complete) == (200, True)
        assert took < 2.0 * SCALE
