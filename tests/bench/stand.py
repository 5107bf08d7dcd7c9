"""The servers that a part of the bench needs, in a directory of their own.

Each listens on loopback or a unix socket, is waited for, and is ended by its
pid; what can not be had is Missing, with a reason.
"""

import os
import shutil
import signal
import socket
import string
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
SLUICE = os.path.realpath(os.environ.get("SLUICE", "build/sluice"))
PROGRAMS = os.path.join(os.path.dirname(SLUICE), "tests/bench")
START_SECONDS = 10
END_SECONDS = 10


class Missing(Exception):
    """Why a figure can not be had."""


class Template(string.Template):
    """@{name}: $ and % are the servers' own."""
    delimiter = "@"


def program(name):
    """Where it is: ours, or one of the system's."""
    own = os.path.join(PROGRAMS, name)
    found = own if os.path.exists(own) else shutil.which(name)
    if not found:
        raise Missing("not installed: " + name)
    return found


def options():
    """What the binary knows: {"[section] key": its line}."""
    said = subprocess.run([SLUICE, "options"], capture_output=True, text=True,
                          check=True, timeout=10).stdout
    return {line.split(":")[0]: line for line in said.splitlines()}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def accepts(address):
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(1)
        return s.connect_ex(address) == 0


def listen(path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(4096)
    return listener


class Stand:
    """Servers; a context manager that ends them."""

    def __init__(self):
        self.run = tempfile.mkdtemp(prefix="sluice.")
        os.chmod(self.run, 0o755)
        self.started = []
        self.known = options()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for server in reversed(self.started):
            if server.poll() is None:
                server.terminate()
        for server in reversed(self.started):
            self.end(server)
        shutil.rmtree(self.run, ignore_errors=True)

    @staticmethod
    def end(server):
        """Waits for one that was told to end."""
        try:
            server.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()

    def stop(self, server):
        server.terminate()
        self.end(server)

    def path(self, name):
        return os.path.join(self.run, name)

    def fill(self, template, file, **values):
        """Writes conf/TEMPLATE, filled in, as FILE; returns its path."""
        with open(os.path.join(HERE, "conf", template)) as f:
            text = Template(f.read()).substitute(run=self.run, **values)
        with open(self.path(file), "w") as f:
            f.write(text)
        return self.path(file)

    def start(self, name, argv, answers, stdin=subprocess.DEVNULL, **env):
        """A server that soon accepts at `answers`."""
        log_path = self.path(name + ".out")
        with open(log_path, "wb") as log:
            server = subprocess.Popen(
                [program(argv[0])] + argv[1:], stdin=stdin, stdout=log,
                stderr=log, env=dict(os.environ, **env),
                start_new_session=True)
        self.started.append(server)
        deadline = time.monotonic() + START_SECONDS
        while not accepts(answers):
            try:
                server.wait(0.02)
            except subprocess.TimeoutExpired:
                if time.monotonic() < deadline:
                    continue
            with open(log_path, errors="replace") as log:
                raise Missing("%s did not start: %s" % (
                    name, " ".join(log.read().split())[:200]))
        return server
