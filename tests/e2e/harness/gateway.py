"""The program under test: started, asked, read and stopped."""

import glob
import os
import shlex
import signal
import socket
import subprocess

from harness import fcgi, process
from harness.deadline import SCALE, until
from harness.log import Log
from harness.systemd import activated

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../../.."))
APPS = os.path.join(ROOT, "tests", "apps")
BINARY = os.environ.get("SLUICE", os.path.join(ROOT, "build", "sluice"))
WRAPPER = shlex.split(os.environ.get("SLUICE_WRAPPER", ""))
COMPLAINTS = ("Sanitizer", "runtime error:", "== ERROR", "assertion")


def render(sections):
    """{"limit a": {"rate": "5/10s"}} as an INI file."""
    out = []
    for section, options in sections.items():
        out.append("[%s]" % section)
        for name, value in options.items():
            if isinstance(value, (list, tuple)):
                value = ", ".join(str(v) for v in value)
            out.append("%s = %s" % (name, value))
        out.append("")
    return "\n".join(out)


def listener(path, backlog=128):
    """A listening unix socket, as a spawner would hand it over."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.bind(path)
    sock.listen(backlog)
    return sock


def fd_names(pid):
    names = []
    for fd in glob.glob("/proc/%d/fd/*" % pid):
        try:
            names.append(os.readlink(fd))
        except OSError:
            pass
    return names


class Gateway(process.Process):
    count = 0

    def __init__(self, place, config, listen=None, stdin=None, nofile=None,
                 wait=True, closed=(), prologue=":", env=None, passed=(),
                 names=(), preexec_fn=None):
        """
        config: sections as a dict, or text. Unless it says otherwise it
        listens on a socket of its own in `place`. stdin: a listening
        socket to inherit instead. closed: descriptors closed at start.
        prologue: what a shell does first that then becomes the gateway.
        passed: sockets that systemd passes, and their names.
        """
        Gateway.count += 1
        self.number = Gateway.count
        self.closed = closed
        self.address = listen or place / ("s%d" % self.number)
        # Is its address that of who started it?
        self.inherits = listen is None and (stdin is not None or passed)
        if self.inherits:
            self.address = (stdin or passed[0]).getsockname()
        self.config_path = place / ("sluice%d.ini" % self.number)
        self.spool = place / ("spool%d" % self.number)
        os.mkdir(self.spool)
        self.write_config(config)
        self.links = 1  # to the store; opened when it pleases
        self.kept = 0  # connections that web servers keep as they please
        argv = WRAPPER + [BINARY, "serve", "-c", self.config_path]
        if passed:
            argv = activated(argv, [s.fileno() for s in passed], names)
        if nofile:
            argv = ["prlimit", "--nofile=%d:%d" % nofile] + argv
        if closed or prologue != ":":
            redirect = " ".join("%d>&-" % fd for fd in closed)
            argv = ["/bin/sh", "-c",
                    '%s; exec "$@" %s' % (prologue, redirect), "sh"] + argv
        super().__init__(
            place, "sluice%d" % self.number, argv,
            stdin=stdin if stdin is not None else subprocess.DEVNULL,
            stderr=subprocess.PIPE, env=env,
            pass_fds=[s.fileno() for s in passed], preexec_fn=preexec_fn)
        self.log = Log(self.popen.stderr)
        if wait:
            self.wait_ready()

    def sections(self, config):
        """With what every test wants: short paths, all requests logged."""
        out = {k: dict(v) for k, v in config.items()}
        gateway = out.setdefault("gateway", {})
        gateway.setdefault("spool_directory", self.spool)
        if not self.inherits and "listen" not in gateway:
            where = self.address
            gateway["listen"] = (
                "unix:" + where if isinstance(where, str)
                else "%s:%d" % where)
            gateway.setdefault("socket_mode", "0666")
        out.setdefault("log", {}).setdefault("access", "all")
        return out

    def write_config(self, config):
        text = config if isinstance(config, str) else render(
            self.sections(config))
        with open(self.config_path, "w") as f:
            f.write(text)

    def wait_ready(self):
        if 2 in self.closed:  # it can not say so
            self.wait_listening(self.address)
            return
        # It listens by then; a connection to try it would be one too many
        # in what tests count.
        self.log.wait_for("ready", 10.0)

    def wait_exit(self, seconds=10.0):
        code = super().wait_exit(seconds)
        self.log.wait_end()
        return code

    def output(self):
        text = super().output() + self.log.text()
        return text if len(text) < 20000 else "[...]" + text[-20000:]

    # Asking

    def connect(self, seconds=10.0):
        return fcgi.Connection(self.address, seconds)

    def ask(self, uri="/", body=b"", seconds=10.0, **kwargs):
        """One request; SCRIPT_FILENAME is that path under tests/apps."""
        kwargs.setdefault("SCRIPT_FILENAME", APPS + uri.partition("?")[0])
        with self.connect(seconds) as conn:
            return conn.ask(fcgi.env(uri, **kwargs), body)

    # Looking at it

    def open_descriptors(self):
        """What is open, but for each worker's memfd and the store's link."""
        return sum("memfd:" not in name for name in fd_names(self.pid))

    def memory_kb(self, what="VmRSS"):
        """0 in an instrumented run (SLUICE_SLOW), whose memory is not ours."""
        if SCALE > 1:
            return 0
        with open("/proc/%d/status" % self.pid) as f:
            for line in f:
                if line.startswith(what + ":"):
                    return int(line.split()[1])
        raise AssertionError("no " + what)

    # Ending it

    def reload(self, config):
        mark = self.log.mark()
        self.write_config(config)
        self.signal(signal.SIGHUP)
        return mark

    def stop(self):
        """A clean stop: exit 0, no complaint, nothing left behind."""
        if not self.running():
            return self._ended(self.wait_exit(0.1))
        self.signal(signal.SIGTERM)
        try:
            code = self.wait_exit(10.0)
        except AssertionError:
            self.kill()
            raise
        return self._ended(code)

    def _ended(self, code):
        self.log.close()
        text = self.output()
        assert code == 0, "exit status %d\n%s" % (code, text)
        found = [c for c in COMPLAINTS if c in text]
        assert not found, "%s in the output:\n%s" % (found, text)
        assert os.listdir(self.spool) == [], "a spool file was left"
        if not self.inherits and isinstance(self.address, str):
            assert not os.path.exists(self.address), "its socket was left"
        return code

    def cpu_seconds(self):
        """What all its threads have computed so far."""
        spent = 0
        for path in glob.glob("/proc/%d/task/*/schedstat" % self.pid):
            with open(path) as f:
                spent += int(f.read().split()[0])
        return spent / 1e9

    def kill(self):
        super().kill()
        if not self.popen.stderr.closed:
            self.log.close()

    def wait_idle(self, descriptors, seconds=5.0):
        """No child, and no more descriptors than given."""
        until(lambda: not process.children(self.pid), seconds,
              "the gateway's children to be reaped")
        until(lambda: self.open_descriptors() <= descriptors, seconds,
              "descriptors: %s" % fd_names(self.pid))
