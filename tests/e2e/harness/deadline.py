"""Deadlines: every wait has one, and SLUICE_SLOW=1 stretches them all."""

import os
import select
import time

SCALE = 10.0 if os.environ.get("SLUICE_SLOW") == "1" else 1.0


class Late(AssertionError):
    """Something awaited did not happen in time."""


class Deadline:
    def __init__(self, seconds, what="an event"):
        self.what = what
        self.end = time.monotonic() + seconds * SCALE

    def left(self):
        """Seconds left, never negative."""
        return max(0.0, self.end - time.monotonic())

    def check(self):
        if self.left() <= 0:
            raise Late("waited too long for " + self.what)


def pause():
    """Gives way between two looks at a state that sends no event."""
    select.select([], [], [], 0.003)


def elapse(seconds):
    """Plays a peer that takes its time; never a way to await something."""
    select.select([], [], [], seconds * SCALE)


def until(predicate, seconds=5.0, what="a state"):
    """Looks until predicate() is true and returns its value."""
    deadline = Deadline(seconds, what)
    while True:
        value = predicate()
        if value:
            return value
        deadline.check()
        pause()


def timed(call, *args, **kwargs):
    """(result, seconds)"""
    start = time.monotonic()
    result = call(*args, **kwargs)
    return result, time.monotonic() - start
