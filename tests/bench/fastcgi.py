"""The FastCGI client of the end-to-end tests, for the bench."""

import os
import sys

sys.path.insert(0, os.path.join(
    os.path.dirname(os.path.realpath(__file__)), "../e2e"))

from harness import fcgi  # noqa: E402,F401
