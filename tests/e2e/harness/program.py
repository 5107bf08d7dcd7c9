"""The program as a web server runs a CGI program: one process, one request."""

import os
import shutil
import subprocess

from harness import fcgi
from harness.deadline import Deadline
from harness.gateway import BINARY, COMPLAINTS, render
from harness.log import parse


# A busy machine is no outage.
PATIENT = {"timeout": "5s", "connect_timeout": "5s"}

# Those of the C library, which nobody else can set: posix_spawn ignores them.
RESERVED = 1 << 31 | 1 << 32


def signals(says):
    """What is blocked and what is ignored, as self.cgi tells."""
    return tuple(int(says[name], 16) & ~RESERVED
                 for name in ("SigBlk", "SigIgn"))


class Ran(fcgi.Response):
    """What it, or the script it became, said."""

    def __init__(self, popen, out, err):
        super().__init__()
        self.out, self.err = out, err
        self.pid, self.code = popen.pid, popen.returncode
        self.entries = [parse(line) for line in err.decode().split("\n")]

    def logged(self, event):
        return [e for e in self.entries if e.get("event") == event]

    @property
    def says(self):
        """The body's lines NAME=VALUE."""
        return dict(line.split("=", 1)
                    for line in self.body.decode().split("\n")
                    if "=" in line)


class Program:
    """A copy of the program that anybody may run, and its configuration."""

    def __init__(self, place, config, name="program"):
        self.place = place
        self.path = place / name
        shutil.copy(BINARY, self.path)
        os.chmod(self.path, 0o755)
        self.configure(config)

    def configure(self, config):
        """Sections; as for each test, all requests are logged."""
        if not isinstance(config, str):
            config = {k: dict(v) for k, v in config.items()}
            config.setdefault("gateway", {}).setdefault("roles", "cgi")
            config.setdefault("log", {}).setdefault("access", "all")
            config = render(config)
        self.config = self.place.write("program.ini", config)

    def environment(self, uri, script, **kwargs):
        kwargs.setdefault("SCRIPT_FILENAME", script)
        kwargs.setdefault("SLUICE_CONFIG", self.config)
        kwargs.setdefault("PATH", "/usr/bin:/bin")
        return {k: v for k, v in fcgi.env(uri, **kwargs)}

    def run(self, uri, script, body=b"", arguments=(), stdin=None, seconds=10,
            prologue=None, **kwargs):
        """
        script: what the web server says it is. stdin: instead of a pipe with
        the body. prologue: what a shell does first that then becomes it.
        """
        argv = [self.path, *arguments]
        if prologue:
            argv = ["/bin/sh", "-c", prologue + '; exec "$@"', "sh"] + argv
        with subprocess.Popen(
                argv, env=self.environment(uri, script, **kwargs),
                stdin=subprocess.PIPE if stdin is None else stdin,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE) as popen:
            try:
                out, err = popen.communicate(
                    body if stdin is None else None, Deadline(seconds).left())
            finally:
                if popen.poll() is None:
                    popen.kill()
        found = [c for c in COMPLAINTS if c.encode() in err]
        assert not found, err.decode("utf-8", "replace")
        return Ran(popen, out, err)
