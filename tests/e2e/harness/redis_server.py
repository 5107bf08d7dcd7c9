"""redis-server on a unix socket: no persistence, no port."""

import os
import signal

import redis

from harness import process
from harness.deadline import until


class Redis:
    def __init__(self, place, name="redis", options=()):
        self.place = place
        self.name = name
        self.options = list(options)
        self.path = place / (name + ".s")
        self.process = None
        self.start()

    @property
    def address(self):
        return "unix:" + self.path

    def start(self):
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.process = process.Process(self.place, self.name, [
            "redis-server", "--port", "0", "--unixsocket", self.path,
            "--save", "", "--appendonly", "no", "--dir", self.place.path,
            "--loglevel", "warning"] + self.options)
        self.process.wait_listening(self.path)

    def client(self, **kwargs):
        return redis.Redis(
            unix_socket_path=self.path, socket_timeout=10, **kwargs)

    def freeze(self):
        self.process.signal(signal.SIGSTOP)
        until(self._stopped, 2.0, "redis to stop")

    def _stopped(self):
        with open("/proc/%d/stat" % self.process.pid) as f:
            return f.read().rpartition(")")[2].split()[0] == "T"

    def thaw(self):
        self.process.signal(signal.SIGCONT)

    def kill(self):
        self.process.kill()

    def restart(self):
        self.kill()
        self.start()

    def stop(self):
        self.process.kill()
