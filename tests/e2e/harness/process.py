"""Processes the tests start: each waited for, watched, and ended by pid."""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import tempfile

from harness.deadline import Deadline, pause, until

PR_SET_CHILD_SUBREAPER = 36
LIVE = []  # every Process not yet stopped, in order of start


def become_reaper():
    """Orphans of what we start become our children: none gets lost."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children(pid):
    """The pids of its children, zombies included."""
    found = []
    try:
        tasks = os.listdir("/proc/%d/task" % pid)
    except FileNotFoundError:
        return found
    for task in tasks:
        try:
            with open("/proc/%d/task/%s/children" % (pid, task)) as f:
                found += [int(word) for word in f.read().split()]
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def alive(pid):
    """Runs, that is: exists and is no zombie."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def strays():
    """Living children of ours that no Process owns; reaps dead orphans."""
    owned = {p.pid for p in LIVE}
    left = []
    for pid in children(os.getpid()):
        if pid in owned:
            continue
        try:
            if os.waitpid(pid, os.WNOHANG) == (0, 0):
                left.append(pid)
        except ChildProcessError:
            pass
    return left


class Place:
    """A short temporary directory (sun_path holds 107 bytes)."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="sl", dir="/tmp")
        os.chmod(self.path, 0o755)

    def __truediv__(self, name):
        return os.path.join(self.path, name)

    def write(self, name, content, mode=0o644):
        path = self / name
        os.makedirs(os.path.dirname(path), exist_ok=True)
        kind = "wb" if isinstance(content, bytes) else "w"
        with open(path, kind) as f:
            f.write(content)
        os.chmod(path, mode)
        return path

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def can_connect(address):
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(1.0)
        try:
            s.connect(address)
        except OSError:
            return False
    return True


class Process:
    """One server. Its output is kept in a file and shown on failure."""

    def __init__(self, place, name, argv, **popen):
        self.place = place
        self.name = name
        self.argv = argv
        self.output_path = place / (name + ".out")
        output = popen.pop("stderr", None)
        with open(self.output_path, "ab") as log:
            self.popen = subprocess.Popen(
                argv,
                stdin=popen.pop("stdin", subprocess.DEVNULL),
                stdout=popen.pop("stdout", log),
                stderr=output if output is not None else log,
                start_new_session=True,
                **popen,
            )
        self.pid = self.popen.pid
        LIVE.append(self)

    def output(self):
        with open(self.output_path, "rb") as f:
            return f.read().decode("utf-8", "replace")

    def running(self):
        return self.popen.poll() is None

    def wait_listening(self, address, seconds=10.0):
        deadline = Deadline(seconds, "%s to listen" % self.name)
        while not can_connect(address):
            if not self.running():
                raise AssertionError("%s ended: %s %s" % (
                    self.name, self.popen.returncode, self.output()))
            deadline.check()
            pause()

    def wait_exit(self, seconds=10.0):
        """The exit status, negative for a signal."""
        try:
            code = self.popen.wait(Deadline(seconds).left())
        except subprocess.TimeoutExpired:
            raise AssertionError("%s did not end" % self.name) from None
        self.forget()
        return code

    def forget(self):
        if self in LIVE:
            LIVE.remove(self)

    def signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        """Ends it and its group at once."""
        if self.popen.returncode is None:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.popen.wait()
        self.forget()
        until(lambda: not group_members(self.pid), 5.0, "a group to end")

    stop = kill


def group_members(group):
    """Living processes of a group among our descendants."""
    found = []
    for pid in strays():
        try:
            if os.getpgid(pid) == group and alive(pid):
                found.append(pid)
        except ProcessLookupError:
            pass
    return found
