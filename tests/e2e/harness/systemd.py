"""systemd as far as a service sees it: passed sockets, and who is told."""

import os
import socket
import sys

from harness.deadline import Deadline

ACTIVATE = os.path.join(os.path.dirname(__file__), "activate.py")


def activated(argv, passed, names=()):
    """The command that runs argv with these descriptors as 3, 4, ..."""
    return [sys.executable, "-B", ACTIVATE, ":".join(names),
            *(str(fd) for fd in passed), "--", *argv]


class Manager:
    """The socket that NOTIFY_SOCKET names."""

    def __init__(self, address):
        """A path, or @NAME for an abstract one."""
        self.address = address
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(address.replace("@", "\0"))

    def told(self, seconds=10.0):
        """The next message as a dict."""
        self.sock.settimeout(Deadline(seconds).left())
        lines = self.sock.recv(4096).decode().split("\n")
        return dict(line.split("=", 1) for line in lines)

    def nothing_more(self):
        self.sock.setblocking(False)
        try:
            return self.sock.recv(4096) is None
        except BlockingIOError:
            return True

    def close(self):
        self.sock.close()
