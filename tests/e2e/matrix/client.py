"""An HTTP client that reads while it sends, as an early refusal wants it."""

import http.client
import socket
import struct
import threading

from harness.deadline import Deadline
from harness.web import Answer

PIECE = 65536


def send_quietly(sock, pieces):
    """What cannot be sent is not wanted: the answer tells why."""
    try:
        for piece in pieces:
            sock.sendall(piece)
    except OSError:
        pass


def whole(body):
    return (body[i:i + PIECE] for i in range(0, len(body), PIECE))


def chunks(body, size=7000):
    for i in range(0, len(body), size):
        piece = body[i:i + size]
        yield b"%x\r\n%s\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


def ask(port, uri, method="GET", body=None, key=None, chunked=False,
        seconds=30.0):
    """One request on a connection of its own, of the client `key`."""
    conn = http.client.HTTPConnection(
        "127.0.0.1", port, timeout=Deadline(seconds).left())
    feeder = None
    try:
        conn.putrequest(method, uri)
        conn.putheader("Connection", "close")
        if key is not None:
            conn.putheader("X-Key", key)
        if chunked:
            conn.putheader("Transfer-Encoding", "chunked")
        elif body is not None:
            conn.putheader("Content-Length", str(len(body)))
        conn.endheaders()
        if body is not None:
            pieces = chunks(body) if chunked else whole(body)
            feeder = threading.Thread(
                target=send_quietly, args=(conn.sock, pieces))
            feeder.start()
        response = conn.getresponse()
        return Answer(response)
    finally:
        end(conn, feeder)


def end(conn, feeder):
    """Ends a sender that nobody listens to any more."""
    if conn.sock is not None:
        try:
            conn.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
    if feeder is not None:
        feeder.join()
    conn.close()


def begin(port, uri):
    """A request sent, its answer not read: the socket."""
    sock = socket.create_connection(("127.0.0.1", port), Deadline(10).left())
    sock.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % uri.encode())
    return sock


def abort(sock):
    """Gone at once, as a client that is switched off."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                    struct.pack("ii", 1, 0))
    sock.close()


def status_of(port, uri, seconds=30.0):
    """As ask(), for thousands: the status, and the bytes of it all."""
    with socket.create_connection(
            ("127.0.0.1", port), Deadline(seconds).left()) as sock:
        sock.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\n"
                     b"Connection: close\r\n\r\n" % uri.encode())
        answer = b""
        while data := sock.recv(65536):
            answer += data
    return int(answer.split(b" ", 2)[1])
