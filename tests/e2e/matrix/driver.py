"""Starts a set-up of examples/ with its own `run`, and looks at what it holds.

It runs from a copy: scripts of tests/apps are added to its pages, and its
limits make way for the test's, each of which counts by the header X-Key.
"""

import glob
import os
import random
import re
import shutil
import signal
import socket

from harness import process
from harness.deadline import Deadline, pause, until
from harness.gateway import APPS, BINARY, fd_names

from setups import EXAMPLES

MANY = 50  # how often a client `many-...` may ask

LIMITS = """
[limit once]
key = header:X-Key
missing_key = skip
header = X-Key=once-*
rate = 1/1h
algorithm = fixed_window
align = first

[limit many]
key = header:X-Key
missing_key = skip
header = X-Key=many-*
rate = %d/1h
algorithm = fixed_window
align = first
""" % MANY

SCRIPTS = ("data", "sha", "late", "dies", "endless")
SMALL = {".php": "ok", ".cgi": "hello"}


def sections(text):
    """[(heading, lines)] of an INI file; "" is what precedes the first."""
    out = [("", [])]
    for line in text.splitlines():
        heading = re.match(r"\[(.*)\]", line)
        if heading:
            out.append((heading.group(1), []))
        else:
            out[-1][1].append(line)
    return out


def backend(name, path, lines, **options):
    """A backend as the default one, but for these options."""
    kept = [line for line in lines
            if line.partition("=")[0].strip() not in options]
    return "\n".join(["[backend %s]" % name, "path = " + path, *kept,
                      *("%s = %s" % item for item in options.items()), ""])


def with_limits(text):
    """That configuration with the test's limits in place of its own."""
    out = []
    for heading, lines in sections(text):
        if heading.startswith(("limit ", "tier ")):
            continue
        if heading:
            out.append("[%s]" % heading)
        if heading == "store" and "memory:" not in "".join(lines):
            # A busy machine is no outage.
            lines = ["timeout = 5s", "connect_timeout = 5s"] + [
                line for line in lines if "timeout" not in line]
        out += lines
        if heading == "backend default" and "fastcgi" in "".join(lines):
            out.append(backend("dead", "/dead*", lines,
                               address="unix:${RUN}/nobody.sock"))
            out.append(backend("late", "/late*", lines,
                               first_byte_timeout="300ms"))
        elif heading == "backend default" and "= cgi" in "".join(lines):
            out.append(backend("late", "/late*", lines, run_timeout="300ms"))
    return "\n".join(out) + LIMITS


def free_ports(count=10):
    """The first of so many in a row, none of them what a client is given."""
    while True:
        port = random.randrange(12000, 32000 - count)
        try:
            for number in range(port, port + count):
                with socket.socket() as s:
                    s.bind(("", number))
        except OSError:
            continue
        return port


def tree(pid):
    """The pids of a process and all below it."""
    found, rest = [], [pid]
    while rest:
        found.append(rest.pop())
        rest += process.children(found[-1])
    return found


def name_of(pid):
    try:
        with open("/proc/%d/comm" % pid) as f:
            return f.read().strip()
    except OSError:
        return ""


def resident_kb(pid):
    """What is its own alone: the pages of the program are not."""
    try:
        with open("/proc/%d/status" % pid) as f:
            return int(re.search(r"RssAnon:\s+(\d+)", f.read()).group(1))
    except (OSError, AttributeError):
        return 0


class Running(process.Process):
    """A set-up that answers on `port`."""

    def __init__(self, place, setup):
        self.place = place
        self.setup = setup
        self.port = free_ports()
        self.home = place / setup.directory
        self.marks = place / "marks"
        self.temporary = place / "tmp"
        for path in (self.marks, self.temporary):
            os.mkdir(path)
            os.chmod(path, 0o1777)
        self.copy()
        super().__init__(
            place, setup.directory, [os.path.join(self.home, "run")],
            env={**os.environ, **setup.env, "SLUICE": BINARY,
                 "PORT": str(self.port), "TMPDIR": self.temporary})
        self.wait_ready()

    def copy(self):
        shutil.copy(os.path.join(EXAMPLES, "lib.sh"), self.place.path)
        shutil.copytree(os.path.join(EXAMPLES, self.setup.directory),
                        self.home)
        names = SCRIPTS + (SMALL[self.setup.ext],)
        htdocs = os.path.join(self.home, self.setup.htdocs)
        for name in names:
            shutil.copy(os.path.join(APPS, name + self.setup.ext), htdocs)
        shutil.copy(os.path.join(htdocs, "data" + self.setup.ext),
                    os.path.join(htdocs, "dead" + self.setup.ext))
        path = os.path.join(self.home, "sluice.ini")
        with open(path) as f:
            text = f.read()
        with open(path, "w") as f:
            f.write(with_limits(text))

    def wait_ready(self):
        deadline = Deadline(30.0, "the set-up to say that it is ready")
        while "127.0.0.1:%d" % self.port not in self.output():
            assert self.running(), self.output()
            deadline.check()
            pause()

    def uri(self, name):
        return "/" + SMALL.get(self.setup.ext) + self.setup.ext \
            if name == "small" else "/" + name + self.setup.ext

    # What it holds

    def gateways(self):
        return [pid for pid in tree(self.pid) if name_of(pid) == "sluice"]

    def open_descriptors(self):
        """Of the gateway that has the most."""
        return max([0] + [
            sum("memfd:" not in name for name in fd_names(pid))
            for pid in self.gateways()])

    def spools(self):
        return [name for pid in self.gateways() for name in fd_names(pid)
                if name.startswith("/") and name.endswith(" (deleted)")
                and "memfd:" not in name]

    def scripts(self):
        """Children of gateways."""
        return sum([process.children(pid) for pid in self.gateways()], [])

    def wait_idle(self, descriptors, seconds=10.0):
        until(lambda: not self.scripts(), seconds, "scripts to end")
        until(lambda: not self.spools(), seconds, "spool files to go")
        until(lambda: self.open_descriptors() <= descriptors, seconds,
              "descriptors: %s" % [fd_names(p) for p in self.gateways()])

    def logs(self):
        """The last lines of each server's log."""
        out = []
        for path in glob.glob(self.temporary + "/*/*.log"):
            with open(path, errors="replace") as f:
                out += [os.path.basename(path) + ":"] + f.readlines()[-30:]
        return "\n".join(map(str.rstrip, out))

    # Ending it

    def end(self, number=signal.SIGTERM):
        """As its README says: Ctrl-C (to the whole group), or TERM to it."""
        everyone = tree(self.pid)
        if number == signal.SIGINT:
            os.killpg(self.pid, number)
        else:
            self.signal(number)
        code = self.wait_exit(20.0)
        assert code == 0, "exit status %d: %s" % (code, self.output())
        # A web server ends without waiting for what it has told to end.
        until(lambda: not any(map(process.alive, everyone)), 10.0,
              "the end of %s" % [(pid, name_of(pid)) for pid in everyone
                                 if process.alive(pid)])
        assert os.listdir(self.temporary) == [], "files were left"
        assert not process.can_connect(("127.0.0.1", self.port))

    def kill(self):
        """All of it: Apache has a process group of its own."""
        everyone = tree(self.pid)
        super().kill()
        for pid in everyone:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
