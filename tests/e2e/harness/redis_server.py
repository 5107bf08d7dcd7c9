"""redis-server on a unix socket: no persistence, no port.

Each of them is scanned before it goes: every key the program has written
there, in whatever test, has to expire.
"""

import os
import signal
import threading

import redis

from harness import process
from harness.deadline import until


class Redis:
    def __init__(self, place, name="redis", options=()):
        self.place = place
        self.name = name
        self.options = list(options)
        self.path = place / (name + ".s")
        self.password = None
        if "--requirepass" in self.options:
            self.password = options[options.index("--requirepass") + 1]
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

    def immortal(self):
        """Keys without a TTL; a key's own counts may be set for ever."""
        found = []
        for database in self.client(password=self.password).info("keyspace"):
            client = self.client(password=self.password, db=int(database[2:]))
            found += [k for k in client.scan_iter("sluice:*")
                      if not k.endswith(b":own") and client.pttl(k) == -1]
        return found

    def stop(self):
        found = []
        if self.process.running():
            self.thaw()
            found = self.immortal()
        self.process.kill()
        assert not found, "keys that never expire: %s" % found


def monitored(client, work):
    """What MONITOR printed during work()."""
    seen = []
    with client.monitor() as monitor:
        def read():
            for command in monitor.listen():
                seen.append(command["command"])
                if "the-end" in command["command"]:
                    return

        thread = threading.Thread(target=read)
        thread.start()
        work()
        client.echo("the-end")
        thread.join(10.0)
    return "\n".join(seen)
