"""A command as a person runs it at a terminal: read, and ended by Ctrl-C."""

import os
import selectors
import shutil
import signal
import subprocess
import tempfile

from harness import process
from harness.deadline import Deadline, until

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))


class Command:
    """Runs in a session of its own, as at a terminal; a context manager that
    checks that nothing is left: no process, no directory."""

    def __init__(self, *argv, **env):
        process.become_reaper()
        self.place = tempfile.mkdtemp(prefix="sl", dir="/tmp")
        os.chmod(self.place, 0o755)
        env["TMPDIR"] = self.place
        self.popen = subprocess.Popen(
            argv, cwd=ROOT, env=dict(os.environ, **env),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True)
        self.text = ""

    def read_until(self, words, seconds=60.0):
        """All it said, once `words` are in it; None: once it has ended."""
        deadline = Deadline(seconds, "%r in: " % words)
        with selectors.DefaultSelector() as selector:
            selector.register(self.popen.stdout, selectors.EVENT_READ)
            while words is None or words not in self.text:
                if not selector.select(deadline.left()):
                    raise AssertionError("not said: %r\n%s"
                                         % (words, self.text))
                chunk = os.read(self.popen.stdout.fileno(), 65536)
                if not chunk:
                    assert words is None, self.text
                    break
                self.text += chunk.decode("utf-8", "replace")
        return self.text

    def wait(self, seconds=60.0):
        self.read_until(None, seconds)
        return self.popen.wait(seconds)

    def passes(self, seconds):
        """The given time, in which the command must not end."""
        try:
            self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return
        raise AssertionError("ended early:\n" + self.text)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if self.popen.poll() is None:
            os.killpg(self.popen.pid, signal.SIGINT)
            self.wait(30.0)
        self.popen.stdout.close()
        left = process.group_members(self.popen.pid)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        until(lambda: not process.strays(), 5.0, "strays to end")
        files = os.listdir(self.place)
        shutil.rmtree(self.place)
        assert not left, "processes were left\n" + self.text
        assert not files, "files were left: %s" % files
