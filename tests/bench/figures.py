"""What a group has measured: for each name a figure of every round, or why
there is none. A failure is that of its figures; the others go on."""

import contextlib
import subprocess

from stand import Missing

EXPECTED = (Missing, OSError, AssertionError, ValueError,
            ArithmeticError, subprocess.SubprocessError)


class Figures:
    def __init__(self, say):
        self.values, self.missing, self.say = {}, {}, say

    def add(self, name, value):
        self.values.setdefault(name, []).append(value)
        self.say("%s: %g" % (name, value))

    @contextlib.contextmanager
    def trying(self, *names):
        """What fails herein is why these can not be had."""
        try:
            yield
        except EXPECTED as e:
            for name in names:
                reason = str(e) or type(e).__name__
                self.missing.setdefault(name, reason)
                self.say("%s: %s" % (name, reason))

    def of(self, name):
        """The figure of each round. A pair of names: the first over the
        second, each within its round."""
        if isinstance(name, tuple):
            over, under = map(self.of, name)
            return [a / b for a, b in zip(over, under)]
        if name in self.missing:
            raise Missing(self.missing[name])
        if name not in self.values:
            raise Missing("not measured")
        return self.values[name]
