"""The gateway's log, read as it is written."""

import fcntl
import re
import threading

from harness.deadline import Deadline, Late

OUTAGE = "store_outage"
RECOVERY = "store_recovered"

FIELD = re.compile(r'([^\s=]+)=("(?:[^"\\]|\\.)*"|[^\s]*)')
ESCAPE = re.compile(r"\\(u[0-9a-f]{4}|.)")


def unquote(value):
    if not value.startswith('"'):
        return value

    def one(match):
        word = match.group(1)
        return chr(int(word[1:], 16)) if word[0] == "u" else word

    return ESCAPE.sub(one, value[1:-1])


def parse(line):
    """A logfmt line as a dict; {} if it is none."""
    return {k: unquote(v) for k, v in FIELD.findall(line)}


# What the writer has in hand while we are slow: beyond it lines are lost.
PIPE_BYTES = 1 << 20


class Log:
    """Reads a pipe in a thread of its own, so that nothing is lost."""

    def __init__(self, pipe):
        self.pipe = pipe
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self.lines = []  # text
        self.entries = []  # dicts, one a line
        self.changed = threading.Condition()
        self.ended = False
        self.reads = threading.Event()
        self.go_on_reading()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        for raw in self.pipe:
            self.reads.wait()
            line = raw.decode("utf-8", "replace").rstrip("\n")
            with self.changed:
                self.lines.append(line)
                self.entries.append(parse(line))
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def stop_reading(self):
        """The pipe is full once PIPE_BYTES are in it."""
        self.reads.clear()

    def go_on_reading(self):
        self.reads.set()

    def wait_end(self):
        """What an ended writer left; a child of its may still have it open."""
        if self.reads.is_set():
            self.thread.join(1.0)

    def close(self):
        self.go_on_reading()
        self.thread.join(5.0)
        self.pipe.close()

    def mark(self):
        """A position: what comes later is after it."""
        with self.changed:
            return len(self.entries)

    def find(self, event, since=0, **fields):
        want = {"event": event, **fields}
        with self.changed:
            return [
                e for e in self.entries[since:]
                if all(e.get(k) == str(v) for k, v in want.items())
            ]

    def wait_for(self, event, seconds=5.0, since=0, count=1, **fields):
        """The first `count` such entries (the entry itself if one)."""
        deadline = Deadline(seconds, "the log's " + event)
        while True:
            with self.changed:
                found = self.find(event, since, **fields)
                if len(found) >= count:
                    return found[0] if count == 1 else found[:count]
                if self.ended or deadline.left() <= 0:
                    raise Late("no %s %s in the log" % (event, fields))
                self.changed.wait(deadline.left())

    def text(self):
        with self.changed:
            return "\n".join(self.lines)
