"""Heads of every size, framed in every way, are taken for what they are.

Each is followed by a second request on the same kept connection: a byte
taken too few or too many would show there.
"""

import hashlib
import os
import random

import pytest

from harness import fcgi
from harness.application import digest
from harness.recipes import fastcgi

MAX_HEAD = 128 * 1024
NOTHING = hashlib.sha256(b"").hexdigest()
SECOND = fcgi.env("/second", headers={"X-Mark": "second"})
FRAME = 16 + 8  # BEGIN, and the empty PARAMS


@pytest.fixture(scope="module")
def gateway(shared):
    app = shared.application()
    return shared.gateway({
        "gateway": {"max_head": MAX_HEAD, "threads": 8},
        "log": {"access": "denied"},
        "backend default": fastcgi(app),
    })


def letters(rng, n):
    return bytes(rng.choices(b"abcdefghijklmnopqrstuvwxyz", k=n))


def value_of(rng, n):
    """n bytes, cheap to make however many."""
    few = letters(rng, min(n, 40))
    return (few * (n // max(len(few), 1) + 1))[:n]


def fill(rng, size):
    """Pairs whose encoding is exactly `size` bytes: 0, or 3 and more."""
    out = []
    while size > 0:
        take = min(size, 60000)
        if 0 < size - take < 3:
            take -= 3
        if 131 <= take <= 133:  # no single pair has that size
            take = 100
        n = take - 3 if take - 3 < 128 else take - 6
        out.append((b"P", value_of(rng, n)))
        size -= take
    return out


def drawn_pairs(rng, size):
    """Pairs of many lengths, about `size` bytes together."""
    out = []
    while size > 0:
        name = b"N" + letters(rng, rng.choice((0, 1, 5, 30, 126, 127, 200)))
        value = value_of(rng, min(size, rng.choice(
            (0, 1, 10, 127, 128, 129, 1000, 8192, 40000))))
        out.append((name, value))
        size -= len(name) + len(value) + 2
    return out


def cut(rng, data, count):
    """data in `count` pieces, none empty, none above a record."""
    places = sorted(rng.sample(range(1, len(data)), min(
        count - 1, len(data) - 1))) if len(data) > 1 else []
    pieces = [data[a:b] for a, b in zip([0] + places, places + [len(data)])]
    out = []
    for piece in pieces:
        out += [piece[i:i + fcgi.CONTENT_MAX]
                for i in range(0, len(piece), fcgi.CONTENT_MAX)]
    return out


def exact_head(rng, size, keep=True):
    """A head of exactly `size` raw bytes, as (pairs, bytes)."""
    content = size - FRAME
    records = 0
    while content - 8 * records > records * fcgi.CONTENT_MAX:
        records += 1
    content -= 8 * records
    padding = 0
    if records and content < 3:  # no pair fits: pad BEGIN instead
        padding, content, records = size - FRAME, 0, 0
    items = fill(rng, content)
    data = fcgi.pairs(items)
    raw = fcgi.begin(keep=keep, padding=padding)
    raw += fcgi.stream(fcgi.PARAMS, data, chunk=-(-len(data) // records)
                       if records else 1)
    assert len(raw) == size
    return items, raw


def is_answer_to(got, items, body=b""):
    words = got.body.decode().split()
    want = [digest(items), str(len(body)), hashlib.sha256(body).hexdigest()]
    assert (got.status, words, got.end) == (200, want, (0, fcgi.COMPLETE))


def second_is_right(conn):
    is_answer_to(conn.ask(SECOND, keep=True), SECOND)


def serve_both(gateway, items, head, body_records=b"", body=b""):
    with gateway.connect() as conn:
        conn.send(head + body_records + fcgi.record(fcgi.STDIN))
        is_answer_to(conn.response(), items, body)
        second_is_right(conn)


def refused_as_too_large(gateway, head):
    with gateway.connect() as conn:
        conn.try_send(head + fcgi.record(fcgi.STDIN))
        got = conn.response()
        assert got.status == 431
        assert got.complete
        # Whatever comes next is not taken for something else.
        if not conn.try_send(fcgi.request(SECOND, keep=True)):
            return
        second = conn.response()
        if second.out:
            is_answer_to(second, SECOND)
        else:
            assert second.eof


def test_every_size_to_600(gateway):
    rng = random.Random(600)
    for size in range(FRAME, 601):
        items, head = exact_head(rng, size)
        serve_both(gateway, items, head)


@pytest.mark.parametrize("boundary", list(range(8192, MAX_HEAD, 8192))
                         + [65535])
def test_4_67_every_size_within_40_of(gateway, boundary):
    rng = random.Random(boundary)
    for size in range(boundary - 40, boundary + 41):
        items, head = exact_head(rng, size)
        serve_both(gateway, items, head)


def test_every_size_within_40_of_max_head(gateway):
    rng = random.Random(MAX_HEAD)
    for size in range(MAX_HEAD - 40, MAX_HEAD + 41):
        items, head = exact_head(rng, size)
        if size <= MAX_HEAD:
            serve_both(gateway, items, head)
        else:
            refused_as_too_large(gateway, head)


@pytest.fixture(scope="module")
def roomy(shared):
    """One worker, so that each head follows the last in the same file."""
    app = shared.application(name="roomy")
    return shared.gateway({
        "gateway": {"max_head": "2m", "threads": 1},
        "log": {"access": "denied"},
        "backend default": fastcgi(app),
    })


@pytest.mark.parametrize("boundary", [256 * 1024, 1200 * 1024])
def test_large_and_small_heads_in_turn(roomy, boundary):
    rng = random.Random(boundary)
    for size in range(boundary - 30, boundary + 31, 2):
        items, head = exact_head(rng, size)
        serve_both(roomy, items, head)


def drawn_request(rng):
    """(pairs, head, body records, body), within max_head."""
    size = int(2 ** rng.uniform(2, 16.5))
    items = drawn_pairs(rng, size)
    pieces = cut(rng, fcgi.pairs(items), rng.choice((1, 1, 2, 3, 7, 30)))
    head = fcgi.begin(keep=True, padding=rng.randrange(256))
    for piece in pieces:
        head += fcgi.record(fcgi.PARAMS, piece, 1, rng.randrange(256))
    head += fcgi.record(fcgi.PARAMS, b"", 1, rng.randrange(256))
    body = value_of(rng, rng.choice((0, 0, 1, 100, 9000, 70000)))
    records = b""
    if body:
        for piece in cut(rng, body, rng.choice((1, 2, 5))):
            records += fcgi.record(fcgi.STDIN, piece, 1, rng.randrange(256))
    return items, head, records, body


def test_54_drawn_heads(gateway):
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(2**32)))
    print("seed", seed)
    rng = random.Random(seed)
    for _ in range(2000):
        items, head, records, body = drawn_request(rng)
        if len(head) > MAX_HEAD:
            refused_as_too_large(gateway, head)
        else:
            serve_both(gateway, items, head, records, body)


@pytest.mark.parametrize("length, status", [(65527 - 6, 200), (65527 - 5, 431),
                                            (70000, 431)])
def test_18_one_pair_has_at_most_65527_bytes(gateway, length, status):
    """Its two lengths (5 bytes here) and its name (1) are counted."""
    items = [(b"P", b"v" * length)]
    head = fcgi.head(items, keep=True)
    if status == 200:
        serve_both(gateway, items, head)
    else:
        refused_as_too_large(gateway, head)


def test_a_head_split_at_every_byte(gateway):
    items = fcgi.env("/split", headers={"X-Long": "y" * 200})
    whole = fcgi.request(items, b"body", keep=True)
    for at in range(1, len(whole)):
        with gateway.connect() as conn:
            conn.send(whole[:at])
            conn.send(whole[at:])
            is_answer_to(conn.response(), items, b"body")


def test_a_head_byte_by_byte(gateway):
    items = fcgi.env("/bytes")
    with gateway.connect() as conn:
        for n in range(3):
            for byte in fcgi.request(items, b"xyz", keep=True):
                conn.send(bytes([byte]))
            is_answer_to(conn.response(), items, b"xyz")


def test_47_59_empty_and_repeated_values_arrive_as_sent(gateway):
    """Values of no length; duplicates keep their order."""
    items = [("A", ""), ("B", "1"), ("B", "2"), ("A", "3"), ("C", " x ")]
    with gateway.connect() as conn:
        is_answer_to(conn.ask(items, keep=True), items)
        second_is_right(conn)


def test_ids_from_1_to_65535(gateway):
    with gateway.connect() as conn:
        for rid in (1, 2, 255, 256, 65535, 1):
            conn.send(fcgi.request(SECOND, rid=rid, keep=True))
            is_answer_to(conn.response(rid), SECOND)
