"""A peer that logs clients in as Redis does, and then says what it likes."""

import hashlib
import os
import socket
import struct
import threading

from harness.deadline import SCALE, elapse

NOW = 1.7e15  # microseconds; what its clock shows
OK = b"+OK\r\n"


def doubles(*figures):
    """As the scripts pack them."""
    return struct.pack("<%dd" % len(figures), *figures)


def bulk(data):
    return b"$%d\r\n%s\r\n" % (len(data), data)


def array(*items):
    return b"*%d\r\n" % len(items) + b"".join(items)


def decision(*figures, now=NOW):
    """What the script says of a request with one check."""
    return array(bulk(doubles(now)), bulk(doubles(*figures)))


def requests(words):
    """How many of them a call of the script for checks is about."""
    records, at, count = words[-1], 0, 0
    while at < len(records):
        at += 4 + struct.unpack_from("<H", records, at + 2)[0]
        count += 1
    return count


def refunds(words):
    """How many leaky buckets, and of no other limits, one is told of."""
    records, at, count = words[-1], 0, 0
    while at < len(records):
        checks = records[at]
        at += 9  # and when they were taken
        for _ in range(checks):
            assert records[at] % 8 == 4, "not a leaky bucket"
            at += 41 + (9 if records[at] & 32 else 0)
        count += checks
    return count


class FakeRedis:
    """Calls of scripts are answered with `say`, what logs in with `greet`.

    Each is bytes, or a function of the socket to write to and the command.
    loaded: the hashes of the scripts for checks, settlements and renewals.
    """

    def __init__(self, place, say, greet=OK, name="fake"):
        self.path = place / (name + ".s")
        self.say = say
        self.greet = greet
        self.loaded = []
        self.open = set()
        self.lock = threading.Lock()
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.bind(self.path)
        self.sock.listen(16)
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    @property
    def address(self):
        return "unix:" + self.path

    def _accept(self):
        while True:
            try:
                sock, _ = self.sock.accept()
            except OSError:
                return
            with self.lock:
                self.open.add(sock)
            threading.Thread(
                target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        try:
            with sock, sock.makefile("rb") as commands:
                while self._serve_one(sock, commands):
                    pass
        except OSError:
            pass  # the gateway has left, or the test has closed us
        finally:
            with self.lock:
                self.open.discard(sock)

    def _serve_one(self, sock, commands):
        """False at the end of the connection."""
        line = commands.readline()
        if not line:
            return False
        words = []
        for _ in range(int(line[1:])):
            size = int(commands.readline()[1:])
            words.append(commands.read(size + 2)[:-2])
        if words[0] == b"SCRIPT":
            self.loaded.append(hashlib.sha1(words[2]).hexdigest().encode())
        is_call = words[0] == b"EVALSHA" and words[2] != b"0"
        answer = self.say if is_call else self.greet
        if callable(answer):
            answer(sock, words)
        else:
            sock.sendall(answer)
        return True

    def stop(self):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()
        self.thread.join(5.0)
        with self.lock:
            for sock in self.open:
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        os.unlink(self.path)


class SlowRefunds(FakeRedis):
    """Delays each request by an hour, and takes its time to take it back."""

    def __init__(self, place, seconds, name="slow"):
        super().__init__(place, self._answer, name=name)
        self.seconds = seconds
        self.taken_back = 0

    def _answer(self, sock, words):
        if words[1] == self.loaded[0]:
            sock.sendall(array(bulk(doubles(NOW)), *[
                bulk(doubles(0, 9, 1e6, 1e6, 3.6e9, 10))
            ] * requests(words)))
        else:
            count = refunds(words)
            elapse(self.seconds / SCALE)
            self.taken_back += count
            sock.sendall(bulk(doubles(*[0] * count)))
