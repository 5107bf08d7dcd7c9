"""A FastCGI application that does what a test tells it to.

php-fpm behaves; this one can hang, die, or answer badly. Its handler gets
each request whole and writes whatever bytes it likes.
"""

import hashlib
import socket
import threading

from harness import fcgi

# What the gateway may add or set; everything else must arrive as sent.
ADDED = (b"REDIRECT_STATUS", b"CONTENT_LENGTH")


def digest(items):
    """Of the pairs that must arrive as they were sent."""
    kept = [(fcgi.as_bytes(n), fcgi.as_bytes(v)) for n, v in items]
    kept = [(n, v) for n, v in kept if n not in ADDED]
    return hashlib.sha256(fcgi.pairs(kept)).hexdigest()


class Request:
    """One request at the application's side."""

    def __init__(self, conn):
        self.conn = conn
        self.items = []
        self.body = b""
        self.rid = 0
        self.keep = False

    def receive(self):
        """False if the peer went before it was whole."""
        params = []
        body = []
        while True:
            rec = self.conn.read_record()
            if rec is None:
                return False
            kind, rid, content = rec
            if kind == fcgi.BEGIN:
                self.rid, self.keep = rid, bool(content[2] & fcgi.KEEP)
            elif kind == fcgi.PARAMS:
                params.append(content)
                # Each record by itself, as php-fpm reads them.
                self.items += fcgi.read_pairs(content)
            elif kind == fcgi.STDIN:
                body.append(content)
                if not content:
                    break
            else:
                raise AssertionError("record type %d came" % kind)
        self.body = b"".join(body)
        return True

    def param(self, name):
        values = [v for n, v in self.items if n == fcgi.as_bytes(name)]
        return values[0].decode() if values else None

    def raw(self, data):
        self.conn.send(data)

    def write(self, data, chunk=fcgi.CONTENT_MAX, padding=0):
        data = fcgi.as_bytes(data)
        self.raw(fcgi.stream(
            fcgi.STDOUT, data, self.rid, chunk, padding, end=False))

    def end(self, app_status=0, protocol_status=fcgi.COMPLETE):
        body = app_status.to_bytes(4, "big") + bytes([protocol_status, 0, 0, 0])
        self.raw(fcgi.record(fcgi.STDOUT, b"", self.rid)
                 + fcgi.record(fcgi.END, body, self.rid))

    def answer(self, body=b"", head="Content-Type: text/plain\r\n"):
        self.write(fcgi.as_bytes(head) + b"\r\n" + fcgi.as_bytes(body))
        self.end()


def echo(request):
    """Says what it was asked: a digest of the pairs, and of the body."""
    request.answer("%s %d %s" % (
        digest(request.items), len(request.body),
        hashlib.sha256(request.body).hexdigest()))


class Application:
    """Listens on a unix socket; a thread a connection runs handler(request).

    seen: how many requests arrived whole, on `accepted` connections.
    """

    def __init__(self, place, handler=echo, name="app", backlog=512):
        self.path = place / (name + ".s")
        self.option = "unix:" + self.path
        self.handler = handler
        self.errors = []
        self.seen = 0
        self.accepted = 0
        self.open = set()
        self.lock = threading.Lock()
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.bind(self.path)
        self.sock.listen(backlog)
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.sock.accept()
            except OSError:
                return
            conn = fcgi.Connection.__new__(fcgi.Connection)
            conn.sock, conn.buffer, conn.ended = sock, b"", False
            conn.seconds = 30.0
            with self.lock:
                self.open.add(conn)
                self.accepted += 1
            threading.Thread(
                target=self._serve, args=(conn,), daemon=True).start()

    def _serve(self, conn):
        try:
            while True:
                request = Request(conn)
                if not request.receive():
                    break
                with self.lock:
                    self.seen += 1
                self.handler(request)
                if not request.keep:
                    break
        except OSError:
            pass  # the gateway left, or the test closed us
        except Exception as error:  # shown when the test stops us
            self.errors.append(repr(error))
        finally:
            with self.lock:
                self.open.discard(conn)
            conn.close()

    def stop(self):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()
        self.thread.join(5.0)
        with self.lock:
            for conn in self.open:
                try:
                    conn.sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        assert not self.errors, self.errors


class Holding:
    """Holds /hold until told to go; answers the rest at once."""

    def __init__(self):
        self.go = threading.Event()
        self.inside = 0
        self.most = 0
        self.lock = threading.Lock()

    def __call__(self, request):
        if request.param("REQUEST_URI") == "/hold":
            with self.lock:
                self.inside += 1
                self.most = max(self.most, self.inside)
            self.go.wait(30.0)
            with self.lock:
                self.inside -= 1
        request.answer("ok")
