"""FastCGI bytes, from the specification: an encoder, a decoder, a client.

Independent of the program's codec on purpose. The encoder will write
anything it is asked to, well-formed or not.
"""

import fcntl
import socket
import struct
import termios

from harness.deadline import Deadline, Late

BEGIN, ABORT, END, PARAMS, STDIN, STDOUT, STDERR, DATA = range(1, 9)
GET_VALUES, GET_VALUES_RESULT, UNKNOWN_TYPE = 9, 10, 11
RESPONDER, AUTHORIZER, FILTER = 1, 2, 3
COMPLETE, CANT_MPX, OVERLOADED, UNKNOWN_ROLE = range(4)
KEEP = 1
CONTENT_MAX = 65535


def as_bytes(text):
    return text if isinstance(text, bytes) else text.encode()


def record(kind, content=b"", rid=1, padding=0, version=1):
    head = struct.pack(">BBHHBB", version, kind, rid, len(content), padding, 0)
    return head + content + b"\xaa" * padding


def begin(rid=1, role=RESPONDER, keep=False, padding=0):
    flags = KEEP if keep else 0
    return record(BEGIN, struct.pack(">HB5x", role, flags), rid, padding)


def length(n):
    return bytes([n]) if n < 128 else struct.pack(">I", n | 0x80000000)


def pair(name, value):
    name, value = as_bytes(name), as_bytes(value)
    return length(len(name)) + length(len(value)) + name + value


def pairs(items):
    return b"".join(pair(n, v) for n, v in items)


def read_pairs(content):
    """The (name, value) tuples of a whole PARAMS stream."""
    out, at = [], 0

    def read_length():
        nonlocal at
        if content[at] < 128:
            at += 1
            return content[at - 1]
        at += 4
        return struct.unpack(">I", content[at - 4:at])[0] & 0x7FFFFFFF

    while at < len(content):
        n, v = read_length(), read_length()
        assert at + n + v <= len(content), "a pair is split over records"
        out.append((content[at:at + n], content[at + n:at + n + v]))
        at += n + v
    return out


def stream(kind, data, rid=1, chunk=CONTENT_MAX, padding=0, end=True):
    """data as records of `chunk` bytes, and the empty one that ends it."""
    out = [
        record(kind, data[i:i + chunk], rid, padding)
        for i in range(0, len(data), chunk)
    ]
    if end:
        out.append(record(kind, b"", rid))
    return b"".join(out)


def head(items, rid=1, role=RESPONDER, keep=False):
    return begin(rid, role, keep) + stream(PARAMS, pairs(items), rid)


def request(items, body=b"", rid=1, keep=False, role=RESPONDER):
    return head(items, rid, role, keep) + stream(STDIN, body, rid)


def env(uri="/", method="GET", client="192.0.2.1", headers=None, **extra):
    """The pairs a web server would send; extra ones override by name."""
    path, _, query = uri.partition("?")
    values = {
        "QUERY_STRING": query,
        "REQUEST_URI": uri,
        "REDIRECT_STATUS": "200",
        "SCRIPT_NAME": path,
        "REQUEST_METHOD": method,
        "SERVER_PROTOCOL": "HTTP/1.1",
        "SERVER_SOFTWARE": "raw",
        "GATEWAY_INTERFACE": "CGI/1.1",
        "SERVER_NAME": "localhost",
        "SERVER_ADDR": "127.0.0.1",
        "SERVER_PORT": "80",
        "REMOTE_ADDR": client,
        "REMOTE_PORT": "4711",
        "HTTP_HOST": "localhost",
    }
    for name, value in (headers or {}).items():
        values["HTTP_" + name.upper().replace("-", "_")] = value
    values.update(extra)
    return [(n, v) for n, v in values.items() if v is not None]


class Response:
    """What came for one request id."""

    def __init__(self):
        self.out = b""
        self.err = b""
        self.end = None  # (app status, protocol status)
        self.eof = False  # the connection ended before an END

    @property
    def parts(self):
        found = [
            (self.out.find(s), s) for s in (b"\r\n\r\n", b"\n\n")
            if s in self.out
        ]
        if not found:
            raise AssertionError("no whole head in %r" % self.out[:300])
        at, separator = min(found)
        return self.out[:at], self.out[at + len(separator):]

    @property
    def body(self):
        return self.parts[1]

    @property
    def headers(self):
        """[(name in lower case, value)], Status too, in order."""
        lines = self.parts[0].decode("latin-1").split("\n")
        split = [line.rstrip("\r").partition(":") for line in lines]
        return [(n.lower(), v.strip()) for n, _, v in split]

    def all(self, name):
        return [v for n, v in self.headers if n == name.lower()]

    def header(self, name):
        values = self.all(name)
        assert len(values) <= 1, "%s came %d times" % (name, len(values))
        return values[0] if values else None

    @property
    def status(self):
        first = self.all("status")
        if first:
            return int(first[0].split()[0])
        return 302 if self.all("location") else 200

    @property
    def limit(self):
        """(limit, remaining, reset) as the headers say; None: absent."""
        names = ("limit", "remaining", "reset")
        values = [self.header("x-ratelimit-" + n) for n in names]
        return tuple(None if v is None else int(v) for v in values)

    @property
    def complete(self):
        return self.end == (0, COMPLETE)

    def __repr__(self):
        return "<Response out=%r end=%r eof=%r>" % (
            self.out[:400], self.end, self.eof)


class Connection:
    """A web server's side of one connection."""

    def __init__(self, address, seconds=10.0):
        unix = isinstance(address, str)
        family = socket.AF_UNIX if unix else socket.AF_INET
        self.seconds = seconds
        self.buffer = b""
        self.ended = False
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        self.sock.settimeout(Deadline(seconds).left())
        self.sock.connect(address)

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.close()

    def close(self):
        self.sock.close()

    def send(self, data):
        self.sock.settimeout(Deadline(self.seconds).left())
        self.sock.sendall(data)

    def try_send(self, data):
        """False when the peer has closed: legal for it while refusing."""
        try:
            self.send(data)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def unread(self):
        """Does the peer have yet to read something (of a unix socket)?"""
        count = fcntl.ioctl(self.sock, termios.TIOCOUTQ, b"\0" * 4)
        return count != b"\0" * 4

    def _fill(self, deadline):
        self.sock.settimeout(max(deadline.left(), 0.0001))
        try:
            data = self.sock.recv(262144)
        except socket.timeout:
            raise Late("no answer in time") from None
        except ConnectionResetError:
            data = b""
        if not data:
            self.ended = True
        self.buffer += data
        return bool(data)

    def read_record(self, deadline=None):
        """(type, id, content), or None at the end of the connection."""
        deadline = deadline or Deadline(self.seconds, "a record")
        while True:
            if len(self.buffer) >= 8:
                version, kind, rid, n, padding, _ = struct.unpack(
                    ">BBHHBB", self.buffer[:8])
                assert version == 1, "version %d" % version
                if len(self.buffer) >= 8 + n + padding:
                    content = self.buffer[8:8 + n]
                    self.buffer = self.buffer[8 + n + padding:]
                    return kind, rid, content
            if self.ended or not self._fill(deadline):
                return None

    def response(self, rid=1, seconds=None):
        """Reads to this id's END or the end of the connection."""
        deadline = Deadline(seconds or self.seconds, "a response")
        got = Response()
        out = []
        while got.end is None and not got.eof:
            rec = self.read_record(deadline)
            if rec is None:
                got.eof = True
                break
            kind, its, content = rec
            assert its == rid, "a record of id %d, not %d" % (its, rid)
            if kind == STDOUT:
                out.append(content)
            elif kind == STDERR:
                got.err += content
            elif kind == END:
                app, protocol = struct.unpack(">IB3x", content)
                got.end = (app, protocol)
            else:
                raise AssertionError("record type %d" % kind)
        got.out = b"".join(out)
        return got

    def ask(self, items, body=b"", rid=1, keep=False, role=RESPONDER):
        self.try_send(request(items, body, rid, keep, role))
        return self.response(rid)

    def wait_closed(self, seconds=5.0):
        """The bytes that still came before the peer closed."""
        deadline = Deadline(seconds, "the peer to close")
        while not self.ended:
            self._fill(deadline)
        return self.buffer


def ask(address, items=None, body=b"", seconds=10.0, **kwargs):
    """One request on a connection of its own."""
    if items is None:
        items = env(**kwargs)
    with Connection(address, seconds) as conn:
        return conn.ask(items, body)
